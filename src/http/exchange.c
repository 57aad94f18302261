/* exchange.c: see exchange.h. */
#include "http/exchange.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "http/access_log.h"
#include "http/openai.h"
#include "http/pages.h"

enum {
    LOOK_MS = 200,           /* how often the client is looked at while there is nothing to send */
    FIRST_WAIT_MS = 1000,    /* an error that comes within this time still has its own status */
    KEEPALIVE_MS = 1000,
    PIECE_BYTES = 1 << 16,
    OUT_MAX_BYTES = 512 << 20,
    SKIPPED_BODIES = 4,      /* bodies as large as allowed that are read only to be refused */
    BODIES_AT_ONCE = 4,      /* bodies as large as allowed that are kept at a time */
};

static const http_format *const formats[] = {
    &openai_chat_format,
    &openai_completion_format,
    &openai_embedding_format,
    &openai_responses_format,
    &anthropic_format,
    &anthropic_count_format,
};

static const http_format *find_format(const char *path)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(path, formats[i]->path) == 0) {
            return formats[i];
        }
    }
    return NULL;
}

void exchange_init(exchange *x, http_core *core, const char *method, const char *path,
                   const guard_headers *headers, uint64_t content_length)
{
    const http_options *options = core->options;
    *x = (exchange){.core = core, .method = method, .path = path, .fd = -1,
                    .start_ns = clock_ns(), .content_type = "application/json"};
    buf_init(&x->body, (size_t)options->max_body_bytes);
    buf_init(&x->out, OUT_MAX_BYTES);
    job_batch_init(&x->batch);
    x->format = find_format(path);
    x->allow_origin =
        guard_allows_origin(options, headers->origin) ? options->cors_origin : NULL;
    bool needs_key = !page_is_open(path) && strcmp(method, "OPTIONS") != 0;
    x->refused = !guard_check(options, headers, needs_key, &x->refusal);
    if (!x->refused && content_length > options->max_body_bytes) {
        x->refused = true;
        http_refuse(&x->refusal, HTTP_TOO_LARGE, NULL,
                    "the body has %llu bytes; this server takes %llu at most",
                    (unsigned long long)content_length,
                    (unsigned long long)options->max_body_bytes);
    }
    atomic_fetch_add(&core->n_exchanges, 1);
}

static void drop_body(exchange *x)
{
    atomic_fetch_sub(&x->core->n_body_bytes, x->n_held);
    x->n_held = 0;
    buf_fini(&x->body);
}

void exchange_fini(exchange *x)
{
    http_core *core = x->core;
    if (x->job != NULL && !x->ended) {
        metrics_disconnect(&core->metrics);
        job_cancel(x->job);
        queue_remove(&core->queue, x->job);
    }
    metrics_request(&core->metrics, x->gone ? 499 : x->status, clock_ns() - x->start_ns);
    access_log_write(x);
    job_release(x->job);
    job_batch_fini(&x->batch);
    if (x->format != NULL && x->format->free_state != NULL) {
        x->format->free_state(x->state);
    }
    drop_body(x);
    buf_fini(&x->out);
    atomic_fetch_sub(&core->n_exchanges, 1);
}

bool exchange_body(exchange *x, const char *data, size_t n_bytes)
{
    smoe_err err;
    uint64_t max = x->core->options->max_body_bytes;
    x->n_body += n_bytes;
    if (!x->refused && x->n_body > max) {
        x->refused = true;
        http_refuse(&x->refusal, HTTP_TOO_LARGE, NULL,
                    "the body has more than the %llu bytes that this server takes",
                    (unsigned long long)max);
    }
    if (!x->refused) {
        x->n_held += n_bytes;
        if (atomic_fetch_add(&x->core->n_body_bytes, n_bytes) + n_bytes > BODIES_AT_ONCE * max) {
            x->refused = true;
            http_refuse(&x->refusal, HTTP_QUEUE_FULL, NULL,
                        "the bodies of other requests fill the %llu bytes that this server keeps "
                        "for all of them; try again",
                        (unsigned long long)(BODIES_AT_ONCE * max));
        }
    }
    if (!x->refused && buf_append(&x->body, data, n_bytes, &err) != SMOE_OK) {
        x->refused = true;
        http_refuse(&x->refusal, HTTP_INTERNAL, NULL, "%s", err.text);
    }
    if (x->refused) {
        drop_body(x);
    }
    return x->n_body <= SKIPPED_BODIES * max;
}

