/* limits.c: see limits.h. */
#include "bench/limits.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/probes.h"
#include "quant/kernels.h"
#include "quant/panel.h"

enum {
    READ_BYTES = 320 << 20, /* far more than any cache */
    READ_BLOCK = 1 << 20,
    PEAK_ITEMS = 40,        /* per thread, so that a thread that was held up is helped */
    PEAK_ROUNDS = 20000,
    MEASURE_MS = 100
};

typedef struct thread_sums {
    double n_ops;
    uint64_t keep;
    char apart[48]; /* one cache line each */
} thread_sums;

struct limits {
    const probes *reads, *peaks;
    pool *pool;
    uint8_t *memory;
    thread_sums *sums; /* [n_threads] */
    double (*peak)(uint64_t n);
};

static smoe_status take_memory(limits *l, uint32_t n_threads, smoe_err *err)
{
    l->memory = mem_pages_alloc(READ_BYTES);
    l->sums = mem_calloc(n_threads, sizeof *l->sums);
    if (!l->memory || !l->sums) {
        return err_nomem(err, "the memory that the read bandwidth is measured on", READ_BYTES);
    }
    memset(l->memory, 1, READ_BYTES); /* untouched pages would all be one page of zeros */
    return pool_new(n_threads, &l->pool, err);
}

bool limits_select(limits *l, const char *isa)
{
    if (!kernels_get(isa)) {
        return false;
    }
    const panel_kernels *asked = panel_kernels_get(isa);
    /* as the engine does: "avx512" needs VNNI here */
    l->peaks = probes_get(asked ? asked->name : "avx2");
    return true;
}

smoe_status limits_new(const char *isa, uint32_t n_threads, limits **out, smoe_err *err)
{
    limits *l = mem_calloc(1, sizeof *l);
    if (!l) {
        return err_nomem(err, "the limits", sizeof *l);
    }
    if (!limits_select(l, isa)) {
        mem_free(l);
        return err_set(err, SMOE_USAGE, "this processor has no kernel set \"%s\"", isa);
    }
    l->reads = probes_get(panel_kernels_get(NULL)->name);
    smoe_status status = take_memory(l, n_threads, err);
    if (status != SMOE_OK) {
        limits_free(l);
        return status;
    }
    *out = l;
    return SMOE_OK;
}

void limits_free(limits *l)
{
    if (!l) {
        return;
    }
    pool_free(l->pool);
    mem_pages_free(l->memory, READ_BYTES);
    mem_free(l->sums);
    mem_free(l);
}

pool *limits_pool(const limits *l)
{
    return l->pool;
}

static void read_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    limits *l = ctx;
    l->sums[thread].keep += l->reads->read(l->memory + begin * READ_BLOCK,
                                           (end - begin) * READ_BLOCK);
}

static void peak_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    limits *l = ctx;
    l->sums[thread].n_ops += l->peak((end - begin) * PEAK_ROUNDS);
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(clock_ns() - start_ns) * 1e-9;
}

double limits_read(limits *l, uint32_t ms)
{
    uint64_t start_ns = clock_ns();
    double n_bytes = 0;
    do {
        pool_for(l->pool, READ_BYTES / READ_BLOCK, 1, read_range, l);
        n_bytes += READ_BYTES;
    } while (seconds_since(start_ns) * 1000 < ms);
    return n_bytes / seconds_since(start_ns);
}

static double measure_peak(limits *l, double (*peak)(uint64_t n), uint32_t ms)
{
    uint32_t n_threads = pool_n_threads(l->pool);
    double n_ops = 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        l->sums[i].n_ops = 0;
    }
    l->peak = peak;
    uint64_t start_ns = clock_ns();
    do {
        pool_for(l->pool, (size_t)n_threads * PEAK_ITEMS, 1, peak_range, l);
    } while (seconds_since(start_ns) * 1000 < ms);
    double seconds = seconds_since(start_ns);
    for (uint32_t i = 0; i < n_threads; i++) {
        n_ops += l->sums[i].n_ops;
    }
    return n_ops / seconds;
}

double limits_int_ops(limits *l, uint32_t ms)
{
    return measure_peak(l, l->peaks->int_dots, ms);
}

double limits_float_ops(limits *l, uint32_t ms)
{
    return measure_peak(l, l->peaks->float_fmas, ms);
}

limit_rates limits_measure(limits *l)
{
    return (limit_rates){
        .read_bytes_s = limits_read(l, MEASURE_MS),
        .int_ops_s = limits_int_ops(l, MEASURE_MS),
        .float_ops_s = limits_float_ops(l, MEASURE_MS),
    };
}
