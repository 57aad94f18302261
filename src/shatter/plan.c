/* plan.c: checks a whole checkpoint against its config before a byte is written, and decides every
 * tensor's type. Reads headers only: the weights are not touched.
 *
 * Fused experts lie as transformers' Qwen3MoeExperts keeps them: gate_up_proj [n_expert, 2*n_ff,
 * n_embd] with the gate's rows first, down_proj [n_expert, n_embd, n_ff]. The transposed form of
 * other exporters is taken where the shapes leave no doubt; where they fit both readings,
 * transformers' counts. */
#include "shatter/plan.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "quant/quant.h"

static const char LFS_MARK[] = "version https://git-lfs";

#define MAX_TEXT_BYTES   (UINT64_C(256) << 20)
#define MAX_RECORD_BYTES (UINT64_C(1) << 30) /* one record is built in memory */

void plan_note(const shatter_events *events, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (events != NULL && events->note != NULL) {
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        events->note(events->ctx, text);
    }
}

/* --- paths and text files --------------------------------------------------------------------- */

static smoe_status set_paths(shatter_plan *p, const shatter_options *o, smoe_err *err)
{
    const char *dir = o->checkpoint_dir, *stem = o->stem;
    size_t n = strlen(dir);
    char *base = NULL;
    if (!file_is_dir(dir)) {
        return err_set(err, SMOE_IO,
                       "%s is not a directory; smoe shatter takes a checkpoint directory "
                       "(config.json, tokenizer.json, *.safetensors)",
                       dir);
    }
    while (n > 1 && dir[n - 1] == '/') {
        n--;
    }
    size_t from = n;
    while (from > 0 && dir[from - 1] != '/') {
        from--;
    }
    slice last = {dir + from, n - from};
    if (stem == NULL && (last.len == 0 || slice_is(last, ".") || slice_is(last, ".."))) {
        return err_set(err, SMOE_USAGE,
                       "\"%s\" does not end in a name for the new files; give one with "
                       "--name",
                       dir);
    }
    if (stem != NULL && (*stem == '\0' || *stem == '.' || strchr(stem, '/') != NULL)) {
        return err_set(err, SMOE_USAGE, "--name \"%s\" is not a plain file name", stem);
    }
    p->out_dir = mem_strdup(o->out_dir != NULL && *o->out_dir != '\0' ? o->out_dir : ".");
    base = stem != NULL ? mem_strdup(stem) : mem_strndup(last.data, last.len);
    if (p->out_dir != NULL && base != NULL) {
        p->stem_path = strcmp(p->out_dir, ".") == 0 ? mem_strdup(base)
                                                    : path_join(p->out_dir, base);
    }
    mem_free(base);
    size_t size = p->stem_path == NULL ? 0 : strlen(p->stem_path) + 32;
    p->vault_path = size == 0 ? NULL : mem_alloc(size);
    p->scout_path = size == 0 ? NULL : mem_alloc(size);
    if (p->vault_path == NULL || p->scout_path == NULL) {
        return err_nomem(err, "a path", n);
    }
    snprintf(p->vault_path, size, "%s.smoe", p->stem_path);
    snprintf(p->scout_path, size, "%s.scout.safetensors", p->stem_path);
    return SMOE_OK;
}

static smoe_status read_files(shatter_plan *p, const char *dir, const shatter_events *events,
                              smoe_err *err)
{
    for (int i = 0; i < FILE_COMPILED; i++) {
        text_file *f = &p->files[i];
        char *path = path_join(dir, f->name);
        if (path == NULL) {
            return err_nomem(err, "a path", strlen(dir));
        }
        smoe_status status = SMOE_OK;
        f->present = file_exists(path);
        if (f->present) {
            status = file_slurp(path, MAX_TEXT_BYTES, &f->text, err);
            if (status == SMOE_OK && slice_starts(buf_slice(&f->text), slice_from(LFS_MARK))) {
                status = err_set(err, SMOE_FORMAT,
                                 "%s is a Git LFS pointer, not the file itself; fetch "
                                 "the real one (git lfs pull)",
                                 path);
            }
        } else if (f->required) {
            status = err_set(
                err, SMOE_IO, "%s has no %s; fetch it from where the checkpoint came from%s", dir,
                f->name,
                i == FILE_TOKENIZER
                    ? ", or write it with transformers (AutoTokenizer.from_pretrained(DIR)"
                      ".save_pretrained(DIR))"
                    : "");
        } else if (i == FILE_TOKENIZER_CONFIG) {
            plan_note(events, "%s has no %s, so the model will have no chat template", dir,
                      f->name);
        }
        mem_free(path);
        TRY(status);
    }
    return SMOE_OK;
}

