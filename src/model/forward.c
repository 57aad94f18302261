/* forward.c: the whole of qwen3_moe on one page. Start reading here.
 *
 *   x = embedding of the token
 *   each layer:  x += attention(rms_norm(x))    q, k normalised per head, rotated; grouped queries
 *                x += experts(rms_norm(x))      or one dense MLP
 *   logits = output * rms_norm(x)
 *
 * A pass takes a batch of tokens (one while decoding). Every result is independent of the batch. */
#include "model/forward.h"

#include <math.h>

#include "base/clock.h"
#include "model/attention.h"
#include "model/moe.h"
#include "model/rope.h"

void forward_init(forward_ctx *f)
{
    const model_config *cfg = &f->w->config;
    rope_frequencies(&cfg->rope, cfg->n_embd_head, f->s->inv_freq);
}

static void embed(forward_ctx *f, const int32_t *ids, uint32_t n, uint32_t pos0)
{
    const model_config *cfg = &f->w->config;
    const matrix *embd = &f->w->token_embd;
    scratch *s = f->s;
    size_t half = cfg->n_embd_head / 2;
    for (uint32_t t = 0; t < n; t++) {
        matrix_row(embd, f->compute.k, (uint64_t)ids[t], s->embd_blocks,
                   s->x + (size_t)t * cfg->n_embd);
        rope_cos_sin(&cfg->rope, s->inv_freq, cfg->n_embd_head, pos0 + t, s->cos + t * half,
                     s->sin + t * half);
    }
}

typedef struct row_job {
    const forward_ctx *f;
    const layer_weights *l;
    const float *weight;
    uint32_t layer, pos0;
    bool adds; /* x += x_norm comes first */
} row_job;

static void norm_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const row_job *job = ctx;
    const model_config *cfg = &job->f->w->config;
    const kernels *k = job->f->compute.k;
    size_t n_embd = cfg->n_embd;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        float *x = job->f->s->x + t * n_embd, *x_norm = job->f->s->x_norm + t * n_embd;
        if (job->adds) {
            k->vec_add(x, x_norm, cfg->n_embd);
        }
        k->rms_norm(x, job->weight, x_norm, cfg->n_embd, cfg->rms_eps);
    }
}

/* x_norm = RMSNorm of x, every token; after x += x_norm if `adds`. */
static void norm_rows(const forward_ctx *f, const float *weight, bool adds, uint32_t n)
{
    row_job job = {.f = f, .weight = weight, .adds = adds};
    pool_for(f->compute.pool, n, 4, norm_range, &job);
}

/* RMSNorm and rotation of the heads [n_head * n_embd_head] of token t. */
static void norm_and_rotate_heads(const forward_ctx *f, float *heads, const float *weight,
                                  uint32_t n_head, size_t t)
{
    uint32_t d = f->w->config.n_embd_head;
    for (uint32_t i = 0; i < n_head; i++) {
        float *head = heads + (t * n_head + i) * d;
        f->compute.k->rms_norm(head, weight, head, d, f->w->config.rms_eps);
        f->compute.k->rope(head, f->s->cos + t * (d / 2), f->s->sin + t * (d / 2), d / 2);
    }
}

static void heads_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const row_job *job = ctx;
    const model_config *cfg = &job->f->w->config;
    const scratch *s = job->f->s;
    size_t n_kv = (size_t)cfg->n_head_kv * cfg->n_embd_head;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        norm_and_rotate_heads(job->f, s->q, job->l->attn_q_norm, cfg->n_head, t);
        norm_and_rotate_heads(job->f, s->k, job->l->attn_k_norm, cfg->n_head_kv, t);
        attention_store(&job->f->compute, job->f->kv, job->layer, job->pos0 + (uint32_t)t, 1,
                        s->k + t * n_kv, s->v + t * n_kv);
    }
}

/* Reads for the experts go on while attention runs. */
static void keep_reading(const forward_ctx *f)
{
    if (f->experts->poll) {
        f->experts->poll(f->experts);
    }
}

/* Leaves in x_norm what is to be added to x. */
static void attention_half(forward_ctx *f, uint32_t layer, uint32_t n, uint32_t pos0)
{
    const model_config *cfg = &f->w->config;
    const layer_weights *l = &f->w->layers[layer];
    const compute *c = &f->compute;
    scratch *s = f->s;
    activations in = {.act = s->act};
    row_job heads = {.f = f, .l = l, .layer = layer, .pos0 = pos0};
    norm_rows(f, l->attn_norm, false, n);
    unsigned takers = matrix_takes(&l->attn_q) | matrix_takes(&l->attn_k) |
                      matrix_takes(&l->attn_v);
    activations_set(c, &in, takers, s->x_norm, n, cfg->n_embd);
    const matmul_part qkv[] = {{&l->attn_q, l->attn_q_bias, s->q},
                               {&l->attn_k, l->attn_k_bias, s->k},
                               {&l->attn_v, l->attn_v_bias, s->v}};
    matmul(c, &in, qkv, 3);
    keep_reading(f);
    pool_for(c->pool, n, 2, heads_range, &heads);
    attention(c, f->kv, layer, cfg, pos0, n, s->q, &s->attention, s->attn);
    keep_reading(f);
    activations_set(c, &in, matrix_takes(&l->attn_output), s->attn, n, l->attn_output.cols);
    matmul(c, &in, &(matmul_part){&l->attn_output, l->attn_output_bias, s->x_norm}, 1);
}

static smoe_status ffn_half(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    norm_rows(f, f->w->layers[layer].ffn_norm, true, n);
    if (f->w->config.is_sparse[layer]) {
        return moe_sparse(f, layer, n, err);
    }
    moe_dense(f, layer, n);
    return SMOE_OK;
}

smoe_status forward(forward_ctx *f, const int32_t *ids, uint32_t n, uint32_t pos0, smoe_err *err)
{
    embed(f, ids, n, pos0);
    for (uint32_t layer = 0; layer < f->w->config.n_layer; layer++) {
        if (f->cancelled && f->cancelled(f->cancelled_ctx)) {
            return err_set(err, SMOE_CANCELLED, "the request was cancelled");
        }
        uint64_t start_ns = f->times ? clock_ns() : 0;
        attention_half(f, layer, n, pos0);
        uint64_t middle_ns = f->times ? clock_ns() : 0;
        TRY(ffn_half(f, layer, n, err));
        if (f->times) {
            f->times->attention_ns += middle_ns - start_ns;
            f->times->ffn_ns += clock_ns() - middle_ns;
        }
    }
    return SMOE_OK;
}

smoe_status forward_logits(forward_ctx *f, uint32_t i, const float **logits, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    activations in = {.act = s->act};
    uint64_t start_ns = f->times ? clock_ns() : 0;
    f->compute.k->rms_norm(s->x + (size_t)i * cfg->n_embd, f->w->output_norm, s->x_norm,
                           cfg->n_embd, cfg->rms_eps);
    activations_set(&f->compute, &in, matrix_takes(&f->w->output), s->x_norm, 1, cfg->n_embd);
    matmul(&f->compute, &in, &(matmul_part){&f->w->output, NULL, s->logits}, 1);
    for (uint32_t v = 0; v < cfg->n_vocab; v++) {
        if (!isfinite(s->logits[v])) {
            return err_set(err, SMOE_NUMERIC,
                           "the logit of token %u is not finite; the model's files "
                           "are damaged or the model overflows",
                           v);
        }
    }
    *logits = s->logits;
    if (f->times) {
        f->times->head_ns += clock_ns() - start_ns;
    }
    return SMOE_OK;
}
