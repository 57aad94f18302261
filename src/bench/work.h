/* work.h: what a model has to do for a token: bytes of weights to touch, operations to make. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "formats/vault.h"

typedef struct model_work {
    dtype experts, scout;        /* types: of gate, and of the head */
    uint64_t layers_bytes;       /* scout matrices of all layers: once per pass */
    uint64_t layers_weights;
    uint64_t head_bytes, head_weights;
    uint64_t expert_bytes, expert_weights; /* one expert; no padding */
    uint64_t record_bytes;       /* what reading an expert takes */
    uint32_t n_experts_per_token; /* over all layers */
    uint32_t n_layer_sparse, n_expert, n_expert_used;
    uint64_t kv_elems;           /* of one position: keys and values of all layers */
    uint32_t n_layer, n_vocab, n_ctx_train;
} model_work;

/* Reads the headers of the two files. */
smoe_status model_work_of(const char *vault_path, const char *scout_path, model_work *out,
                          smoe_err *err);

/* The same from facts: the experts', then each tensor of the scout. */
model_work model_work_begin(const model_config *cfg, const matrix_layout *gate,
                            const matrix_layout *up, const matrix_layout *down,
                            uint64_t record_bytes);
void model_work_add(model_work *w, const model_config *cfg, const dense_tensor *t, dtype type,
                    uint64_t n_bytes);

/* Weights that one token is multiplied with, without the head. */
uint64_t model_work_token_weights(const model_work *w);
uint64_t model_work_token_bytes(const model_work *w);
uint32_t model_work_records(const model_work *w); /* of the vault */

#endif
