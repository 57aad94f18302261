/* metrics.h: what the server counts, and its Prometheus text form (0.0.4). */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "smoe/protocol.h"

enum { METRICS_MAX_BUCKETS = 16, METRICS_STATUSES = 600 };

typedef struct histogram {
    uint64_t buckets[METRICS_MAX_BUCKETS + 1]; /* the last: beyond all bounds */
    uint64_t n;
    double sum_s;
} histogram;

typedef struct metrics {
    pthread_mutex_t lock;
    uint64_t n_by_status[METRICS_STATUSES]; /* requests answered */
    uint64_t n_prompt, n_cached, n_generated;
    uint64_t n_engine_deaths, n_disconnects;
    int n_running;
    double prefill_s, decode_s;
    double hit; /* of the last request that said; negative = none yet */
    smoe_expert_tier tier; /* memory: of the engine; the others: sums over all requests */
    histogram first_token, between_tokens, request;
} metrics;

void metrics_init(metrics *m);
void metrics_fini(metrics *m);
void metrics_token(metrics *m, uint64_t since_request_ns, uint64_t since_token_ns); /* 0 = not so */
void metrics_done(metrics *m, const smoe_reply *reply);
void metrics_running(metrics *m, int change);
void metrics_engine_death(metrics *m);
void metrics_disconnect(metrics *m);
void metrics_request(metrics *m, int status, uint64_t ns);

/* What the server knows besides: gauges of this moment. */
typedef struct metrics_now {
    size_t n_waiting, n_connections, n_ctx, n_context_used;
    int is_up;
    const char *model;
} metrics_now;

smoe_status metrics_write(metrics *m, const metrics_now *now, buf *out, smoe_err *err);

#endif
