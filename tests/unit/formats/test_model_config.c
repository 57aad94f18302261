/* config.json in all its forms: each case is a base config with one line changed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/model_config.h"

/* A case replaces the value of one key (NULL removes it) and may append more text. */
static const char *const base[][2] = {
    {"model_type", "\"qwen3_moe\""},
    {"hidden_size", "64"},
    {"num_hidden_layers", "4"},
    {"num_attention_heads", "4"},
    {"num_key_value_heads", "2"},
    {"head_dim", "32"},
    {"num_experts", "8"},
    {"num_experts_per_tok", "2"},
    {"moe_intermediate_size", "48"},
    {"intermediate_size", "96"},
    {"vocab_size", "1000"},
    {"max_position_embeddings", "256"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"norm_topk_prob", "true"},
    {"hidden_act", "\"silu\""},
    {"sliding_window", "null"},
    {"use_sliding_window", "false"},
};

static smoe_status parse(const char *key, const char *value, const char *more, model_config *c,
                         smoe_err *err)
{
    char text[4096] = "{\"architectures\":[\"Qwen3MoeForCausalLM\"]";
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
        const char *v = key != NULL && strcmp(base[i][0], key) == 0 ? value : base[i][1];
        if (v != NULL) {
            snprintf(text + strlen(text), sizeof text - strlen(text), ",\"%s\":%s", base[i][0], v);
        }
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s}", more[0] ? "," : "", more);
    return model_config_parse(slice_from(text), "config.json", c, err);
}

static void accept(const char *key, const char *value, const char *more, model_config *c)
{
    smoe_err err = {SMOE_OK, ""};
    if (parse(key, value, more, c, &err) != SMOE_OK) {
        fail_msg("%s=%s %s: %s", key ? key : "", value ? value : "", more, err.text);
    }
}

