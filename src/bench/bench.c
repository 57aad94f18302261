/* bench.c: see bench.h. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/chooser.h"
#include "bench/drive.h"
#include "bench/limits.h"
#include "engine/routed.h"
#include "quant/kernels.h"

enum limit { LIMIT_DRAM, LIMIT_INTS, LIMIT_FLOATS, LIMIT_DRIVE, N_LIMITS };

/* One timed run. */
typedef struct sample {
    double seconds, ttft_seconds;
    double weight_bytes, kv_bytes, n_ops;
    double read_bytes;       /* from the vault, within `seconds` */
    double n_read_tokens;    /* ... for so many tokens */
    uint64_t n_acquires, n_hits;
} sample;

typedef struct runner {
    const bench_options *o;
    const bench_events *events;
    model_work work;
    smoe_engine *engine;
    smoe_session *session;
    const smoe_engine_info *info;
    limits *limits;
    drive drive;
    bool has_drive; /* not every expert is in memory */
    chooser chooser;
    int32_t *ids; /* random, as many as the longest row takes */
    uint32_t n_passes;
    uint32_t n_tokens;
    uint64_t start_ns;          /* of the request */
    uint64_t first_ns, last_ns; /* of the tokens */
} runner;

static bool on_token(void *ctx, int32_t id)
{
    runner *r = ctx;
    (void)id;
    r->last_ns = clock_ns();
    r->first_ns = r->n_tokens++ == 0 ? r->last_ns : r->first_ns;
    return true;
}

static void on_progress(void *ctx, size_t done, size_t total)
{
    runner *r = ctx;
    (void)total;
    r->n_passes += done > 0;
}

static bool is_cancelled(void *ctx)
{
    const runner *r = ctx;
    return r->events->cancelled && r->events->cancelled(r->events->ctx);
}

static smoe_status generate(runner *r, uint32_t n_ids, uint32_t max_tokens, smoe_result *result,
                            smoe_err *err)
{
    const smoe_events events = {
        .ctx = r, .token = on_token, .progress = on_progress, .cancelled = is_cancelled};
    const smoe_request request = {
        .ids = r->ids,
        .n_ids = n_ids,
        .max_tokens = max_tokens,
        .sampling = {.temperature = 0, .top_p = 1, .top_k = 1, .rep_penalty = 1},
    };
    r->n_passes = r->n_tokens = 0;
    r->start_ns = clock_ns();
    TRY(smoe_session_generate(r->session, &request, &events, result, err));
    if (result->fin == SMOE_FIN_CANCEL) {
        return err_set(err, SMOE_CANCELLED, "interrupted");
    }
    if (result->n_generated != max_tokens) {
        return err_set(err, SMOE_INTERNAL, "%u tokens were asked for, %u came", max_tokens,
                       result->n_generated);
    }
    if (r->chooser.status != SMOE_OK) {
        *err = r->chooser.err;
    }
    return r->chooser.status;
}

static smoe_status run_prefill(runner *r, uint32_t n_prompt, sample *s, smoe_err *err)
{
    const model_work *w = &r->work;
    smoe_result result;
    smoe_session_reset(r->session);
    TRY(generate(r, n_prompt, 1, &result, err));
    uint32_t n_passes = r->n_passes ? r->n_passes : 1; /* progress tells of several only */
    *s = (sample){
        .seconds = (double)(result.prefill_ns + result.decode_ns) * 1e-9,
        .ttft_seconds = (double)(r->first_ns - r->start_ns) * 1e-9,
        .weight_bytes = (double)n_passes * (double)w->layers_bytes +
                        (double)result.n_expert_acquires * (double)w->expert_bytes +
                        (double)w->head_bytes,
        .n_ops = 2.0 * ((double)n_prompt * (double)model_work_token_weights(w) +
                        (double)w->head_weights),
        .read_bytes = (double)result.bytes_read,
        .n_read_tokens = n_prompt,
        .n_acquires = result.n_expert_acquires,
        .n_hits = result.n_expert_hits,
    };
    return SMOE_OK;
}

