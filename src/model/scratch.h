/* scratch.h: every intermediate of a forward pass, allocated once: decode allocates nothing. */
#ifndef MODEL_SCRATCH_H
#define MODEL_SCRATCH_H

#include <stddef.h>

#include "base/err.h"
#include "formats/model_config.h"
#include "model/attention.h"
#include "model/weights.h"
#include "quant/act.h"

/* One MLP, of an expert or of a dense layer, and the vectors that it multiplies. */
typedef struct mlp {
    matrix gate, up, down;
    uint32_t expert;
    uint32_t n;              /* vectors */
    uint32_t in_row;         /* the first of them */
    uint32_t hidden_row;     /* where what is between up and down begins */
    const uint32_t *y_rows;  /* [n] where each result goes */
} mlp;

typedef struct scratch {
    uint32_t n_batch;      /* most tokens in one pass */
    float *x;              /* [n_batch][n_embd] the residual stream */
    float *x_norm;         /* [n_batch][n_embd] */
    float *q;              /* [n_batch][n_head * n_embd_head] */
    float *k, *v;          /* [n_batch][n_head_kv * n_embd_head] */
    float *attn;           /* [n_batch][n_head * n_embd_head] */
    float *cos, *sin;      /* [n_batch][n_embd_head / 2] */
    attention_scratch attention;
    uint8_t *embd_blocks;  /* 16 rows of the embedding in their stored type */
    float *router;         /* [n_batch][n_expert] */
    uint32_t *experts;     /* [n_batch][n_expert_used] */
    float *expert_weights; /* [n_batch][n_expert_used] */
    float *expert_x;       /* [n_batch][n_embd] the tokens of some experts, gathered */
    float *hidden;         /* [max(n_batch, n_expert_used)][the widest MLP there is] */
    /* [n_batch][n_expert_used][n_embd] by token and rank, so that the order of the final sum does
     * not depend on the order of the experts */
    float *moe;
    uint32_t *expert_rows; /* [n_batch * n_expert_used] token * n_expert_used + rank, by expert */
    uint32_t *expert_ends; /* [n_expert] where each expert's end */
    float *logits;         /* [n_vocab] */
    float *inv_freq;       /* [n_embd_head / 2] */
    act_block *act;        /* activations of one matmul, as large as any needs */
    act_block *act_expert; /* of some experts' tokens, gathered */
    act_block *act_hidden; /* of down */
    mlp *mlps;               /* [n_expert_used] experts that are computed together */
    uint32_t *expert_ranks;  /* [n_expert_used] one token: the rank of the g-th expert taken ... */
    uint32_t *expert_group;  /* [n_expert_used] ... and the g of each rank */
    uint32_t *expert_union;  /* [n_expert] the experts of all tokens */
    uint32_t *expert_hint;   /* [n_expert] of the next layer ... */
    float *hint_weights;     /* [n_expert] ... and their weights, which nobody needs */
    void *memory; /* mem_pages: all of the above */
    size_t n_bytes;
} scratch;

size_t scratch_bytes(const model_config *cfg, uint32_t n_batch, uint32_t n_ctx, uint32_t n_threads);
smoe_status scratch_init(scratch *s, const model_config *cfg, uint32_t n_batch, uint32_t n_ctx,
                         uint32_t n_threads, smoe_err *err);
void scratch_fini(scratch *s);

#endif