static smoe_status parse_config(shatter_plan *p, const char *dir, smoe_err *err)
{
    char *path = path_join(dir, "config.json");
    if (path == NULL) {
        return err_nomem(err, "a path", strlen(dir));
    }
    smoe_status status = model_config_parse(buf_slice(&p->files[FILE_CONFIG].text), path,
                                            &p->config, err);
    mem_free(path);
    return status;
}

/* --- types ------------------------------------------------------------------------------------ */

/* The wanted type, or the next finer one whose block divides a row, or what the weights are. */
static dtype fit_type(dtype want, uint64_t cols, dtype source_type)
{
    size_t i = 0;
    while (dtype_weight(i)->type != want) {
        i++;
    }
    while (dtype_weight(i)->is_quantized && dtype_row_bytes(dtype_weight(i)->type, cols) == 0) {
        i--;
    }
    return want == dtype_weight(i)->type || dtype_weight(i)->is_quantized ? dtype_weight(i)->type
                                                                         : source_type;
}

static bool takes_scout_type(enum tensor_role role)
{
    switch (role) {
    case TENSOR_TOKEN_EMBD:
    case TENSOR_OUTPUT:
    case TENSOR_ATTN_Q:
    case TENSOR_ATTN_K:
    case TENSOR_ATTN_V:
    case TENSOR_ATTN_OUTPUT:
    case TENSOR_FFN_GATE:
    case TENSOR_FFN_UP:
    case TENSOR_FFN_DOWN:
        return true;
    default: /* norms, router, biases: small, and every token depends on them */
        return false;
    }
}

static dtype scout_type(const shatter_plan *p, enum tensor_role role, uint64_t cols,
                        dtype source_type)
{
    if (takes_scout_type(role)) {
        return fit_type(p->want_scout, cols, source_type);
    }
    return source_type == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static smoe_status missing_tensor(const shatter_plan *p, const char *name, smoe_err *err)
{
    return err_set(err, SMOE_FORMAT,
                   "%s has no tensor \"%s\", which its config.json calls for; the "
                   "download is incomplete, or the config belongs to another checkpoint",
                   p->source.dir, name);
}

static smoe_status wrong_shape(const shatter_plan *p, size_t shard, const tensor_info *t,
                               const char *expected, smoe_err *err)
{
    char found[128] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_dims && n < sizeof found - 24; i++) {
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%llu", i == 0 ? "" : ", ",
                              (unsigned long long)t->shape[i]);
    }
    return err_set(err, SMOE_FORMAT,
                   "%s: tensor \"%.*s\" has shape [%s]; config.json calls for [%s]",
                   p->source.shards[shard].file.path, NAME_ARG(t->name), found, expected);
}

static smoe_status check_type(const shatter_plan *p, size_t shard, const tensor_info *t,
                              smoe_err *err)
{
    const dtype_info *info = dtype_get(t->type);
    if (info == NULL || !info->is_float_weight) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s: tensor \"%.*s\" is %.*s; smoe shatter takes F32, F16 "
                       "and BF16",
                       p->source.shards[shard].file.path, NAME_ARG(t->name),
                       NAME_ARG(t->type_name));
    }
    return SMOE_OK;
}

/* A tensor of the checkpoint that must be exactly rows x cols (n_dims 2) or cols (n_dims 1). */
static smoe_status find_plain(shatter_plan *p, const char *name, uint32_t n_dims, uint64_t rows,
                              uint64_t cols, matrix_source *out, smoe_err *err)
{
    size_t shard;
    const tensor_info *t;
    char expected[64];
    if (!source_find(&p->source, name, &shard, &t)) {
        return missing_tensor(p, name, err);
    }
    TRY(check_type(p, shard, t, err));
    if (t->n_dims != n_dims || t->shape[n_dims - 1] != cols ||
        (n_dims == 2 && t->shape[0] != rows)) {
        if (n_dims == 2) {
            snprintf(expected, sizeof expected, "%llu, %llu", (unsigned long long)rows,
                     (unsigned long long)cols);
        } else {
            snprintf(expected, sizeof expected, "%llu", (unsigned long long)cols);
        }
        return wrong_shape(p, shard, t, expected, err);
    }
    *out = (matrix_source){
        .shard = shard, .type = t->type, .offset = t->offset, .rows = rows, .cols = cols};
    snprintf(out->name, sizeof out->name, "%s", name);
    return SMOE_OK;
}