/* A client that closed its side has gone: nothing here answers a half-open connection. */
static bool is_closed(const exchange *x)
{
    struct pollfd p = {.fd = x->fd, .events = POLLIN};
    char byte;
#ifdef POLLRDHUP
    p.events |= POLLRDHUP;
#endif
    if (x->fd < 0 || poll(&p, 1, 0) <= 0) {
        return false;
    }
#ifdef POLLRDHUP
    if ((p.revents & POLLRDHUP) != 0) {
        return true;
    }
#endif
    return (p.revents & (POLLERR | POLLHUP)) != 0 ||
           recv(x->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Looks now and then, also while events keep coming. */
static bool has_left(exchange *x)
{
    uint64_t now_ns = clock_ns();
    if (now_ns - x->looked_ns < LOOK_MS * 1000000ull) {
        return false;
    }
    x->looked_ns = now_ns;
    x->gone = is_closed(x);
    return x->gone;
}

/* ---- errors ---- */

static bool answer_error(exchange *x, const http_error *error)
{
    smoe_err err;
    x->status = http_error_status(error);
    x->retry_s = http_error_retry_s(error);
    x->is_stream = false;
    x->content_type = "application/json";
    buf_clear(&x->out);
    smoe_status status = x->format != NULL ? x->format->error(error, &x->out, &err)
                                           : openai_error(error, &x->out, &err);
    if (status != SMOE_OK) {
        buf_clear(&x->out);
        x->status = 500;
    }
    return true;
}

static bool answer_made(exchange *x, smoe_status status, const smoe_err *err)
{
    http_error error;
    if (status == SMOE_OK) {
        return true;
    }
    http_refuse(&error, HTTP_INTERNAL, NULL, "%s", err->text);
    return answer_error(x, &error);
}

/* ---- what the engine is asked ---- */

static void make_overrides(const http_request *r, char *text, size_t size)
{
    const http_sampling *s = &r->sampling;
    const struct {
        const char *key;
        bool has;
        double value;
    } numbers[] = {
        {"t", s->has_temperature, s->temperature},
        {"p", s->has_top_p, s->top_p},
        {"k", s->has_top_k, s->top_k},
        {"r", s->has_rep_penalty, s->rep_penalty},
        {"min_p", s->has_min_p, s->min_p},
        {"presence_penalty", s->has_presence_penalty, s->presence_penalty},
        {"frequency_penalty", s->has_frequency_penalty, s->frequency_penalty},
        {"logprobs", r->has_logprobs, r->n_top_logprobs},
    };
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].has) {
            n += (size_t)snprintf(text + n, size - n, "%s%s=%.9g", n > 0 ? " " : "",
                                  numbers[i].key, numbers[i].value);
        }
    }
    if (s->has_seed) { /* as a double it would lose its last digits */
        snprintf(text + n, size - n, "%ss=%llu", n > 0 ? " " : "", (unsigned long long)s->seed);
    }
}

static bool take_ids(job *j, http_error *error)
{
    uint32_t n_vocab = smoe_tokenizer_n_vocab(smoe_chat_format_tokenizer(j->format));
    j->ids = j->request.ids;
    j->request.ids = (smoe_ids){0};
    for (size_t i = 0; i < j->ids.len; i++) {
        if (j->ids.data[i] < 0 || (uint32_t)j->ids.data[i] >= n_vocab) {
            return http_refuse(error, HTTP_BAD_REQUEST, "prompt",
                               "prompt holds the token %d; this model knows 0 to %u",
                               (int)j->ids.data[i], n_vocab - 1);
        }
    }
    return true;
}

static bool tokenize(job *j, http_error *error)
{
    smoe_err err;
    http_request *r = &j->request;
    smoe_status status;
    if (r->is_chat) {
        status = smoe_chat_format_encode(j->format, r->messages.data, r->messages.len,
                                         r->variables.len > 0 ? r->variables.data : NULL, &j->ids,
                                         &err);
    } else if (r->ids.len > 0) {
        return take_ids(j, error);
    } else {
        status = smoe_tokenizer_encode(smoe_chat_format_tokenizer(j->format), r->prompt.data,
                                       r->prompt.len, &j->ids, &err);
    }
    if (status != SMOE_OK) {
        return http_refuse(error, status == SMOE_NOMEM ? HTTP_INTERNAL : HTTP_BAD_REQUEST,
                           r->is_chat ? "messages" : "prompt", "%s", err.text);
    }
    return true;
}

