/* model_config.c: config.json -> model_config.
 *
 * Refuses what this program does not compute (other architectures, other activations, sliding
 * windows, quantised checkpoints, other kinds of rope) by name, and every number outside its
 * bounds.
 *
 * A missing key is an error, except where the published class (transformers' Qwen3MoeConfig)
 * defines its meaning: head_dim             hidden_size / num_attention_heads (also when null)
 *   decoder_sparse_step  1
 *   mlp_only_layers      []
 *   attention_bias, tie_word_embeddings, norm_topk_prob, use_sliding_window   false
 *   hidden_act           "silu"
 *   rope scaling         none: rope_type "default"
 *   yarn                 beta_fast 32, beta_slow 1, truncate true, attention_factor from factor */
#include "formats/model_config.h"

#include <math.h>
#include <string.h>

#include "base/dmath.h"
#include "json/json_read.h"

enum {
    MAX_EMBD = 1 << 20,
    MAX_HEADS = 4096,
    MAX_HEAD_DIM = 4096,
    MAX_FF = 1 << 22,
    MAX_VOCAB = 1 << 24,
    MAX_CTX = 1 << 28,
};

/* Where values come from, for messages. */
typedef struct reader {
    const json_value *object;
    const char *where;
} reader;

static smoe_status wrong_kind(const reader *r, const char *key, const json_value *v,
                              const char *want, smoe_err *err)
{
    if (jr_is_null(v)) {
        return err_set(err, SMOE_FORMAT, "%s has no \"%s\"; it must be %s", r->where, key, want);
    }
    return err_set(err, SMOE_FORMAT, "%s: \"%s\" is %s; it must be %s", r->where, key,
                   jr_kind_name(v), want);
}

/* An integer within min..max. */
static smoe_status need_u32(const reader *r, const char *key, uint32_t min, uint32_t max,
                            uint32_t *out, smoe_err *err)
{
    const json_value *v = jr_get(r->object, key);
    int64_t n;
    if (!jr_int(v, &n)) {
        return wrong_kind(r, key, v, "an integer", err);
    }
    if (n < min || n > max) {
        return err_set(err, SMOE_FORMAT, "%s: \"%s\" is %lld; it must be within %u..%u", r->where,
                       key, (long long)n, min, max);
    }
    *out = (uint32_t)n;
    return SMOE_OK;
}

static smoe_status maybe_u32(const reader *r, const char *key, uint32_t min, uint32_t max,
                             uint32_t missing, uint32_t *out, smoe_err *err)
{
    if (jr_is_null(jr_get(r->object, key))) {
        *out = missing;
        return SMOE_OK;
    }
    return need_u32(r, key, min, max, out, err);
}

static smoe_status maybe_bool(const reader *r, const char *key, bool missing, bool *out,
                              smoe_err *err)
{
    const json_value *v = jr_get(r->object, key);
    *out = missing;
    if (!jr_is_null(v) && !jr_bool(v, out)) {
        return wrong_kind(r, key, v, "true or false", err);
    }
    return SMOE_OK;
}

/* A finite number above zero, at most max. */
static smoe_status need_positive(const reader *r, const char *key, double max, double *out,
                                 smoe_err *err)
{
    const json_value *v = jr_get(r->object, key);
    if (!jr_number(v, out)) {
        return wrong_kind(r, key, v, "a number", err);
    }
    if (!(*out > 0.0 && *out <= max)) {
        return err_set(err, SMOE_FORMAT, "%s: \"%s\" is %g; it must be above 0 and at most %g",
                       r->where, key, *out, max);
    }
    return SMOE_OK;
}

/* The same, or `missing` for an absent, null or zero value (transformers writes `x or default`). */
static smoe_status maybe_positive(const reader *r, const char *key, double max, double missing,
                                  double *out, smoe_err *err)
{
    double v;
    *out = missing;
    if (jr_is_null(jr_get(r->object, key)) || (jr_number(jr_get(r->object, key), &v) && v == 0.0)) {
        return SMOE_OK;
    }
    return need_positive(r, key, max, out, err);
}

/* 0.1 mscale ln(factor) + 1, and 1 when nothing is scaled (the yarn paper, section 3.4). */
static double yarn_mscale(double factor, double mscale)
{
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * dmath_log(factor) + 1.0;
}