static smoe_status plan_dense(shatter_plan *p, smoe_err *err)
{
    dense_tensor t;
    size_t n = 0;
    while (model_config_dense_tensor(&p->config, n, &t)) {
        n++;
    }
    p->dense = mem_calloc(n, sizeof *p->dense);
    if (p->dense == NULL) {
        return err_nomem(err, "the plan", n * sizeof *p->dense);
    }
    for (; p->n_dense < n; p->n_dense++) {
        dense_plan *d = &p->dense[p->n_dense];
        model_config_dense_tensor(&p->config, p->n_dense, &d->tensor);
        TRY(find_plain(p, d->tensor.name, d->tensor.n_dims, d->tensor.rows, d->tensor.cols,
                       &d->source, err));
        d->type = scout_type(p, d->tensor.role, d->tensor.cols, d->source.type);
        d->n_bytes = dtype_matrix_bytes(d->type, d->tensor.rows, d->tensor.cols);
        p->scout_bytes += d->n_bytes;
        p->source_bytes += matrix_source_bytes(&d->source);
    }
    return SMOE_OK;
}

static bool has_shape3(const tensor_info *t, uint64_t a, uint64_t b, uint64_t c)
{
    return t->n_dims == 3 && t->shape[0] == a && t->shape[1] == b && t->shape[2] == c;
}

/* Which of the three forms a layer has; for the fused ones both tensors must agree on it. */
static smoe_status find_form(shatter_plan *p, uint32_t layer, smoe_err *err)
{
    char up_name[96], down_name[96], expected[96];
    size_t up_shard, down_shard;
    const tensor_info *up, *down;
    uint64_t n = p->config.n_expert, ff = p->config.n_ff_exp, embd = p->config.n_embd;
    snprintf(up_name, sizeof up_name, "model.layers.%u.mlp.experts.gate_up_proj", layer);
    snprintf(down_name, sizeof down_name, "model.layers.%u.mlp.experts.down_proj", layer);
    bool has_up = source_find(&p->source, up_name, &up_shard, &up);
    bool has_down = source_find(&p->source, down_name, &down_shard, &down);
    p->form[layer] = EXPERTS_SINGLE;
    if (!has_up && !has_down) {
        return SMOE_OK;
    }
    if (!has_up || !has_down) {
        return missing_tensor(p, has_up ? down_name : up_name, err);
    }
    TRY(check_type(p, up_shard, up, err));
    TRY(check_type(p, down_shard, down, err));
    bool up_fits = has_shape3(up, n, 2 * ff, embd), down_fits = has_shape3(down, n, embd, ff);
    bool up_turned = has_shape3(up, n, embd, 2 * ff), down_turned = has_shape3(down, n, ff, embd);
    if (up_fits && down_fits) {
        p->form[layer] = EXPERTS_FUSED;
        return SMOE_OK;
    }
    if (up_turned && down_turned) {
        p->form[layer] = EXPERTS_FUSED_TRANSPOSED;
        return SMOE_OK;
    }
    bool up_is_wrong = !up_fits && !(up_turned && !down_fits);
    if (up_is_wrong) {
        snprintf(expected, sizeof expected, "%llu, %llu, %llu", (unsigned long long)n,
                 (unsigned long long)(2 * ff), (unsigned long long)embd);
        return wrong_shape(p, up_shard, up, expected, err);
    }
    snprintf(expected, sizeof expected, "%llu, %llu, %llu", (unsigned long long)n,
             (unsigned long long)embd, (unsigned long long)ff);
    return wrong_shape(p, down_shard, down, expected, err);
}

