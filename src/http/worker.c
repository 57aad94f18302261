/* worker.c: see worker.h. */
#include "http/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/decoder.h"

enum {
    SLICE_MS = 50,           /* how late a cancellation may be seen */
    STOP_TIMEOUT_MS = 10000, /* an engine that ignores CANCEL for so long hangs */
};

static void say(const worker *w, const char *fmt, const char *a, const char *b)
{
    char line[1024] = "smoe http: ";
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, fmt, a, b);
    w->options->log(w->options->ctx, line);
}

static void forget(worker *w)
{
    w->timeline.len = 0;
    atomic_store(&w->n_timeline, 0);
}

static void remember(worker *w, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (smoe_ids_push(&w->timeline, ids[i], NULL) != SMOE_OK) {
            forget(w); /* only the order of requests suffers */
            return;
        }
    }
    atomic_store(&w->n_timeline, w->timeline.len);
}

static void engine_lost(worker *w)
{
    w->up = false;
    forget(w);
    atomic_store(&w->state, WORKER_DOWN);
}

/* Waits for the answer to a RESET: the model is loaded then. */
static smoe_status await_load(worker *w, smoe_err *err)
{
    smoe_reply reply;
    TRY(smoe_client_send_reset(w->client, err));
    while (true) {
        if (atomic_load(&w->ending) || (!w->is_awaited && queue_is_over(w->queue))) {
            return err_set(err, SMOE_CANCELLED, "the server ends");
        }
        TRY(smoe_client_next(w->client, SLICE_MS, &reply, err));
        if (reply.kind == SMOE_REPLY_DONE) {
            return SMOE_OK;
        }
        if (reply.kind == SMOE_REPLY_ERROR) {
            return err_set(err, SMOE_CHILD, "the engine refuses to reset: %s", reply.error);
        }
    }
}

static smoe_status load(worker *w, const http_model *model, smoe_err *err)
{
    uint64_t start_ns = clock_ns();
    char seconds[32];
    atomic_store(&w->state, WORKER_LOADING);
    atomic_store(&w->model, model);
    forget(w);
    if (w->client != NULL && w->loaded != model) {
        smoe_client_free(w->client);
        w->client = NULL;
    }
    w->up = false;
    w->loaded = model;
    smoe_status status = w->client != NULL
                             ? smoe_client_restart(w->client, err)
                             : smoe_client_start(model->engine_argv, -1, &w->client, err);
    if (status == SMOE_OK) {
        status = await_load(w, err);
    }
    if (status != SMOE_OK) {
        engine_lost(w);
        return status;
    }
    w->up = true;
    w->proven = model;
    atomic_store(&w->state, WORKER_READY);
    snprintf(seconds, sizeof seconds, "%.1f", (double)(clock_ns() - start_ns) / 1e9);
    say(w, "%s is loaded (%s s)", model->name, seconds);
    return SMOE_OK;
}

/* The engine over that model, alive as far as can be known. */
static smoe_status ensure_engine(worker *w, const http_model *model, smoe_err *err)
{
    smoe_reply reply;
    if (w->up && w->loaded == model) {
        if (smoe_client_next(w->client, 0, &reply, err) == SMOE_OK) {
            return SMOE_OK;
        }
        say(w, "%s%s; starting it again", err->text, "");
        metrics_engine_death(w->metrics);
    }
    return load(w, model, err);
}

/* A model that cannot be had is one request's error: who names none gets the one from before. */
static void go_back(worker *w)
{
    smoe_err err;
    if (!atomic_load(&w->ending) && w->proven != NULL && w->proven != w->loaded &&
        load(w, w->proven, &err) != SMOE_OK) {
        say(w, "%s%s", err.text, "");
    }
}

/* ---- one request ---- */

typedef struct run {
    worker *w;
    job *job;
    decoder decoder;
    int32_t held;       /* a token whose log-probabilities are to come; -1 = none */
    uint64_t cancel_ns; /* when CANCEL was sent; 0 = not */
    bool timed_out;
} run;

