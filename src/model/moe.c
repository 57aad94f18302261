/* moe.c: see moe.h.
 *
 * One token: its experts are pinned together and their rows are spread over the threads as if they
 * were one matrix, so that no thread waits for an expert. Many tokens: grouped by expert, each
 * expert of the union is acquired once; what expert e gives token t at rank r is kept at moe[t][r].
 * Either way the final sum runs over the ranks in their order, so both give the same bits. */
#include "model/moe.h"

#include <stdatomic.h>
#include <string.h>

#include "model/router.h"

enum { STRIPE_ROWS = MATMUL_STRIPE_ROWS };

/* Experts (or one dense MLP) that are computed in one go. The vectors of all groups are the same
 * (one token, many experts) or there is one group (one expert, many tokens). */
typedef struct mlp_job {
    forward_ctx *f;
    const matrix *gate, *up, *down; /* [n_groups] */
    const activations *in;          /* of gate and up */
    const activations *hidden;      /* of down */
    float *y;                       /* down's output [n][n_embd], many tokens */
    const uint32_t *rows;           /* y of vector j goes to moe[rows[j]]; NULL: is added to x */
} mlp_job;

static uint64_t n_panels(const matrix *m)
{
    return (m->rows + PANEL_ROWS - 1) / PANEL_ROWS;
}

/* Calls stripe() for pieces of at most STRIPE_ROWS rows of [begin, end) panels of many equal
 * matrices that lie one after another. */
static void for_stripes(const mlp_job *job, const matrix *first, size_t begin, size_t end,
                        uint32_t thread,
                        void (*stripe)(const mlp_job *job, size_t group, uint64_t row0, uint64_t n,
                                       uint32_t thread))
{
    uint64_t n_of_each = n_panels(first);
    while (begin < end) {
        size_t group = begin / n_of_each;
        uint64_t panel = begin % n_of_each;
        uint64_t n = STRIPE_ROWS / PANEL_ROWS;
        n = n < n_of_each - panel ? n : n_of_each - panel;
        n = n < end - begin ? n : end - begin;
        uint64_t row0 = panel * PANEL_ROWS, row1 = row0 + n * PANEL_ROWS;
        stripe(job, group, row0, (row1 < first->rows ? row1 : first->rows) - row0, thread);
        begin += n;
    }
}

/* hidden = silu(gate x) * up x, the SwiGLU of Shazeer 2020. */
static void gate_up_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n,
                           uint32_t thread)
{
    const forward_ctx *f = job->f;
    uint64_t n_ff = job->gate->rows;
    float *gate = f->s->hidden + group * n_ff + row0, *up = f->s->up + group * n_ff + row0;
    matmul_stripe(&f->compute, job->in, &job->gate[group], row0, n, gate, n_ff, thread);
    matmul_stripe(&f->compute, job->in, &job->up[group], row0, n, up, n_ff, thread);
    for (uint32_t j = 0; j < job->in->n; j++) {
        f->compute.k->swiglu(gate + j * n_ff, up + j * n_ff, gate + j * n_ff, (int64_t)n);
    }
}

static void gate_up_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    for_stripes(job, job->gate, begin, end, thread, gate_up_stripe);
}

/* One token: x += sum over the ranks of weight * down hidden. */
static void down_sum_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n,
                            uint32_t thread)
{
    const forward_ctx *f = job->f;
    uint32_t n_used = f->w->config.n_expert_used;
    activations one = *job->hidden;
    (void)group;
    one.n = 1;
    for (uint32_t rank = 0; rank < n_used; rank++) {
        float y[STRIPE_ROWS];
        one.x = job->hidden->x + rank * one.cols;
        one.act = job->hidden->act + rank * (size_t)act_n_blocks((int64_t)one.cols);
        matmul_stripe(&f->compute, &one, &job->down[rank], row0, n, y, n, thread);
        f->compute.k->vec_mad_f32(f->s->x + row0, y, f->s->expert_weights[rank], (int64_t)n);
    }
}

static void down_sum_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    for_stripes(job, job->down, begin, end, thread, down_sum_stripe);
}

static void down_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n,
                        uint32_t thread)
{
    const forward_ctx *f = job->f;
    uint64_t n_embd = job->down->rows;
    (void)group;
    matmul_stripe(&f->compute, job->hidden, job->down, row0, n, job->y + row0, n_embd, thread);
    for (uint32_t j = 0; j < job->hidden->n; j++) {
        const float *y = job->y + j * n_embd + row0;
        if (job->rows) {
            memcpy(f->s->moe + job->rows[j] * n_embd + row0, y, n * sizeof *y);
        } else {
            f->compute.k->vec_add(f->s->x + j * n_embd + row0, y, (int64_t)n);
        }
    }
}