static void refuse(const char *key, const char *value, const char *more, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    model_config c;
    if (parse(key, value, more, &c, &err) == SMOE_OK) {
        fail_msg("%s=%s %s was accepted", key ? key : "", value ? value : "nothing", more);
    }
    if (strstr(err.text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
}

static void test_plain(void **state)
{
    (void)state;
    model_config c;
    accept(NULL, NULL, "", &c);
    assert_string_equal(c.arch, "qwen3_moe");
    assert_int_equal(c.n_layer, 4);
    assert_int_equal(c.n_layer_sparse, 4);
    assert_int_equal(c.n_embd_head, 32);
    assert_int_equal(c.n_head_kv, 2);
    assert_int_equal(c.n_ff_exp, 48);
    assert_true(c.norm_topk_prob);
    assert_false(c.tie_word_embeddings);
    assert_int_equal(c.rope.kind, ROPE_DEFAULT);
    assert_true(c.rope.theta == 10000.0 && c.rope.attention_factor == 1.0);
}

static void test_variants(void **state)
{
    (void)state;
    model_config c;
    accept("head_dim", "null", "", &c);
    assert_int_equal(c.n_embd_head, 16);
    accept("head_dim", NULL, "", &c);
    assert_int_equal(c.n_embd_head, 16);
    accept("num_experts", NULL, "\"num_local_experts\":8", &c);
    assert_int_equal(c.n_expert, 8);
    accept("norm_topk_prob", NULL, "", &c);
    assert_false(c.norm_topk_prob);
    accept("intermediate_size", NULL, "", &c); /* only dense layers need it */
    accept(NULL, NULL, "\"tie_word_embeddings\":true,\"attention_bias\":true", &c);
    assert_true(c.tie_word_embeddings && c.attention_bias);
    accept(NULL, NULL, "\"decoder_sparse_step\":2", &c);
    assert_true(!c.is_sparse[0] && c.is_sparse[1] && !c.is_sparse[2] && c.is_sparse[3]);
    accept(NULL, NULL, "\"decoder_sparse_step\":2,\"mlp_only_layers\":[3,99]", &c);
    assert_int_equal(c.n_layer_sparse, 1);
    assert_int_equal(c.n_ff, 96);
    accept("use_sliding_window", "true", "", &c); /* window null: none */
    accept("sliding_window", "256", "", &c);      /* not in use */
}

static void test_rope(void **state)
{
    (void)state;
    model_config c;
    accept("rope_theta", NULL, "\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\"}",
           &c);
    assert_true(c.rope.theta == 5e5);
    accept(NULL, NULL, "\"rope_scaling\":null,\"rope_parameters\":{\"rope_theta\":7}", &c);
    assert_true(c.rope.theta == 7.0); /* the nested value counts */
    accept(NULL, NULL, "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}", &c);
    assert_int_equal(c.rope.kind, ROPE_LINEAR);
    assert_true(c.rope.factor == 4.0);
    accept(NULL, NULL,
           "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8.0,"
           "\"original_max_position_embeddings\":32}",
           &c);
    assert_int_equal(c.rope.kind, ROPE_YARN);
    assert_int_equal(c.rope.n_ctx_orig, 32);
    assert_true(c.rope.beta_fast == 32.0 && c.rope.beta_slow == 1.0 && c.rope.truncate);
    assert_true(fabs(c.rope.attention_factor - (0.1 * log(8.0) + 1.0)) < 1e-14);
    accept(NULL, NULL,
           "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8.0,\"mscale\":2.0,"
           "\"mscale_all_dim\":0.5,\"truncate\":false,\"beta_fast\":4,\"beta_slow\":0.5}",
           &c);
    assert_int_equal(c.rope.n_ctx_orig, 256); /* max_position_embeddings */
    assert_true(fabs(c.rope.attention_factor - (0.2 * log(8.0) + 1.0) / (0.05 * log(8.0) + 1.0)) <
                1e-14);
    assert_false(c.rope.truncate);
    accept(NULL, NULL,
           "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":null,"
           "\"original_max_position_embeddings\":64,\"attention_factor\":1.25}",
           &c);
    assert_true(c.rope.factor == 4.0 && c.rope.attention_factor == 1.25);
    accept(NULL, NULL,
           "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
           "\"high_freq_factor\":4,\"original_max_position_embeddings\":32}",
           &c);
    assert_int_equal(c.rope.kind, ROPE_LLAMA3);
    assert_true(c.rope.high_freq_factor == 4.0);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const required[] = {"model_type",          "hidden_size",
                                           "num_hidden_layers",   "num_attention_heads",
                                           "num_key_value_heads", "num_experts",
                                           "num_experts_per_tok", "moe_intermediate_size",
                                           "vocab_size",          "max_position_embeddings",
                                           "rms_norm_eps",        "rope_theta"};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        refuse(required[i], NULL, "", required[i]);
        refuse(required[i], "\"x\"", "", required[i]);
        if (strcmp(required[i], "model_type") != 0) {
            refuse(required[i], "0", "", required[i]);
            refuse(required[i], "-1", "", required[i]);
            refuse(required[i], "1e300", "", required[i]);
        }
    }
    refuse("model_type", "\"llama\"", "", "\"llama\" is not supported");
    refuse("hidden_act", "\"gelu\"", "", "silu");
    refuse("num_attention_heads", "3", "", "multiple");
    refuse("head_dim", "31", "", "even");
    refuse("num_experts_per_tok", "9", "", "more than");
    refuse("num_hidden_layers", "513", "", "512");
    refuse("num_experts", "4097", "", "4096");
    refuse("norm_topk_prob", "1", "", "true or false");
    refuse(NULL, NULL, "\"quantization_config\":{\"quant_method\":\"fp8\"}", "fp8");
    refuse(NULL, NULL, "\"decoder_sparse_step\":0", "decoder_sparse_step");
    refuse(NULL, NULL, "\"decoder_sparse_step\":9", "single sparse layer");
    refuse(NULL, NULL, "\"mlp_only_layers\":[1.5]", "layer numbers");
    refuse("intermediate_size", NULL, "\"mlp_only_layers\":[0]", "intermediate_size");
}

/* A window that is on and shorter than the context. */
static void test_sliding_window(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    model_config c;
    char text[2048] = "{";
    for (int pass = 0; pass < 3; pass++) {
        static const char *const windows[] = {"12", "256", "\"x\""};
        text[1] = '\0';
        for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
            const char *v = strcmp(base[i][0], "use_sliding_window") == 0 ? "true"
                            : strcmp(base[i][0], "sliding_window") == 0   ? windows[pass]
                                                                          : base[i][1];
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"%s\":%s", i ? "," : "",
                     base[i][0], v);
        }
        strcat(text, "}");
        smoe_status status = model_config_parse(slice_from(text), "config.json", &c, &err);
        assert_int_equal(status, pass == 1 ? SMOE_OK : SMOE_UNSUPPORTED);
    }
}

