/* moe.h: the feed-forward half of a layer: a mixture of experts, or one dense MLP. */
#ifndef MODEL_MOE_H
#define MODEL_MOE_H

#include "model/forward.h"

/* Adds the layer's experts' output to s->x; input is s->x_norm [n][n_embd]. */
smoe_status moe_sparse(forward_ctx *f, uint32_t layer, uint32_t n, smoe_err *err);
void moe_dense(forward_ctx *f, uint32_t layer, uint32_t n);

#endif
