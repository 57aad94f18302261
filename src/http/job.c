/* job.c: see job.h. */
#include "http/job.h"


#include "base/clock.h"
#include "base/mem.h"
#include "http/wait.h"

enum { PENDING_MAX_BYTES = 256 << 20 };

void job_batch_init(job_batch *b)
{
    *b = (job_batch){.n = 0};
    buf_init(&b->text, PENDING_MAX_BYTES);
}

void job_batch_fini(job_batch *b)
{
    mem_free(b->events);
    mem_free(b->offsets);
    mem_free(b->logprobs);
    buf_fini(&b->text);
}

/* Room for one more event. */
static bool batch_grow(job_batch *b)
{
    if (b->n < b->cap) {
        return true;
    }
    size_t cap = b->cap ? 2 * b->cap : 16;
    http_event *events = mem_realloc(b->events, cap * sizeof *events);
    b->events = events ? events : b->events;
    size_t *offsets = events ? mem_realloc(b->offsets, cap * sizeof *offsets) : NULL;
    b->offsets = offsets ? offsets : b->offsets;
    b->cap = offsets ? cap : b->cap;
    return offsets != NULL;
}

smoe_status job_new(job **out, smoe_err *err)
{
    job *j = mem_calloc(1, sizeof *j);
    if (j == NULL) {
        return err_nomem(err, "a request", sizeof *j);
    }
    http_request_init(&j->request);
    job_batch_init(&j->pending);
    /* Room for the end, whatever memory there is then. */
    if (!batch_grow(&j->pending)) {
        http_request_fini(&j->request);
        job_batch_fini(&j->pending);
        mem_free(j);
        return err_nomem(err, "a request", sizeof *j);
    }
    pthread_mutex_init(&j->lock, NULL);
    wait_init(&j->more);
    j->n_refs = 1;
    j->start_ns = clock_ns();
    *out = j;
    return SMOE_OK;
}

void job_hold(job *j)
{
    pthread_mutex_lock(&j->lock);
    j->n_refs++;
    pthread_mutex_unlock(&j->lock);
}

void job_release(job *j)
{
    if (j == NULL) {
        return;
    }
    pthread_mutex_lock(&j->lock);
    unsigned left = --j->n_refs;
    pthread_mutex_unlock(&j->lock);
    if (left > 0) {
        return;
    }
    pthread_mutex_destroy(&j->lock);
    pthread_cond_destroy(&j->more);
    http_request_fini(&j->request);
    smoe_ids_free(&j->ids);
    jr_free(j->variables);
    job_batch_fini(&j->pending);
    mem_free(j);
}

/* The last event; it takes the place of the one before when there is no room. */
static void put_last(job *j, http_event event)
{
    job_batch *b = &j->pending;
    if (!batch_grow(b)) {
        b->n--;
    }
    b->offsets[b->n] = 0;
    b->events[b->n++] = event;
    j->ended = true;
}

static void fail_for_memory(job *j)
{
    http_refuse(&j->error, HTTP_INTERNAL, NULL, "the server is out of memory");
    put_last(j, (http_event){.kind = HTTP_EVENT_ERROR, .error = &j->error});
}

void job_put_text(job *j, enum http_event_kind kind, uint32_t index, slice text)
{
    pthread_mutex_lock(&j->lock);
    job_batch *b = &j->pending;
    if (!j->ended) {
        size_t at = b->text.len;
        if (!batch_grow(b) || buf_append_slice(&b->text, text, NULL) != SMOE_OK) {
            fail_for_memory(j);
        } else {
            b->offsets[b->n] = at;
            b->events[b->n++] =
                (http_event){.kind = kind, .index = index, .text = {NULL, text.len}};
        }
    }
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}

static bool keep_logprobs(job_batch *b, const smoe_logprobs *logprobs)
{
    if (b->n_logprobs == b->cap_logprobs) {
        size_t cap = b->cap_logprobs ? 2 * b->cap_logprobs : 8;
        smoe_logprobs *grown = mem_realloc(b->logprobs, cap * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        b->logprobs = grown;
        b->cap_logprobs = cap;
    }
    b->logprobs[b->n_logprobs++] = *logprobs;
    return true;
}

void job_put_logprobs(job *j, const smoe_logprobs *logprobs)
{
    pthread_mutex_lock(&j->lock);
    job_batch *b = &j->pending;
    if (!j->ended) {
        if (!batch_grow(b) || !keep_logprobs(b, logprobs)) {
            fail_for_memory(j);
        } else {
            b->offsets[b->n] = b->n_logprobs - 1;
            b->events[b->n++] = (http_event){.kind = HTTP_EVENT_LOGPROBS};
        }
    }
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}

void job_put_progress(job *j, uint64_t done, uint64_t total)
{
    pthread_mutex_lock(&j->lock);
    job_batch *b = &j->pending;
    http_event event = {.kind = HTTP_EVENT_WAITING, .done = done, .total = total};
    if (!j->ended) {
        bool replaces = b->n > 0 && b->events[b->n - 1].kind == HTTP_EVENT_WAITING;
        if (replaces || batch_grow(b)) {
            b->n -= replaces;
            b->offsets[b->n] = 0;
            b->events[b->n++] = event;
        }
    }
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}

void job_put_end(job *j, const http_end *end)
{
    pthread_mutex_lock(&j->lock);
    if (!j->ended) {
        j->end = *end;
        put_last(j, (http_event){.kind = HTTP_EVENT_END, .end = &j->end});
    }
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}

void job_put_error(job *j, const http_error *error)
{
    pthread_mutex_lock(&j->lock);
    if (!j->ended) {
        j->error = *error;
        put_last(j, (http_event){.kind = HTTP_EVENT_ERROR, .error = &j->error});
    }
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}

void job_take(job *j, unsigned ms, job_batch *batch, bool *ended)
{
    uint64_t end_ns = clock_ns() + (uint64_t)ms * 1000000u;
    pthread_mutex_lock(&j->lock);
    while (j->pending.n == 0 && !j->ended && wait_until(&j->more, &j->lock, end_ns)) {
    }
    batch->n = 0;
    batch->n_logprobs = 0;
    buf_clear(&batch->text);
    /* An empty batch without memory would leave the worker without the room for its last event. */
    if (j->pending.n > 0 && batch_grow(batch)) {
        job_batch full = j->pending;
        j->pending = *batch;
        *batch = full;
    }
    *ended = j->ended && j->pending.n == 0;
    pthread_mutex_unlock(&j->lock);
    for (size_t i = 0; i < batch->n; i++) {
        http_event *e = &batch->events[i];
        if (e->kind == HTTP_EVENT_LOGPROBS) {
            e->logprobs = &batch->logprobs[batch->offsets[i]];
        } else if (e->text.len > 0) {
            e->text.data = batch->text.data + batch->offsets[i];
        }
    }
}

void job_cancel(job *j)
{
    atomic_store(&j->cancelled, true);
}
