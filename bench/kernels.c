/* kernels.c: how near the matrix kernels come to what this machine can do: those of panels, and
 * for plain types those of rows, called as the model calls them.
 *
 * One vector: bytes of weights per second, with the weights in DRAM, beside what the same threads
 * read with plain loads. Many vectors: operations per second (2 per multiply-add) beside the peak
 * of the integer dot product or of the float multiply-add. Machines are shared and noisy, so the
 * limit is measured before each kernel's run; the medians of rates, of limits and of fractions are
 * printed.
 *
 * usage: kernels [--threads N] [--isa NAME] [--type NAME] [--rounds N] [--mib N] [--json] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/pool.h"
#include "base/rng.h"
#include "bench/limits.h"
#include "bench/probes.h"
#include "quant/kernels.h"
#include "quant/panel.h"
#include "quant/quant.h"

static const char *const ISAS[] = {"avx512", "avx2_vnni", "avx2", "neon_dot", "neon",
                                   "scalar"};
static const dtype TYPES[] = {DTYPE_Q8_0, DTYPE_Q6_K, DTYPE_Q5_K, DTYPE_Q4_K, DTYPE_Q4_0,
                              DTYPE_Q3_K, DTYPE_Q2_K, DTYPE_BF16, DTYPE_F16,  DTYPE_F32};
enum { N_ISAS = sizeof(ISAS) / sizeof(ISAS[0]), N_TYPES = sizeof(TYPES) / sizeof(TYPES[0]) };
enum { VECTOR_COLS = 2048, MATRIX_VECTORS = 512, MAX_ROUNDS = 99 };
enum { LIMIT_MS = 5 }; /* about a kernel's run: a longer one would meet more interruptions */

/* Two experts' gate and up of a 30B-A3B model, then one down. */
static const int64_t SHAPES[2][2] = {{3072, 2048}, {2048, 768}}; /* rows, cols */

typedef struct bench {
    uint32_t n_threads, n_rounds;
    uint64_t weight_bytes; /* of the one-vector runs */
    const char *isa, *type;
    bool json;
    limits *limits; /* its threads run the kernels */
    uint8_t *weights;
    float *x, *out;
    act_block *acts;
    double hz; /* core clock */
} bench;

/* ---- one timed run over all threads ---- */

typedef struct task {
    const bench *b;
    const panel_kernels *panels;
    const kernels *plain;
    dtype type;
    int64_t rows, cols;
    int64_t n_x;
    double units; /* what is counted: bytes of weights for one vector, else operations */
} task;

static bool in_panels(dtype type)
{
    return dtype_get(type)->is_quantized;
}

static void run_matmul(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const task *t = ctx;
    const int64_t row = (int64_t)begin * PANEL_ROWS;
    const int64_t last = (int64_t)end * PANEL_ROWS;

    const uint8_t *weights = t->b->weights + (size_t)row * dtype_row_bytes(t->type,
                                                                          (uint64_t)t->cols);
    const int64_t n_rows = (last < t->rows ? last : t->rows) - row;

    (void)thread;
    if (in_panels(t->type)) {
        const panel_x x = {t->b->acts, act_n_blocks(t->cols), t->n_x};
        t->panels->matmul(t->type, weights, n_rows, t->cols, x, t->b->out + row, t->rows);
    } else {
        t->plain->matmul_plain(t->type, weights, n_rows, t->cols, t->b->x, t->cols, t->n_x,
                               t->b->out + row, t->rows);
    }
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(clock_ns() - start_ns) * 1e-9;
}

/* Units per second. */
static double measure_product(task *t)
{
    const size_t n_panels = (size_t)((t->rows + PANEL_ROWS - 1) / PANEL_ROWS);
    const uint64_t start = clock_ns();

    pool_for(limits_pool(t->b->limits), n_panels, 8, run_matmul, t);
    return t->units / seconds_since(start);
}

static double measure_limit(const task *t)
{
    limits *l = t->b->limits;

    return t->n_x == 1         ? limits_read(l, LIMIT_MS)
           : in_panels(t->type) ? limits_int_ops(l, LIMIT_MS)
                                : limits_float_ops(l, LIMIT_MS);
}

/* ---- data ---- */

