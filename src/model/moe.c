/* moe.c: see moe.h.
 *
 * Experts are computed in the order in which they arrive. One token: all that are in RAM are taken
 * together and their rows are spread over the threads as if they were one matrix, so that no thread
 * waits for an expert; the missing ones follow as they come. Many tokens: grouped by expert, each
 * expert of the union is demanded once, and of those that are in RAM a few are taken together in
 * the same way. What expert e gives token t at rank r is kept at moe[t][r], and the final sum runs
 * over the ranks in their order: the order of arrival, the batch and the path leave no trace in the
 * result. */
#include "model/moe.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "model/router.h"

enum {
    STRIPE_ROWS = MATMUL_STRIPE_ROWS,
    STRIPE_VECTORS = 64, /* of a result that stays in the cache until it is used */
    GROUP_VECTORS = 256, /* enough work that the ends of its loops do not matter */
};

/* MLPs that are computed in one go. */
typedef struct mlp_job {
    forward_ctx *f;
    const mlp *mlps;
    uint32_t n;
    const activations *in;     /* of gate and up */
    const activations *hidden; /* of down */
    float *y;                  /* down's results go to rows of y, or are added to rows of x */
} mlp_job;

static uint64_t n_panels(const matrix *m)
{
    return (m->rows + PANEL_ROWS - 1) / PANEL_ROWS;
}

/* Vectors [first, first + n) of a. */
static activations part_of(const activations *a, uint32_t first, uint32_t n)
{
    activations part = *a;
    part.n = n;
    part.x = a->x + first * a->cols;
    part.act = a->act + first * (size_t)act_n_blocks((int64_t)a->cols);
    return part;
}

/* Vectors that a stripe takes at a time: equal parts of at most STRIPE_VECTORS. */
static uint32_t stripe_vectors(uint32_t n)
{
    uint32_t n_parts = (n + STRIPE_VECTORS - 1) / STRIPE_VECTORS;
    return (n + n_parts - 1) / n_parts;
}

typedef void stripe_fn(const mlp_job *job, const mlp *m, uint64_t row0, uint64_t n_rows);

/* The work of a loop over the threads: a unit is one panel times one vector, so that ranges of as
 * many units take as long. A panel belongs to the range that its first unit is in. */
static size_t n_units(const mlp_job *job, uint64_t n_panels_each)
{
    size_t n = 0;
    for (uint32_t i = 0; i < job->n; i++) {
        n += n_panels_each * job->mlps[i].n;
    }
    return n;
}

/* Calls stripe() for at most STRIPE_ROWS rows at a time: units [begin, end) of matrices that are
 * all as large as `like`. */
static void for_stripes(const mlp_job *job, const matrix *like, size_t begin, size_t end,
                        stripe_fn *stripe)
{
    uint64_t n_of_each = n_panels(like);
    size_t first = 0;
    for (uint32_t i = 0; i < job->n; i++) {
        size_t n = job->mlps[i].n, n_here = n * n_of_each;
        size_t from = begin > first ? begin - first : 0, to = end > first ? end - first : 0;
        uint64_t row0 = (from + n - 1) / n * PANEL_ROWS;
        uint64_t row1 = ((to < n_here ? to : n_here) + n - 1) / n * PANEL_ROWS;
        row1 = row1 < like->rows ? row1 : like->rows;
        for (; row0 < row1; row0 += STRIPE_ROWS) {
            uint64_t n_rows = row1 - row0 < STRIPE_ROWS ? row1 - row0 : STRIPE_ROWS;
            stripe(job, &job->mlps[i], row0, n_rows);
        }
        first += n_here;
    }
}

