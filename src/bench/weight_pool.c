/* weight_pool.c: see weight_pool.h. */
#include "bench/weight_pool.h"

#include "base/mem.h"
#include "quant/kernels.h"
#include "quant/panel.h"

enum { POOL_BYTES = 4 << 20, MIN_GROUPS = 16, MAX_GROUPS = 4096 };

void weight_pools_init(weight_pools *p, pool *threads)
{
    *p = (weight_pools){.threads = threads, .rng = {1}};
}

void weight_pools_fini(weight_pools *p)
{
    for (size_t i = 0; i < p->n_pools; i++) {
        mem_free(p->pools[i].groups);
    }
    p->n_pools = 0;
}

/* The sum of four uniform numbers is close enough to a normal one; it has variance 4 / 12. */
static float normal(rng *r)
{
    uint64_t bits = rng_next(r);
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += (int)(bits >> (16 * i) & 0xffff);
    }
    return (float)(sum - 2 * 0xffff) * (1.7320508f / 65536);
}

struct fill_job {
    const weight_pool *pool;
    uint64_t seed;
    float *x;       /* [n_threads][cols] */
    uint8_t *rows;  /* [n_threads][group_bytes]: standard rows */
};

/* A group's weights follow from its number, not from the thread. */
static void fill_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct fill_job *job = ctx;
    const weight_pool *made = job->pool;
    const kernels *k = kernels_get(NULL);
    uint64_t row_bytes = made->group_bytes / PANEL_ROWS;
    float *x = job->x + thread * made->cols;
    for (size_t g = begin; g < end; g++) {
        rng r = {job->seed + g};
        uint8_t *group = made->groups + g * made->group_bytes;
        bool in_panels = dtype_get(made->type)->is_quantized;
        uint8_t *rows = in_panels ? job->rows + thread * made->group_bytes : group;
        for (uint64_t row = 0; row < PANEL_ROWS; row++) {
            for (uint64_t i = 0; i < made->cols; i++) {
                x[i] = normal(&r) * made->std;
            }
            k->quantize_row(made->type, x, rows + row * row_bytes, (int64_t)made->cols);
        }
        if (in_panels) {
            panel_pack(made->type, rows, PANEL_ROWS, made->cols, group);
        }
    }
}

static smoe_status make(weight_pools *p, weight_pool *made, smoe_err *err)
{
    uint32_t n_threads = pool_n_threads(p->threads);
    size_t n = POOL_BYTES / made->group_bytes;
    made->n_groups = n < MIN_GROUPS ? MIN_GROUPS : n > MAX_GROUPS ? MAX_GROUPS : n;
    made->groups = mem_alloc(made->n_groups * made->group_bytes);
    struct fill_job job = {
        .pool = made,
        .seed = rng_next(&p->rng),
        .x = mem_alloc(n_threads * made->cols * sizeof *job.x),
        .rows = mem_alloc(n_threads * made->group_bytes),
    };
    bool ok = made->groups && job.x && job.rows;
    if (ok) {
        pool_for(p->threads, made->n_groups, 1, fill_range, &job);
    }
    mem_free(job.x);
    mem_free(job.rows);
    return ok ? SMOE_OK : err_nomem(err, "random weights", made->n_groups * made->group_bytes);
}

smoe_status weight_pools_get(weight_pools *p, dtype type, uint64_t cols, float std,
                             const weight_pool **out, smoe_err *err)
{
    for (size_t i = 0; i < p->n_pools; i++) {
        weight_pool *made = &p->pools[i];
        if (made->type == type && made->cols == cols && made->std == std) {
            *out = made;
            return SMOE_OK;
        }
    }
    if (p->n_pools == WEIGHT_POOLS_MAX) {
        return err_set(err, SMOE_INTERNAL, "more than %d kinds of matrices", WEIGHT_POOLS_MAX);
    }
    weight_pool *made = &p->pools[p->n_pools++];
    *made = (weight_pool){.type = type, .cols = cols, .std = std,
                          .group_bytes = PANEL_ROWS * dtype_row_bytes(type, cols)};
    *out = made;
    return make(p, made, err);
}

weight_pieces weight_pieces_of(weight_pools *p, const weight_pool *from, uint64_t n_bytes)
{
    return (weight_pieces){.pool = from,
                           .group = (size_t)(rng_next(&p->rng) % from->n_groups),
                           .n_left_bytes = n_bytes};
}

bool weight_pieces_next(weight_pieces *m)
{
    uint64_t n = (m->pool->n_groups - m->group) * m->pool->group_bytes;
    m->data = m->pool->groups + m->group * m->pool->group_bytes;
    m->n_bytes = n < m->n_left_bytes ? n : m->n_left_bytes;
    m->n_left_bytes -= m->n_bytes;
    m->group = 0; /* a piece ends where the pool does, or is the last */
    return m->n_bytes > 0;
}
