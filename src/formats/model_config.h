/* model_config.h: the hyper-parameters in a Hugging Face config.json, under GGUF's names.
 *
 * Accepts qwen3_moe. Values that change results are never guessed: a missing rope_theta (top level
 * or under rope_parameters) is an error that says so. Defaults that the published class defines for
 * a missing key (for example decoder_sparse_step = 1, head_dim = hidden_size / n_head) are those of
 * transformers' Qwen3MoeConfig and are listed in model_config.c. */
#ifndef FORMATS_MODEL_CONFIG_H
#define FORMATS_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum { MODEL_MAX_LAYERS = 512, MODEL_MAX_EXPERTS = 4096 };

enum rope_kind { ROPE_DEFAULT, ROPE_LINEAR, ROPE_YARN, ROPE_LLAMA3 };

typedef struct rope_config {
    enum rope_kind kind;
    double theta;
    double factor;
    uint32_t n_ctx_orig;                     /* original_max_position_embeddings */
    double beta_fast, beta_slow;             /* yarn: 32, 1 by default */
    double attention_factor;                 /* yarn: factor of cos and sin; resolved, never 0 */
    bool truncate;                           /* yarn: round the correction range; default true */
    double low_freq_factor, high_freq_factor; /* llama3 */
} rope_config;

typedef struct model_config {
    char arch[32];                /* "qwen3_moe" */
    uint32_t n_layer, n_embd, n_head, n_head_kv, n_embd_head; /* n_embd_head = head_dim */
    uint32_t n_expert, n_expert_used;
    uint32_t n_ff;                /* of a dense layer */
    uint32_t n_ff_exp;            /* of one expert */
    uint32_t n_vocab;
    uint32_t n_ctx_train;         /* max_position_embeddings */
    float rms_eps;
    bool norm_topk_prob, tie_word_embeddings, attention_bias;
    bool is_sparse[MODEL_MAX_LAYERS]; /* false = dense MLP of n_ff */
    uint32_t n_layer_sparse;
    rope_config rope;
} model_config;

/* text: the bytes of config.json; `where` names it in messages. */
smoe_status model_config_parse(slice text, const char *where, model_config *out, smoe_err *err);

/* One tensor that a checkpoint of this configuration has. */
enum tensor_role {
    TENSOR_TOKEN_EMBD,  /* model.embed_tokens.weight             [n_vocab, n_embd] */
    TENSOR_OUTPUT,      /* lm_head.weight (absent when tied)     [n_vocab, n_embd] */
    TENSOR_OUTPUT_NORM, /* model.norm.weight                     [n_embd] */
    TENSOR_ATTN_NORM,   /* ...input_layernorm.weight             [n_embd] */
    TENSOR_ATTN_Q,      /* ...self_attn.q_proj.weight            [n_head*n_embd_head, n_embd] */
    TENSOR_ATTN_K,      /* ...                                   [n_head_kv*n_embd_head, n_embd] */
    TENSOR_ATTN_V,
    TENSOR_ATTN_OUTPUT, /* ...self_attn.o_proj.weight            [n_embd, n_head*n_embd_head] */
    /* only with attention_bias */
    TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS, TENSOR_ATTN_OUTPUT_BIAS,
    TENSOR_ATTN_Q_NORM, /* ...self_attn.q_norm.weight            [n_embd_head] */
    TENSOR_ATTN_K_NORM,
    TENSOR_FFN_NORM,    /* ...post_attention_layernorm.weight    [n_embd] */
    TENSOR_FFN_GATE_INP, /* ...mlp.gate.weight (the router)      [n_expert, n_embd] */
    TENSOR_FFN_GATE, TENSOR_FFN_UP, /* ...mlp.gate_proj/up_proj  [n_ff, n_embd], dense layers */
    TENSOR_FFN_DOWN,    /* ...mlp.down_proj.weight               [n_embd, n_ff] */
    TENSOR_N_ROLES
};

typedef struct dense_tensor {
    char name[96];       /* the Hugging Face name */
    enum tensor_role role;
    int32_t layer;       /* -1: not of a layer */
    uint64_t rows, cols; /* a vector has rows = 1 and n_dims = 1 */
    uint32_t n_dims;
} dense_tensor;

/* The i-th dense (scout) tensor of this configuration in file order; false past the last. */
bool model_config_dense_tensor(const model_config *cfg, size_t i, dense_tensor *out);
/* The one of a role and layer (layer -1: a global one); false when this configuration has none. */
bool model_config_find_tensor(const model_config *cfg, enum tensor_role role, int32_t layer,
                              dense_tensor *out);

#endif