/* hidden = silu(gate x) * up x, the SwiGLU of Shazeer 2020. */
static void gate_up_stripe(const mlp_job *job, const mlp *m, uint64_t row0, uint64_t n_rows)
{
    const forward_ctx *f = job->f;
    uint64_t n_ff = m->gate.rows;
    uint32_t n_part = stripe_vectors(m->n);
    float gate[STRIPE_VECTORS * STRIPE_ROWS], up[STRIPE_VECTORS * STRIPE_ROWS];
    for (uint32_t first = 0; first < m->n; first += n_part) {
        uint32_t n = m->n - first < n_part ? m->n - first : n_part;
        activations in = part_of(job->in, m->in_row + first, n);
        float *hidden = f->s->hidden + (m->hidden_row + first) * n_ff + row0;
        matmul_stripe(&f->compute, &in, &m->gate, row0, n_rows, gate, STRIPE_ROWS);
        matmul_stripe(&f->compute, &in, &m->up, row0, n_rows, up, STRIPE_ROWS);
        for (uint32_t j = 0; j < n; j++) {
            f->compute.k->swiglu(gate + j * STRIPE_ROWS, up + j * STRIPE_ROWS, hidden + j * n_ff,
                                 (int64_t)n_rows);
        }
    }
}

static void gate_up_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    (void)thread;
    for_stripes(job, &job->mlps->gate, begin, end, gate_up_stripe);
}

/* Rows of n_embd that lie a power of two apart meet in one set of the cache: a stripe's results
 * gather beside each other first. */
static void down_stripe(const mlp_job *job, const mlp *m, uint64_t row0, uint64_t n_rows)
{
    const forward_ctx *f = job->f;
    uint64_t n_embd = m->down.rows;
    uint32_t n_part = stripe_vectors(m->n);
    float y[STRIPE_VECTORS * STRIPE_ROWS];
    for (uint32_t first = 0; first < m->n; first += n_part) {
        uint32_t n = m->n - first < n_part ? m->n - first : n_part;
        activations hidden = part_of(job->hidden, m->hidden_row + first, n);
        matmul_stripe(&f->compute, &hidden, &m->down, row0, n_rows, y, STRIPE_ROWS);
        for (uint32_t j = 0; j < n; j++) {
            if (job->y) {
                memcpy(job->y + m->y_rows[first + j] * n_embd + row0, y + j * STRIPE_ROWS,
                       n_rows * sizeof *y);
            } else {
                f->compute.k->vec_add(f->s->x + (first + j) * n_embd + row0, y + j * STRIPE_ROWS,
                                      (int64_t)n_rows);
            }
        }
    }
}

static void down_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    (void)thread;
    for_stripes(job, &job->mlps->down, begin, end, down_stripe);
}

/* One token whose experts are all here: x += sum over the ranks of weight * down hidden. */
static void down_sum_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const mlp_job *job = ctx;
    (void)thread;
    const scratch *s = job->f->s;
    uint64_t row1 = end * PANEL_ROWS < job->mlps->down.rows ? end * PANEL_ROWS
                                                            : job->mlps->down.rows;
    for (uint64_t row0 = begin * PANEL_ROWS; row0 < row1; row0 += STRIPE_ROWS) {
        uint64_t n_rows = row1 - row0 < STRIPE_ROWS ? row1 - row0 : STRIPE_ROWS;
        for (uint32_t rank = 0; rank < job->n; rank++) {
            const mlp *m = &job->mlps[s->expert_group[rank]];
            activations hidden = part_of(job->hidden, m->hidden_row, 1);
            float y[STRIPE_ROWS];
            matmul_stripe(&job->f->compute, &hidden, &m->down, row0, n_rows, y, n_rows);
            job->f->compute.k->vec_mad_f32(s->x + row0, y, s->expert_weights[rank],
                                           (int64_t)n_rows);
        }
    }
}

/* Fewer units are not worth a second thread. */
static size_t grain_of(const matrix *m)
{
    return (size_t)(16384 / (m->cols * PANEL_ROWS)) + 1;
}

static void run_gate_up(mlp_job *job, activations *hidden, uint32_t n)
{
    forward_ctx *f = job->f;
    const matrix *gate = &job->mlps->gate, *down = &job->mlps->down;
    pool_for(f->compute.pool, n_units(job, n_panels(gate)), grain_of(gate), gate_up_range,
             job);
    activations_set(&f->compute, hidden, matrix_takes(down), f->s->hidden, n, down->cols);
}

