/* checkpoint.c: see checkpoint.h. */
#include "checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "formats/model_config.h"
#include "formats/safetensors_write.h"
#include "quant/quant.h"
#include "scratch.h"

static const char TOKENIZER[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
    "{\"id\":13,\"content\":\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":"
    "false,"
    "\"normalized\":false,\"special\":true},"
    "{\"id\":14,\"content\":\"<|im_end|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
    "\"normalized\":false,\"special\":true},"
    "{\"id\":15,\"content\":\"<think>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
    "\"normalized\":false,\"special\":false}],"
    "\"normalizer\":{\"type\":\"NFC\"},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,"
    "\"use_regex\":false},\"post_processor\":null,"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
    "\"use_regex\":true},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":"
    "null,"
    "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":"
    "false,"
    "\"vocab\":{\".\":0,\",\":1,\"\304\212\":2,\"?\":3,\"!\":4,\"a\":5,\"b\":6,\"</s>\":7,"
    "\"\304\212\304\212\":8,\"c\":9,\"d\":10,\"e\":11,\"f\":12},\"merges\":[[\"\304\212\","
    "\"\304\212\"]]}}";

static void fail_hard(smoe_status status, const smoe_err *err)
{
    if (status != SMOE_OK) {
        fprintf(stderr, "checkpoint: %s\n", err->text);
        abort();
    }
}

static void put(const checkpoint *c, float v, uint8_t *out)
{
    quantize_row_ref(c->type, &v, out, 1);
}

float checkpoint_value(const checkpoint *c, const char *name, uint64_t element)
{
    uint64_t h = (hash_bytes(name, strlen(name)) ^ element) * UINT64_C(0x9E3779B97F4A7C15);
    float v = ((float)(h >> 40) / (float)(1 << 24) - 0.5f) * 0.2f;
    uint8_t raw[4];
    if (c->zero_row_of != NULL && strcmp(name, "model.embed_tokens.weight") == 0 &&
        element / c->n_embd == (uint64_t)atoi(c->zero_row_of)) {
        v = 0;
    }
    put(c, v, raw);
    dequantize_row_ref(c->type, raw, &v, 1);
    return v;
}

/* One tensor to be written: its shape, and the plain tensors that its elements come from. */
typedef struct planned {
    char name[96];
    uint64_t shape[3];
    uint32_t n_dims;
    int layer; /* of a fused tensor, else -1 */
    bool is_down;
} planned;

static const char *type_name(const checkpoint *c, const planned *t)
{
    return c->wrong_type != NULL && strcmp(c->wrong_type, t->name) == 0
               ? "I32"
               : dtype_get(c->type)->safetensors;
}

static uint64_t n_elems(const planned *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        n *= t->shape[i];
    }
    return n;
}

/* Element i of a fused tensor, out of the single tensors that it is made of. */
static float fused_value(const checkpoint *c, const planned *t, uint64_t i)
{
    char name[96];
    uint64_t expert = i / (t->shape[1] * t->shape[2]), in = i % (t->shape[1] * t->shape[2]);
    uint64_t row = in / t->shape[2], col = in % t->shape[2];
    if (c->transposed) {
        uint64_t swap = row;
        row = col;
        col = swap;
    }
    const char *part = t->is_down ? "down" : row < c->n_ff_exp ? "gate" : "up";
    uint64_t cols = t->is_down ? c->n_ff_exp : c->n_embd;
    row = t->is_down ? row : row % c->n_ff_exp;
    snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.%s_proj.weight", t->layer,
             (int)expert, part);
    return checkpoint_value(c, name, row * cols + col);
}

static void write_tensors(const checkpoint *c, const char *name, const planned *list, size_t n)
{
    safetensors_writer w;
    smoe_err err;
    safetensors_writer_init(&w);
    uint64_t width[64];
    for (size_t i = 0; i < n; i++) {
        width[i] = strcmp(type_name(c, &list[i]), "I32") == 0 ? 4 : dtype_row_bytes(c->type, 1);
        fail_hard(safetensors_writer_add(&w, slice_from(list[i].name), type_name(c, &list[i]),
                                         list[i].shape, list[i].n_dims,
                                         n_elems(&list[i]) * width[i], &err),
                  &err);
    }
    fail_hard(safetensors_writer_begin(&w, scratch_path(name), 8, &err), &err);
    for (size_t i = 0; i < n; i++) {
        uint8_t *data = calloc(n_elems(&list[i]), width[i]);
        bool bad = c->not_finite != NULL && strcmp(c->not_finite, list[i].name) == 0;
        for (uint64_t k = 0; data != NULL && k < n_elems(&list[i]); k++) {
            float v = list[i].layer >= 0 ? fused_value(c, &list[i], k)
                                         : checkpoint_value(c, list[i].name, k);
            put(c, bad && k == 77 ? NAN : v, data + k * dtype_row_bytes(c->type, 1));
        }
        fail_hard(safetensors_writer_append(&w, data, n_elems(&list[i]) * width[i], &err), &err);
        free(data);
    }
    fail_hard(safetensors_writer_finish(&w, &err), &err);
    safetensors_writer_fini(&w);
}

