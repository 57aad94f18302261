/* access_log.c: see access_log.h. */
#include "http/access_log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "json/json_write.h"

enum { PATH_SHOWN = 120, LINE_MAX_BYTES = 8192 };

typedef struct figures {
    char time[32], path[PATH_SHOWN + 1], method[16];
    int status;
    double ms, wait_ms, first_ms; /* negative: not so */
    const http_end *end;          /* NULL: no reply of the engine */
    const char *model;            /* or NULL */
} figures;

/* What a client wrote may hold line breaks and escape sequences. */
static void copy_safe(char *to, size_t size, const char *from)
{
    size_t i = 0;
    for (; i + 1 < size && from[i] != '\0'; i++) {
        to[i] = from[i] > ' ' && from[i] < 0x7F ? from[i] : '?';
    }
    to[i] = '\0';
}

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return from_ns != 0 && to_ns >= from_ns ? (double)(to_ns - from_ns) / 1e6 : -1;
}

static void collect(const exchange *x, figures *f)
{
    struct timespec now;
    struct tm tm;
    const job *j = x->job;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(f->time, sizeof f->time, "%Y-%m-%dT%H:%M:%SZ", &tm);
    copy_safe(f->path, sizeof f->path, x->path);
    copy_safe(f->method, sizeof f->method, x->method);
    f->status = x->gone ? 499 : x->status;
    f->ms = ms_between(x->start_ns, clock_ns());
    f->wait_ms = f->first_ms = -1;
    if (j == NULL || j->model == NULL) {
        return;
    }
    f->model = j->model->name;
    if (x->ended && j->first_ns != 0) {
        f->wait_ms = ms_between(x->start_ns, j->begun_ns);
        f->first_ms = ms_between(x->start_ns, j->first_ns);
        f->end = &j->end;
    }
}

static smoe_status write_text(const exchange *x, const figures *f, buf *out, smoe_err *err)
{
    TRY(buf_printf(out, err, "%s %s %s %d %.1f ms", x->peer ? x->peer : "-", f->method, f->path,
                   f->status, f->ms));
    if (f->end != NULL) {
        TRY(buf_printf(out, err,
                       ", waited %.1f ms, first token after %.1f ms, %llu prompt (%llu cached), "
                       "%llu generated", f->wait_ms, f->first_ms,
                       (unsigned long long)f->end->n_prompt, (unsigned long long)f->end->n_cached,
                       (unsigned long long)f->end->n_generated));
    }
    return SMOE_OK;
}

static void put_ms(json_writer *w, const char *key, double ms)
{
    if (ms >= 0) {
        jw_key(w, key);
        jw_number(w, (double)(int64_t)(ms * 1000) / 1000);
    }
}

static smoe_status write_json(const exchange *x, const figures *f, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_object(&w);
    jw_key(&w, "time");
    jw_cstr(&w, f->time);
    jw_key(&w, "peer");
    jw_cstr(&w, x->peer ? x->peer : "");
    jw_key(&w, "method");
    jw_cstr(&w, f->method);
    jw_key(&w, "path");
    jw_cstr(&w, f->path);
    jw_key(&w, "status");
    jw_int(&w, f->status);
    jw_key(&w, "bytes");
    jw_uint(&w, x->n_out);
    put_ms(&w, "ms", f->ms);
    put_ms(&w, "wait_ms", f->wait_ms);
    put_ms(&w, "first_token_ms", f->first_ms);
    if (f->model != NULL) {
        jw_key(&w, "model");
        jw_cstr(&w, f->model);
    }
    if (f->end != NULL) {
        jw_key(&w, "prompt_tokens");
        jw_uint(&w, f->end->n_prompt);
        jw_key(&w, "cached_tokens");
        jw_uint(&w, f->end->n_cached);
        jw_key(&w, "completion_tokens");
        jw_uint(&w, f->end->n_generated);
    }
    jw_end_object(&w);
    return jw_finish(&w, err);
}

void access_log_write(const exchange *x)
{
    const http_options *options = x->core->options;
    figures f = {.end = NULL};
    buf line;
    smoe_err err;
    if (options->access_log == HTTP_LOG_NONE) {
        return;
    }
    collect(x, &f);
    buf_init(&line, LINE_MAX_BYTES);
    smoe_status status = options->access_log == HTTP_LOG_JSON ? write_json(x, &f, &line, &err)
                                                              : write_text(x, &f, &line, &err);
    if (status == SMOE_OK) {
        options->log(options->ctx, line.data);
    }
    buf_fini(&line);
}
