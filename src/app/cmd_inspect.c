/* cmd_inspect.c: `smoe inspect`: what a model's two files hold; with --verify, whether every byte
 * of them is still what was written; with --export, one matrix out of them. */
#include <stdio.h>

#include "app/app.h"
#include "app/progress.h"
#include "base/mem.h"
#include "base/opts.h"
#include "json/json_write.h"
#include "reply/reasoning.h"
#include "shatter/shatter.h"

enum { MAX_JSON_BYTES = 16 << 20 };

struct inspect {
    const char *model;
    const char *export_name, *export_path; /* both or none */
    bool verify, json, help;
    vault v;
    scout s;
    uint64_t n_params, n_params_active; /* all, and what one token touches */
    exported_matrix exported;
    const struct thinking *thinking; /* NULL: nobody can chat with this model */
    smoe_err no_chat;                /* why not */
    struct {
        uint64_t n_tensors, n_bytes;
    } types[DTYPE_N_WEIGHTS]; /* of the scout's weights, as dtype_weight counts them */
};

static const char *const embedded[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                       "generation_config.json", "chat_template.jinja"};
enum { N_EMBEDDED = sizeof embedded / sizeof embedded[0] };

static const struct thinking {
    const char *name, *meaning;
} can_switch = {"switch", "the chat template's enable_thinking; --think and --no-think set it"},
  always = {"always", "the chat template opens a think block before every answer"},
  never = {"none", "the chat template has no switch and opens no think block"};

/* What the chat template does about reasoning, found by rendering a question. A model without
 * a usable template is still one to look at. */
static void find_thinking(struct inspect *in, const char *scout_path)
{
    static const char question[] = "[{\"role\":\"user\",\"content\":\"?\"}]";
    smoe_chat_format *format = NULL;
    smoe_ids ids = {0};
    if (app_open_chat_format(scout_path, &format, &in->no_chat) != SMOE_OK) {
        return;
    }
    if (smoe_template_uses(smoe_chat_format_template(format), "enable_thinking")) {
        in->thinking = &can_switch;
    } else if (smoe_chat_format_encode(format, question, sizeof question - 1, NULL, &ids,
                                       &in->no_chat) == SMOE_OK) {
        const smoe_tokenizer *tok = smoe_chat_format_tokenizer(format);
        in->thinking = reasoning_is_open(tok, ids.data, ids.len) ? &always : &never;
    }
    smoe_ids_free(&ids);
    smoe_chat_format_free(format);
}

static smoe_status count_weights(struct inspect *in, smoe_err *err)
{
    const model_config *c = &in->s.config;
    dense_tensor t;
    scout_tensor found;
    for (size_t i = 0; model_config_dense_tensor(c, i, &t); i++) {
        TRY(scout_find(&in->s, slice_from(t.name), &found, err));
        in->n_params += t.rows * t.cols;
        for (size_t k = 0; k < DTYPE_N_WEIGHTS; k++) {
            if (dtype_weight(k)->type == found.type) {
                in->types[k].n_tensors++;
                in->types[k].n_bytes += found.n_bytes;
            }
        }
    }
    uint64_t per_expert = 3 * (uint64_t)c->n_ff_exp * c->n_embd;
    in->n_params_active = in->n_params +
                          (uint64_t)c->n_layer_sparse * c->n_expert_used * per_expert;
    in->n_params += (uint64_t)c->n_layer_sparse * c->n_expert * per_expert;
    return SMOE_OK;
}

static const char *rope_name(enum rope_kind kind)
{
    static const char *const names[] = {"default", "linear", "yarn", "llama3"};
    return names[kind];
}

static void print_thinking(const struct inspect *in)
{
    const struct thinking *t = in->thinking;
    printf("thinking      %s: %s\n", t ? t->name : "unknown", t ? t->meaning : in->no_chat.text);
}

static const char *count_text(uint64_t n, char out[32])
{
    if (n >= 1000000000) {
        snprintf(out, 32, "%.1f billion", (double)n / 1e9);
    } else if (n >= 1000000) {
        snprintf(out, 32, "%.1f million", (double)n / 1e6);
    } else {
        snprintf(out, 32, "%llu", (unsigned long long)n);
    }
    return out;
}

