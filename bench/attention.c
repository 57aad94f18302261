/* attention.c: how near attention comes to what this machine can do, with the heads of
 * Qwen3-30B-A3B (32 query heads, 4 kv heads, 128 dimensions).
 *
 * decode: one token over `depth` positions, layer after layer, so that the KV cache comes from
 * DRAM: its bytes per second beside plain loads. prefill: 256 tokens that end at `depth`:
 * operations per second (2 per multiply-add of a visible position) beside the peak of the float
 * multiply-add. Limit and kernels are measured in turns, and medians are compared.
 *
 * usage: attention [--threads N] [--isa NAME] [--kv-type NAME] [--depth N] [--rounds N] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/rng.h"
#include "bench/limits.h"
#include "model/attention.h"

enum { N_LAYER = 16, N_HEAD = 32, N_HEAD_KV = 4, DIM = 128, N_PREFILL = 256, MAX_ROUNDS = 99 };
enum { LIMIT_MS = 5 }; /* about a run of attention: a longer one would meet more interruptions */

static const char *const ISAS[] = {"avx512", "avx2", "neon", "scalar"};
enum { SCALAR = 3 }; /* takes minutes: only when it is asked for */
static const dtype TYPES[] = {DTYPE_F16, DTYPE_Q8_0, DTYPE_F32};

typedef struct bench {
    uint32_t n_threads, n_rounds, depth;
    const char *isa, *type;
    model_config cfg;
    compute c;
    limits *limits; /* its threads run the kernels */
    kv_cache kv;
    attention_scratch scratch;
    float *q, *out; /* [N_PREFILL][N_HEAD * DIM] */
} bench;

static double seconds_since(uint64_t start_ns)
{
    return (double)(clock_ns() - start_ns) * 1e-9;
}

/* Bytes of keys and values per second. */
static double measure_decode(bench *b)
{
    const double n_bytes = 2.0 * N_LAYER * N_HEAD_KV * b->depth * (double)b->kv.row_bytes;
    const uint64_t start = clock_ns();
    for (uint32_t layer = 0; layer < N_LAYER; layer++) {
        attention(&b->c, &b->kv, layer, &b->cfg, b->depth - 1, 1, b->q, &b->scratch, b->out);
    }
    return n_bytes / seconds_since(start);
}

static double measure_prefill(bench *b)
{
    const double visible = (double)N_PREFILL * (b->depth - (N_PREFILL - 1) / 2.0);
    const uint64_t start = clock_ns();
    attention(&b->c, &b->kv, 0, &b->cfg, b->depth - N_PREFILL, N_PREFILL, b->q, &b->scratch,
              b->out);
    return 2 * 2 * visible * N_HEAD * DIM / seconds_since(start);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const bench *b, const char *what, double *rates, double *bounds)
{
    double fractions[MAX_ROUNDS];
    for (uint32_t i = 0; i < b->n_rounds; i++) {
        fractions[i] = rates[i] / bounds[i];
    }
    qsort(rates, b->n_rounds, sizeof *rates, compare);
    qsort(bounds, b->n_rounds, sizeof *bounds, compare);
    qsort(fractions, b->n_rounds, sizeof *fractions, compare);
    const uint32_t middle = b->n_rounds / 2;
    printf("%-8s %-5s %-7s %6u %9.1f %9.1f %8.1f %%\n", what, dtype_get(b->kv.type)->name,
           b->c.k->name, b->depth, rates[middle] / 1e9, bounds[middle] / 1e9,
           100 * fractions[middle]);
    fflush(stdout);
}

static void bench_one(bench *b)
{
    double rates[MAX_ROUNDS], bounds[MAX_ROUNDS];
    const bool is_slow = strcmp(b->c.k->name, "scalar") == 0;
    for (uint32_t i = 0; i < b->n_rounds && !is_slow; i++) {
        bounds[i] = limits_read(b->limits, LIMIT_MS);
        rates[i] = measure_decode(b);
    }
    if (!is_slow) {
        print_row(b, "decode", rates, bounds);
    }
    for (uint32_t i = 0; i < b->n_rounds; i++) {
        bounds[i] = limits_float_ops(b->limits, LIMIT_MS);
        rates[i] = measure_prefill(b);
    }
    print_row(b, "prefill", rates, bounds);
}