static void down_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    for_stripes(job, job->down, begin, end, thread, down_stripe);
}

/* One group, many vectors. */
static void run_mlp(mlp_job *job)
{
    forward_ctx *f = job->f;
    activations hidden = {.act = f->s->act_hidden};
    uint64_t grain = 1 + (uint64_t)16384 / (job->gate->cols * PANEL_ROWS * job->in->n);
    pool_for(f->compute.pool, n_panels(job->gate), grain, gate_up_range, job);
    activations_set(&f->compute, &hidden, matrix_takes(job->down), f->s->hidden, job->in->n,
                    job->down->cols);
    job->hidden = &hidden;
    pool_for(f->compute.pool, n_panels(job->down), grain, down_range, job);
}

void moe_dense(forward_ctx *f, uint32_t layer, uint32_t n)
{
    const layer_weights *l = &f->w->layers[layer];
    scratch *s = f->s;
    activations in = {.act = s->act};
    activations_set(&f->compute, &in, matrix_takes(&l->ffn_gate) | matrix_takes(&l->ffn_up),
                    s->x_norm, n, f->w->config.n_embd);
    mlp_job job = {.f = f, .gate = &l->ffn_gate, .up = &l->ffn_up, .down = &l->ffn_down,
                   .in = &in, .y = s->expert_y};
    run_mlp(&job);
}

typedef struct route_job {
    const forward_ctx *f;
    atomic_bool is_broken; /* a value is not finite */
} route_job;

static void route_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    route_job *job = ctx;
    const model_config *cfg = &job->f->w->config;
    const scratch *s = job->f->s;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        if (!router_select(job->f->compute.k, s->router + t * cfg->n_expert, cfg->n_expert,
                           cfg->n_expert_used, cfg->norm_topk_prob,
                           s->experts + t * cfg->n_expert_used,
                           s->expert_weights + t * cfg->n_expert_used)) {
            atomic_store(&job->is_broken, true);
        }
    }
}

static smoe_status route(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    const matrix *router = &f->w->layers[layer].ffn_gate_inp;
    scratch *s = f->s;
    activations in = {.act = s->act};
    activations_set(&f->compute, &in, matrix_takes(router), s->x_norm, n, cfg->n_embd);
    matmul(&f->compute, &in, &(matmul_part){router, NULL, s->router}, 1);
    route_job job = {.f = f};
    pool_for(f->compute.pool, n, 8, route_range, &job);
    if (atomic_load(&job.is_broken)) {
        return err_set(err, SMOE_NUMERIC,
                       "the router of layer %u gave a value that is not finite; "
                       "the model's files are damaged or the model overflows",
                       layer);
    }
    return SMOE_OK;
}

/* ---- one token ---- */

static smoe_status one_token(forward_ctx *f, uint32_t layer, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    uint32_t n_used = cfg->n_expert_used, n_held = 0;
    matrix *gate = s->expert_matrices, *up = gate + n_used, *down = up + n_used;
    activations in = {.act = s->act}, hidden = {.act = s->act_hidden};
    mlp_job job = {.f = f, .gate = gate, .up = up, .down = down, .in = &in, .hidden = &hidden};
    smoe_status status = SMOE_OK;
    f->experts->prefetch(f->experts, layer, s->experts, n_used);
    while (n_held < n_used && status == SMOE_OK) {
        const uint8_t *record;
        status = f->experts->acquire(f->experts, layer, s->experts[n_held], &record, err);
        if (status == SMOE_OK) {
            gate[n_held] = matrix_of_record(f->gate, record);
            up[n_held] = matrix_of_record(f->up, record);
            down[n_held++] = matrix_of_record(f->down, record);
        }
    }
    if (status == SMOE_OK) {
        activations_set(&f->compute, &in, matrix_takes(gate) | matrix_takes(up), s->x_norm, 1,
                        cfg->n_embd);
        pool_for(f->compute.pool, n_used * n_panels(gate), 1, gate_up_range, &job);
        activations_set(&f->compute, &hidden, matrix_takes(down), s->hidden, n_used, down->cols);
        pool_for(f->compute.pool, n_panels(down), 1, down_sum_range, &job);
    }
    for (uint32_t i = 0; i < n_held; i++) {
        f->experts->release(f->experts, layer, s->experts[i]);
    }
    return status;
}

