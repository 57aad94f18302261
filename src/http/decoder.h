/* decoder.h: the tokens of one reply into the events of its request. */
#ifndef HTTP_DECODER_H
#define HTTP_DECODER_H

#include "http/job.h"
#include "reply/reply_parser.h"

typedef struct decoder {
    job *job;
    smoe_detok detok;
    reply_parser parser;
    slice stops[HTTP_MAX_STOPS];
    uint64_t n_tokens, n_reasoning;
    size_t n_calls;     /* that are complete */
    size_t i_stop;      /* the stop string that was found */
    smoe_status status; /* SMOE_NOMEM: text was lost, the reply cannot go on */
} decoder;

/* j is borrowed; its format, request and ids are read. */
void decoder_init(decoder *d, job *j);
void decoder_fini(decoder *d);
/* logprobs: NULL where none were asked for. */
void decoder_token(decoder *d, int32_t id, const smoe_logprobs *logprobs);
void decoder_finish(decoder *d); /* the tokens are over: passes on what was held back */
bool decoder_stopped(const decoder *d); /* at a stop string */
/* At a stop string, or after the only call that may be made: no more tokens are wanted. */
bool decoder_done(const decoder *d);

#endif
