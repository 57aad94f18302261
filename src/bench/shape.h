/* shape.h: models by name, for benchmarks without their weights: the hyper-parameters of published
 * checkpoints. */
#ifndef BENCH_SHAPE_H
#define BENCH_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Every matrix has a multiple of 16 rows. */
typedef struct model_shape {
    const char *name;
    uint32_t n_layer, n_embd, n_head, n_head_kv, n_embd_head;
    uint32_t n_expert, n_expert_used, n_ff_exp, n_ff;
    uint32_t n_vocab, n_ctx_train;
    uint32_t rope_theta;
    bool tie_word_embeddings;
} model_shape;

const model_shape *model_shape_at(size_t i); /* all of them in turn; NULL past the last */
/* Upper and lower case are the same; NULL: there is none of that name. */
const model_shape *model_shape_find(const char *name);
/* The shape of that name with n_layer layers (0 = all of it); SMOE_USAGE lists the names. */
smoe_status model_shape_get(const char *name, uint32_t n_layer, model_shape *out, smoe_err *err);
/* Its config.json, appended to out. */
smoe_status model_shape_config(const model_shape *shape, buf *out, smoe_err *err);

#endif
