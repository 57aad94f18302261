/* metrics.c: see metrics.h. */
#include "http/metrics.h"

#include <inttypes.h>

#include "json/json_write.h"

static const double first_bounds[] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000};
static const double between_bounds[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};

enum {
    N_FIRST = sizeof first_bounds / sizeof *first_bounds,
    N_BETWEEN = sizeof between_bounds / sizeof *between_bounds,
};

void metrics_init(metrics *m)
{
    *m = (metrics){.hit = -1};
    pthread_mutex_init(&m->lock, NULL);
}

void metrics_fini(metrics *m)
{
    pthread_mutex_destroy(&m->lock);
}

static void observe(histogram *h, const double *bounds, size_t n_bounds, uint64_t ns)
{
    double s = (double)ns / 1e9;
    size_t i = 0;
    while (i < n_bounds && s > bounds[i]) {
        i++;
    }
    h->buckets[i]++;
    h->n++;
    h->sum_s += s;
}

void metrics_token(metrics *m, uint64_t since_request_ns, uint64_t since_token_ns)
{
    pthread_mutex_lock(&m->lock);
    if (since_request_ns > 0) {
        observe(&m->first_token, first_bounds, N_FIRST, since_request_ns);
    }
    if (since_token_ns > 0) {
        observe(&m->between_tokens, between_bounds, N_BETWEEN, since_token_ns);
    }
    pthread_mutex_unlock(&m->lock);
}

void metrics_done(metrics *m, const smoe_reply *reply)
{
    pthread_mutex_lock(&m->lock);
    m->n_prompt += reply->n_prompt;
    m->n_cached += reply->n_cached;
    m->n_generated += reply->n_generated;
    m->prefill_s += reply->prefill_s > 0 ? reply->prefill_s : 0;
    m->decode_s += reply->decode_s > 0 ? reply->decode_s : 0;
    m->hit = reply->hit >= 0 ? reply->hit : m->hit;
    if (reply->tier.is_known) {
        smoe_expert_tier sum = reply->tier;
        sum.n_lookups += m->tier.n_lookups;
        sum.n_hits += m->tier.n_hits;
        sum.n_evictions += m->tier.n_evictions;
        sum.bytes_read += m->tier.bytes_read;
        sum.bytes_wasted += m->tier.bytes_wasted;
        sum.read_s += m->tier.read_s;
        m->tier = sum;
    }
    pthread_mutex_unlock(&m->lock);
}

void metrics_running(metrics *m, int change)
{
    pthread_mutex_lock(&m->lock);
    m->n_running += change;
    pthread_mutex_unlock(&m->lock);
}

void metrics_engine_death(metrics *m)
{
    pthread_mutex_lock(&m->lock);
    m->n_engine_deaths++;
    pthread_mutex_unlock(&m->lock);
}

void metrics_disconnect(metrics *m)
{
    pthread_mutex_lock(&m->lock);
    m->n_disconnects++;
    pthread_mutex_unlock(&m->lock);
}

void metrics_request(metrics *m, int status, uint64_t ns)
{
    pthread_mutex_lock(&m->lock);
    m->n_by_status[status >= 0 && status < METRICS_STATUSES ? status : 0]++;
    observe(&m->request, first_bounds, N_FIRST, ns);
    pthread_mutex_unlock(&m->lock);
}

/* ---- text ---- */

static smoe_status put(buf *out, const char *name, const char *type, const char *help,
                       double value, smoe_err *err)
{
    return buf_printf(out, err, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type,
                      name, value);
}

static smoe_status put_histogram(buf *out, const char *name, const char *help, const histogram *h,
                                 const double *bounds, size_t n_bounds, smoe_err *err)
{
    uint64_t n = 0;
    TRY(buf_printf(out, err, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name));
    for (size_t i = 0; i < n_bounds; i++) {
        n += h->buckets[i];
        TRY(buf_printf(out, err, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i],
                       (unsigned long long)n));
    }
    return buf_printf(out, err, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name,
                      (unsigned long long)h->n, name, h->sum_s, name, (unsigned long long)h->n);
}

static smoe_status put_statuses(const metrics *m, buf *out, smoe_err *err)
{
    TRY(buf_puts(out,
                 "# HELP smoe_http_requests_total Requests answered, by HTTP status.\n"
                 "# TYPE smoe_http_requests_total counter\n", err));
    for (int i = 0; i < METRICS_STATUSES; i++) {
        if (m->n_by_status[i] > 0) {
            TRY(buf_printf(out, err, "smoe_http_requests_total{status=\"%d\"} %llu\n", i,
                           (unsigned long long)m->n_by_status[i]));
        }
    }
    return SMOE_OK;
}

/* Label values have the escapes of JSON strings for what can stand in a file name. */
static smoe_status put_model(const metrics_now *now, buf *out, smoe_err *err)
{
    json_writer w;
    TRY(buf_puts(out,
                 "# HELP smoe_model_up Whether the model is loaded and its engine alive.\n"
                 "# TYPE smoe_model_up gauge\nsmoe_model_up{model=", err));
    jw_init(&w, out);
    jw_cstr(&w, now->model);
    TRY(jw_finish(&w, err));
    return buf_printf(out, err, "} %d\n", now->is_up);
}

