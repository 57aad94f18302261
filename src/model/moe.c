/* moe.c: see moe.h.
 *
 * Experts are computed in the order in which they arrive. One token: all that are in RAM are taken
 * together and their rows are spread over the threads as if they were one matrix, so that no thread
 * waits for an expert; the missing ones follow as they come. Many tokens: grouped by expert, each
 * expert of the union is demanded once. What expert e gives token t at rank r is kept at moe[t][r],
 * and the final sum runs over the ranks in their order: the order of arrival, the batch and the
 * path leave no trace in the result. */
#include "model/moe.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "model/router.h"

enum { STRIPE_ROWS = MATMUL_STRIPE_ROWS };

/* Experts (or one dense MLP) that are computed in one go. The vectors of all groups are the same
 * (one token, many experts) or there is one group (one expert, many tokens). */
typedef struct mlp_job {
    forward_ctx *f;
    const matrix *gate, *up, *down; /* [n_groups] */
    const uint32_t *ranks;          /* [n_groups] one token: the rank of each group's expert */
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
                        void (*stripe)(const mlp_job *job, size_t group, uint64_t row0, uint64_t n))
{
    uint64_t n_of_each = n_panels(first);
    while (begin < end) {
        size_t group = begin / n_of_each;
        uint64_t panel = begin % n_of_each;
        uint64_t n = STRIPE_ROWS / PANEL_ROWS;
        n = n < n_of_each - panel ? n : n_of_each - panel;
        n = n < end - begin ? n : end - begin;
        uint64_t row0 = panel * PANEL_ROWS, row1 = row0 + n * PANEL_ROWS;
        stripe(job, group, row0, (row1 < first->rows ? row1 : first->rows) - row0);
        begin += n;
    }
}

/* hidden = silu(gate x) * up x, the SwiGLU of Shazeer 2020. */
static void gate_up_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n)
{
    const forward_ctx *f = job->f;
    uint64_t n_ff = job->gate->rows;
    float *gate = f->s->hidden + group * n_ff + row0, *up = f->s->up + group * n_ff + row0;
    matmul_stripe(&f->compute, job->in, &job->gate[group], row0, n, gate, n_ff);
    matmul_stripe(&f->compute, job->in, &job->up[group], row0, n, up, n_ff);
    for (uint32_t j = 0; j < job->in->n; j++) {
        f->compute.k->swiglu(gate + j * n_ff, up + j * n_ff, gate + j * n_ff, (int64_t)n);
    }
}

static void gate_up_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    (void)thread;
    for_stripes(job, job->gate, begin, end, gate_up_stripe);
}

/* One token: rows of down times the hidden vector of one group. */
static void down_of_group(const mlp_job *job, size_t group, uint64_t row0, uint64_t n, float *y)
{
    activations one = *job->hidden;
    one.n = 1;
    one.x = job->hidden->x + group * one.cols;
    one.act = job->hidden->act + group * (size_t)act_n_blocks((int64_t)one.cols);
    matmul_stripe(&job->f->compute, &one, &job->down[group], row0, n, y, n);
}

/* One token whose experts are all here: x += sum over the ranks of weight * down hidden. */
static void down_sum_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n)
{
    const scratch *s = job->f->s;
    uint32_t n_used = job->f->w->config.n_expert_used;
    (void)group;
    for (uint32_t rank = 0; rank < n_used; rank++) {
        float y[STRIPE_ROWS];
        down_of_group(job, s->expert_group[rank], row0, n, y);
        job->f->compute.k->vec_mad_f32(s->x + row0, y, s->expert_weights[rank], (int64_t)n);
    }
}

static void down_sum_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    (void)thread;
    for_stripes(job, job->down, begin, end, down_sum_stripe);
}

/* One token, some of its experts: moe[rank] = down hidden. */
static void down_rank_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n)
{
    float *y = job->f->s->moe + (size_t)job->ranks[group] * job->down->rows + row0;
    down_of_group(job, group, row0, n, y);
}

static void down_rank_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    (void)thread;
    for_stripes(job, job->down, begin, end, down_rank_stripe);
}

