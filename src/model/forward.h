/* forward.h: the forward pass of qwen3_moe. forward.c is the file to read first. */
#ifndef MODEL_FORWARD_H
#define MODEL_FORWARD_H

#include "model/expert_source.h"
#include "model/kv_cache.h"
#include "model/matmul.h"
#include "model/scratch.h"
#include "model/weights.h"

/* Where the time of passes went, added up. */
typedef struct forward_times {
    uint64_t attention_ns, router_ns, ffn_ns, head_ns; /* ffn: experts or dense, waiting included */
} forward_times;

/* What a forward pass works with. Borrowed from the engine and the session; one pass at a time. */
typedef struct forward_ctx {
    const weights *w;
    const matrix_layout *gate, *up, *down; /* of the vault's records */
    compute compute;
    kv_cache *kv;
    scratch *s;
    expert_source *experts;
    uint32_t n_spec;                       /* experts of the next layer to guess; 0 = none */
    forward_times *times;                  /* NULL: nothing is measured */
    bool (*cancelled)(void *ctx);          /* asked before every layer; may be NULL */
    void *cancelled_ctx;
    /* Sees what the router of a sparse layer chose for the n tokens of a pass, experts
     * [n][n_expert_used], and may put other distinct experts in their place; the weights stay. For
     * measuring; NULL otherwise. */
    void (*routed)(void *ctx, uint32_t layer, uint32_t *experts, uint32_t n);
    void *routed_ctx;
} forward_ctx;

/* Fills the tables (inverse frequencies) that a pass reads from the scratch. */
void forward_init(forward_ctx *f);

/* Runs n tokens (1 .. s->n_batch) at positions pos0 .. pos0+n-1, whose predecessors are in the KV
 * cache, and writes their keys and values there. Afterwards s->x holds the last layer's output per
 * token.
 * SMOE_CANCELLED, or the expert source's error: positions from pos0 on are then undefined. */
smoe_status forward(forward_ctx *f, const int32_t *ids, uint32_t n, uint32_t pos0, smoe_err *err);

/* Logits [n_vocab] of the i-th token of the last pass, in s->logits until the next call.
 * SMOE_NUMERIC when one of them is not finite. */
smoe_status forward_logits(forward_ctx *f, uint32_t i, const float **logits, smoe_err *err);

#endif