/* 16 random rows, then copies: the speed depends on the bytes only where scales are odd. */
static bool fill_weights(const bench *b, dtype type, int64_t cols, uint64_t n_bytes)
{
    const uint64_t one_panel = PANEL_ROWS * dtype_row_bytes(type, (uint64_t)cols);
    float *row = mem_alloc((size_t)cols * sizeof(float));
    uint8_t *rows = mem_alloc(one_panel);
    rng r = {1};

    for (int i = 0; row != NULL && rows != NULL && i < PANEL_ROWS; i++) {
        for (int64_t k = 0; k < cols; k++) {
            row[k] = (float)(2 * rng_uniform(&r) - 1);
        }
        quantize_row_ref(type, row, rows + (size_t)i * (one_panel / PANEL_ROWS), cols);
    }
    const bool ok = row != NULL && rows != NULL;
    if (ok) {
        if (in_panels(type)) {
            panel_pack(type, rows, PANEL_ROWS, (uint64_t)cols, b->weights);
        } else {
            memcpy(b->weights, rows, one_panel);
        }
        for (uint64_t at = one_panel; at + one_panel <= n_bytes; at += one_panel) {
            memcpy(b->weights + at, b->weights, one_panel);
        }
    }
    mem_free(row);
    mem_free(rows);
    return ok;
}

static void fill_x(const bench *b, int64_t cols)
{
    rng r = {2};

    for (int64_t i = 0; i < cols * MATRIX_VECTORS; i++) {
        b->x[i] = (float)(2 * rng_uniform(&r) - 1);
    }
    for (int64_t j = 0; j < MATRIX_VECTORS; j++) {
        panel_kernels_get(NULL)->act_quantize(b->x + j * cols, cols, 256,
                                              b->acts + j * act_n_blocks(cols));
    }
}

/* ---- tables ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof(values[0]), compare_doubles);
    return values[n / 2];
}

static bool wants(const bench *b, dtype type, int isa)
{
    const bool runs = in_panels(type) ? panel_kernels_get(ISAS[isa]) != NULL
                                      : kernels_get(ISAS[isa]) != NULL &&
                                            strcmp(kernels_get(ISAS[isa])->name, ISAS[isa]) == 0;
    return runs && (b->isa == NULL || strcmp(b->isa, ISAS[isa]) == 0);
}

/* What one kernel reached in each round. */
typedef struct samples {
    double rates[MAX_ROUNDS], limits[MAX_ROUNDS], fractions[MAX_ROUNDS];
} samples;

static void print_row(const task *t, int isa, samples *s)
{
    const bench *b = t->b;
    const char *kind = t->n_x == 1 ? "vector" : "matrix", *name = dtype_get(t->type)->name;
    const double rate = median(s->rates, b->n_rounds), limit = median(s->limits, b->n_rounds);
    const double fraction = median(s->fractions, b->n_rounds);
    const double products = (double)t->rows * (double)t->cols * (double)t->n_x;
    const double cycles = b->hz * b->n_threads * t->units / rate / products;

    if (b->json) {
        printf("{\"kind\":\"%s\",\"type\":\"%s\",\"isa\":\"%s\",\"threads\":%u,\"rows\":%lld,"
               "\"cols\":%lld,\"giga_per_s\":%.2f,\"limit\":%.2f,\"fraction\":%.3f,"
               "\"cycles_per_weight\":%.5f}\n",
               kind, name, ISAS[isa], b->n_threads, (long long)t->rows, (long long)t->cols,
               rate / 1e9, limit / 1e9, fraction, cycles);
    } else {
        printf("%-7s %-5s %-9s %6lld x %-5lld %9.1f %9.1f %7.1f %% %10.4f\n", kind, name, ISAS[isa],
               (long long)t->rows, (long long)t->cols, rate / 1e9, limit / 1e9, 100 * fraction,
               cycles);
    }
    fflush(stdout);
}

/* Plain C is far from any limit: a part will do. */
static task task_of(const bench *b, dtype type, int isa, int64_t rows, int64_t cols, int64_t n_x)
{
    const bool is_slow = strcmp(ISAS[isa], "scalar") == 0;
    task t = {b, panel_kernels_get(ISAS[isa]), kernels_get(ISAS[isa]), type, rows, cols, n_x, 0};

    if (n_x == 1) {
        t.rows = is_slow ? rows / 64 : rows;
        t.units = (double)t.rows * (double)dtype_row_bytes(type, (uint64_t)cols);
    } else {
        t.n_x = is_slow ? 4 : n_x;
        t.units = 2.0 * (double)rows * (double)cols * (double)t.n_x;
    }
    return t;
}

static bool bench_product(const bench *b, dtype type, int64_t rows, int64_t cols, int64_t n_x)
{
    static samples all[N_ISAS];

    if (!fill_weights(b, type, cols, dtype_matrix_bytes(type, (uint64_t)rows, (uint64_t)cols))) {
        return false;
    }
    fill_x(b, cols);
    for (uint32_t round = 0; round < b->n_rounds; round++) {
        for (int i = 0; i < N_ISAS; i++) {
            if (wants(b, type, i) && limits_select(b->limits, ISAS[i])) {
                task t = task_of(b, type, i, rows, cols, n_x);
                all[i].limits[round] = measure_limit(&t);
                all[i].rates[round] = measure_product(&t);
                all[i].fractions[round] = all[i].rates[round] / all[i].limits[round];
            }
        }
    }
    for (int i = 0; i < N_ISAS; i++) {
        if (wants(b, type, i)) {
            const task t = task_of(b, type, i, rows, cols, n_x);
            print_row(&t, i, &all[i]);
        }
    }
    return true;
}

