/* work.c: see work.h. */
#include "bench/work.h"

static smoe_status add_scout(const scout *s, model_work *w, smoe_err *err)
{
    dense_tensor t;
    scout_tensor found;
    enum tensor_role head = s->config.tie_word_embeddings ? TENSOR_TOKEN_EMBD : TENSOR_OUTPUT;
    for (size_t i = 0; model_config_dense_tensor(&s->config, i, &t); i++) {
        if (t.n_dims != 2) {
            continue;
        }
        TRY(scout_find(s, slice_from(t.name), &found, err));
        if (t.role == head) {
            w->head_bytes = found.n_bytes;
            w->head_weights = t.rows * t.cols;
            w->scout = found.type;
        } else if (t.layer >= 0) {
            w->layers_bytes += found.n_bytes;
            w->layers_weights += t.rows * t.cols;
        }
    }
    return SMOE_OK;
}

static void add_vault(const vault *v, model_work *w)
{
    const matrix_layout *parts[] = {&v->gate, &v->up, &v->down};
    w->experts = v->gate.type;
    for (int i = 0; i < 3; i++) {
        w->expert_bytes += dtype_matrix_bytes(parts[i]->type, parts[i]->rows, parts[i]->cols);
        w->expert_weights += parts[i]->rows * parts[i]->cols;
    }
}

smoe_status model_work_of(const char *vault_path, const char *scout_path, model_work *out,
                          smoe_err *err)
{
    smoe_status status;
    vault v = {.st = {.file = FILE_CLOSED}};
    scout s = {.st = {.file = FILE_CLOSED}};
    CHECK(scout_open(&s, scout_path, err));
    CHECK(vault_open(&v, vault_path, err));
    CHECK(vault_check_pair(&v, &s, err));
    const model_config *c = &s.config;
    *out = (model_work){
        .record_bytes = v.record_bytes,
        .n_experts_per_token = c->n_expert_used * c->n_layer_sparse,
        .n_layer_sparse = c->n_layer_sparse,
        .n_expert = c->n_expert,
        .n_expert_used = c->n_expert_used,
        .kv_elems = 2ull * c->n_layer * c->n_head_kv * c->n_embd_head,
        .n_layer = c->n_layer,
        .n_vocab = c->n_vocab,
        .n_ctx_train = c->n_ctx_train,
    };
    add_vault(&v, out);
    CHECK(add_scout(&s, out, err));
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