static smoe_status parse_yarn(const reader *r, uint32_t n_ctx_train, rope_config *rope,
                              smoe_err *err)
{
    double mscale, mscale_all_dim;
    const json_value *factor = jr_get(r->object, "factor");
    if (factor != NULL && jr_is_null(factor)) {
        rope->factor = (double)n_ctx_train / rope->n_ctx_orig;
    } else {
        TRY(need_positive(r, "factor", 1e6, &rope->factor, err));
    }
    TRY(maybe_positive(r, "beta_fast", 1e6, 32.0, &rope->beta_fast, err));
    TRY(maybe_positive(r, "beta_slow", 1e6, 1.0, &rope->beta_slow, err));
    TRY(maybe_bool(r, "truncate", true, &rope->truncate, err));
    TRY(maybe_positive(r, "mscale", 1e3, 0.0, &mscale, err));
    TRY(maybe_positive(r, "mscale_all_dim", 1e3, 0.0, &mscale_all_dim, err));
    if (!jr_is_null(jr_get(r->object, "attention_factor"))) {
        return need_positive(r, "attention_factor", 1e3, &rope->attention_factor, err);
    }
    rope->attention_factor = mscale != 0.0 && mscale_all_dim != 0.0
                                 ? yarn_mscale(rope->factor, mscale) /
                                       yarn_mscale(rope->factor, mscale_all_dim)
                                 : yarn_mscale(rope->factor, 1.0);
    return SMOE_OK;
}

static smoe_status parse_llama3(const reader *r, rope_config *rope, smoe_err *err)
{
    TRY(need_positive(r, "factor", 1e6, &rope->factor, err));
    TRY(need_positive(r, "low_freq_factor", 1e6, &rope->low_freq_factor, err));
    TRY(need_positive(r, "high_freq_factor", 1e6, &rope->high_freq_factor, err));
    if (rope->high_freq_factor <= rope->low_freq_factor) {
        return err_set(err, SMOE_FORMAT,
                       "%s: \"high_freq_factor\" (%g) must be above \"low_freq_factor\" (%g)",
                       r->where, rope->high_freq_factor, rope->low_freq_factor);
    }
    return SMOE_OK;
}

/* Older configs keep rope_theta at the top level and the scaling under rope_scaling; transformers
 * >= 5 keeps both under rope_parameters. Where both say something, the nested value counts, as
 * there. */
static smoe_status parse_rope(const reader *top, uint32_t n_ctx_train, rope_config *rope,
                              smoe_err *err)
{
    const json_value *scaling = jr_get(top->object, "rope_scaling");
    if (jr_is_null(scaling) || jr_len(scaling) == 0) {
        scaling = jr_get(top->object, "rope_parameters");
    }
    if (!jr_is_null(scaling) && jr_kind(scaling) != JSON_KIND_OBJECT) {
        return wrong_kind(top, "rope_scaling / rope_parameters", scaling, "an object", err);
    }
    reader r = {scaling, top->where};
    *rope = (rope_config){.factor = 1.0, .attention_factor = 1.0, .truncate = true};

    bool nested = !jr_is_null(jr_get(scaling, "rope_theta"));
    if (!nested && jr_is_null(jr_get(top->object, "rope_theta"))) {
        return err_set(
            err, SMOE_FORMAT,
            "%s has no \"rope_theta\", neither at the top level nor under \"rope_parameters\"; "
            "every logit depends on it, so it is not guessed: take it from the model's card",
            top->where);
    }
    TRY(need_positive(nested ? &r : top, "rope_theta", 1e15, &rope->theta, err));
    double partial;
    TRY(maybe_positive(&r, "partial_rotary_factor", 1.0, 1.0, &partial, err));
    if (partial == 1.0) {
        TRY(maybe_positive(top, "partial_rotary_factor", 1.0, 1.0, &partial, err));
    }
    if (partial != 1.0) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s: \"partial_rotary_factor\" %g is not supported; "
                       "qwen3_moe rotates whole heads",
                       top->where, partial);
    }
    const reader *orig = jr_is_null(jr_get(top->object, "original_max_position_embeddings")) ? &r
                                                                                             : top;
    TRY(maybe_u32(orig, "original_max_position_embeddings", 1, MAX_CTX, n_ctx_train,
                  &rope->n_ctx_orig, err));

    const json_value *type = jr_get(scaling, "rope_type");
    if (jr_is_null(type)) {
        type = jr_get(scaling, "type");
    }
    slice kind = slice_from("default");
    if (!jr_is_null(type) && !jr_string(type, &kind)) {
        return wrong_kind(top, "rope_type", type, "a string", err);
    }
    if (slice_is(kind, "default")) {
        rope->kind = ROPE_DEFAULT;
        return SMOE_OK;
    }
    if (slice_is(kind, "linear")) {
        rope->kind = ROPE_LINEAR;
        return need_positive(&r, "factor", 1e6, &rope->factor, err);
    }
    if (slice_is(kind, "yarn")) {
        rope->kind = ROPE_YARN;
        return parse_yarn(&r, n_ctx_train, rope, err);
    }
    if (slice_is(kind, "llama3")) {
        rope->kind = ROPE_LLAMA3;
        return parse_llama3(&r, rope, err);
    }
    return err_set(err, SMOE_UNSUPPORTED,
                   "%s: rope type \"%.*s\" is not supported; default, linear, yarn and llama3 are",
                   top->where, (int)(kind.len < 60 ? kind.len : 60), kind.data);
}