static void print_config(const struct inspect *in)
{
    const model_config *c = &in->s.config;
    char a[32], b[32];
    printf("architecture  %s: %u layers (%u sparse), %u experts, %u per token%s\n", c->arch,
           c->n_layer, c->n_layer_sparse, c->n_expert, c->n_expert_used,
           c->norm_topk_prob ? ", their weights normalised" : "");
    printf("parameters    %s, of which one token uses %s\n", count_text(in->n_params, a),
           count_text(in->n_params_active, b));
    printf("width         %u; %u heads of %u (%u for keys and values%s); expert %u wide", c->n_embd,
           c->n_head, c->n_embd_head, c->n_head_kv, c->attention_bias ? "; biases" : "",
           c->n_ff_exp);
    if (c->n_layer_sparse < c->n_layer) {
        printf("; dense layer %u wide", c->n_ff);
    }
    printf("\nvocabulary    %u tokens, %s output head\n", c->n_vocab,
           c->tie_word_embeddings ? "tied" : "separate");
    printf("context       %u tokens; rope %s, theta %g", c->n_ctx_train, rope_name(c->rope.kind),
           c->rope.theta);
    if (c->rope.kind != ROPE_DEFAULT) {
        printf(", factor %g", c->rope.factor);
    }
    if (c->rope.kind == ROPE_YARN || c->rope.kind == ROPE_LLAMA3) {
        printf(" over %u", c->rope.n_ctx_orig);
    }
    printf("\n");
}

static void print_files(const struct inspect *in)
{
    const vault *v = &in->v;
    char a[32], b[32];
    printf("scout         %s: %s", in->s.st.file.path,
           shatter_size_text(in->s.st.file.size_bytes, a));
    for (size_t k = 0; k < DTYPE_N_WEIGHTS; k++) {
        if (in->types[k].n_tensors > 0) {
            printf("; %llu %s (%s)", (unsigned long long)in->types[k].n_tensors,
                   dtype_weight(k)->name, shatter_size_text(in->types[k].n_bytes, b));
        }
    }
    printf("\nvault         %s: %s; %zu records of %llu bytes; gate %s, up %s, down %s\n",
           v->st.file.path, shatter_size_text(v->st.file.size_bytes, a), v->n_records,
           (unsigned long long)v->record_bytes, dtype_get(v->gate.type)->name,
           dtype_get(v->up.type)->name, dtype_get(v->down.type)->name);
    printf("embedded     ");
    for (int i = 0; i < N_EMBEDDED; i++) {
        if (scout_has_file(&in->s, embedded[i])) {
            printf(" %s", embedded[i]);
        }
    }
    printf("\nlineage       %s\n", in->s.lineage);
    print_thinking(in);
    printf("end tokens   ");
    for (size_t i = 0; i < in->s.n_eos_ids; i++) {
        printf(" %d", in->s.eos_ids[i]);
    }
    printf("%s\n", in->s.n_eos_ids == 0 ? " none" : "");
}

static void json_u64(json_writer *w, const char *key, uint64_t v)
{
    jw_key(w, key);
    jw_uint(w, v);
}

static void json_text(json_writer *w, const char *key, const char *v)
{
    jw_key(w, key);
    jw_cstr(w, v);
}

static void json_bool(json_writer *w, const char *key, bool v)
{
    jw_key(w, key);
    jw_bool(w, v);
}

static void json_number(json_writer *w, const char *key, double v)
{
    jw_key(w, key);
    jw_number(w, v);
}

