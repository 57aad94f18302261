/* format.h: one API: how it words requests, replies and errors. A format is a table of functions;
 * they run in the thread of a connection, are called by nobody else meanwhile, and may take what
 * time they need. None of them knows of queues, engines or sockets. */
#ifndef HTTP_FORMAT_H
#define HTTP_FORMAT_H

#include "base/slice.h"
#include "http/events.h"
#include "http/request.h"

typedef struct http_format {
    const char *path; /* "/v1/chat/completions"; requests come with POST */
    /* The body, any bytes. True: *request is filled (it was initialised; the caller ends it), and
     * *state is the format's memory for this exchange or NULL. False: *error says why; *state is
     * ended by the caller too. */
    bool (*parse)(slice body, http_request *request, void **state, http_error *error);
    void (*free_state)(void *state); /* NULL when there is none; takes NULL */
    /* Appends what a streaming client is sent for one event, perhaps nothing: complete SSE events
     * or comments. Also for END and ERROR, after which the stream ends. */
    smoe_status (*stream)(void *state, const http_reply *reply, const http_event *event, buf *out,
                          smoe_err *err);
    /* Appends the JSON of a whole reply. */
    smoe_status (*whole)(void *state, const http_reply *reply, const http_answer *answer, buf *out,
                         smoe_err *err);
    /* Appends the JSON of an error: the body of a reply with http_error_status. */
    smoe_status (*error)(const http_error *error, buf *out, smoe_err *err);
    /* Instead of generating: answers with the number of tokens of the prompt only
     * (count_tokens), or NULL. */
    smoe_status (*count)(void *state, const http_reply *reply, buf *out, smoe_err *err);
} http_format;

extern const http_format openai_chat_format, openai_completion_format, openai_embedding_format,
    openai_responses_format;
extern const http_format anthropic_format, anthropic_count_format;

#endif