static void down_stripe(const mlp_job *job, size_t group, uint64_t row0, uint64_t n)
{
    const forward_ctx *f = job->f;
    uint64_t n_embd = job->down->rows;
    (void)group;
    matmul_stripe(&f->compute, job->hidden, job->down, row0, n, job->y + row0, n_embd);
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
    (void)thread;
    for_stripes(job, job->down, begin, end, down_stripe);
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

/* The next layer that has experts, or n_layer. */
static uint32_t next_sparse(const forward_ctx *f, uint32_t layer)
{
    const model_config *cfg = &f->w->config;
    do {
        layer++;
    } while (layer < cfg->n_layer && !cfg->is_sparse[layer]);
    return layer;
}

/* ---- one token ---- */

/* Asks the next layer's router about the state as it is before this layer's experts: what it names
 * is often what it will name (design B5). */
static void guess_next(forward_ctx *f, uint32_t layer)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    uint32_t next = next_sparse(f, layer);
    if (next == cfg->n_layer) {
        return;
    }
    const layer_weights *l = &f->w->layers[next];
    uint32_t n = f->n_spec < cfg->n_expert ? f->n_spec : cfg->n_expert;
    activations in = {.act = s->act};
    f->compute.k->rms_norm(s->x, l->ffn_norm, s->expert_x, cfg->n_embd, cfg->rms_eps);
    activations_set(&f->compute, &in, matrix_takes(&l->ffn_gate_inp), s->expert_x, 1, cfg->n_embd);
    matmul(&f->compute, &in, &(matmul_part){&l->ffn_gate_inp, NULL, s->router}, 1);
    if (router_select(f->compute.k, s->router, cfg->n_expert, n, false, s->expert_hint,
                      s->hint_weights)) {
        f->experts->hint(f->experts, next, s->expert_hint, n, false);
    }
}

/* Takes every expert that is there, waiting for the first. Group g of the job is the expert of rank
 * expert_ranks[g]; *n_groups counts those pinned, on an error too. */
static smoe_status take_ready(forward_ctx *f, uint32_t n_left, uint32_t *n_groups, smoe_err *err)
{
    scratch *s = f->s;
    uint32_t n_used = f->w->config.n_expert_used;
    matrix *gate = s->expert_matrices, *up = gate + n_used, *down = up + n_used;
    *n_groups = 0;
    while (*n_groups < n_left) {
        uint32_t rank, g = *n_groups;
        const uint8_t *record;
        TRY(f->experts->next(f->experts, g == 0, &rank, &record, err));
        if (rank == EXPERT_NONE) {
            break;
        }
        s->expert_ranks[g] = rank;
        s->expert_group[rank] = g;
        gate[g] = matrix_of_record(f->gate, record);
        up[g] = matrix_of_record(f->up, record);
        down[g] = matrix_of_record(f->down, record);
        (*n_groups)++;
    }
    return SMOE_OK;
}

static void run_ready(forward_ctx *f, uint32_t n_groups, activations *in)
{
    scratch *s = f->s;
    uint32_t n_used = f->w->config.n_expert_used;
    const matrix *gate = s->expert_matrices, *up = gate + n_used, *down = up + n_used;
    activations hidden = {.act = s->act_hidden};
    mlp_job job = {.f = f, .gate = gate, .up = up, .down = down, .ranks = s->expert_ranks,
                   .in = in, .hidden = &hidden};
    if (in->n == 0) {
        activations_set(&f->compute, in, matrix_takes(gate) | matrix_takes(up), s->x_norm, 1,
                        f->w->config.n_embd);
    }
    pool_for(f->compute.pool, n_groups * n_panels(gate), 1, gate_up_range, &job);
    activations_set(&f->compute, &hidden, matrix_takes(down), s->hidden, n_groups, down->cols);
    if (n_groups == n_used) {
        pool_for(f->compute.pool, n_panels(down), 1, down_sum_range, &job);
    } else {
        pool_for(f->compute.pool, n_groups * n_panels(down), 1, down_rank_range, &job);
    }
}