static bool check_length(job *j, http_error *error)
{
    const char *param = j->request.is_chat ? "messages" : "prompt";
    uint32_t n_ctx = j->model->n_ctx;
    if (j->ids.len == 0) {
        return http_refuse(error, HTTP_BAD_REQUEST, param, "the prompt has no tokens");
    }
    if (j->ids.len > n_ctx) {
        http_refuse(error, HTTP_CONTEXT_LENGTH, param,
                    "the prompt has %zu tokens, and the context of this model is %u; shorten the "
                    "conversation, or start smoe http with a larger --ctx", j->ids.len, n_ctx);
        error->n_prompt = j->ids.len;
        error->n_ctx = n_ctx;
        return false;
    }
    uint32_t left = j->ids.len < n_ctx ? n_ctx - (uint32_t)j->ids.len : 1;
    uint32_t wanted = j->request.max_tokens;
    j->max_tokens = wanted != 0 && wanted < left ? wanted : left;
    return true;
}

static bool prepare(exchange *x, http_error *error)
{
    job *j = x->job;
    smoe_err err;
    const http_options *options = x->core->options;
    if (!x->format->parse(buf_slice(&x->body), &j->request, &x->state, error)) {
        return false;
    }
    drop_body(x);
    if (j->request.has_tools && jr_parse(buf_slice(&j->request.variables), "the variables",
                                         &j->variables, &err) != SMOE_OK) {
        return http_refuse(error, HTTP_INTERNAL, NULL, "%s", err.text);
    }
    j->model = core_find_model(x->core, buf_slice(&j->request.model));
    if (j->model == NULL) {
        return http_refuse(error, HTTP_NO_SUCH_MODEL, "model",
                           "there is no model \"%.100s\" here; GET /v1/models lists them",
                           j->request.model.data);
    }
    if (core_format(x->core, j->model, &j->format, &err) != SMOE_OK) {
        return http_refuse(error, HTTP_INTERNAL, NULL, "%s", err.text);
    }
    if (j->request.has_tools &&
        !smoe_template_uses(smoe_chat_format_template(j->format), "tools")) {
        return http_refuse(error, HTTP_BAD_REQUEST, "tools",
                           "the chat template of %s has no place for tools", j->model->name);
    }
    if (!tokenize(j, error) || (x->format->count == NULL && !check_length(j, error))) {
        return false;
    }
    make_overrides(&j->request, j->overrides, sizeof j->overrides);
    j->deadline_ns =
        options->timeout_s ? x->start_ns + (uint64_t)options->timeout_s * 1000000000u : 0;
    x->reply = (http_reply){.created = (int64_t)time(NULL), .model = j->model->name,
                            .lineage = j->model->lineage,
                            .tokenizer = smoe_chat_format_tokenizer(j->format),
                            .n_prompt = j->ids.len,
                            .n_ctx = j->model->n_ctx};
    core_make_id(x->core, x->reply.id);
    return true;
}

static bool enqueue(exchange *x, http_error *error)
{
    switch (queue_put(&x->core->queue, x->job)) {
    case QUEUE_TAKEN:
        return true;
    case QUEUE_FULL:
        return http_refuse(error, HTTP_QUEUE_FULL, NULL,
                           "%u requests are waiting already; try again later",
                           x->core->options->max_waiting);
    default:
        return http_refuse(error, HTTP_UNAVAILABLE, NULL, "the server ends");
    }
}

/* ---- replies ---- */

/* While it waits for its turn nobody else looks at its time. */
static void end_if_late(exchange *x)
{
    http_error error;
    if (x->job->deadline_ns != 0 && clock_ns() > x->job->deadline_ns &&
        queue_remove(&x->core->queue, x->job)) {
        http_refuse_late(&error, x->core->options->timeout_s);
        job_put_error(x->job, &error);
    }
}

/* The next event of the request, waiting for it at most ms; NULL: none came, or all have. */
static const http_event *next_event(exchange *x, unsigned ms)
{
    bool ended;
    if (x->i_event == x->batch.n) {
        x->i_event = 0;
        end_if_late(x);
        job_take(x->job, ms, &x->batch, &ended);
    }
    return x->i_event < x->batch.n ? &x->batch.events[x->i_event++] : NULL;
}

static bool is_last(const http_event *event)
{
    return event->kind == HTTP_EVENT_END || event->kind == HTTP_EVENT_ERROR;
}