/* n vectors of all MLPs together. */
static void run_mlps(mlp_job *job, uint32_t n)
{
    forward_ctx *f = job->f;
    const matrix *down = &job->mlps->down;
    activations hidden = {.act = f->s->act_hidden};
    run_gate_up(job, &hidden, n);
    job->hidden = &hidden;
    pool_for(f->compute.pool, n_units(job, n_panels(down)), grain_of(down), down_range, job);
}

void moe_dense(forward_ctx *f, uint32_t layer, uint32_t n)
{
    const layer_weights *l = &f->w->layers[layer];
    activations in = {.act = f->s->act};
    activations_set(&f->compute, &in, matrix_takes(&l->ffn_gate) | matrix_takes(&l->ffn_up),
                    f->s->x_norm, n, f->w->config.n_embd);
    const mlp all = {.gate = l->ffn_gate, .up = l->ffn_up, .down = l->ffn_down, .n = n};
    mlp_job job = {.f = f, .mlps = &all, .n = 1, .in = &in};
    run_mlps(&job, n);
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

static mlp mlp_of_record(const forward_ctx *f, const uint8_t *record)
{
    return (mlp){.gate = matrix_of_record(f->gate, record), .up = matrix_of_record(f->up, record),
                 .down = matrix_of_record(f->down, record)};
}

/* Takes every expert that is there, waiting for the first. MLP g of the group is the expert of rank
 * expert_ranks[g]; *n_group counts those pinned, on an error too. */
static smoe_status take_ready(forward_ctx *f, uint32_t n_left, uint32_t *n_group, smoe_err *err)
{
    scratch *s = f->s;
    *n_group = 0;
    while (*n_group < n_left) {
        uint32_t rank, g = *n_group;
        const uint8_t *record;
        TRY(f->experts->next(f->experts, g == 0, &rank, &record, err));
        if (rank == EXPERT_NONE) {
            break;
        }
        s->expert_ranks[g] = rank;
        s->expert_group[rank] = g;
        s->mlps[g] = mlp_of_record(f, record);
        s->mlps[g].n = 1;
        s->mlps[g].hidden_row = g;
        s->mlps[g].y_rows = &s->expert_ranks[g];
        (*n_group)++;
    }
    return SMOE_OK;
}

static void run_ready(forward_ctx *f, uint32_t n_group, activations *in)
{
    scratch *s = f->s;
    activations hidden = {.act = s->act_hidden};
    mlp_job job = {.f = f, .mlps = s->mlps, .n = n_group, .in = in, .y = s->moe};
    if (in->n == 0) {
        activations_set(&f->compute, in,
                        matrix_takes(&s->mlps->gate) | matrix_takes(&s->mlps->up), s->x_norm, 1,
                        f->w->config.n_embd);
    }
    if (n_group < f->w->config.n_expert_used) {
        run_mlps(&job, n_group);
        return;
    }
    run_gate_up(&job, &hidden, n_group);
    job.hidden = &hidden;
    pool_for(f->compute.pool, n_panels(&s->mlps->down), 1, down_sum_range, &job);
}

static smoe_status one_token(forward_ctx *f, uint32_t layer, smoe_err *err)
{
    scratch *s = f->s;
    uint32_t n_used = f->w->config.n_expert_used, n_done = 0, n_group = 0;
    activations in = {.act = s->act};
    smoe_status status = f->experts->demand(f->experts, layer, s->experts, n_used, err);
    if (status == SMOE_OK && f->n_spec && f->experts->hint) {
        guess_next(f, layer);
    }
    while (status == SMOE_OK && n_done < n_used) {
        status = take_ready(f, n_used - n_done, &n_group, err);
        if (status == SMOE_OK) {
            run_ready(f, n_group, &in);
        }
        for (uint32_t g = 0; g < n_group; g++) {
            f->experts->release(f->experts, layer, s->experts[s->expert_ranks[g]]);
        }
        n_done += n_group;
    }
    if (status != SMOE_OK) {
        f->experts->abandon(f->experts);
    } else if (n_group < n_used) {
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

/* Where the choices of an expert begin in s->expert_rows, after group_by_expert. */
static uint32_t first_choice(const scratch *s, uint32_t expert)
{
    return expert ? s->expert_ends[expert - 1] : 0;
}

/* Experts that are computed together, and what is known of them. */
typedef struct group {
    forward_ctx *f;
    const activations *all; /* every token */
    activations in;         /* the tokens of each expert, gathered */
    uint32_t layer;
    uint32_t n, n_vectors;  /* experts, s->mlps; their vectors */
} group;

static void gather_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const group *g = ctx;
    const activations *all = g->all;
    scratch *s = g->f->s;
    size_t cols = all->cols, n_blocks = (size_t)act_n_blocks((int64_t)cols);
    const mlp *m = s->mlps;
    (void)thread;
    for (size_t j = begin; j < end; j++) {
        while (j >= m->in_row + m->n) {
            m++;
        }
        size_t token = m->y_rows[j - m->in_row] / g->f->w->config.n_expert_used;
        if (all->takers & TAKES_FLOATS) {
            memcpy(s->expert_x + j * cols, all->x + token * cols, cols * sizeof *all->x);
        }
        if (all->takers & ~(unsigned)TAKES_FLOATS) {
            memcpy(g->in.act + j * n_blocks, all->act + token * n_blocks,
                   n_blocks * sizeof *all->act);
        }
    }
}

/* Computes what the group holds and empties it. */
static void run_group(group *g)
{
    forward_ctx *f = g->f;
    scratch *s = f->s;
    g->in = *g->all;
    g->in.x = s->expert_x;
    g->in.act = s->act_expert;
    g->in.n = g->n_vectors;
    mlp_job job = {.f = f, .mlps = s->mlps, .n = g->n, .in = &g->in, .y = s->moe};
    pool_for(f->compute.pool, g->n_vectors, 8, gather_range, g);
    run_mlps(&job, g->n_vectors);
    for (uint32_t i = 0; i < g->n; i++) {
        f->experts->release(f->experts, g->layer, s->mlps[i].expert);
    }
    g->n = g->n_vectors = 0;
}

/* Takes an expert's record into the group, which is computed before when the two are too much. */
static void add_to_group(group *g, uint32_t expert, const uint8_t *record)
{
    scratch *s = g->f->s;
    uint32_t from = first_choice(s, expert), n = s->expert_ends[expert] - from;
    if (g->n_vectors + n > s->n_batch) {
        run_group(g);
    }
    mlp *m = &s->mlps[g->n++];
    *m = mlp_of_record(g->f, record);
    m->expert = expert;
    m->n = n;
    m->in_row = m->hidden_row = g->n_vectors;
    m->y_rows = s->expert_rows + from;
    g->n_vectors += n;
}

/* True when more experts would bring nothing, or may not be pinned. */
static bool is_full(const group *g)
{
    uint32_t n_used = g->f->w->config.n_expert_used, n_pinned = g->f->experts->max_pinned;
    return g->n_vectors >= GROUP_VECTORS || g->n == n_used || g->n == n_pinned;
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
    group g = {.f = f, .all = &all, .layer = layer};
    for (uint32_t n_done = 0; status == SMOE_OK && n_done < n_union;) {
        uint32_t i;
        const uint8_t *record;
        status = experts->next(experts, g.n == 0, &i, &record, err);
        if (status == SMOE_OK && i != EXPERT_NONE) {
            add_to_group(&g, s->expert_union[i], record);
            n_done++;
        }
        bool is_end = status != SMOE_OK || i == EXPERT_NONE || n_done == n_union;
        if (g.n > 0 && (is_end || is_full(&g))) {
            run_group(&g);
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