static void cancel_if_due(run *r)
{
    job *j = r->job;
    if (r->cancel_ns != 0) {
        return;
    }
    r->timed_out = j->deadline_ns != 0 && clock_ns() > j->deadline_ns;
    if (r->timed_out || atomic_load(&j->cancelled) || atomic_load(&r->w->ending) ||
        decoder_done(&r->decoder) || r->decoder.status != SMOE_OK) {
        r->cancel_ns = clock_ns();
        smoe_client_cancel(r->w->client, NULL);
    }
}

static bool hangs(const run *r)
{
    return r->cancel_ns != 0 && clock_ns() - r->cancel_ns > STOP_TIMEOUT_MS * 1000000ull;
}

static void finish(run *r, const smoe_reply *reply)
{
    job *j = r->job;
    http_error error;
    decoder_finish(&r->decoder);
    bool cancelled = strcmp(reply->fin, "cancel") == 0 && !decoder_done(&r->decoder);
    if (r->decoder.status != SMOE_OK) {
        http_refuse(&error, HTTP_INTERNAL, NULL, "the server is out of memory");
        job_put_error(j, &error);
        return;
    }
    if (cancelled && r->timed_out) {
        http_refuse_late(&error, r->w->options->timeout_s);
        job_put_error(j, &error);
        return;
    }
    if (cancelled && atomic_load(&r->w->ending)) {
        http_refuse(&error, HTTP_UNAVAILABLE, NULL, "the server ends; send the request again");
        job_put_error(j, &error);
        return;
    }
    http_end end = {
        .fin = decoder_stopped(&r->decoder)        ? HTTP_FIN_STOP_STRING
               : cancelled                         ? HTTP_FIN_CANCELLED
               : strcmp(reply->fin, "length") == 0 ? HTTP_FIN_LENGTH
               : r->decoder.n_calls > 0            ? HTTP_FIN_TOOLS
                                                   : HTTP_FIN_STOP,
        .i_stop = r->decoder.i_stop,
        .n_prompt = j->ids.len,
        .n_cached = reply->n_cached,
        .n_generated = r->decoder.n_tokens,
        .n_reasoning = r->decoder.n_reasoning,
        .prefill_s = reply->prefill_s,
        .decode_s = reply->decode_s,
        .hit = reply->hit,
    };
    job_put_end(j, &end);
}

static void refused(run *r, const smoe_reply *reply)
{
    http_error error;
    if (strcmp(reply->error, "ctx_overflow") == 0) {
        http_refuse(&error, HTTP_CONTEXT_LENGTH, "messages",
                    "the prompt has %zu tokens, more than the context of %u", r->job->ids.len,
                    r->job->model->n_ctx);
        error.n_prompt = r->job->ids.len;
        error.n_ctx = r->job->model->n_ctx;
    } else {
        http_refuse(&error, HTTP_INTERNAL, NULL,
                    "the engine refused the request: %s; its reason is in the server's log",
                    reply->error);
    }
    job_put_error(r->job, &error);
}

static void decode_held(run *r, const smoe_logprobs *logprobs)
{
    if (r->held >= 0 && r->cancel_ns == 0) {
        decoder_token(&r->decoder, r->held, logprobs);
    }
    r->held = -1;
}

static void on_token(run *r, int32_t id)
{
    job *j = r->job;
    uint64_t now_ns = clock_ns();
    remember(r->w, &id, 1);
    if (r->cancel_ns != 0) {
        return; /* on its way when CANCEL was sent */
    }
    metrics_token(r->w->metrics, j->first_ns == 0 ? now_ns - j->start_ns : 0,
                  j->first_ns == 0 ? 0 : now_ns - j->last_ns);
    j->first_ns = j->first_ns != 0 ? j->first_ns : now_ns;
    j->last_ns = now_ns;
    decode_held(r, NULL);
    if (j->request.has_logprobs) {
        r->held = id;
    } else {
        decoder_token(&r->decoder, id, NULL);
    }
}