static void json_config(json_writer *w, const struct inspect *in)
{
    const model_config *c = &in->s.config;
    json_text(w, "architecture", c->arch);
    json_u64(w, "n_params", in->n_params);
    json_u64(w, "n_params_active", in->n_params_active);
    json_u64(w, "n_layer", c->n_layer);
    json_u64(w, "n_layer_sparse", c->n_layer_sparse);
    json_u64(w, "n_embd", c->n_embd);
    json_u64(w, "n_head", c->n_head);
    json_u64(w, "n_head_kv", c->n_head_kv);
    json_u64(w, "n_embd_head", c->n_embd_head);
    json_u64(w, "n_expert", c->n_expert);
    json_u64(w, "n_expert_used", c->n_expert_used);
    json_u64(w, "n_ff_exp", c->n_ff_exp);
    json_u64(w, "n_ff", c->n_ff);
    json_u64(w, "n_vocab", c->n_vocab);
    json_u64(w, "n_ctx_train", c->n_ctx_train);
    json_number(w, "rms_eps", (double)c->rms_eps);
    json_bool(w, "norm_topk_prob", c->norm_topk_prob);
    json_bool(w, "tie_word_embeddings", c->tie_word_embeddings);
    json_bool(w, "attention_bias", c->attention_bias);
    json_text(w, "rope_type", rope_name(c->rope.kind));
    json_number(w, "rope_theta", c->rope.theta);
    json_number(w, "rope_factor", c->rope.factor);
    json_u64(w, "rope_n_ctx_orig", c->rope.n_ctx_orig);
}

static void json_ids(json_writer *w, const char *key, const int32_t *ids, size_t n_ids)
{
    jw_key(w, key);
    jw_begin_array(w);
    for (size_t i = 0; i < n_ids; i++) {
        jw_int(w, ids[i]);
    }
    jw_end_array(w);
}

static void json_exported(json_writer *w, const struct inspect *in)
{
    jw_key(w, "exported");
    jw_begin_object(w);
    json_text(w, "name", in->export_name);
    json_text(w, "type", dtype_get(in->exported.type)->name);
    json_u64(w, "rows", in->exported.rows);
    json_u64(w, "cols", in->exported.cols);
    json_u64(w, "bytes", in->exported.n_bytes);
    json_text(w, "file", in->export_path);
    jw_end_object(w);
}

static smoe_status print_json(const struct inspect *in, smoe_err *err)
{
    buf text;
    json_writer w;
    const vault *v = &in->v;
    buf_init(&text, MAX_JSON_BYTES);
    jw_init(&w, &text);
    jw_begin_object(&w);
    json_config(&w, in);
    json_text(&w, "lineage", in->s.lineage);
    jw_key(&w, "thinking");
    if (in->thinking != NULL) {
        jw_cstr(&w, in->thinking->name);
    } else {
        jw_null(&w);
    }
    json_text(&w, "scout", in->s.st.file.path);
    json_u64(&w, "scout_bytes", in->s.st.file.size_bytes);
    jw_key(&w, "scout_types");
    jw_begin_object(&w);
    for (size_t k = 0; k < DTYPE_N_WEIGHTS; k++) {
        if (in->types[k].n_tensors > 0) {
            json_u64(&w, dtype_weight(k)->name, in->types[k].n_tensors);
        }
    }
    jw_end_object(&w);
    json_text(&w, "vault", v->st.file.path);
    json_u64(&w, "vault_bytes", v->st.file.size_bytes);
    json_u64(&w, "n_records", v->n_records);
    json_u64(&w, "record_bytes", v->record_bytes);
    json_text(&w, "gate_type", dtype_get(v->gate.type)->name);
    json_text(&w, "up_type", dtype_get(v->up.type)->name);
    json_text(&w, "down_type", dtype_get(v->down.type)->name);
    json_ids(&w, "eos_ids", in->s.eos_ids, in->s.n_eos_ids);
    json_ids(&w, "penalty_exempt_ids", in->s.penalty_exempt_ids, in->s.n_penalty_exempt_ids);
    if (in->verify) {
        json_bool(&w, "verified", true); /* a failure ends the command before this line */
    }
    if (in->export_name != NULL) {
        json_exported(&w, in);
    }
    jw_end_object(&w);
    smoe_status status = jw_finish(&w, err);
    if (status == SMOE_OK) {
        printf("%s\n", text.data);
    }
    buf_fini(&text);
    return status;
}

