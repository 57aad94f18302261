/* scratch.c: see scratch.h. One workspace, laid out twice: to measure it, then to hand it out. */
#include "model/scratch.h"

#include <stdint.h>

#include "base/mem.h"
#include "model/matmul.h"

enum { SCRATCH_ALIGN = 64 };

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Reserves n elements of 4 bytes; base NULL only measures. */
static void *take(uint8_t *base, size_t *used, size_t n)
{
    void *p = base ? base + *used : NULL;
    *used += (n * 4 + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    return p;
}

/* Activations of n vectors of `cols`. */
static size_t act_bytes(size_t n, size_t cols)
{
    return n * (size_t)act_n_blocks((int64_t)cols) * sizeof(act_block);
}

static size_t lay_out(scratch *s, uint8_t *base, const model_config *cfg, uint32_t n_batch,
                      uint32_t n_ctx, uint32_t n_threads)
{
    size_t used = 0, n = n_batch;
    size_t n_q = (size_t)cfg->n_head * cfg->n_embd_head;
    size_t n_kv = (size_t)cfg->n_head_kv * cfg->n_embd_head;
    /* Checkpoints name an n_ff even when no layer is dense. */
    bool any_dense = cfg->n_layer_sparse < cfg->n_layer;
    size_t n_ff = max_u32(any_dense ? cfg->n_ff : 0, cfg->n_ff_exp);
    size_t n_used = max_u32(cfg->n_expert_used, 1);
    size_t n_rows = n > n_used ? n : n_used; /* one token takes all its experts at once */
    size_t max_cols = max_u32(max_u32(cfg->n_embd, (uint32_t)n_ff), (uint32_t)n_q);
    s->n_batch = n_batch;
    s->x = take(base, &used, n * cfg->n_embd);
    s->x_norm = take(base, &used, n * cfg->n_embd);
    s->q = take(base, &used, n * n_q);
    s->k = take(base, &used, n * n_kv);
    s->v = take(base, &used, n * n_kv);
    s->attn = take(base, &used, n * n_q);
    s->cos = take(base, &used, n * (cfg->n_embd_head / 2));
    s->sin = take(base, &used, n * (cfg->n_embd_head / 2));
    s->attention.threads = take(base, &used, n_threads * attention_thread_bytes(cfg) / 4);
    s->attention.token = take(base, &used, attention_token_bytes(cfg, n_ctx) / 4);
    s->embd_blocks = take(base, &used, (size_t)PANEL_ROWS * cfg->n_embd); /* f32 is the widest */
    s->router = take(base, &used, n * max_u32(cfg->n_expert, 1));
    s->experts = take(base, &used, n * n_used);
    s->expert_weights = take(base, &used, n * n_used);
    s->expert_x = take(base, &used, n * cfg->n_embd);
    s->hidden = take(base, &used, n_rows * n_ff);
    s->moe = take(base, &used, n * n_used * cfg->n_embd);
    s->expert_rows = take(base, &used, n * n_used);
    s->expert_ends = take(base, &used, cfg->n_expert);
    s->logits = take(base, &used, cfg->n_vocab);
    s->inv_freq = take(base, &used, cfg->n_embd_head / 2);
    s->act = take(base, &used, act_bytes(n_rows, max_cols) / 4);
    s->act_expert = take(base, &used, act_bytes(n, cfg->n_embd) / 4);
    s->act_hidden = take(base, &used, act_bytes(n_rows, n_ff) / 4);
    s->mlps = take(base, &used, n_used * sizeof(mlp) / 4);
    s->expert_ranks = take(base, &used, n_used);
    s->expert_group = take(base, &used, n_used);
    s->expert_union = take(base, &used, cfg->n_expert);
    s->expert_hint = take(base, &used, cfg->n_expert);
    s->hint_weights = take(base, &used, cfg->n_expert);
    return used;
}

size_t scratch_bytes(const model_config *cfg, uint32_t n_batch, uint32_t n_ctx, uint32_t n_threads)
{
    scratch s;
    return lay_out(&s, NULL, cfg, n_batch, n_ctx, n_threads);
}

smoe_status scratch_init(scratch *s, const model_config *cfg, uint32_t n_batch, uint32_t n_ctx,
                         uint32_t n_threads, smoe_err *err)
{
    size_t n_bytes = scratch_bytes(cfg, n_batch, n_ctx, n_threads);
    void *memory = mem_pages_alloc(n_bytes);
    if (!memory) {
        return err_nomem(err, "the scratch of the forward pass", n_bytes);
    }
    lay_out(s, memory, cfg, n_batch, n_ctx, n_threads);
    s->memory = memory;
    s->n_bytes = n_bytes;
    return SMOE_OK;
}

void scratch_fini(scratch *s)
{
    mem_pages_free(s->memory, s->n_bytes);
    *s = (scratch){0};
}