/* From the first token to the last there are n_gen passes and n_gen heads. */
static smoe_status run_decode(runner *r, uint32_t n_ctx, sample *s, smoe_err *err)
{
    const model_work *w = &r->work;
    uint32_t n_gen = r->o->n_gen;
    smoe_result result;
    TRY(generate(r, n_ctx, n_gen + 1, &result, err));
    double n_kv = (double)n_gen * (n_ctx + (n_gen + 1) / 2.0); /* positions read, all passes */
    double elem_bytes = r->o->engine.kv_type == SMOE_KV_F32    ? 4
                        : r->o->engine.kv_type == SMOE_KV_Q8_0 ? 34.0 / 32
                                                               : 2;
    double n_tokens = n_gen + (double)(result.n_prompt - result.n_cached); /* of the request */
    *s = (sample){
        .seconds = (double)(r->last_ns - r->first_ns) * 1e-9,
        .ttft_seconds = (double)(r->first_ns - r->start_ns) * 1e-9,
        .weight_bytes = n_gen * (double)(model_work_token_bytes(w) + w->head_bytes),
        .kv_bytes = n_kv * (double)w->kv_elems * elem_bytes,
        .n_ops = 2.0 * n_gen * (double)(model_work_token_weights(w) + w->head_weights),
        .read_bytes = (double)result.bytes_read * n_gen / n_tokens,
        .n_read_tokens = n_gen,
        .n_acquires = result.n_expert_acquires,
        .n_hits = result.n_expert_hits,
    };
    return SMOE_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The counted runs, and the limits before and after each. */
typedef struct measured {
    sample samples[BENCH_MAX_REPEAT];
    double limits[N_LIMITS][BENCH_MAX_REPEAT + 1];
} measured;

static smoe_status keep_limits(runner *r, measured *m, uint32_t i, smoe_err *err)
{
    limit_rates now = limits_measure(r->limits);
    m->limits[LIMIT_DRAM][i] = now.read_bytes_s;
    m->limits[LIMIT_INTS][i] = now.int_ops_s;
    m->limits[LIMIT_FLOATS][i] = now.float_ops_s;
    m->limits[LIMIT_DRIVE][i] = 0;
    return r->has_drive ? drive_measure(&r->drive, &m->limits[LIMIT_DRIVE][i], err) : SMOE_OK;
}

static double median_limit(const measured *m, enum limit which, uint32_t n)
{
    double values[BENCH_MAX_REPEAT + 1];
    memcpy(values, m->limits[which], n * sizeof *values);
    return median(values, n);
}

/* What of a sample a limit limits. */
static double amount_of(const sample *s, enum limit which)
{
    return which == LIMIT_DRAM ? s->weight_bytes : which == LIMIT_DRIVE ? s->read_bytes : s->n_ops;
}

static double fraction_of(const measured *m, enum limit which, uint32_t n)
{
    double values[BENCH_MAX_REPEAT];
    for (uint32_t i = 0; i < n; i++) {
        const sample *s = &m->samples[i];
        double limit = (m->limits[which][i] + m->limits[which][i + 1]) / 2;
        values[i] = limit > 0 ? amount_of(s, which) / s->seconds / limit : 0;
    }
    return median(values, n);
}

static void set_bound(const runner *r, const measured *m, bench_row *row)
{
    uint32_t n = r->o->n_repeat;
    bool is_prefill = row->n_gen == 0, is_int = dtype_get(r->work.experts)->is_quantized;
    enum limit here = !is_prefill ? LIMIT_DRAM : is_int ? LIMIT_INTS : LIMIT_FLOATS;
    double fraction = fraction_of(m, here, n), of_drive = fraction_of(m, LIMIT_DRIVE, n);
    bool is_disk = of_drive > fraction;
    row->bound = is_disk ? "disk" : is_prefill ? "compute" : "memory";
    row->bound_fraction = is_disk ? of_drive : fraction;
}

static void fill_row(const runner *r, const measured *m, bench_row *row)
{
    uint32_t n = r->o->n_repeat;
    const sample *last = &m->samples[n - 1];
    double seconds[BENCH_MAX_REPEAT], ttft[BENCH_MAX_REPEAT], rates[BENCH_MAX_REPEAT];
    double n_acquires = 0, n_hits = 0, read_bytes = 0, n_tokens = 0;
    for (uint32_t i = 0; i < n; i++) {
        const sample *s = &m->samples[i];
        seconds[i] = s->seconds;
        ttft[i] = s->ttft_seconds;
        rates[i] = s->read_bytes / s->seconds;
        n_acquires += (double)s->n_acquires;
        n_hits += (double)s->n_hits;
        read_bytes += s->read_bytes;
        n_tokens += s->n_read_tokens;
    }
    row->seconds = median(seconds, n);
    row->ttft_seconds = median(ttft, n);
    row->prefill_tok_s = row->n_prompt / row->seconds;
    row->decode_tok_s = row->n_gen / row->seconds;
    row->weight_bytes_s = last->weight_bytes / row->seconds;
    row->kv_bytes_s = last->kv_bytes / row->seconds;
    row->ops_s = last->n_ops / row->seconds;
    row->hit_rate = n_acquires > 0 ? n_hits / n_acquires : 1;
    row->read_bytes_per_token = read_bytes / n_tokens;
    row->read_bytes_s = median(rates, n);
    row->dram_bytes_s = median_limit(m, LIMIT_DRAM, n + 1);
    row->int_ops_s = median_limit(m, LIMIT_INTS, n + 1);
    row->float_ops_s = median_limit(m, LIMIT_FLOATS, n + 1);
    row->drive_bytes_s = median_limit(m, LIMIT_DRIVE, n + 1);
    set_bound(r, m, row);
}

/* The first run fills the ring and is not counted, the last is recorded. */
static smoe_status measure(runner *r, bench_row *row, smoe_err *err)
{
    uint32_t n = r->o->n_repeat;
    measured m;
    sample s;
    for (uint32_t i = 0; i <= n; i++) {
        r->chooser.record = i == n ? r->o->record : NULL;
        TRY(row->n_gen ? run_decode(r, row->n_ctx, &s, err)
                       : run_prefill(r, row->n_prompt, &s, err));
        TRY(keep_limits(r, &m, i, err));
        if (i > 0) {
            m.samples[i - 1] = s;
        }
    }
    fill_row(r, &m, row);
    return SMOE_OK;
}

static smoe_status measure_rows(runner *r, smoe_err *err)
{
    const bench_options *o = r->o;
    for (size_t i = 0; i < o->n_n_prompts + o->n_n_depths; i++) {
        bench_row row = {.work = &r->work, .isa = r->info->isa, .n_threads = r->info->n_threads,
                         .n_ring = r->info->n_ring, .n_records = (uint32_t)r->info->n_records};
        if (i < o->n_n_prompts) {
            row.n_prompt = o->n_prompts[i];
        } else {
            row.n_ctx = o->n_depths[i - o->n_n_prompts];
            row.n_gen = o->n_gen;
        }
        TRY(measure(r, &row, err));
        r->events->row(r->events->ctx, &row);
    }
    return SMOE_OK;
}

/* Context that the longest row needs. */
static uint64_t longest(const bench_options *o)
{
    uint64_t n = 1;
    for (size_t i = 0; i < o->n_n_prompts; i++) {
        n = o->n_prompts[i] > n ? o->n_prompts[i] : n;
    }
    for (size_t i = 0; i < o->n_n_depths; i++) {
        uint64_t all = (uint64_t)o->n_depths[i] + o->n_gen + 1;
        n = all > n ? all : n;
    }
    return n;
}

smoe_status bench_check(const bench_options *o, uint32_t n_ctx_train, smoe_err *err)
{
    uint64_t n_longest = longest(o);
    uint32_t n_most = o->engine.n_ctx ? o->engine.n_ctx : n_ctx_train;
    if (n_longest > n_most) {
        return err_set(err, SMOE_USAGE,
                       "the longest row takes %llu tokens, but the context has %u; lower --prompt, "
                       "--depth or --gen%s",
                       (unsigned long long)n_longest, n_most,
                       o->engine.n_ctx ? ", or raise --ctx" : "");
    }
    if (!kernels_get(o->engine.isa)) {
        return err_set(err, SMOE_USAGE,
                       "this processor has no kernel set \"%s\"; known are scalar, avx2, avx512 "
                       "and neon",
                       o->engine.isa);
    }
    return SMOE_OK;
}

static smoe_status make_ids(runner *r, uint64_t n, smoe_err *err)
{
    rng random = {1};
    r->ids = mem_alloc(n * sizeof *r->ids);
    if (!r->ids) {
        return err_nomem(err, "random ids", n * sizeof *r->ids);
    }
    for (uint64_t i = 0; i < n; i++) {
        r->ids[i] = (int32_t)(rng_next(&random) % r->work.n_vocab);
    }
    return SMOE_OK;
}

static smoe_status watch_routing(runner *r, smoe_err *err)
{
    const bench_options *o = r->o;
    const trace_shape shape = {r->work.n_layer_sparse, r->work.n_expert, r->work.n_expert_used};
    TRY(chooser_init(&r->chooser, &shape, o->law, o->replay, err));
    if (o->record) {
        trace_init(o->record, &shape, r->info->lineage);
    }
    if (o->law || o->replay || o->record) {
        smoe_session_on_routed(r->session, chooser_on_routed, &r->chooser);
    }
    return SMOE_OK;
}

static smoe_status prepare(runner *r, smoe_err *err)
{
    static const int32_t no_ids[1] = {0};
    const smoe_session_params no_end = {.seed = 1, .eos_ids = no_ids, .n_eos_ids = 0};
    smoe_engine_params params = r->o->engine;
    uint64_t n_longest = longest(r->o);
    TRY(model_work_of(params.vault_path, params.scout_path, &r->work, err));
    TRY(bench_check(r->o, r->work.n_ctx_train, err));
    params.n_threads = params.n_threads ? params.n_threads : cpu_n_cores();
    params.n_ctx = params.n_ctx ? params.n_ctx : (uint32_t)n_longest;
    if (r->o->ring_fraction > 0) {
        params.n_ring = (uint32_t)(r->o->ring_fraction * (double)model_work_records(&r->work));
        params.n_ring = params.n_ring ? params.n_ring : 1;
    }
    TRY(make_ids(r, n_longest, err));
    /* The engine takes all memory that is left for its ring: what the limits need comes first. */
    TRY(limits_new(params.isa, params.n_threads, &r->limits, err));
    TRY(smoe_engine_open(&params, &r->engine, err));
    r->info = smoe_engine_get_info(r->engine);
    r->has_drive = r->info->n_ring < r->info->n_records;
    if (r->has_drive) { /* its memory is a part of what the budget leaves to the system */
        TRY(drive_open_vault(&r->drive, params.vault_path, err));
    }
    TRY(smoe_session_new(r->engine, &no_end, &r->session, err));
    return watch_routing(r, err);
}

smoe_status bench_run(const bench_options *options, const bench_events *events, smoe_err *err)
{
    smoe_status status;
    runner r = {.o = options, .events = events, .drive = DRIVE_CLOSED};
    CHECK(prepare(&r, err));
    CHECK(measure_rows(&r, err));
out:
    smoe_session_free(r.session);
    smoe_engine_close(r.engine);
    chooser_fini(&r.chooser);
    drive_close(&r.drive);
    limits_free(r.limits);
    mem_free(r.ids);
    return status;
}
