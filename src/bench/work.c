/* work.c: see work.h. */
#include "bench/work.h"

model_work model_work_begin(const model_config *c, const matrix_layout *gate,
                            const matrix_layout *up, const matrix_layout *down,
                            uint64_t record_bytes)
{
    const matrix_layout *parts[] = {gate, up, down};
    model_work w = {
        .experts = gate->type,
        .record_bytes = record_bytes,
        .n_experts_per_token = c->n_expert_used * c->n_layer_sparse,
        .n_layer_sparse = c->n_layer_sparse,
        .n_expert = c->n_expert,
        .n_expert_used = c->n_expert_used,
        .kv_elems = 2ull * c->n_layer * c->n_head_kv * c->n_embd_head,
        .n_layer = c->n_layer,
        .n_vocab = c->n_vocab,
        .n_ctx_train = c->n_ctx_train,
    };
    for (int i = 0; i < 3; i++) {
        w.expert_bytes += dtype_matrix_bytes(parts[i]->type, parts[i]->rows, parts[i]->cols);
        w.expert_weights += parts[i]->rows * parts[i]->cols;
    }
    return w;
}

void model_work_add(model_work *w, const model_config *c, const dense_tensor *t, dtype type,
                    uint64_t n_bytes)
{
    enum tensor_role head = c->tie_word_embeddings ? TENSOR_TOKEN_EMBD : TENSOR_OUTPUT;
    if (t->n_dims != 2) {
        return;
    }
    if (t->role == head) {
        w->head_bytes = n_bytes;
        w->head_weights = t->rows * t->cols;
        w->scout = type;
    } else if (t->layer >= 0) {
        w->layers_bytes += n_bytes;
        w->layers_weights += t->rows * t->cols;
    }
}

smoe_status model_work_of(const char *vault_path, const char *scout_path, model_work *out,
                          smoe_err *err)
{
    smoe_status status;
    vault v = {.st = {.file = FILE_CLOSED}};
    scout s = {.st = {.file = FILE_CLOSED}};
    dense_tensor t;
    scout_tensor found;
    CHECK(scout_open(&s, scout_path, err));
    CHECK(vault_open(&v, vault_path, err));
    CHECK(vault_check_pair(&v, &s, err));
    *out = model_work_begin(&s.config, &v.gate, &v.up, &v.down, v.record_bytes);
    for (size_t i = 0; model_config_dense_tensor(&s.config, i, &t); i++) {
        CHECK(scout_find(&s, slice_from(t.name), &found, err));
        model_work_add(out, &s.config, &t, found.type, found.n_bytes);
    }
out:
    vault_close(&v);
    scout_close(&s);
    return status;
}

uint64_t model_work_token_weights(const model_work *w)
{
    return w->layers_weights + w->n_experts_per_token * w->expert_weights;
}

uint64_t model_work_token_bytes(const model_work *w)
{
    return w->layers_bytes + w->n_experts_per_token * w->expert_bytes;
}

uint32_t model_work_records(const model_work *w)
{
    return w->n_layer_sparse * w->n_expert;
}