smoe_status plan_expert_source(shatter_plan *p, uint32_t layer, uint32_t expert,
                               enum expert_part part, matrix_source *out, smoe_err *err)
{
    static const char *const names[N_PARTS] = {"gate_proj", "up_proj", "down_proj"};
    char name[96];
    size_t shard;
    const tensor_info *t;
    uint64_t ff = p->config.n_ff_exp, embd = p->config.n_embd;
    uint64_t rows = part == PART_DOWN ? embd : ff, cols = part == PART_DOWN ? ff : embd;
    if (p->form[layer] == EXPERTS_SINGLE) {
        snprintf(name, sizeof name, "model.layers.%u.mlp.experts.%u.%s.weight", layer, expert,
                 names[part]);
        return find_plain(p, name, 2, rows, cols, out, err);
    }
    snprintf(name, sizeof name, "model.layers.%u.mlp.experts.%s", layer,
             part == PART_DOWN ? "down_proj" : "gate_up_proj");
    if (!source_find(&p->source, name, &shard, &t)) {
        return missing_tensor(p, name, err);
    }
    uint64_t width = dtype_row_bytes(t->type, 1),
             slab = (part == PART_DOWN ? 1 : 2) * ff * embd * width;
    *out = (matrix_source){.shard = shard,
                           .type = t->type,
                           .offset = t->offset + expert * slab,
                           .rows = rows,
                           .cols = cols};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (p->form[layer] == EXPERTS_FUSED_TRANSPOSED) {
        out->transposed = true;
        out->stride = part == PART_DOWN ? embd : 2 * ff;
        out->first_col = part == PART_UP ? ff : 0;
    } else if (part == PART_UP) {
        out->offset += slab / 2;
    }
    return SMOE_OK;
}

uint64_t matrix_source_bytes(const matrix_source *m)
{
    uint64_t n_elems = m->transposed ? m->cols * m->stride : m->rows * m->cols;
    return n_elems * dtype_row_bytes(m->type, 1);
}

/* The record layout is one for the whole vault, so the types are decided over all experts. */
static smoe_status set_layout(shatter_plan *p, dtype source_type, smoe_err *err)
{
    uint64_t at = 0, ff = p->config.n_ff_exp, embd = p->config.n_embd;
    for (int part = 0; part < N_PARTS; part++) {
        uint64_t rows = part == PART_DOWN ? embd : ff, cols = part == PART_DOWN ? ff : embd;
        dtype type = fit_type(p->want_experts, cols, source_type);
        at = (at + VAULT_MATRIX_ALIGN - 1) / VAULT_MATRIX_ALIGN * VAULT_MATRIX_ALIGN;
        p->layout[part] = (matrix_layout){type, rows, cols, at};
        at += dtype_matrix_bytes(type, rows, cols);
    }
    p->record_bytes = (at + VAULT_ALIGN - 1) / VAULT_ALIGN * VAULT_ALIGN;
    if (p->record_bytes > MAX_RECORD_BYTES) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "one expert of %s would take %llu bytes; at most %llu are "
                       "supported: choose a smaller type with --experts",
                       p->source.dir, (unsigned long long)p->record_bytes,
                       (unsigned long long)MAX_RECORD_BYTES);
    }
    return SMOE_OK;
}

static smoe_status plan_experts(shatter_plan *p, smoe_err *err)
{
    matrix_source m;
    dtype type = DTYPE_OTHER; /* of all experts; f32 holds what differs */
    p->form = mem_calloc(p->config.n_layer, sizeof *p->form);
    if (p->form == NULL) {
        return err_nomem(err, "the plan", p->config.n_layer * sizeof *p->form);
    }
    for (uint32_t layer = 0; layer < p->config.n_layer; layer++) {
        if (!p->config.is_sparse[layer]) {
            continue;
        }
        TRY(find_form(p, layer, err));
        for (uint32_t expert = 0; expert < p->config.n_expert; expert++) {
            for (int part = 0; part < N_PARTS; part++) {
                TRY(plan_expert_source(p, layer, expert, (enum expert_part)part, &m, err));
                uint64_t n_bytes = matrix_source_bytes(&m);
                if (m.transposed && n_bytes > MAX_RECORD_BYTES) {
                    return err_set(err, SMOE_UNSUPPORTED,
                                   "%s: \"%s\" is transposed and has %llu bytes "
                                   "per expert; at most %llu are supported",
                                   p->source.dir, m.name, (unsigned long long)n_bytes,
                                   (unsigned long long)MAX_RECORD_BYTES);
                }
                p->source_bytes += n_bytes;
                type = type == DTYPE_OTHER || type == m.type ? m.type : DTYPE_F32;
            }
        }
    }
    return set_layout(p, type, err);
}

/* Tensors that nobody asked for: a redundant head of a tied model and recomputable rope tables are
 * skipped; anything else would change the model if it were ignored. */
