/* exchange.h: one request and its reply, without the socket: routes, limits, waiting, streaming.
 * Runs in the thread of its connection, which it may block. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "http/core.h"
#include "http/format.h"
#include "http/guard.h"

typedef struct exchange {
    http_core *core;
    const char *method, *path, *peer; /* borrowed for the whole exchange */
    int fd;                       /* the client's socket, to see that it has left */
    uint64_t start_ns;
    buf body;
    uint64_t n_body;              /* received, kept or not */
    uint64_t n_held;              /* of these, counted in core->n_body_bytes */
    bool refused;                 /* the body is skipped and this is the answer */
    http_error refusal;
    const http_format *format;    /* of the path, or NULL */
    /* The reply, after exchange_answer. */
    int status;
    const char *content_type;
    const char *allow;            /* for 405 */
    const char *allow_origin;     /* for CORS, or NULL */
    const char *content_policy;   /* Content-Security-Policy, or NULL */
    unsigned retry_s;
    bool is_stream;
    buf out;                      /* the body; of a stream what is to be sent next */
    size_t n_sent;                /* of out */
    /* Of the request behind it. */
    void *state;                  /* the format's */
    job *job;
    job_batch batch;
    size_t i_event;               /* of the batch */
    bool ended, gone;
    http_reply reply;
    uint64_t sent_ns, looked_ns;  /* when something was sent, when the client was looked at */
    uint64_t done, total;         /* of the prompt */
    uint64_t n_out;               /* bytes, for the log */
} exchange;

/* What guard_check refuses is refused before the body comes: it is skipped, not kept.
 * content_length: as the client said, or 0. */
void exchange_init(exchange *x, http_core *core, const char *method, const char *path,
                   const guard_headers *headers, uint64_t content_length);
void exchange_fini(exchange *x); /* a request that still runs is cancelled; writes the log line */
/* A piece of the body. False: far too much comes, hang up. */
bool exchange_body(exchange *x, const char *data, size_t n_bytes);
/* The body is complete, or will not be looked at. Blocks until the reply is known or its stream has
 * begun. False: the client has left. */
bool exchange_answer(exchange *x);
/* The next bytes of a stream, at least one: blocks. 0 = its end, -1 = the client has left. */
long exchange_read(exchange *x, char *data, size_t size);

#endif
