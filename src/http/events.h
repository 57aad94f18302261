/* events.h: what happens to a request, in order, independent of the API that will word it.
 *
 * A request that was accepted gives: WAITING any number of times, then CONTENT, REASONING and tool
 * events as they come, then exactly one END or ERROR. Text is valid UTF-8, cut between characters,
 * never empty, and holds nothing of a stop string. */
#ifndef HTTP_EVENTS_H
#define HTTP_EVENTS_H

#include <stdint.h>

#include "base/buf.h"
#include "http/error.h"
#include "smoe/logprobs.h"
#include "smoe/tokenizer.h"

enum http_event_kind {
    HTTP_EVENT_BEGIN,      /* the first one of a streamed reply; made by its connection */
    HTTP_EVENT_WAITING,    /* nothing has happened for a second, or a prompt advances: done, total
                              in tokens of the new suffix, both 0 while it waits for its turn */
    HTTP_EVENT_REASONING,  /* text */
    HTTP_EVENT_CONTENT,    /* text */
    HTTP_EVENT_LOGPROBS,   /* logprobs, of the next token outside reasoning; its text comes later */
    HTTP_EVENT_TOOL_BEGIN, /* text = the function's name; index counts a reply's calls from 0 */
    HTTP_EVENT_TOOL_INPUT, /* text = a piece of its arguments, which together are one JSON object */
    HTTP_EVENT_TOOL_END,
    HTTP_EVENT_END,        /* end */
    HTTP_EVENT_ERROR,      /* error */
};

enum http_fin {
    HTTP_FIN_STOP,        /* an end token */
    HTTP_FIN_STOP_STRING, /* stop string number i_stop of the request */
    HTTP_FIN_LENGTH,      /* max_tokens, or the context is full */
    HTTP_FIN_TOOLS,       /* an end token after at least one tool call */
    HTTP_FIN_CANCELLED,   /* the client went away: nobody will read this */
};

typedef struct http_end {
    enum http_fin fin;
    size_t i_stop;
    uint64_t n_prompt, n_cached;       /* tokens of the prompt; of these, found computed */
    uint64_t n_generated, n_reasoning; /* tokens of the reply; of these, inside its reasoning */
    double prefill_s, decode_s, hit;   /* negative where the engine does not say */
} http_end;

typedef struct http_event {
    enum http_event_kind kind;
    slice text; /* borrowed until the next event is asked for */
    uint32_t index;
    uint64_t done, total;
    const smoe_logprobs *logprobs; /* borrowed as text is */
    const http_end *end;
    const http_error *error;
} http_event;

/* Facts of one reply that every event may need. Texts are borrowed. */
typedef struct http_reply {
    char id[33];           /* 32 hex digits, unique */
    int64_t created;       /* Unix time */
    const char *model;     /* name of the model that answers */
    const char *lineage;
    const smoe_tokenizer *tokenizer; /* of that model, for the texts of logprobs */
    uint64_t n_prompt;     /* tokens */
    uint32_t n_ctx;
} http_reply;

/* A whole reply, for clients that do not stream. */
typedef struct http_tool_call {
    buf name, arguments;
} http_tool_call;

typedef struct http_answer {
    buf content, reasoning;
    http_tool_call *calls; /* owned */
    size_t n_calls;
    smoe_logprobs *logprobs; /* owned */
    size_t n_logprobs;
    http_end end;
} http_answer;

void http_answer_init(http_answer *a);
void http_answer_fini(http_answer *a);
/* Takes CONTENT, REASONING, LOGPROBS, tool events and END; the others are nothing to it. */
smoe_status http_answer_add(http_answer *a, const http_event *event, smoe_err *err);

#endif