static smoe_status put_counters(const metrics *m, buf *out, smoe_err *err)
{
    TRY(put(out, "smoe_prompt_tokens_total", "counter", "Tokens of prompts.", (double)m->n_prompt,
            err));
    TRY(put(out, "smoe_prompt_tokens_cached_total", "counter",
            "Of these, found computed in the engine.", (double)m->n_cached, err));
    TRY(put(out, "smoe_generated_tokens_total", "counter", "Tokens generated.",
            (double)m->n_generated, err));
    TRY(put(out, "smoe_prefill_seconds_total", "counter", "Time the engine spent on prompts.",
            m->prefill_s, err));
    TRY(put(out, "smoe_decode_seconds_total", "counter", "Time the engine spent on replies.",
            m->decode_s, err));
    TRY(put(out, "smoe_engine_deaths_total", "counter", "Engines that ended by themselves.",
            (double)m->n_engine_deaths, err));
    TRY(put(out, "smoe_disconnects_total", "counter", "Clients that left before their reply.",
            (double)m->n_disconnects, err));
    return SMOE_OK;
}

/* What the engine has said of its experts; nothing before its first reply. The rates that people
 * look for are quotients: hits by look-ups, bytes read by tokens, bytes read by seconds. */
static smoe_status put_tier(const metrics *m, buf *out, smoe_err *err)
{
    const smoe_expert_tier *t = &m->tier;
    if (!t->is_known) {
        return SMOE_OK;
    }
    if (m->hit >= 0) {
        TRY(put(out, "smoe_expert_hit_ratio", "gauge",
                "Expert look-ups served from memory, in the last request.", m->hit, err));
    }
    TRY(put(out, "smoe_expert_lookups_total", "counter", "Experts asked for.",
            (double)t->n_lookups, err));
    TRY(put(out, "smoe_expert_hits_total", "counter", "Of these, found in memory.",
            (double)t->n_hits, err));
    TRY(put(out, "smoe_expert_evictions_total", "counter", "Experts that gave way to others.",
            (double)t->n_evictions, err));
    TRY(put(out, "smoe_expert_read_bytes_total", "counter", "Read from the vault.",
            (double)t->bytes_read, err));
    TRY(put(out, "smoe_expert_read_seconds_total", "counter",
            "Time in which at least one read was under way.", t->read_s, err));
    TRY(put(out, "smoe_expert_wasted_bytes_total", "counter",
            "Read ahead, and given up unused.", (double)t->bytes_wasted, err));
    return buf_printf(out, err,
                      "# HELP smoe_memory_bytes Memory of the engine, by part.\n"
                      "# TYPE smoe_memory_bytes gauge\n"
                      "smoe_memory_bytes{part=\"scout\"} %" PRIu64 "\n"
                      "smoe_memory_bytes{part=\"kv\"} %" PRIu64 "\n"
                      "smoe_memory_bytes{part=\"scratch\"} %" PRIu64 "\n"
                      "smoe_memory_bytes{part=\"ring\"} %" PRIu64 "\n",
                      t->scout_bytes, t->kv_bytes, t->scratch_bytes, t->ring_bytes);
}

static smoe_status put_gauges(const metrics *m, const metrics_now *now, buf *out, smoe_err *err)
{
    TRY(put(out, "smoe_requests_running", "gauge", "Requests that the engine works on.",
            m->n_running, err));
    TRY(put(out, "smoe_requests_waiting", "gauge", "Requests that wait for the engine.",
            (double)now->n_waiting, err));
    TRY(put(out, "smoe_connections", "gauge", "Open connections.", (double)now->n_connections,
            err));
    TRY(put(out, "smoe_context_tokens", "gauge", "Size of the context.", (double)now->n_ctx, err));
    return put(out, "smoe_context_used_tokens", "gauge", "Of these, held by the engine.",
               (double)now->n_context_used, err);
}

smoe_status metrics_write(metrics *m, const metrics_now *now, buf *out, smoe_err *err)
{
    metrics copy;
    pthread_mutex_lock(&m->lock);
    copy = *m;
    pthread_mutex_unlock(&m->lock);
    TRY(put_statuses(&copy, out, err));
    TRY(put_counters(&copy, out, err));
    TRY(put_tier(&copy, out, err));
    TRY(put_gauges(&copy, now, out, err));
    TRY(put_model(now, out, err));
    TRY(put_histogram(out, "smoe_first_token_seconds", "From a request to its first token.",
                      &copy.first_token, first_bounds, N_FIRST, err));
    TRY(put_histogram(out, "smoe_between_tokens_seconds", "From a token to the next.",
                      &copy.between_tokens, between_bounds, N_BETWEEN, err));
    return put_histogram(out, "smoe_request_seconds", "From a request to the end of its reply.",
                         &copy.request, first_bounds, N_FIRST, err);
}
