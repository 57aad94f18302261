/* model_tensors.c: the dense tensors of a configuration: their Hugging Face names, shapes and
 * order. One table of roles; a layer's list is the table filtered by what that layer has. */
#include <stdio.h>

#include "formats/model_config.h"

static const struct {
    enum tensor_role role;
    const char *suffix;
} layer_roles[] = {
    {TENSOR_ATTN_NORM, "input_layernorm.weight"},
    {TENSOR_ATTN_Q, "self_attn.q_proj.weight"},
    {TENSOR_ATTN_Q_BIAS, "self_attn.q_proj.bias"},
    {TENSOR_ATTN_K, "self_attn.k_proj.weight"},
    {TENSOR_ATTN_K_BIAS, "self_attn.k_proj.bias"},
    {TENSOR_ATTN_V, "self_attn.v_proj.weight"},
    {TENSOR_ATTN_V_BIAS, "self_attn.v_proj.bias"},
    {TENSOR_ATTN_Q_NORM, "self_attn.q_norm.weight"},
    {TENSOR_ATTN_K_NORM, "self_attn.k_norm.weight"},
    {TENSOR_ATTN_OUTPUT, "self_attn.o_proj.weight"},
    {TENSOR_ATTN_OUTPUT_BIAS, "self_attn.o_proj.bias"},
    {TENSOR_FFN_NORM, "post_attention_layernorm.weight"},
    {TENSOR_FFN_GATE_INP, "mlp.gate.weight"},
    {TENSOR_FFN_GATE, "mlp.gate_proj.weight"},
    {TENSOR_FFN_UP, "mlp.up_proj.weight"},
    {TENSOR_FFN_DOWN, "mlp.down_proj.weight"},
};

enum { N_LAYER_ROLES = sizeof layer_roles / sizeof layer_roles[0] };

static bool layer_has(const model_config *c, uint32_t layer, enum tensor_role role)
{
    switch (role) {
    case TENSOR_ATTN_Q_BIAS:
    case TENSOR_ATTN_K_BIAS:
    case TENSOR_ATTN_V_BIAS:
    case TENSOR_ATTN_OUTPUT_BIAS:
        return c->attention_bias;
    case TENSOR_FFN_GATE_INP:
        return c->is_sparse[layer];
    case TENSOR_FFN_GATE:
    case TENSOR_FFN_UP:
    case TENSOR_FFN_DOWN:
        return !c->is_sparse[layer];
    default:
        return true;
    }
}

static void set_shape(const model_config *c, dense_tensor *t)
{
    uint64_t n_q = (uint64_t)c->n_head * c->n_embd_head,
             n_kv = (uint64_t)c->n_head_kv * c->n_embd_head;
    const struct {
        uint64_t rows, cols; /* rows 0 = a vector */
    } shapes[TENSOR_N_ROLES] = {
        [TENSOR_TOKEN_EMBD] = {c->n_vocab, c->n_embd},
        [TENSOR_OUTPUT] = {c->n_vocab, c->n_embd},
        [TENSOR_OUTPUT_NORM] = {0, c->n_embd},
        [TENSOR_ATTN_NORM] = {0, c->n_embd},
        [TENSOR_ATTN_Q] = {n_q, c->n_embd},
        [TENSOR_ATTN_K] = {n_kv, c->n_embd},
        [TENSOR_ATTN_V] = {n_kv, c->n_embd},
        [TENSOR_ATTN_OUTPUT] = {c->n_embd, n_q},
        [TENSOR_ATTN_Q_BIAS] = {0, n_q},
        [TENSOR_ATTN_K_BIAS] = {0, n_kv},
        [TENSOR_ATTN_V_BIAS] = {0, n_kv},
        [TENSOR_ATTN_OUTPUT_BIAS] = {0, c->n_embd},
        [TENSOR_ATTN_Q_NORM] = {0, c->n_embd_head},
        [TENSOR_ATTN_K_NORM] = {0, c->n_embd_head},
        [TENSOR_FFN_NORM] = {0, c->n_embd},
        [TENSOR_FFN_GATE_INP] = {c->n_expert, c->n_embd},
        [TENSOR_FFN_GATE] = {c->n_ff, c->n_embd},
        [TENSOR_FFN_UP] = {c->n_ff, c->n_embd},
        [TENSOR_FFN_DOWN] = {c->n_embd, c->n_ff},
    };
    t->n_dims = shapes[t->role].rows == 0 ? 1 : 2;
    t->rows = t->n_dims == 1 ? 1 : shapes[t->role].rows;
    t->cols = shapes[t->role].cols;
}

static bool global_tensor(const model_config *c, enum tensor_role role, const char *name,
                          dense_tensor *out)
{
    *out = (dense_tensor){.role = role, .layer = -1};
    snprintf(out->name, sizeof out->name, "%s", name);
    set_shape(c, out);
    return true;
}

static bool layer_tensor(const model_config *c, uint32_t layer, size_t i, dense_tensor *out)
{
    *out = (dense_tensor){.role = layer_roles[i].role, .layer = (int32_t)layer};
    snprintf(out->name, sizeof out->name, "model.layers.%u.%s", layer, layer_roles[i].suffix);
    set_shape(c, out);
    return true;
}

bool model_config_dense_tensor(const model_config *cfg, size_t i, dense_tensor *out)
{
    if (i == 0) {
        return global_tensor(cfg, TENSOR_TOKEN_EMBD, "model.embed_tokens.weight", out);
    }
    i--;
    for (uint32_t layer = 0; layer < cfg->n_layer; layer++) {
        for (size_t k = 0; k < N_LAYER_ROLES; k++) {
            if (layer_has(cfg, layer, layer_roles[k].role) && i-- == 0) {
                return layer_tensor(cfg, layer, k, out);
            }
        }
    }
    if (i == 0) {
        return global_tensor(cfg, TENSOR_OUTPUT_NORM, "model.norm.weight", out);
    }
    if (i == 1 && !cfg->tie_word_embeddings) {
        return global_tensor(cfg, TENSOR_OUTPUT, "lm_head.weight", out);
    }
    return false;
}

bool model_config_find_tensor(const model_config *cfg, enum tensor_role role, int32_t layer,
                              dense_tensor *out)
{
    if (layer < 0) {
        switch (role) {
        case TENSOR_TOKEN_EMBD:
            return global_tensor(cfg, role, "model.embed_tokens.weight", out);
        case TENSOR_OUTPUT_NORM:
            return global_tensor(cfg, role, "model.norm.weight", out);
        case TENSOR_OUTPUT:
            return !cfg->tie_word_embeddings && global_tensor(cfg, role, "lm_head.weight", out);
        default:
            return false;
        }
    }
    if ((uint32_t)layer >= cfg->n_layer) {
        return false;
    }
    for (size_t k = 0; k < N_LAYER_ROLES; k++) {
        if (layer_roles[k].role == role) {
            return layer_has(cfg, (uint32_t)layer, role) &&
                   layer_tensor(cfg, (uint32_t)layer, k, out);
        }
    }
    return false;
}
