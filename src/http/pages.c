/* pages.c: see pages.h. */
#include "http/pages.h"

#include <string.h>
#include <time.h>

#include "http/page.h"
#include "json/json_write.h"

typedef smoe_status page(exchange *x, buf *out, smoe_err *err);

static smoe_status health(exchange *x, buf *out, smoe_err *err)
{
    static const char *const names[] = {
        [WORKER_LOADING] = "loading", [WORKER_READY] = "ok", [WORKER_DOWN] = "down"};
    int state = atomic_load(&x->core->worker.state);
    json_writer w;
    x->status = state == WORKER_READY ? 200 : 503;
    x->retry_s = state == WORKER_READY ? 0 : 2;
    jw_init(&w, out);
    jw_begin_object(&w);
    jw_key(&w, "status");
    jw_cstr(&w, names[state]);
    jw_key(&w, "model");
    jw_cstr(&w, atomic_load(&x->core->worker.model)->name);
    jw_key(&w, "waiting");
    jw_uint(&w, queue_length(&x->core->queue));
    jw_end_object(&w);
    return jw_finish(&w, err);
}

/* Members of OpenAI's API and of Anthropic's: none has two meanings. */
static void put_model(json_writer *w, const http_core *core, const http_model *model)
{
    char created[32] = "";
    time_t seconds = (time_t)model->created;
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL) {
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    jw_begin_object(w);
    jw_key(w, "id");
    jw_cstr(w, model->name);
    jw_key(w, "object");
    jw_cstr(w, "model");
    jw_key(w, "created");
    jw_int(w, model->created);
    jw_key(w, "owned_by");
    jw_cstr(w, "smoe");
    jw_key(w, "type");
    jw_cstr(w, "model");
    jw_key(w, "display_name");
    jw_cstr(w, model->name);
    jw_key(w, "created_at");
    jw_cstr(w, created);
    jw_key(w, "lineage");
    jw_cstr(w, model->lineage);
    jw_key(w, "context_length");
    jw_uint(w, model->n_ctx);
    jw_key(w, "loaded");
    jw_bool(w, atomic_load(&core->worker.model) == model &&
                   atomic_load(&core->worker.state) == WORKER_READY);
    jw_end_object(w);
}

static smoe_status models(exchange *x, buf *out, smoe_err *err)
{
    const http_options *options = x->core->options;
    json_writer w;
    jw_init(&w, out);
    jw_begin_object(&w);
    jw_key(&w, "object");
    jw_cstr(&w, "list");
    jw_key(&w, "data");
    jw_begin_array(&w);
    for (size_t i = 0; i < options->n_models; i++) {
        put_model(&w, x->core, &options->models[i]);
    }
    jw_end_array(&w);
    jw_key(&w, "has_more");
    jw_bool(&w, false);
    jw_key(&w, "first_id");
    jw_cstr(&w, options->models[0].name);
    jw_key(&w, "last_id");
    jw_cstr(&w, options->models[options->n_models - 1].name);
    jw_end_object(&w);
    return jw_finish(&w, err);
}

static smoe_status metrics_page(exchange *x, buf *out, smoe_err *err)
{
    http_core *core = x->core;
    const http_model *model = atomic_load(&core->worker.model);
    metrics_now now = {
        .n_waiting = queue_length(&core->queue),
        .n_connections = atomic_load(&core->n_connections),
        .n_ctx = model->n_ctx,
        .n_context_used = atomic_load(&core->worker.n_timeline),
        .is_up = atomic_load(&core->worker.state) == WORKER_READY,
        .model = model->name,
    };
    x->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return metrics_write(&core->metrics, &now, out, err);
}

static smoe_status talk(exchange *x, buf *out, smoe_err *err)
{
    x->content_type = "text/html; charset=utf-8";
    x->content_policy = page_policy;
    return buf_append(out, page_html, page_html_bytes, err);
}

static const struct {
    const char *path;
    page *run;
    bool open;
} pages[] = {
    {"/", talk, true},
    {"/health", health, true},
    {"/v1/models", models, false},
    {"/metrics", metrics_page, false},
};

enum { N_PAGES = sizeof pages / sizeof *pages };

bool page_is_open(const char *path)
{
    for (size_t i = 0; i < N_PAGES; i++) {
        if (strcmp(path, pages[i].path) == 0) {
            return pages[i].open;
        }
    }
    return false;
}

static bool made(smoe_status status, const smoe_err *err, http_error *error)
{
    return status == SMOE_OK || http_refuse(error, HTTP_INTERNAL, NULL, "%s", err->text);
}

static bool one_model(exchange *x, http_error *error)
{
    smoe_err err;
    json_writer w;
    const char *name = x->path + strlen("/v1/models/");
    const http_model *model = *name != '\0' ? core_find_model(x->core, slice_from(name)) : NULL;
    if (model == NULL) {
        return http_refuse(error, HTTP_NO_SUCH_MODEL, "model",
                           "there is no model \"%.100s\" here; GET /v1/models lists them", name);
    }
    jw_init(&w, &x->out);
    put_model(&w, x->core, model);
    return made(jw_finish(&w, &err), &err, error);
}

bool page_answer(exchange *x, http_error *error)
{
    smoe_err err;
    bool is_model = strncmp(x->path, "/v1/models/", 11) == 0;
    size_t i = 0;
    while (i < N_PAGES && strcmp(x->path, pages[i].path) != 0) {
        i++;
    }
    if (i == N_PAGES && !is_model) {
        return http_refuse(error, HTTP_NO_SUCH_PATH, NULL, "there is nothing at %.100s", x->path);
    }
    if (strcmp(x->method, "GET") != 0 && strcmp(x->method, "HEAD") != 0) {
        x->allow = "GET, HEAD, OPTIONS";
        return http_refuse(error, HTTP_WRONG_METHOD, NULL, "%.100s takes GET, not %.20s", x->path,
                           x->method);
    }
    x->status = 200;
    if (is_model) {
        return one_model(x, error);
    }
    return made(pages[i].run(x, &x->out, &err), &err, error);
}