/* As many rows as fill the memory for weights. */
static bool bench_vector(const bench *b, dtype type)
{
    const uint64_t panel = PANEL_ROWS * dtype_row_bytes(type, VECTOR_COLS);

    return bench_product(b, type, (int64_t)(b->weight_bytes / panel * PANEL_ROWS), VECTOR_COLS, 1);
}

static bool bench_all(const bench *b)
{
    bool ok = true;

    if (!b->json) {
        printf("%u threads at %.2f GHz; vector: GB/s of weights against plain loads; matrix of %d "
               "vectors:\nGOP/s against the peak of the instruction set; cycles per weight (and "
               "vector)\n", b->n_threads, b->hz / 1e9, MATRIX_VECTORS);
        printf("%-7s %-5s %-9s %-14s %9s %9s %9s %10s\n", "kind", "type", "isa", "rows x cols",
               "G/s", "limit", "reached", "cycles");
    }
    for (int kind = 0; kind < 3; kind++) {
        for (int t = 0; t < N_TYPES && ok; t++) {
            if (!quant_supported(TYPES[t]) ||
                (b->type != NULL && strcmp(b->type, dtype_get(TYPES[t])->name) != 0)) {
                continue;
            }
            ok = kind == 0 ? bench_vector(b, TYPES[t])
                           : bench_product(b, TYPES[t], SHAPES[kind - 1][0], SHAPES[kind - 1][1],
                                           MATRIX_VECTORS);
        }
    }
    return ok;
}

static double core_hz(void)
{
    double best = 0;

    for (int round = 0; round < 20; round++) {
        const uint64_t start = clock_ns();
        probe_cycles(4000000);
        const double hz = 4e6 / seconds_since(start);
        best = hz > best ? hz : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    bench b = {.n_threads = cpu_n_cores(), .n_rounds = 11, .weight_bytes = 320u << 20};
    uint32_t mib = 320;
    smoe_err err = {0};
    size_t n_pos;
    const opt flags[] = {
        {"threads", OPT_U32, &b.n_threads, 1, 64, "N", "threads (all cores)", NULL},
        {"isa", OPT_TEXT, &b.isa, 0, 0, "NAME", "only this instruction set", NULL},
        {"type", OPT_TEXT, &b.type, 0, 0, "NAME", "only this type", NULL},
        {"rounds", OPT_U32, &b.n_rounds, 1, MAX_ROUNDS, "N", "measurements per number (11)", NULL},
        {"mib", OPT_U32, &mib, 64, 8192, "N", "weights of the vector runs (320)", NULL},
        {"json", OPT_FLAG, &b.json, 0, 0, NULL, "one object per row", NULL},
        {0},
    };

    if (opts_parse(flags, argc, argv, 1, NULL, 0, &n_pos, &err) != SMOE_OK) {
        fprintf(stderr, "kernels: %s\n", err.text);
        return 2;
    }
    const size_t x_bytes = (size_t)MATRIX_VECTORS * VECTOR_COLS * sizeof(float);
    const size_t acts_bytes =
        (size_t)(MATRIX_VECTORS * act_n_blocks(VECTOR_COLS)) * sizeof(act_block);
    const size_t out_bytes = (size_t)MATRIX_VECTORS * 8192 * sizeof(float);
    b.weight_bytes = (uint64_t)mib << 20;
    b.weights = mem_pages_alloc(b.weight_bytes);
    b.x = mem_pages_alloc(x_bytes);
    b.acts = mem_pages_alloc(acts_bytes);
    b.out = mem_pages_alloc(out_bytes);
    bool ok = b.weights != NULL && b.x != NULL && b.acts != NULL && b.out != NULL &&
              limits_new(NULL, b.n_threads, &b.limits, &err) == SMOE_OK;
    if (ok) {
        b.hz = core_hz();
        ok = bench_all(&b);
    }
    if (!ok) {
        fprintf(stderr, "kernels: not enough memory for %u MiB of weights and %u threads\n", mib,
                b.n_threads);
    }
    limits_free(b.limits);
    mem_pages_free(b.weights, b.weight_bytes);
    mem_pages_free(b.x, x_bytes);
    mem_pages_free(b.acts, acts_bytes);
    mem_pages_free(b.out, out_bytes);
    return ok ? 0 : 1;
}
