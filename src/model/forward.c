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

#include "model/attention.h"
#include "model/moe.h"
#include "model/rope.h"

void forward_init(forward_ctx *f)
{
    const model_config *cfg = &f->w->config;
    rope_frequencies(&cfg->rope, cfg->n_embd_head, f->s->inv_freq);
    f->compute.row_scratch = f->s->row_scratch;
    f->compute.row_scratch_len = f->s->row_scratch_len;
}

static void embed(forward_ctx *f, const int32_t *ids, uint32_t n, uint32_t pos0)
{
    const model_config *cfg = &f->w->config;
    const matrix *embd = &f->w->token_embd;
    scratch *s = f->s;
    size_t half = cfg->n_embd_head / 2;
    for (uint32_t t = 0; t < n; t++) {
        f->compute.k->dequantize_row(embd->type, embd->data + (size_t)ids[t] * embd->row_bytes,
                                     s->x + (size_t)t * cfg->n_embd, cfg->n_embd);
        rope_cos_sin(&cfg->rope, s->inv_freq, cfg->n_embd_head, pos0 + t, s->cos + t * half,
                     s->sin + t * half);
    }
}

static void norm_rows(const forward_ctx *f, const float *weight, uint32_t n)
{
    size_t n_embd = f->w->config.n_embd;
    for (uint32_t t = 0; t < n; t++) {
        f->compute.k->rms_norm(f->s->x + t * n_embd, weight, f->s->x_norm + t * n_embd,
                               (int64_t)n_embd, f->w->config.rms_eps);
    }
}

/* RMSNorm and rotation of every head of [n][n_head * n_embd_head]. */
static void norm_and_rotate_heads(const forward_ctx *f, float *heads, const float *weight,
                                  uint32_t n_head, uint32_t n)
{
    uint32_t d = f->w->config.n_embd_head;
    for (uint32_t i = 0; i < n * n_head; i++) {
        float *head = heads + (size_t)i * d;
        size_t t = i / n_head;
        f->compute.k->rms_norm(head, weight, head, d, f->w->config.rms_eps);
        rope_rotate(head, f->s->cos + t * (d / 2), f->s->sin + t * (d / 2), d);
    }
}

static void attention_half(forward_ctx *f, uint32_t layer, uint32_t n, uint32_t pos0)
{
    const model_config *cfg = &f->w->config;
    const layer_weights *l = &f->w->layers[layer];
    const compute *c = &f->compute;
    scratch *s = f->s;
    norm_rows(f, l->attn_norm, n);
    matmul(c, &l->attn_q, l->attn_q_bias, s->x_norm, n, s->q);
    matmul(c, &l->attn_k, l->attn_k_bias, s->x_norm, n, s->k);
    matmul(c, &l->attn_v, l->attn_v_bias, s->x_norm, n, s->v);
    norm_and_rotate_heads(f, s->q, l->attn_q_norm, cfg->n_head, n);
    norm_and_rotate_heads(f, s->k, l->attn_k_norm, cfg->n_head_kv, n);
    attention_store(c, f->kv, layer, pos0, n, s->k, s->v);
    attention(c, f->kv, layer, cfg->n_head, pos0, n, s->q, s->scores, s->attn);
    matmul(c, &l->attn_output, l->attn_output_bias, s->attn, n, s->x_norm);
    c->k->vec_add(s->x, s->x_norm, (int64_t)n * cfg->n_embd);
}

static smoe_status ffn_half(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err)
{
    norm_rows(f, f->w->layers[layer].ffn_norm, n);
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
        attention_half(f, layer, n, pos0);
        TRY(ffn_half(f, layer, n, err));
    }
    return SMOE_OK;
}

smoe_status forward_logits(forward_ctx *f, uint32_t i, const float **logits, smoe_err *err)
{
    const model_config *cfg = &f->w->config;
    scratch *s = f->s;
    f->compute.k->rms_norm(s->x + (size_t)i * cfg->n_embd, f->w->output_norm, s->x_norm,
                           cfg->n_embd, cfg->rms_eps);
    matmul(&f->compute, &f->w->output, NULL, s->x_norm, 1, s->logits);
    for (uint32_t v = 0; v < cfg->n_vocab; v++) {
        if (!isfinite(s->logits[v])) {
            return err_set(err, SMOE_NUMERIC,
                           "the logit of token %u is not finite; the model's files "
                           "are damaged or the model overflows",
                           v);
        }
    }
    *logits = s->logits;
    return SMOE_OK;
}