/* ---- many tokens ---- */

/* Sorts the choices of n tokens by expert: those of expert e are expert_rows[from .. to), with
 * from = expert_ends[e - 1] (0 for the first) and to = expert_ends[e]. */
static void group_by_expert(forward_ctx *f, uint32_t n)
{
    scratch *s = f->s;
    uint32_t n_expert = f->w->config.n_expert, n_choices = n * f->w->config.n_expert_used;
    memset(s->expert_ends, 0, n_expert * sizeof *s->expert_ends);
    for (uint32_t i = 0; i < n_choices; i++) {
        s->expert_ends[s->experts[i]]++;
    }
    for (uint32_t e = 0, first = 0; e < n_expert; e++) {
        uint32_t count = s->expert_ends[e];
        s->expert_ends[e] = first;
        first += count;
    }
    for (uint32_t i = 0; i < n_choices; i++) { /* a start moves on until it is the end */
        s->expert_rows[s->expert_ends[s->experts[i]]++] = i;
    }
}

typedef struct gather_job {
    const forward_ctx *f;
    const uint32_t *rows;
    const activations *all;
    activations *in;
} gather_job;

static void gather_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const gather_job *job = ctx;
    const activations *all = job->all;
    scratch *s = job->f->s;
    size_t cols = all->cols, n_blocks = (size_t)act_n_blocks((int64_t)cols);
    (void)thread;
    for (size_t j = begin; j < end; j++) {
        size_t token = job->rows[j] / job->f->w->config.n_expert_used;
        if (all->takers & TAKES_FLOATS) {
            memcpy(s->expert_x + j * cols, all->x + token * cols, cols * sizeof *all->x);
        }
        if (all->takers & ~(unsigned)TAKES_FLOATS) {
            memcpy(job->in->act + j * n_blocks, all->act + token * n_blocks,
                   n_blocks * sizeof *all->act);
        }
    }
}

/* One expert for the tokens whose choices are rows [n]. */
static smoe_status run_expert(forward_ctx *f, uint32_t layer, uint32_t expert,
                              const activations *all, const uint32_t *rows, uint32_t n,
                              smoe_err *err)
{
    const uint8_t *record;
    activations in = *all;
    in.x = f->s->expert_x;
    in.act = f->s->act_expert;
    in.n = n;
    TRY(f->experts->acquire(f->experts, layer, expert, &record, err));
    matrix gate = matrix_of_record(f->gate, record), up = matrix_of_record(f->up, record),
           down = matrix_of_record(f->down, record);
    gather_job gather = {f, rows, all, &in};
    mlp_job job = {.f = f, .gate = &gate, .up = &up, .down = &down, .in = &in,
                   .y = f->s->expert_y, .rows = rows};
    pool_for(f->compute.pool, n, 8, gather_range, &gather);
    run_mlp(&job);
    f->experts->release(f->experts, layer, expert);
    return SMOE_OK;
}

static void sum_ranks(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const forward_ctx *f = ctx;
    const scratch *s = f->s;
    size_t n_used = f->w->config.n_expert_used, n_embd = f->w->config.n_embd;
    (void)thread;
    for (size_t i = begin * n_used; i < end * n_used; i++) {
        f->compute.k->vec_mad_f32(s->x + i / n_used * n_embd, s->moe + i * n_embd,
                                  s->expert_weights[i], (int64_t)n_embd);
    }
}

static smoe_status many_tokens(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    const matrix gate = matrix_of_record(f->gate, NULL), up = matrix_of_record(f->up, NULL);
    activations all = {.act = s->act};
    activations_set(&f->compute, &all, matrix_takes(&gate) | matrix_takes(&up), s->x_norm, n,
                    cfg->n_embd);
    group_by_expert(f, n);
    for (uint32_t e = 0, from = 0; e < cfg->n_expert; from = s->expert_ends[e], e++) {
        uint32_t n_rows = s->expert_ends[e] - from;
        if (n_rows > 0) {
            TRY(run_expert(f, layer, e, &all, s->expert_rows + from, n_rows, err));
        }
    }
    pool_for(f->compute.pool, n, 4, sum_ranks, f);
    return SMOE_OK;
}

smoe_status moe_sparse(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    TRY(route(f, layer, n, err));
    if (n == 1 && f->experts->max_pinned >= f->w->config.n_expert_used) {
        return one_token(f, layer, err);
    }
    return many_tokens(f, layer, n, err);
}