static bool answer_whole(exchange *x)
{
    http_answer answer;
    smoe_err err;
    smoe_status status = SMOE_OK;
    http_answer_init(&answer);
    while (!x->ended && status == SMOE_OK) {
        const http_event *event = next_event(x, LOOK_MS);
        if (event != NULL && event->kind == HTTP_EVENT_ERROR) {
            x->ended = true;
            answer_error(x, event->error);
        } else if (event != NULL) {
            status = http_answer_add(&answer, event, &err);
            x->ended = is_last(event);
        }
        if (!x->ended && has_left(x)) {
            http_answer_fini(&answer);
            return false;
        }
    }
    if (status == SMOE_OK && x->status == 0) {
        x->status = 200;
        status = x->format->whole(x->state, &x->reply, &answer, &x->out, &err);
    }
    http_answer_fini(&answer);
    return answer_made(x, status, &err);
}

static smoe_status put_event(exchange *x, const http_event *event, smoe_err *err)
{
    if (event->kind == HTTP_EVENT_WAITING) {
        x->done = event->done;
        x->total = event->total;
    } else if (is_last(event)) {
        x->ended = true;
    }
    x->sent_ns = clock_ns();
    return x->format->stream(x->state, &x->reply, event, &x->out, err);
}

/* Streams begin late: an error that comes first, or at once, is a reply with its own status. */
static bool begin_stream(exchange *x)
{
    smoe_err err;
    http_event begin = {.kind = HTTP_EVENT_BEGIN};
    uint64_t until_ns = clock_ns() + FIRST_WAIT_MS * 1000000ull;
    const http_event *event = NULL;
    while (event == NULL && clock_ns() < until_ns) {
        event = next_event(x, LOOK_MS);
        if (event == NULL && has_left(x)) {
            return false;
        }
    }
    if (event != NULL && event->kind == HTTP_EVENT_ERROR) {
        x->ended = true;
        return answer_error(x, event->error);
    }
    x->status = 200;
    x->is_stream = true;
    x->content_type = "text/event-stream";
    smoe_status status = put_event(x, &begin, &err);
    if (status == SMOE_OK && event != NULL) {
        status = put_event(x, event, &err);
    }
    return answer_made(x, status, &err);
}

static bool generate(exchange *x)
{
    http_error error;
    smoe_err err;
    if (job_new(&x->job, &err) != SMOE_OK) {
        return answer_made(x, SMOE_NOMEM, &err);
    }
    if (!prepare(x, &error)) {
        x->ended = true;
        return answer_error(x, &error);
    }
    if (x->format->count != NULL) {
        x->ended = true;
        x->status = 200;
        return answer_made(x, x->format->count(x->state, &x->reply, &x->out, &err), &err);
    }
    if (!enqueue(x, &error)) {
        x->ended = true;
        return answer_error(x, &error);
    }
    return x->job->request.stream ? begin_stream(x) : answer_whole(x);
}

bool exchange_answer(exchange *x)
{
    http_error error;
    if (x->refused) {
        return answer_error(x, &x->refusal);
    }
    if (x->format != NULL && strcmp(x->method, "POST") == 0) {
        return generate(x);
    }
    if (strcmp(x->method, "OPTIONS") == 0) {
        x->status = 204;
        x->allow = "GET, POST, OPTIONS";
        return true;
    }
    if (x->format != NULL) {
        x->allow = "POST, OPTIONS";
        http_refuse(&error, HTTP_WRONG_METHOD, NULL, "%s takes POST, not %.20s", x->path,
                    x->method);
        return answer_error(x, &error);
    }
    return page_answer(x, &error) || answer_error(x, &error);
}

/* Fills out with what there is to send; waits for it. False: the client has left. */
static bool fill(exchange *x)
{
    smoe_err err;
    buf_clear(&x->out);
    x->n_sent = 0;
    /* What has piled up goes out together. */
    while (!x->ended &&
           (x->out.len == 0 || (x->i_event < x->batch.n && x->out.len < PIECE_BYTES))) {
        http_event waiting = {
            .kind = HTTP_EVENT_WAITING, .done = x->done, .total = x->total};
        const http_event *event = next_event(x, LOOK_MS);
        if (has_left(x)) {
            return false;
        }
        if (event == NULL) {
            if (clock_ns() - x->sent_ns < KEEPALIVE_MS * 1000000ull) {
                continue;
            }
            event = &waiting;
        }
        if (put_event(x, event, &err) != SMOE_OK) {
            return false;
        }
    }
    return true;
}

long exchange_read(exchange *x, char *data, size_t size)
{
    if (x->n_sent == x->out.len && !fill(x)) {
        x->gone = true;
        return -1;
    }
    size_t n = x->out.len - x->n_sent;
    n = n < size ? n : size;
    if (n > 0) {
        memcpy(data, x->out.data + x->n_sent, n);
    }
    x->n_sent += n;
    x->n_out += n;
    return (long)n;
}
