/* job.h: one request from its acceptance to its last event: a mailbox between two threads.
 *
 * The worker puts events in and never waits for anybody; the connection takes them out at its
 * client's pace. What lies between is bounded by the reply, which the context bounds. */
#ifndef HTTP_JOB_H
#define HTTP_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/events.h"
#include "http/http.h"
#include "http/request.h"
#include "json/json_read.h"

typedef struct job_batch {
    http_event *events; /* texts are filled in by job_take */
    size_t *offsets;    /* of their texts, or in logprobs */
    size_t n, cap;
    buf text;
    smoe_logprobs *logprobs;
    size_t n_logprobs, cap_logprobs;
} job_batch;

typedef struct job {
    /* Set before it is queued, constant after. */
    const http_model *model;
    const smoe_chat_format *format;
    http_request request;
    json_value *variables; /* request.variables, parsed; NULL = none. Owned */
    smoe_ids ids;
    uint32_t max_tokens;
    char overrides[320];
    uint64_t deadline_ns;  /* 0 = none */
    /* Of the queue, under its lock. */
    struct job *next;
    unsigned n_overtaken;
    /* From here on under lock, except cancelled. */
    pthread_mutex_t lock;
    pthread_cond_t more;
    unsigned n_refs;
    atomic_bool cancelled; /* nobody will read the rest */
    job_batch pending;
    bool ended;            /* the last event was put in */
    http_end end;
    http_error error;
    uint64_t start_ns, begun_ns, first_ns, last_ns; /* accepted; taken by the worker; its first and
                                                       last token; 0 = not yet */
} job;

/* One reference, the caller's. */
smoe_status job_new(job **out, smoe_err *err);
void job_hold(job *j);
void job_release(job *j); /* the last one frees it; NULL is nothing */

/* For the worker. A refused allocation ends the job with an error event, which needs none. */
void job_put_text(job *j, enum http_event_kind kind, uint32_t index, slice text);
void job_put_logprobs(job *j, const smoe_logprobs *logprobs);
void job_put_progress(job *j, uint64_t done, uint64_t total);
void job_put_end(job *j, const http_end *end);
void job_put_error(job *j, const http_error *error);

/* For the connection: moves what has come into *batch, which is emptied before; waits for something
 * at most ms milliseconds. *ended: nothing will follow. */
void job_take(job *j, unsigned ms, job_batch *batch, bool *ended);
void job_cancel(job *j);

void job_batch_init(job_batch *b);
void job_batch_fini(job_batch *b);

#endif