/* Until the engine has said its last word about it. SMOE_CHILD: it died, or was ended. */
static smoe_status converse(run *r, smoe_err *err)
{
    smoe_reply reply;
    while (true) {
        cancel_if_due(r);
        if (hangs(r)) {
            return err_set(err, SMOE_CHILD, "the engine did not stop within %d s",
                           STOP_TIMEOUT_MS / 1000);
        }
        TRY(smoe_client_next(r->w->client, SLICE_MS, &reply, err));
        switch (reply.kind) {
        case SMOE_REPLY_TOKEN:
            on_token(r, reply.id);
            break;
        case SMOE_REPLY_PROGRESS:
            job_put_progress(r->job, reply.done, reply.total);
            break;
        case SMOE_REPLY_DONE:
            decode_held(r, NULL);
            metrics_done(r->w->metrics, &reply);
            finish(r, &reply);
            return SMOE_OK;
        case SMOE_REPLY_ERROR:
            refused(r, &reply);
            return SMOE_OK;
        case SMOE_REPLY_LOGPROBS:
            decode_held(r, &reply.logprobs);
            break;
        case SMOE_REPLY_TIMEOUT:
            break;
        }
    }
}

static void unavailable(job *j, const smoe_err *err)
{
    http_error error;
    http_refuse(&error, HTTP_UNAVAILABLE, NULL, "%s; send the request again", err->text);
    job_put_error(j, &error);
}

static void run_job(worker *w, job *j)
{
    smoe_err err = {0};
    run r = {.w = w, .job = j, .held = -1};
    j->begun_ns = clock_ns();
    if (atomic_load(&j->cancelled)) {
        job_put_end(j, &(http_end){.fin = HTTP_FIN_CANCELLED});
        return;
    }
    w->is_awaited = true;
    smoe_status status = ensure_engine(w, j->model, &err);
    w->is_awaited = false;
    if (status != SMOE_OK) {
        say(w, "%s%s", err.text, "");
        unavailable(j, &err);
        go_back(w);
        return;
    }
    smoe_client_request request = {
        .ids = j->ids.data,
        .n_ids = j->ids.len,
        .max_tokens = j->max_tokens,
        .overrides = *j->overrides != '\0' ? j->overrides : NULL,
    };
    forget(w);
    remember(w, j->ids.data, j->ids.len);
    decoder_init(&r.decoder, j);
    status = smoe_client_send(w->client, &request, &err);
    if (status == SMOE_OK) {
        status = converse(&r, &err);
    }
    decoder_fini(&r.decoder);
    if (status == SMOE_OK) {
        return;
    }
    say(w, "%s%s; starting it again", err.text, "");
    unavailable(j, &err);
    engine_lost(w);
    metrics_engine_death(w->metrics);
    if (!atomic_load(&w->ending) && load(w, j->model, &err) != SMOE_OK) {
        say(w, "%s%s", err.text, "");
    }
}

static void *work(void *opaque)
{
    worker *w = opaque;
    smoe_err err = {0};
    job *j;
    smoe_status status = load(w, &w->options->models[0], &err);
    if (status != SMOE_OK && status != SMOE_CANCELLED) {
        queue_end(w->queue);
        w->options->failed(w->options->ctx, err.text);
    }
    while ((j = queue_take(w->queue, w->up ? w->loaded : NULL, &w->timeline)) != NULL) {
        metrics_running(w->metrics, 1);
        run_job(w, j);
        metrics_running(w->metrics, -1);
        job_release(j);
    }
    smoe_client_free(w->client);
    w->client = NULL;
    atomic_store(&w->finished, true);
    return NULL;
}

smoe_status worker_start(worker *w, const http_options *options, queue *q, metrics *m,
                         smoe_err *err)
{
    *w = (worker){.options = options, .queue = q, .metrics = m};
    atomic_store(&w->model, &options->models[0]);
    return pthread_create(&w->thread, NULL, work, w) == 0
               ? SMOE_OK
               : err_set(err, SMOE_NOMEM, "no thread for the engine can be made");
}

void worker_join(worker *w)
{
    pthread_join(w->thread, NULL);
    smoe_ids_free(&w->timeline);
}

void worker_cancel_all(worker *w)
{
    atomic_store(&w->ending, true);
    queue_end(w->queue);
}
