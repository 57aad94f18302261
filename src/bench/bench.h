/* bench.h: how fast a model runs here, and how near that comes to what this machine can do.
 *
 * Each row is measured `n_repeat` times after one run that is not counted (it fills the ring), and
 * the limits of the machine are measured before and after every one of them: bound_fraction is the
 * median of (rate / limit around it), the rates are those of the median time.
 *
 *   prefill  n_prompt random ids from an empty context, up to the logits of the last.
 *            compute: 2 operations per weight that a token is multiplied with (the head once),
 *            against the peak of the integer dot product, or of the float multiply-add when the
 *            experts are of a plain type.
 *   decode   n_gen tokens, greedy, after n_ctx random ids.
 *            memory: the bytes of the scout's matrices, the chosen experts' and the head's,
 *            against plain loads.
 *   both     disk, unless every expert is in memory: the bytes of the records that were read,
 *            against reads of random records of the same vault with nothing computed.
 *
 * bound is the limit that the row comes nearest to. Instead of the model, a law (bench/routing.h)
 * or a trace may choose the experts: it goes on from run to run, so that no run finds in the ring
 * what the same choices left there. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/routing.h"
#include "bench/work.h"
#include "smoe/engine.h"

enum { BENCH_MAX_REPEAT = 99 };

typedef struct bench_options {
    smoe_engine_params engine; /* n_ctx 0: what the longest row needs */
    double ring_fraction;      /* of the vault's records, instead of engine.n_ring; 0 = not given */
    const uint32_t *n_prompts; /* one prefill row each */
    size_t n_n_prompts;
    const uint32_t *n_depths;  /* one decode row each */
    size_t n_n_depths;
    uint32_t n_gen, n_repeat;  /* repeat: 1 .. BENCH_MAX_REPEAT */
    const routing_law *law;    /* chooses the experts; NULL: the model */
    const trace *replay;       /* chooses the experts; NULL: none */
    trace *record;             /* gets the last run of each row; begun here; NULL: none */
} bench_options;

typedef struct bench_row {
    const model_work *work;
    const char *isa;
    uint32_t n_threads, n_ring, n_records;
    uint32_t n_ctx, n_prompt, n_gen; /* tokens there before; prefilled; generated */
    double seconds;                  /* median */
    double ttft_seconds;             /* median: from the request to its first token */
    double prefill_tok_s, decode_tok_s; /* 0: not what this row measures */
    double weight_bytes_s, kv_bytes_s, ops_s;
    double hit_rate;                 /* experts found in the ring; 1 = resident */
    double read_bytes_per_token, read_bytes_s; /* from the vault */
    double dram_bytes_s, int_ops_s, float_ops_s; /* the limits: medians */
    double drive_bytes_s;            /* 0: not measured, for nothing is read */
    const char *bound;               /* "memory", "compute" or "disk" */
    double bound_fraction;
} bench_row;

typedef struct bench_events {
    void *ctx;
    void (*row)(void *ctx, const bench_row *row); /* after each row */
    bool (*cancelled)(void *ctx);                 /* may be NULL */
} bench_events;

/* What bench_run refuses with SMOE_USAGE before it opens anything, for a model with this
 * max_position_embeddings: rows longer than the context, a kernel set that this processor lacks. */
smoe_status bench_check(const bench_options *options, uint32_t n_ctx_train, smoe_err *err);
smoe_status bench_run(const bench_options *options, const bench_events *events, smoe_err *err);

#endif