static smoe_status check_unused(const shatter_plan *p, const shatter_events *events, smoe_err *err)
{
    const tensor_info *t;
    size_t shard, n_tables = 0;
    for (size_t i = 0; (t = source_unused(&p->source, i, &shard)) != NULL; i++) {
        if (p->config.tie_word_embeddings && slice_is(t->name, "lm_head.weight")) {
            plan_note(events, "lm_head.weight is skipped: config.json ties it to the embedding");
        } else if (slice_ends(t->name, slice_from(".rotary_emb.inv_freq"))) {
            n_tables++;
        } else {
            return err_set(
                err, SMOE_UNSUPPORTED,
                "%s: tensor \"%.*s\" is unknown to a qwen3_moe model "
                "with this config.json; leaving it out would change the model, so nothing was "
                "written",
                p->source.shards[shard].file.path, NAME_ARG(t->name));
        }
    }
    if (n_tables > 0) {
        plan_note(events,
                  "%zu rotary_emb.inv_freq tensors are skipped: they follow from config.json",
                  n_tables);
    }
    return SMOE_OK;
}

static smoe_status check_options(const shatter_options *o, smoe_err *err)
{
    const dtype chosen[] = {o->experts, o->scout};
    for (int i = 0; i < 2; i++) {
        if (!quant_supported(chosen[i])) {
            return err_set(err, SMOE_USAGE,
                           "experts and scout take a type of weights (dtype_weight), not %d",
                           (int)chosen[i]);
        }
    }
    return SMOE_OK;
}

static smoe_status build(shatter_plan *p, const shatter_options *o, const shatter_events *events,
                         smoe_err *err)
{
    TRY(check_options(o, err));
    TRY(set_paths(p, o, err));
    TRY(read_files(p, o->checkpoint_dir, events, err));
    TRY(parse_config(p, o->checkpoint_dir, err));
    TRY(source_open(&p->source, o->checkpoint_dir, err));
    TRY(plan_dense(p, err));
    TRY(plan_experts(p, err));
    TRY(check_unused(p, events, err));
    TRY(plan_tokens(p, events, err));
    for (int i = 0; i < N_FILES; i++) {
        p->scout_bytes += p->files[i].text.len;
    }
    return SMOE_OK;
}

smoe_status shatter_plan_new(const shatter_options *options, const shatter_events *events,
                             shatter_plan **out, smoe_err *err)
{
    static const char *const names[N_FILES] = {
        [FILE_CONFIG] = "config.json",
        [FILE_TOKENIZER] = "tokenizer.json",
        [FILE_TOKENIZER_CONFIG] = "tokenizer_config.json",
        [FILE_GENERATION] = "generation_config.json",
        [FILE_TEMPLATE] = "chat_template.jinja",
        [FILE_COMPILED] = SCOUT_COMPILED_TOKENIZER,
    };
    shatter_plan *p = mem_calloc(1, sizeof *p);
    if (p == NULL) {
        return err_nomem(err, "the plan", sizeof *p);
    }
    for (int i = 0; i < N_FILES; i++) {
        p->files[i].name = names[i];
        p->files[i].required = i == FILE_CONFIG || i == FILE_TOKENIZER;
        buf_init(&p->files[i].text, MAX_TEXT_BYTES);
    }
    p->want_experts = options->experts;
    p->want_scout = options->scout;
    p->n_threads = options->n_threads;
    smoe_status status = build(p, options, events, err);
    if (status != SMOE_OK) {
        shatter_plan_free(p);
        return status;
    }
    *out = p;
    return SMOE_OK;
}

void shatter_plan_free(shatter_plan *p)
{
    if (p == NULL) {
        return;
    }
    source_close(&p->source);
    for (int i = 0; i < N_FILES; i++) {
        buf_fini(&p->files[i].text);
    }
    smoe_ids_free(&p->eos_ids);
    smoe_ids_free(&p->penalty_exempt_ids);
    mem_free(p->dense);
    mem_free(p->form);
    mem_free(p->out_dir);
    mem_free(p->stem_path);
    mem_free(p->vault_path);
    mem_free(p->scout_path);
    mem_free(p);
}

shatter_summary shatter_plan_summary(const shatter_plan *p)
{
    size_t n_records = (size_t)p->config.n_layer_sparse * p->config.n_expert;
    return (shatter_summary){
        .config = &p->config,
        .stem_path = p->stem_path,
        .vault_path = p->vault_path,
        .scout_path = p->scout_path,
        .source_bytes = p->source_bytes,
        .vault_bytes = n_records * p->record_bytes,
        .scout_bytes = p->scout_bytes,
        .record_bytes = p->record_bytes,
        .n_records = n_records,
    };
}