static void on_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    progress_update(ctx, done_bytes, total_bytes);
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return stop_signal_seen();
}

static smoe_status verify(struct inspect *in, smoe_err *err)
{
    progress bar;
    shatter_events events = {.ctx = &bar, .progress = on_progress, .cancelled = is_cancelled};
    stop_signals_catch();
    progress_begin(&bar, "checked");
    smoe_status status = shatter_verify(&in->v, &in->s, &events, err);
    progress_end(&bar);
    return status;
}

static void print_done(const struct inspect *in)
{
    if (in->verify) {
        printf("verified      %zu tensors and %zu records: every checksum matches\n",
               in->s.st.n_tensors, in->v.n_records);
    }
    if (in->export_name != NULL) {
        const exported_matrix *m = &in->exported;
        printf("exported      %s: %llu x %llu of %s, %llu bytes in %s\n", in->export_name,
               (unsigned long long)m->rows, (unsigned long long)m->cols, dtype_get(m->type)->name,
               (unsigned long long)m->n_bytes, in->export_path);
    }
}

static smoe_status run(struct inspect *in, smoe_err *err)
{
    smoe_status status;
    char *vault_path = NULL, *scout_path = NULL;
    CHECK(app_find_model(in->model, &vault_path, &scout_path, err));
    CHECK(scout_open(&in->s, scout_path, err));
    CHECK(vault_open(&in->v, vault_path, err));
    CHECK(vault_check_pair(&in->v, &in->s, err));
    CHECK(count_weights(in, err));
    find_thinking(in, scout_path);
    if (!in->json) {
        print_config(in);
        print_files(in);
        fflush(stdout);
    }
    if (in->verify) {
        CHECK(verify(in, err));
    }
    if (in->export_name != NULL) {
        CHECK(shatter_export(&in->v, &in->s, in->export_name, in->export_path, &in->exported, err));
    }
    if (in->json) {
        CHECK(print_json(in, err));
    } else {
        print_done(in);
    }
out:
    scout_close(&in->s);
    vault_close(&in->v);
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

static const char export_help[] =
    "NAME is a tensor of the scout (model.layers.0.self_attn.q_proj.weight) or one matrix of an\n"
    "expert: blk.LAYER.exp.EXPERT.gate, .up or .down. FILE gets its rows one after another, in\n"
    "ggml's standard blocks of its type, bit for bit what smoe shatter quantised, nothing else.\n";

int cmd_inspect(int argc, char **argv)
{
    struct inspect in = {.v = {.st = {.file = FILE_CLOSED}}, .s = {.st = {.file = FILE_CLOSED}}};
    smoe_err err;
    size_t n_pos;
    const opt table[] = {
        {.name = "verify",
         .kind = OPT_FLAG,
         .dest = &in.verify,
         .help = "read everything and check every checksum"},
        {.name = "export",
         .kind = OPT_TEXT,
         .dest = &in.export_name,
         .arg = "NAME",
         .help = "write one matrix to --out"},
        {.name = "out",
         .kind = OPT_TEXT,
         .dest = &in.export_path,
         .arg = "FILE",
         .help = "where --export writes"},
        {.name = "json",
         .kind = OPT_FLAG,
         .dest = &in.json,
         .help = "one JSON object instead of text"},
        {.name = "help", .kind = OPT_FLAG, .dest = &in.help, .help = "this text"},
        {.name = NULL},
    };
    if (opts_parse(table, argc, argv, 1, &in.model, 1, &n_pos, &err) != SMOE_OK) {
        return app_fail("inspect", &err);
    }
    if (in.help) {
        char text[2048];
        opts_help(table, text, sizeof text);
        printf("usage: smoe inspect [MODEL] [flags]\n\n%s\n%s", text, export_help);
        return 0;
    }
    if ((in.export_name == NULL) != (in.export_path == NULL)) {
        err_set(&err, SMOE_USAGE, "--export NAME and --out FILE go together");
        return app_fail("inspect", &err);
    }
    return run(&in, &err) == SMOE_OK ? 0 : app_fail("inspect", &err);
}
