/* shape.c: see shape.h. Sources: the config.json of each published checkpoint. */
#include "bench/shape.h"

#include <string.h>
#include <strings.h>

#include "base/slice.h"
#include "formats/model_config.h"

static const model_shape SHAPES[] = {
    {.name = "qwen3-30b-a3b", .n_layer = 48, .n_embd = 2048, .n_head = 32, .n_head_kv = 4,
     .n_embd_head = 128, .n_expert = 128, .n_expert_used = 8, .n_ff_exp = 768, .n_ff = 6144,
     .n_vocab = 151936, .n_ctx_train = 40960, .rope_theta = 1000000},
    {.name = "qwen3-235b-a22b", .n_layer = 94, .n_embd = 4096, .n_head = 64, .n_head_kv = 4,
     .n_embd_head = 128, .n_expert = 128, .n_expert_used = 8, .n_ff_exp = 1536, .n_ff = 12288,
     .n_vocab = 151936, .n_ctx_train = 40960, .rope_theta = 1000000},
    {.name = "qwen3-coder-480b-a35b", .n_layer = 62, .n_embd = 6144, .n_head = 96, .n_head_kv = 8,
     .n_embd_head = 128, .n_expert = 160, .n_expert_used = 8, .n_ff_exp = 2560, .n_ff = 8192,
     .n_vocab = 151936, .n_ctx_train = 262144, .rope_theta = 10000000},
    {.name = "smoe-tiny", .n_layer = 4, .n_embd = 256, .n_head = 8, .n_head_kv = 4,
     .n_embd_head = 64, .n_expert = 12, .n_expert_used = 3, .n_ff_exp = 256, .n_ff = 768,
     .n_vocab = 2048, .n_ctx_train = 1024, .rope_theta = 10000, .tie_word_embeddings = true},
};

enum { N_SHAPES = sizeof SHAPES / sizeof SHAPES[0] };

const model_shape *model_shape_at(size_t i)
{
    return i < N_SHAPES ? &SHAPES[i] : NULL;
}

const model_shape *model_shape_find(const char *name)
{
    const model_shape *s;
    for (size_t i = 0; (s = model_shape_at(i)) && strcasecmp(name, s->name) != 0; i++) {
    }
    return s;
}

smoe_status model_shape_get(const char *name, uint32_t n_layer, model_shape *out, smoe_err *err)
{
    const model_shape *found = model_shape_find(name);
    if (!found) {
        return err_set(err, SMOE_USAGE, "--shape is %s, %s, %s or %s, not \"%.40s\"",
                       SHAPES[0].name, SHAPES[1].name, SHAPES[2].name, SHAPES[3].name, name);
    }
    if (n_layer > MODEL_MAX_LAYERS) {
        return err_set(err, SMOE_USAGE, "--layers %u is too many; at most %d are supported",
                       n_layer, MODEL_MAX_LAYERS);
    }
    *out = *found;
    out->n_layer = n_layer ? n_layer : found->n_layer;
    return SMOE_OK;
}

smoe_status model_shape_config(const model_shape *s, buf *out, smoe_err *err)
{
    return buf_printf(
        out, err,
        "{\n"
        "  \"architectures\": [\"Qwen3MoeForCausalLM\"],\n"
        "  \"model_type\": \"qwen3_moe\",\n"
        "  \"attention_bias\": false,\n"
        "  \"decoder_sparse_step\": 1,\n"
        "  \"head_dim\": %u,\n"
        "  \"hidden_act\": \"silu\",\n"
        "  \"hidden_size\": %u,\n"
        "  \"intermediate_size\": %u,\n"
        "  \"max_position_embeddings\": %u,\n"
        "  \"mlp_only_layers\": [],\n"
        "  \"moe_intermediate_size\": %u,\n"
        "  \"norm_topk_prob\": true,\n"
        "  \"num_attention_heads\": %u,\n"
        "  \"num_experts\": %u,\n"
        "  \"num_experts_per_tok\": %u,\n"
        "  \"num_hidden_layers\": %u,\n"
        "  \"num_key_value_heads\": %u,\n"
        "  \"rms_norm_eps\": 1e-06,\n"
        "  \"rope_scaling\": null,\n"
        "  \"rope_theta\": %u.0,\n"
        "  \"tie_word_embeddings\": %s,\n"
        "  \"use_sliding_window\": false,\n"
        "  \"vocab_size\": %u\n"
        "}\n",
        s->n_embd_head, s->n_embd, s->n_ff, s->n_ctx_train, s->n_ff_exp, s->n_head, s->n_expert,
        s->n_expert_used, s->n_layer, s->n_head_kv, s->rope_theta,
        s->tie_word_embeddings ? "true" : "false", s->n_vocab);
}