static void test_refused_rope(void **state)
{
    (void)state;
    refuse(NULL, NULL, "\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2}", "\"dynamic\"");
    refuse(NULL, NULL, "\"rope_scaling\":{\"type\":\"longrope\"}", "\"longrope\"");
    refuse(NULL, NULL, "\"rope_scaling\":{\"type\":7}", "rope_type");
    refuse(NULL, NULL, "\"rope_scaling\":[1]", "object");
    refuse(NULL, NULL, "\"rope_scaling\":{\"type\":\"linear\"}", "factor");
    refuse(NULL, NULL, "\"rope_scaling\":{\"type\":\"yarn\"}", "factor");
    refuse(NULL, NULL, "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":-1}", "factor");
    refuse(NULL, NULL,
           "\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
           "\"high_freq_factor\":4}",
           "high_freq_factor");
    refuse(NULL, NULL, "\"partial_rotary_factor\":0.5", "partial_rotary_factor");
    refuse("rope_theta", NULL, "\"rope_parameters\":{\"rope_type\":\"default\"}", "rope_theta");
}

static void test_not_json(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    model_config c;
    assert_int_equal(model_config_parse(slice_from("[]"), "x", &c, &err), SMOE_FORMAT);
    assert_int_equal(model_config_parse(slice_from("{"), "x", &c, &err), SMOE_FORMAT);
    assert_int_equal(model_config_parse(slice_from(""), "x", &c, &err), SMOE_FORMAT);
}

static void test_tensors(void **state)
{
    (void)state;
    model_config c;
    dense_tensor t, again;
    size_t n = 0;
    accept(NULL, NULL, "\"decoder_sparse_step\":2,\"attention_bias\":true", &c);
    for (; model_config_dense_tensor(&c, n, &t); n++) {
        assert_true(model_config_find_tensor(&c, t.role, t.layer, &again));
        assert_string_equal(t.name, again.name);
        assert_true(t.rows == again.rows && t.cols == again.cols && t.n_dims == again.n_dims);
    }
    /* embedding, norm, head; 12 per layer with biases; 3 per dense layer, 1 per sparse one */
    assert_int_equal(n, 3 + 4 * 12 + 2 * 3 + 2 * 1);
    assert_true(model_config_find_tensor(&c, TENSOR_ATTN_K, 3, &t));
    assert_string_equal(t.name, "model.layers.3.self_attn.k_proj.weight");
    assert_true(t.rows == 64 && t.cols == 64 && t.n_dims == 2);
    assert_true(model_config_find_tensor(&c, TENSOR_ATTN_OUTPUT, 0, &t));
    assert_true(t.rows == 64 && t.cols == 128);
    assert_true(model_config_find_tensor(&c, TENSOR_FFN_DOWN, 0, &t));
    assert_true(t.rows == 64 && t.cols == 96);
    assert_false(model_config_find_tensor(&c, TENSOR_FFN_DOWN, 1, &t));
    assert_false(model_config_find_tensor(&c, TENSOR_FFN_GATE_INP, 0, &t));
    assert_false(model_config_find_tensor(&c, TENSOR_ATTN_K, 4, &t));
    assert_false(model_config_find_tensor(&c, TENSOR_ATTN_K, -1, &t));
    accept(NULL, NULL, "\"tie_word_embeddings\":true", &c);
    assert_false(model_config_find_tensor(&c, TENSOR_OUTPUT, -1, &t));
    assert_false(model_config_find_tensor(&c, TENSOR_ATTN_K_BIAS, 0, &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_rope),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_rope), cmocka_unit_test(test_sliding_window),
        cmocka_unit_test(test_not_json),     cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
