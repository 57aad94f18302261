/* moe.c: see moe.h.
 *
 * The tokens of a batch are grouped by expert: each expert of the union is acquired once. What
 * expert e gives token t at rank r is kept at moe[t][r]; the final sum over ranks has one order,
 * whatever the order in which experts were computed. */
#include "model/moe.h"

#include <string.h>

#include "model/router.h"

/* y [n][n_embd] = down(silu(gate x) * up x), the SwiGLU of Shazeer 2020. */
static void swiglu_mlp(forward_ctx *f, const matrix *gate, const matrix *up, const matrix *down,
                       const float *x, uint32_t n, float *y)
{
    scratch *s = f->s;
    matmul(&f->compute, gate, NULL, x, n, s->gate);
    matmul(&f->compute, up, NULL, x, n, s->up);
    f->compute.k->swiglu(s->gate, s->up, s->gate, (int64_t)(n * gate->rows));
    matmul(&f->compute, down, NULL, s->gate, n, y);
}

void moe_dense(forward_ctx *f, uint32_t layer, uint32_t n)
{
    const layer_weights *l = &f->w->layers[layer];
    scratch *s = f->s;
    swiglu_mlp(f, &l->ffn_gate, &l->ffn_up, &l->ffn_down, s->x_norm, n, s->expert_y);
    f->compute.k->vec_add(s->x, s->expert_y, (int64_t)n * f->w->config.n_embd);
}

static smoe_status route(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    matmul(&f->compute, &f->w->layers[layer].ffn_gate_inp, NULL, s->x_norm, n, s->router);
    for (uint32_t t = 0; t < n; t++) {
        if (!router_select(f->compute.k, s->router + (size_t)t * cfg->n_expert, cfg->n_expert,
                           cfg->n_expert_used, cfg->norm_topk_prob,
                           s->experts + (size_t)t * cfg->n_expert_used,
                           s->expert_weights + (size_t)t * cfg->n_expert_used)) {
            return err_set(err, SMOE_NUMERIC,
                           "the router of layer %u gave a value that is not finite; "
                           "the model's files are damaged or the model overflows",
                           layer);
        }
    }
    return SMOE_OK;
}

/* Gathers the tokens that chose `expert` into s->expert_x and their places into s->expert_rows. */
static uint32_t gather(scratch *s, const model_config *cfg, uint32_t expert, uint32_t n)
{
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < n * cfg->n_expert_used; i++) {
        if (s->experts[i] == expert) {
            memcpy(s->expert_x + (size_t)n_rows * cfg->n_embd,
                   s->x_norm + (size_t)(i / cfg->n_expert_used) * cfg->n_embd,
                   cfg->n_embd * sizeof *s->x_norm);
            s->expert_rows[n_rows++] = i;
        }
    }
    return n_rows;
}

static smoe_status run_expert(forward_ctx *f, uint32_t layer, uint32_t expert, uint32_t n_rows,
                              smoe_err *err)
{
    scratch *s = f->s;
    size_t n_embd = f->w->config.n_embd;
    const uint8_t *record;
    TRY(f->experts->acquire(f->experts, layer, expert, &record, err));
    matrix gate = matrix_of_record(f->gate, record), up = matrix_of_record(f->up, record),
           down = matrix_of_record(f->down, record);
    swiglu_mlp(f, &gate, &up, &down, s->expert_x, n_rows, s->expert_y);
    f->experts->release(f->experts, layer, expert);
    for (uint32_t i = 0; i < n_rows; i++) {
        memcpy(s->moe + s->expert_rows[i] * n_embd, s->expert_y + i * n_embd,
               n_embd * sizeof *s->moe);
    }
    return SMOE_OK;
}

smoe_status moe_sparse(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    TRY(route(f, layer, n, err));
    if (n == 1) { /* for a batch the union is found below, expert by expert */
        f->experts->prefetch(f->experts, layer, s->experts, cfg->n_expert_used);
    }
    for (uint32_t e = 0; e < cfg->n_expert; e++) {
        uint32_t n_rows = gather(s, cfg, e, n);
        if (n_rows) {
            TRY(run_expert(f, layer, e, n_rows, err));
        }
    }
    for (uint32_t i = 0; i < n * cfg->n_expert_used; i++) {
        f->compute.k->vec_mad_f32(s->x + (size_t)(i / cfg->n_expert_used) * cfg->n_embd,
                                  s->moe + (size_t)i * cfg->n_embd, s->expert_weights[i],
                                  cfg->n_embd);
    }
    return SMOE_OK;
}