/* What would change the numbers if it were ignored. */
static smoe_status refuse_unsupported(const reader *r, smoe_err *err)
{
    slice s = {0};
    const json_value *v = jr_get(r->object, "model_type");
    if (!jr_string(v, &s)) {
        return wrong_kind(r, "model_type", v, "a string", err);
    }
    if (!slice_is(s, "qwen3_moe")) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s: model_type \"%.*s\" is not supported; qwen3_moe is", r->where,
                       (int)(s.len < 60 ? s.len : 60), s.data);
    }
    static const char *const quantized[] = {"quantization_config", "quantization"};
    for (int i = 0; i < 2; i++) {
        v = jr_get(r->object, quantized[i]);
        if (!jr_is_null(v)) {
            s = slice_from("of an unnamed kind");
            jr_string(jr_get(v, "quant_method"), &s);
            return err_set(err, SMOE_UNSUPPORTED,
                           "%s: this checkpoint is already quantised (%.*s, see \"%s\"); take the "
                           "bf16, f16 or f32 one it was made from",
                           r->where, (int)(s.len < 60 ? s.len : 60), s.data, quantized[i]);
        }
    }
    v = jr_get(r->object, "hidden_act");
    if (!jr_is_null(v) && !(jr_string(v, &s) && slice_is(s, "silu"))) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s: \"hidden_act\" is not \"silu\", the only activation "
                       "that is supported",
                       r->where);
    }
    return SMOE_OK;
}

/* A window at least as long as the context never cuts anything off, so it is not refused. */
static smoe_status refuse_sliding_window(const reader *r, uint32_t n_ctx_train, smoe_err *err)
{
    bool on;
    int64_t window = 0;
    TRY(maybe_bool(r, "use_sliding_window", false, &on, err));
    const json_value *v = jr_get(r->object, "sliding_window");
    if (!on || (v != NULL && jr_is_null(v)) ||
        (jr_int(v, &window) && window >= (int64_t)n_ctx_train)) {
        return SMOE_OK;
    }
    return err_set(
        err, SMOE_UNSUPPORTED,
        "%s: \"use_sliding_window\" is true (window %lld); sliding-window attention is not "
        "supported",
        r->where, (long long)window);
}

/* Qwen3MoeDecoderLayer: sparse when the layer is not listed in mlp_only_layers and
 * (layer + 1) % decoder_sparse_step == 0. */
static smoe_status parse_sparse_layers(const reader *r, model_config *c, smoe_err *err)
{
    uint32_t step;
    TRY(maybe_u32(r, "decoder_sparse_step", 1, 1 << 20, 1, &step, err));
    for (uint32_t i = 0; i < c->n_layer; i++) {
        c->is_sparse[i] = (i + 1) % step == 0;
    }
    const json_value *dense = jr_get(r->object, "mlp_only_layers");
    if (!jr_is_null(dense) && jr_kind(dense) != JSON_KIND_ARRAY) {
        return wrong_kind(r, "mlp_only_layers", dense, "an array of layer numbers", err);
    }
    for (size_t i = 0; i < jr_len(dense); i++) {
        int64_t layer;
        if (!jr_int(jr_at(dense, i), &layer)) {
            return wrong_kind(r, "mlp_only_layers", jr_at(dense, i), "an array of layer numbers",
                              err);
        }
        if (layer >= 0 &&
            layer < c->n_layer) { /* others name no layer: the reference ignores them */
            c->is_sparse[layer] = false;
        }
    }
    for (uint32_t i = 0; i < c->n_layer; i++) {
        c->n_layer_sparse += c->is_sparse[i];
    }
    if (c->n_layer_sparse == 0) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s describes a model without a single sparse layer; this "
                       "program is for Mixture-of-Experts models",
                       r->where);
    }
    return SMOE_OK;
}

