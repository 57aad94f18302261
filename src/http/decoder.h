/* decoder.h: the tokens of one reply into the events of its request. */
#ifndef HTTP_DECODER_H
#define HTTP_DECODER_H

#include "http/job.h"
#include "reply/reasoning.h"
#include "reply/stop.h"

typedef struct decoder {
    job *job;
    smoe_detok detok;
    reasoning split;
    stop stop;
    slice stops[HTTP_MAX_STOPS];
    uint64_t n_tokens, n_reasoning;
    smoe_status status; /* SMOE_NOMEM: text was lost, the reply cannot go on */
} decoder;

/* j is borrowed; its format, request and ids are read. */
void decoder_init(decoder *d, job *j);
void decoder_fini(decoder *d);
void decoder_token(decoder *d, int32_t id);
void decoder_finish(decoder *d); /* the tokens are over: passes on what was held back */
bool decoder_stopped(const decoder *d); /* at a stop string: no more tokens are wanted */

#endif