static smoe_status one_token(forward_ctx *f, uint32_t layer, smoe_err *err)
{
    scratch *s = f->s;
    uint32_t n_used = f->w->config.n_expert_used, n_done = 0, n_groups = 0;
    activations in = {.act = s->act};
    smoe_status status = f->experts->demand(f->experts, layer, s->experts, n_used, err);
    if (status == SMOE_OK && f->n_spec && f->experts->hint) {
        guess_next(f, layer);
    }
    while (status == SMOE_OK && n_done < n_used) {
        status = take_ready(f, n_used - n_done, &n_groups, err);
        if (status == SMOE_OK) {
            run_ready(f, n_groups, &in);
        }
        for (uint32_t g = 0; g < n_groups; g++) {
            f->experts->release(f->experts, layer, s->experts[s->expert_ranks[g]]);
        }
        n_done += n_groups;
    }
    if (status != SMOE_OK) {
        f->experts->abandon(f->experts);
    } else if (n_groups < n_used) {
        sum_ranks(f, 0, 1, 0);
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
static void run_expert(forward_ctx *f, const uint8_t *record, const activations *all,
                       const uint32_t *rows, uint32_t n)
{
    activations in = *all;
    in.x = f->s->expert_x;
    in.act = f->s->act_expert;
    in.n = n;
    matrix gate = matrix_of_record(f->gate, record), up = matrix_of_record(f->up, record),
           down = matrix_of_record(f->down, record);
    gather_job gather = {f, rows, all, &in};
    mlp_job job = {.f = f, .gate = &gate, .up = &up, .down = &down, .in = &in,
                   .y = f->s->expert_y, .rows = rows};
    pool_for(f->compute.pool, n, 8, gather_range, &gather);
    run_mlp(&job);
}

/* Where the choices of an expert begin in s->expert_rows, after group_by_expert. */
static uint32_t first_choice(const scratch *s, uint32_t expert)
{
    return expert ? s->expert_ends[expert - 1] : 0;
}

/* The experts that were chosen, each once, into s->expert_union; returns how many. */
static uint32_t find_union(forward_ctx *f)
{
    scratch *s = f->s;
    uint32_t n_union = 0;
    for (uint32_t e = 0; e < f->w->config.n_expert; e++) {
        if (s->expert_ends[e] > first_choice(s, e)) {
            s->expert_union[n_union++] = e;
        }
    }
    return n_union;
}

/* Nearly all experts of this layer are needed: so will those of the next, and their reads can run
 * while its attention does. */
static void hint_next(forward_ctx *f, uint32_t layer)
{
    uint32_t next = next_sparse(f, layer);
    if (next < f->w->config.n_layer && f->experts->hint) {
        for (uint32_t e = 0; e < f->w->config.n_expert; e++) {
            f->s->expert_hint[e] = e;
        }
        f->experts->hint(f->experts, next, f->s->expert_hint, f->w->config.n_expert, true);
    }
}

static smoe_status many_tokens(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    scratch *s = f->s;
    const model_config *cfg = &f->w->config;
    expert_source *experts = f->experts;
    group_by_expert(f, n);
    uint32_t n_union = find_union(f);
    smoe_status status = experts->demand(experts, layer, s->expert_union, n_union, err);
    if (status == SMOE_OK && 10 * n_union >= 9 * cfg->n_expert) {
        hint_next(f, layer);
    }
    const matrix gate = matrix_of_record(f->gate, NULL), up = matrix_of_record(f->up, NULL);
    activations all = {.act = s->act};
    activations_set(&f->compute, &all, matrix_takes(&gate) | matrix_takes(&up), s->x_norm, n,
                    cfg->n_embd);
    for (uint32_t n_done = 0; status == SMOE_OK && n_done < n_union; n_done++) {
        uint32_t i;
        const uint8_t *record;
        status = experts->next(experts, true, &i, &record, err);
        if (status == SMOE_OK) {
            uint32_t e = s->expert_union[i], from = first_choice(s, e);
            run_expert(f, record, &all, s->expert_rows + from, s->expert_ends[e] - from);
            experts->release(experts, layer, e);
        }
    }
    if (status != SMOE_OK) {
        experts->abandon(experts);
        return status;
    }
    pool_for(f->compute.pool, n, 4, sum_ranks, f);
    return SMOE_OK;
}

smoe_status moe_sparse(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    uint64_t start_ns = f->times ? clock_ns() : 0;
    TRY(route(f, layer, n, err));
    if (f->times) {
        f->times->router_ns += clock_ns() - start_ns;
    }
    if (f->routed) {
        f->routed(f->routed_ctx, layer, f->s->experts, n);
    }
    if (n == 1 && f->experts->max_pinned >= f->w->config.n_expert_used) {
        return one_token(f, layer, err);
    }
    return many_tokens(f, layer, n, err);
}