static void write_index(const checkpoint *c, const planned *list, size_t n, size_t half)
{
    char path[256], text[16384] = "{\"metadata\":{},\"weight_map\":{";
    for (size_t i = 0; i < n; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s\"%s\":\"model-0000%d-of-00002"
                 ".safetensors\"",
                 i == 0 ? "" : ",", list[i].name, i < half ? 1 : 2);
    }
    strcat(text, "}}");
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", c->dir);
    scratch_write(path, text, strlen(text));
}

static void write_config(const checkpoint *c, char *text, size_t size)
{
    char path[256];
    snprintf(
        text, size,
        "{\"model_type\":\"qwen3_moe\",\"hidden_size\":%u,\"num_hidden_layers\":%d,"
        "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":32,\"num_experts\":%d,"
        "\"num_experts_per_tok\":2,\"moe_intermediate_size\":%u,\"intermediate_size\":96,"
        "\"vocab_size\":%d,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,%s"
        "\"mlp_only_layers\":[0],\"tie_word_embeddings\":%s,\"eos_token_id\":5}",
        c->n_embd, CHECKPOINT_LAYERS, CHECKPOINT_EXPERTS, c->n_ff_exp, CHECKPOINT_VOCAB,
        c->no_rope_theta ? "" : "\"rope_theta\":1e4,", c->tied ? "true" : "false");
    snprintf(path, sizeof path, "%s/config.json", c->dir);
    scratch_write(path, text, strlen(text));
}

static void add(const checkpoint *c, planned *list, size_t *n, const char *name, int layer,
                bool is_down, uint32_t n_dims, const uint64_t *shape)
{
    planned *t = &list[*n];
    if (c->skip != NULL && strcmp(c->skip, name) == 0) {
        return;
    }
    *t = (planned){.n_dims = n_dims, .layer = layer, .is_down = is_down};
    snprintf(t->name, sizeof t->name, "%s", name);
    memcpy(t->shape, shape, n_dims * sizeof *shape);
    t->shape[0] += c->wrong_shape != NULL && strcmp(c->wrong_shape, name) == 0;
    (*n)++;
}

static void add_experts(const checkpoint *c, planned *list, size_t *n, int layer)
{
    static const char *const parts[] = {"gate", "up", "down"};
    char name[96];
    for (int part = 0; part < 2 && c->fused; part++) {
        uint64_t rows = part == 0 ? 2 * c->n_ff_exp : c->n_embd,
                 cols = part == 0 ? c->n_embd : c->n_ff_exp;
        uint64_t shape[3] = {CHECKPOINT_EXPERTS, c->transposed ? cols : rows,
                             c->transposed ? rows : cols};
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%s", layer,
                 part == 0 ? "gate_up_proj" : "down_proj");
        add(c, list, n, name, layer, part == 1, 3, shape);
    }
    for (int i = 0; i < 3 * CHECKPOINT_EXPERTS && !c->fused; i++) {
        uint64_t shape[2] = {i % 3 == 2 ? c->n_embd : c->n_ff_exp,
                             i % 3 == 2 ? c->n_ff_exp : c->n_embd};
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.%s_proj.weight", layer, i / 3,
                 parts[i % 3]);
        add(c, list, n, name, -1, false, 2, shape);
    }
}

void checkpoint_write(const checkpoint *c)
{
    char text[2048], path[256];
    smoe_err err;
    model_config cfg;
    dense_tensor t;
    planned list[64];
    size_t n = 0;
    mkdir(scratch_path(c->dir), 0777);
    write_config(c, text, sizeof text);
    if (!c->no_tokenizer) {
        snprintf(path, sizeof path, "%s/tokenizer.json", c->dir);
        scratch_write(path, TOKENIZER, sizeof TOKENIZER - 1);
    }
    if (model_config_parse(slice_from(text), "test", &cfg, &err) != SMOE_OK) {
        return; /* a config that is wrong on purpose */
    }
    for (size_t i = 0; model_config_dense_tensor(&cfg, i, &t); i++) {
        uint64_t shape[2] = {t.rows, t.cols};
        add(c, list, &n, t.name, -1, false, t.n_dims, t.n_dims == 1 ? &shape[1] : shape);
    }
    for (int layer = 0; layer < CHECKPOINT_LAYERS; layer++) {
        if (cfg.is_sparse[layer]) {
            add_experts(c, list, &n, layer);
        }
    }
    const uint64_t head[2] = {CHECKPOINT_VOCAB, c->n_embd}, one = 1;
    if (c->redundant_head) {
        add(c, list, &n, "lm_head.weight", -1, false, 2, head);
    }
    if (c->extra != NULL) {
        add(c, list, &n, c->extra, -1, false, 1, &one);
    }
    if (!c->sharded) {
        snprintf(path, sizeof path, "%s/model.safetensors", c->dir);
        write_tensors(c, path, list, n);
        return;
    }
    snprintf(path, sizeof path, "%s/model-00001-of-00002.safetensors", c->dir);
    write_tensors(c, path, list, n / 2);
    snprintf(path, sizeof path, "%s/model-00002-of-00002.safetensors", c->dir);
    write_tensors(c, path, list + n / 2, n - n / 2);
    write_index(c, list, n, n / 2);
}