/* Random keys and values in every layer: copies of one token's would be as fast. */
static smoe_status fill_cache(bench *b, dtype type, smoe_err *err)
{
    rng r = {1};
    TRY(kv_cache_init(&b->kv, &b->cfg, type, b->depth, err));
    for (uint32_t i = 0; i < N_PREFILL * N_HEAD * DIM; i++) {
        b->q[i] = (float)(2 * rng_uniform(&r) - 1);
    }
    for (uint32_t at = 0; at < b->depth; at++) {
        for (uint32_t layer = 0; layer < N_LAYER; layer++) {
            const float *from = b->q + (at * N_LAYER + layer) % N_PREFILL * N_HEAD * DIM;
            attention_store(&b->c, &b->kv, layer, at, 1, from, from + N_HEAD_KV * DIM);
        }
    }
    return SMOE_OK;
}

static smoe_status bench_all(bench *b, smoe_err *err)
{
    printf("%u threads. decode: GB/s of the KV cache against plain loads; prefill of %d tokens: "
           "GOP/s\nagainst the peak of the float multiply-add\n", b->n_threads, N_PREFILL);
    printf("%-8s %-5s %-7s %6s %9s %9s %9s\n", "kind", "type", "isa", "depth", "G/s", "limit",
           "reached");
    for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++) {
        if (b->type && strcmp(b->type, dtype_get(TYPES[t])->name) != 0) {
            continue;
        }
        b->c.k = kernels_get(NULL);
        TRY(fill_cache(b, TYPES[t], err));
        for (size_t i = 0; i < sizeof ISAS / sizeof *ISAS; i++) {
            const char *only = b->isa ? b->isa : i == SCALAR ? "" : ISAS[i];
            if (!kernels_get(ISAS[i]) || strcmp(only, ISAS[i]) != 0) {
                continue;
            }
            b->c.k = kernels_get(ISAS[i]);
            b->c.panel = panel_kernels_get(strcmp(ISAS[i], "neon") == 0 ? NULL : ISAS[i]);
            if (b->c.panel && limits_select(b->limits, ISAS[i])) {
                bench_one(b);
            }
        }
        kv_cache_fini(&b->kv);
    }
    return SMOE_OK;
}

int main(int argc, char **argv)
{
    bench b = {.n_threads = cpu_n_cores(), .n_rounds = 11, .depth = 8192,
               .cfg = {.n_layer = N_LAYER, .n_head = N_HEAD, .n_head_kv = N_HEAD_KV,
                       .n_embd_head = DIM}};
    smoe_err err = {0};
    size_t n_pos;
    const opt flags[] = {
        {"threads", OPT_U32, &b.n_threads, 1, 64, "N", "threads (all cores)", NULL},
        {"isa", OPT_TEXT, &b.isa, 0, 0, "NAME", "only this instruction set (all but scalar)",
         NULL},
        {"kv-type", OPT_TEXT, &b.type, 0, 0, "NAME", "only this type", NULL},
        {"depth", OPT_U32, &b.depth, N_PREFILL, 1 << 20, "N", "positions (8192)", NULL},
        {"rounds", OPT_U32, &b.n_rounds, 1, MAX_ROUNDS, "N", "measurements per number (11)", NULL},
        {0},
    };
    if (opts_parse(flags, argc, argv, 1, NULL, 0, &n_pos, &err) != SMOE_OK) {
        fprintf(stderr, "attention: %s\n", err.text);
        return 2;
    }
    const size_t q_bytes = (size_t)N_PREFILL * N_HEAD * DIM * sizeof(float);
    const size_t threads_bytes = b.n_threads * attention_thread_bytes(&b.cfg);
    const size_t token_bytes = attention_token_bytes(&b.cfg, b.depth);
    b.q = mem_pages_alloc(q_bytes);
    b.out = mem_pages_alloc(q_bytes);
    b.scratch.threads = mem_pages_alloc(threads_bytes);
    b.scratch.token = mem_pages_alloc(token_bytes);
    smoe_status status = SMOE_NOMEM;
    if (b.q && b.out && b.scratch.threads && b.scratch.token) {
        status = limits_new(NULL, b.n_threads, &b.limits, &err);
    }
    if (status == SMOE_OK) {
        b.c.pool = limits_pool(b.limits);
        status = bench_all(&b, &err);
    }
    if (status != SMOE_OK) {
        fprintf(stderr, "attention: %s\n", err.text[0] ? err.text : "not enough memory");
    }
    limits_free(b.limits);
    mem_pages_free(b.q, q_bytes);
    mem_pages_free(b.out, q_bytes);
    mem_pages_free(b.scratch.threads, threads_bytes);
    mem_pages_free(b.scratch.token, token_bytes);
    return status == SMOE_OK ? 0 : 1;
}