static smoe_status parse_attention(const reader *r, model_config *c, smoe_err *err)
{
    TRY(need_u32(r, "num_attention_heads", 1, MAX_HEADS, &c->n_head, err));
    TRY(need_u32(r, "num_key_value_heads", 1, MAX_HEADS, &c->n_head_kv, err));
    TRY(maybe_u32(r, "head_dim", 1, MAX_HEAD_DIM, c->n_embd / c->n_head, &c->n_embd_head, err));
    TRY(maybe_bool(r, "attention_bias", false, &c->attention_bias, err));
    if (c->n_head % c->n_head_kv != 0) {
        return err_set(err, SMOE_FORMAT,
                       "%s: \"num_attention_heads\" (%u) is not a multiple of "
                       "\"num_key_value_heads\" (%u)",
                       r->where, c->n_head, c->n_head_kv);
    }
    if (c->n_embd_head == 0 || c->n_embd_head % 2 != 0 || c->n_embd_head > MAX_HEAD_DIM) {
        return err_set(err, SMOE_FORMAT,
                       "%s: the head size (\"head_dim\", or hidden_size / "
                       "num_attention_heads) is %u; it must be even and within 2..%d",
                       r->where, c->n_embd_head, MAX_HEAD_DIM);
    }
    return SMOE_OK;
}

static smoe_status parse_experts(const reader *r, model_config *c, smoe_err *err)
{
    /* transformers >= 5 writes the same number under the other name. */
    const char *key = jr_is_null(jr_get(r->object, "num_experts")) &&
                              !jr_is_null(jr_get(r->object, "num_local_experts"))
                          ? "num_local_experts"
                          : "num_experts";
    TRY(need_u32(r, key, 1, MODEL_MAX_EXPERTS, &c->n_expert, err));
    TRY(need_u32(r, "num_experts_per_tok", 1, MODEL_MAX_EXPERTS, &c->n_expert_used, err));
    TRY(need_u32(r, "moe_intermediate_size", 1, MAX_FF, &c->n_ff_exp, err));
    TRY(maybe_bool(r, "norm_topk_prob", false, &c->norm_topk_prob, err));
    if (c->n_expert_used > c->n_expert) {
        return err_set(err, SMOE_FORMAT,
                       "%s: \"num_experts_per_tok\" (%u) is more than \"%s\" (%u)", r->where,
                       c->n_expert_used, key, c->n_expert);
    }
    TRY(parse_sparse_layers(r, c, err));
    if (c->n_layer_sparse < c->n_layer) {
        return need_u32(r, "intermediate_size", 1, MAX_FF, &c->n_ff, err);
    }
    return maybe_u32(r, "intermediate_size", 0, MAX_FF, 0, &c->n_ff, err);
}

static smoe_status parse_object(const reader *r, model_config *c, smoe_err *err)
{
    double eps;
    if (jr_kind(r->object) != JSON_KIND_OBJECT) {
        return err_set(err, SMOE_FORMAT, "%s is %s, not an object", r->where,
                       jr_kind_name(r->object));
    }
    TRY(refuse_unsupported(r, err));
    memcpy(c->arch, "qwen3_moe", sizeof "qwen3_moe");
    TRY(need_u32(r, "num_hidden_layers", 1, MODEL_MAX_LAYERS, &c->n_layer, err));
    TRY(need_u32(r, "hidden_size", 1, MAX_EMBD, &c->n_embd, err));
    TRY(need_u32(r, "vocab_size", 1, MAX_VOCAB, &c->n_vocab, err));
    TRY(need_u32(r, "max_position_embeddings", 1, MAX_CTX, &c->n_ctx_train, err));
    TRY(need_positive(r, "rms_norm_eps", 1.0, &eps, err));
    c->rms_eps = (float)eps;
    TRY(maybe_bool(r, "tie_word_embeddings", false, &c->tie_word_embeddings, err));
    TRY(parse_attention(r, c, err));
    TRY(parse_experts(r, c, err));
    TRY(refuse_sliding_window(r, c->n_ctx_train, err));
    return parse_rope(r, c->n_ctx_train, &c->rope, err);
}

smoe_status model_config_parse(slice text, const char *where, model_config *out, smoe_err *err)
{
    json_value *root = NULL;
    *out = (model_config){0};
    TRY(jr_parse(text, where, &root, err));
    reader r = {root, where};
    smoe_status status = parse_object(&r, out, err);
    jr_free(root);
    return status;
}
