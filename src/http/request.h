/* request.h: what a client asks for, after its API's JSON is understood and before any model has
 * seen it. Every API (openai_*.c, ...) makes one of these; everything behind it knows no API. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "smoe/tokenizer.h"

enum { HTTP_MAX_STOPS = 16 };

/* Only what the client said: the engine's own defaults hold for the rest. */
typedef struct http_sampling {
    bool has_temperature, has_top_p, has_top_k, has_rep_penalty, has_seed, has_min_p,
        has_presence_penalty, has_frequency_penalty;
    double temperature, top_p, rep_penalty, min_p, presence_penalty, frequency_penalty;
    uint32_t top_k;
    uint64_t seed;
} http_sampling;

typedef struct http_request {
    buf model;               /* its name as the client wrote it; empty = the one that is loaded */
    bool is_chat;            /* messages and variables go through the template; else prompt, raw */
    buf messages;            /* JSON array of {"role","content",...}, as smoe_chat_format_encode
                                takes it: roles system, user, assistant, tool; content is a string;
                                tool calls as in OpenAI's API but with arguments as an object */
    buf variables;           /* JSON object of further template variables, or empty: "tools" (OpenAI
                                form: [{"type":"function","function":{...}}]), enable_thinking */
    buf prompt;              /* text to be continued, when !is_chat and ids is empty */
    smoe_ids ids;            /* the same as token ids */
    http_sampling sampling;
    uint32_t max_tokens;     /* 0 = what is left of the context; more than that is cut */
    buf stops[HTTP_MAX_STOPS]; /* none empty */
    size_t n_stops;
    bool has_tools;          /* tool calls in the reply become events */
    bool one_tool_call;      /* the reply ends after the first */
    bool has_logprobs;       /* LOGPROBS events come, with n_top_logprobs of the likeliest tokens */
    uint32_t n_top_logprobs; /* 0 .. SMOE_MAX_TOP_LOGPROBS */
    bool stream;
} http_request;

void http_request_init(http_request *r);
void http_request_fini(http_request *r);

#endif
