/* Shatter end to end on made-up checkpoints: what comes out equals the quantised source, whatever
 * the form of the checkpoint; what is wrong is refused by name; what fails leaves nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "checkpoint.h"
#include "formats/vault.h"
#include "quant/kernels.h"
#include "quant/panel.h"
#include "scratch.h"
#include "shatter/shatter.h"

static const checkpoint plain = {.dir = "ckpt", .type = DTYPE_BF16, .n_embd = 256, .n_ff_exp = 96};

static char notes[4096];
static uint64_t n_asked, cancel_at;

static void take_note(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", text);
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return cancel_at != 0 && ++n_asked >= cancel_at;
}

static const shatter_events events = {NULL, NULL, take_note, is_cancelled};

static void expect_text(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, part);
    }
}

static smoe_status shatter(const char *dir, const char *stem, dtype experts, dtype scout_type,
                           uint32_t n_threads, smoe_err *err)
{
    shatter_plan *plan = NULL;
    char out[512];
    snprintf(out, sizeof out, "%s", scratch_path("out/deep er"));
    shatter_options o = {scratch_path(dir), out, stem, experts, scout_type, n_threads};
    notes[0] = '\0';
    n_asked = 0;
    smoe_status status = shatter_plan_new(&o, &events, &plan, err);
    if (status == SMOE_OK) {
        status = shatter_convert(plan, &events, err);
    }
    shatter_plan_free(plan);
    return status;
}

static void must(smoe_status status, const smoe_err *err)
{
    if (status != SMOE_OK) {
        fail_msg("%s", err->text);
    }
}

static void make(const checkpoint *c, const char *stem, dtype experts, dtype scout_type)
{
    smoe_err err;
    checkpoint_write(c);
    must(shatter(c->dir, stem, experts, scout_type, 2, &err), &err);
}

static void open_pair(const char *stem, vault *v, scout *s)
{
    smoe_err err;
    char *vault_path, *scout_path, at[256];
    snprintf(at, sizeof at, "out/deep er/%s", stem);
    must(model_find(scratch_path(at), &vault_path, &scout_path, &err), &err);
    must(vault_open(v, vault_path, &err), &err);
    must(scout_open(s, scout_path, &err), &err);
    must(vault_check_pair(v, s, &err), &err);
    must(shatter_verify(v, s, NULL, &err), &err);
    mem_free(vault_path);
    mem_free(scout_path);
}

static void close_pair(vault *v, scout *s)
{
    vault_close(v);
    scout_close(s);
}

static void slurp(const char *name, buf *out)
{
    smoe_err err;
    buf_init(out, 1 << 26);
    must(file_slurp(scratch_path(name), 1 << 26, out, &err), &err);
}

/* The checkpoint's tensor, quantised row by row. */
static uint8_t *quantised_rows(const checkpoint *c, const char *name, dtype type, uint64_t rows,
                               uint64_t cols)
{
    const kernels *k = kernels_get(NULL);
    uint64_t row_bytes = dtype_row_bytes(type, cols);
    float *row = calloc(cols, sizeof *row);
    uint8_t *all = calloc(rows, row_bytes);
    assert_true(row != NULL && all != NULL);
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t i = 0; i < cols; i++) {
            row[i] = checkpoint_value(c, name, r * cols + i);
        }
        k->quantize_row(type, row, all + r * row_bytes, (int64_t)cols);
    }
    free(row);
    return all;
}

/* data must be exactly those rows, in panels when the type is a quantised one. */
static void expect_quantised(const checkpoint *c, const char *name, dtype type, uint64_t rows,
                             uint64_t cols, const uint8_t *data)
{
    uint64_t n_bytes = dtype_matrix_bytes(type, rows, cols);
    uint8_t *expected = quantised_rows(c, name, type, rows, cols);
    if (dtype_get(type)->is_quantized) {
        uint8_t *panels = malloc(n_bytes);
        assert_non_null(panels);
        panel_pack(type, expected, rows, cols, panels);
        free(expected);
        expected = panels;
    }
    assert_memory_equal(data, expected, n_bytes);
    free(expected);
}

static void check_scout(const checkpoint *c, const scout *s)
{
    smoe_err err;
    dense_tensor t;
    scout_tensor found;
    for (size_t i = 0; model_config_dense_tensor(&s->config, i, &t); i++) {
        must(scout_find(s, slice_from(t.name), &found, &err), &err);
        uint8_t *data = malloc(found.n_bytes);
        must(scout_read_tensor(s, slice_from(t.name), data, &err), &err);
        if (t.n_dims == 1 || t.role == TENSOR_FFN_GATE_INP) {
            assert_int_equal(found.type, c->type == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32);
        }
        expect_quantised(c, t.name, found.type, found.rows, found.cols, data);
        free(data);
    }
}

static void check_vault(const checkpoint *c, const vault *v)
{
    static const char *const parts[] = {"gate", "up", "down"};
    const matrix_layout *layouts[] = {&v->gate, &v->up, &v->down};
    smoe_err err;
    char name[96];
    uint8_t *record = malloc(v->record_bytes);
    for (uint32_t e = 0; e < CHECKPOINT_EXPERTS; e++) {
        must(vault_read_record(v, 1, e, record, &err), &err);
        for (int p = 0; p < 3; p++) {
            snprintf(name, sizeof name, "model.layers.1.mlp.experts.%u.%s_proj.weight", e,
                     parts[p]);
            expect_quantised(c, name, layouts[p]->type, layouts[p]->rows, layouts[p]->cols,
                             record + layouts[p]->offset);
        }
    }
    free(record);
}

/* Of rows of 96: the next finer type with blocks of 32. */
static dtype of_96_columns(dtype type)
{
    switch (type) {
    case DTYPE_Q6_K:
    case DTYPE_Q5_K:
    case DTYPE_Q4_K: return DTYPE_Q8_0;
    case DTYPE_Q3_K:
    case DTYPE_Q2_K: return DTYPE_Q4_0;
    default: return type;
    }
}

static void test_every_type(void **state)
{
    (void)state;
    static const dtype sources[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    vault v;
    scout s;
    for (size_t i = 0; i < DTYPE_N_WEIGHTS; i++) {
        checkpoint c = plain;
        const dtype type = dtype_weight(i)->type;
        c.type = sources[i % 3];
        make(&c, "m", type, dtype_weight(DTYPE_N_WEIGHTS - 1 - i)->type);
        open_pair("m", &v, &s);
        assert_int_equal(v.gate.type, type);
        assert_int_equal(v.down.type, of_96_columns(type));
        check_vault(&c, &v);
        check_scout(&c, &s);
        close_pair(&v, &s);
    }
    assert_null(dtype_weight(DTYPE_N_WEIGHTS));
}

/* What `smoe inspect --export` writes: the quantised rows themselves, whatever their order in the
 * model. */
static void expect_export(const checkpoint *c, const vault *v, const scout *s, const char *name,
                          const char *source_name, dtype type, uint64_t rows, uint64_t cols)
{
    smoe_err err;
    exported_matrix m;
    buf found;
    uint64_t n_bytes = rows * dtype_row_bytes(type, cols);
    uint8_t *expected = quantised_rows(c, source_name, type, rows, cols);
    must(shatter_export(v, s, name, scratch_path("export.bin"), &m, &err), &err);
    assert_true(m.type == type && m.rows == rows && m.cols == cols && m.n_bytes == n_bytes);
    slurp("export.bin", &found);
    assert_int_equal(found.len, n_bytes);
    assert_memory_equal(found.data, expected, n_bytes);
    buf_fini(&found);
    free(expected);
}

static void export_all(const checkpoint *c, const vault *v, const scout *s)
{
    static const char *const parts[] = {"gate", "up", "down"};
    const matrix_layout *layouts[] = {&v->gate, &v->up, &v->down};
    char name[64], source_name[96];
    smoe_err err;
    dense_tensor t;
    scout_tensor found;
    for (size_t i = 0; model_config_dense_tensor(&s->config, i, &t); i++) {
        must(scout_find(s, slice_from(t.name), &found, &err), &err);
        expect_export(c, v, s, t.name, t.name, found.type, t.rows, t.cols);
    }
    for (int i = 0; i < 3 * CHECKPOINT_EXPERTS; i++) {
        const matrix_layout *m = layouts[i % 3];
        snprintf(name, sizeof name, "blk.1.exp.%d.%s", i / 3, parts[i % 3]);
        snprintf(source_name, sizeof source_name, "model.layers.1.mlp.experts.%d.%s_proj.weight",
                 i / 3, parts[i % 3]);
        expect_export(c, v, s, name, source_name, m->type, m->rows, m->cols);
    }
}

static void test_export(void **state)
{
    (void)state;
    enum { N = DTYPE_N_WEIGHTS };
    vault v;
    scout s;
    for (size_t i = 0; i <= N; i++) {
        checkpoint c = plain;
        c.dir = "exported";
        c.n_embd = i < N ? 256 : 40; /* 40 rows of the attention's output in the scout */
        c.n_ff_exp = 100;            /* 100 rows of gate and up in the vault */
        make(&c, "exported", dtype_weight(i % N)->type,
             i < N ? dtype_weight(N - 1 - i)->type : DTYPE_Q8_0);
        open_pair("exported", &v, &s);
        const tensor_info *o = safetensors_find(
            &s.st, slice_from("model.layers.0.self_attn.o_proj.weight"));
        if (i == N) {
            assert_true(o->type == DTYPE_U8 && o->n_dims == 2 && o->shape[0] == 48);
            assert_int_equal(o->shape[1], dtype_row_bytes(DTYPE_Q8_0, 64));
        } else {
            assert_int_equal(v.gate.type, dtype_weight(i)->type);
        }
        export_all(&c, &v, &s);
        close_pair(&v, &s);
    }
}

static void refuse_export(const vault *v, const scout *s, const char *name, const char *path,
                          smoe_status expected, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    exported_matrix m;
    assert_int_equal(shatter_export(v, s, name, path, &m, &err), expected);
    expect_text(err.text, part);
}

static void test_export_refused(void **state)
{
    (void)state;
    vault v;
    scout s;
    const char *out = scratch_path("never.bin");
    make(&plain, "m", DTYPE_Q4_K, DTYPE_Q8_0);
    open_pair("m", &v, &s);
    refuse_export(&v, &s, "model.norm", out, SMOE_USAGE, "\"model.norm\" is no matrix");
    refuse_export(&v, &s, "", out, SMOE_USAGE, "is no matrix");
    refuse_export(&v, &s, "file/config.json", out, SMOE_USAGE, "is no matrix");
    refuse_export(&v, &s, "blk.1.exp.0.side", out, SMOE_USAGE, "is no matrix");
    refuse_export(&v, &s, "blk.0.exp.0.gate", out, SMOE_FORMAT, "expert 0 of layer 0");
    refuse_export(&v, &s, "blk.1.exp.3.gate", out, SMOE_FORMAT, "expert 3 of layer 1");
    refuse_export(&v, &s, "blk.1.exp.0.gate", v.st.file.path, SMOE_USAGE, "this very model");
    refuse_export(&v, &s, "blk.1.exp.0.gate", s.st.file.path, SMOE_USAGE, "this very model");
    refuse_export(&v, &s, "model.norm.weight", scratch_path("absent/x"), SMOE_IO, "absent");
    FILE *f = fopen(v.st.file.path, "r+b");
    assert_int_equal(fseek(f, (long)v.record_offset[CHECKPOINT_EXPERTS] + 100, SEEK_SET), 0);
    fputs("damage", f);
    fclose(f);
    refuse_export(&v, &s, "blk.1.exp.0.up", out, SMOE_FORMAT, "is damaged");
    assert_false(file_exists(out));
    for (uint64_t nth = 1;; nth++) {
        smoe_err err;
        exported_matrix m;
        mem_fail_nth(nth);
        smoe_status status = shatter_export(&v, &s, "blk.1.exp.1.up", out, &m, &err);
        mem_fail_nth(0);
        if (status == SMOE_OK) {
            break;
        }
        assert_int_equal(status, SMOE_NOMEM);
        assert_false(file_exists(out));
        assert_true(nth < 100);
    }
    close_pair(&v, &s);
}

/* A row that no block divides falls back to bf16, or f32 where the source is f32. */
/* No block fits: the weights stay what they are. */
static void test_odd_rows(void **state)
{
    (void)state;
    static const dtype sources[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    vault v;
    scout s;
    checkpoint c = plain;
    c.n_embd = 40;
    c.n_ff_exp = 20;
    for (int i = 0; i < 3; i++) {
        c.type = sources[i];
        make(&c, "odd", i == 1 ? DTYPE_Q4_0 : DTYPE_Q4_K, DTYPE_Q8_0);
        open_pair("odd", &v, &s);
        assert_int_equal(v.gate.type, sources[i]);
        check_vault(&c, &v);
        check_scout(&c, &s);
        close_pair(&v, &s);
    }
}

static void test_forms(void **state)
{
    (void)state;
    vault v;
    scout s;
    for (int form = 0; form < 4; form++) {
        checkpoint c = plain;
        static const char *const dirs[] = {"fused", "turned", "shards", "wide"};
        c.dir = dirs[form];
        c.fused = form != 2;
        c.transposed = form == 1;
        c.sharded = form >= 2;
        c.n_ff_exp = form == 3 ? 128 : 96; /* hidden == 2 * ff: both readings fit the shape */
        make(&c, dirs[form], DTYPE_Q8_0, DTYPE_Q8_0);
        open_pair(dirs[form], &v, &s);
        check_vault(&c, &v);
        check_scout(&c, &s);
        close_pair(&v, &s);
    }
}

static void test_lineage(void **state)
{
    (void)state;
    vault v, v2;
    scout s, s2;
    smoe_err err;
    checkpoint c = plain;
    make(&c, "one", DTYPE_Q4_K, DTYPE_Q8_0);
    make(&c, "two", DTYPE_Q8_0, DTYPE_BF16);
    open_pair("one", &v, &s);
    open_pair("two", &v2, &s2);
    must(vault_check_pair(&v, &s2, &err), &err); /* same checkpoint, other types */
    close_pair(&v2, &s2);
    c.zero_row_of = "5";
    make(&c, "two", DTYPE_Q4_K, DTYPE_Q8_0);
    open_pair("two", &v2, &s2);
    assert_int_equal(vault_check_pair(&v, &s2, &err), SMOE_MISMATCH);
    close_pair(&v, &s);
    close_pair(&v2, &s2);
}

static void test_threads_do_not_matter(void **state)
{
    (void)state;
    smoe_err err;
    buf a, b;
    checkpoint_write(&plain);
    must(shatter("ckpt", "t1", DTYPE_Q4_K, DTYPE_Q6_K, 1, &err), &err);
    must(shatter("ckpt", "t3", DTYPE_Q4_K, DTYPE_Q6_K, 3, &err), &err);
    slurp("out/deep er/t1.smoe", &a);
    slurp("out/deep er/t3.smoe", &b);
    assert_true(slice_eq(buf_slice(&a), buf_slice(&b)));
    buf_fini(&a);
    buf_fini(&b);
    slurp("out/deep er/t1.scout.safetensors", &a);
    slurp("out/deep er/t3.scout.safetensors", &b);
    assert_true(slice_eq(buf_slice(&a), buf_slice(&b)));
    buf_fini(&a);
    buf_fini(&b);
}

static void test_tokens(void **state)
{
    (void)state;
    static const char generation[] = "{\"eos_token_id\":[14,6]}";
    static const char tokenizer_config[] = "{\"eos_token\":{\"content\":\"b\"}}";
    vault v;
    scout s;
    checkpoint c = plain;
    c.dir = "tokens";
    c.zero_row_of = "15";
    checkpoint_write(&c);
    scratch_write("tokens/generation_config.json", generation, sizeof generation - 1);
    scratch_write("tokens/tokenizer_config.json", tokenizer_config, sizeof tokenizer_config - 1);
    make(&c, "tokens", DTYPE_Q8_0, DTYPE_Q8_0);
    expect_text(notes, "token 15 (<think>)");
    open_pair("tokens", &v, &s);
    /* generation_config 14, 6; config 5; eos_token b = 6; special markers 14, 13; </s> is an
     * ordinary token here, so it ends nothing */
    const int32_t eos[] = {14, 6, 5, 13}, exempt[] = {0, 1, 2, 8, 3, 4, 14, 6, 5, 13};
    assert_int_equal(s.n_eos_ids, 4);
    assert_memory_equal(s.eos_ids, eos, sizeof eos);
    assert_int_equal(s.n_penalty_exempt_ids, 10);
    assert_memory_equal(s.penalty_exempt_ids, exempt, sizeof exempt);
    buf text;
    smoe_err err;
    buf_init(&text, 1 << 20);
    must(scout_read_file(&s, "generation_config.json", &text, &err), &err);
    assert_true(slice_is(buf_slice(&text), generation));
    buf_fini(&text);
    close_pair(&v, &s);
}

/* Rows of almost zero: each suspect is named once, with what to do; others do not matter. */
static void test_untrained_tokens(void **state)
{
    (void)state;
    checkpoint c = plain;
    c.dir = "untrained";
    c.zero_row_of = "15"; /* <think> */
    make(&c, "untrained", DTYPE_Q8_0, DTYPE_Q8_0);
    expect_text(notes, "token 15 (<think>) has an embedding row of almost zero (norm 0, median ");
    expect_text(notes, "keep its own chat template, and put no think block into a prompt\n");
    c.zero_row_of = "14"; /* <|im_end|> */
    make(&c, "untrained", DTYPE_Q8_0, DTYPE_Q8_0);
    expect_text(notes, "token 14 (<|im_end|>) has an embedding row of almost zero");
    expect_text(notes, "check that tokenizer and chat template are its own");
    assert_null(strstr(notes, "token 15"));
    c.zero_row_of = "9"; /* "c" */
    make(&c, "untrained", DTYPE_Q8_0, DTYPE_Q8_0);
    assert_null(strstr(notes, "almost zero"));
    c.zero_row_of = NULL;
    make(&c, "untrained", DTYPE_Q8_0, DTYPE_Q8_0);
    assert_null(strstr(notes, "almost zero"));
}

static void test_tied(void **state)
{
    (void)state;
    vault v;
    scout s;
    checkpoint c = plain;
    c.dir = "tied";
    c.tied = c.redundant_head = true;
    make(&c, "tied", DTYPE_Q8_0, DTYPE_Q8_0);
    expect_text(notes, "lm_head.weight is skipped");
    open_pair("tied", &v, &s);
    check_scout(&c, &s);
    assert_null(safetensors_find(&s.st, slice_from("lm_head.weight")));
    close_pair(&v, &s);
}

static void refuse(const checkpoint *c, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    checkpoint_write(c);
    assert_int_not_equal(shatter(c->dir, "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_OK);
    expect_text(err.text, part);
    assert_false(file_exists(scratch_path("out/deep er/refused.smoe")));
    assert_false(file_exists(scratch_path("out/deep er/refused.scout.safetensors")));
}

/* The plain checkpoint in a directory of its own, with one field changed. */
static checkpoint changed;
#define WITH(d, field, value)                                                                      \
    (changed = plain, changed.dir = (d), changed.field = (value), &changed)

static void test_refused(void **state)
{
    (void)state;
    static const char outside[] = "{\"weight_map\":{\"a\":\"../x\"}}";
    smoe_err err;
    refuse(WITH("r1", skip, "model.layers.1.mlp.experts.2.up_proj.weight"),
           "experts.2.up_proj.weight");
    refuse(WITH("r2", skip, "model.norm.weight"), "model.norm.weight");
    refuse(WITH("r3", extra, "model.layers.2.strange"), "\"model.layers.2.strange\" is unknown");
    refuse(WITH("r4", wrong_type, "model.layers.0.self_attn.q_proj.weight"), "is I32");
    refuse(WITH("r5", wrong_shape, "model.layers.0.self_attn.q_proj.weight"), "[65, 256]");
    refuse(WITH("r6", no_tokenizer, true), "tokenizer.json");
    refuse(WITH("r7", no_rope_theta, true), "rope_theta");
    refuse(WITH("r8", not_finite, "model.layers.1.mlp.experts.2.up_proj.weight"), "not finite");
    checkpoint sharded = plain;
    sharded.dir = "r10";
    sharded.sharded = true;
    checkpoint_write(&sharded);
    unlink(scratch_path("r10/model-00002-of-00002.safetensors"));
    assert_int_equal(shatter("r10", "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_IO);
    expect_text(err.text, "model-00002-of-00002.safetensors is missing");
    scratch_write("r10/model.safetensors.index.json", outside, sizeof outside - 1);
    assert_int_equal(shatter("r10", "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_FORMAT);
    expect_text(err.text, "plain file name");
    static const char
        swapped[] = "{\"weight_map\":{\"model.norm.weight\":"
                    "\"model-00001-of-00002.safetensors\","
                    "\"model.embed_tokens.weight\":\"model-00002-of-00002.safetensors\"}}";
    checkpoint_write(&sharded);
    scratch_write("r10/model.safetensors.index.json", swapped, sizeof swapped - 1);
    assert_int_equal(shatter("r10", "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_FORMAT);
    expect_text(err.text, "but it is not");
    static const char
        pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    checkpoint_write(WITH("r11", tied, false));
    scratch_write("r11/tokenizer.json", pointer, sizeof pointer - 1);
    assert_int_equal(shatter("r11", "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_FORMAT);
    expect_text(err.text, "tokenizer.json is a Git LFS pointer");
    checkpoint_write(&changed);
    scratch_write("r11/model.safetensors", pointer, sizeof pointer - 1);
    assert_int_equal(shatter("r11", "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_FORMAT);
    expect_text(err.text, "model.safetensors is a Git LFS pointer");
    assert_int_equal(shatter("absent", "refused", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_IO);
    expect_text(err.text, "is not a directory");
    assert_int_equal(shatter("r1", "a/b", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_USAGE);
    assert_int_equal(shatter("r1", NULL, DTYPE_I8, DTYPE_Q8_0, 1, &err), SMOE_USAGE);
}

/* Truncating a shard must be noticed from its header alone. */
static void test_truncated(void **state)
{
    (void)state;
    smoe_err err;
    checkpoint c = plain;
    c.dir = "cut";
    checkpoint_write(&c);
    assert_int_equal(truncate(scratch_path("cut/model.safetensors"), 100000), 0);
    assert_int_equal(shatter("cut", "cut", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err), SMOE_FORMAT);
    expect_text(err.text, "truncated");
}

static bool out_is_clean(const char *stem)
{
    char command[600];
    snprintf(command, sizeof command, "ls '%s' 2>/dev/null | grep -q '^%s'",
             scratch_path("out/deep er"), stem);
    return system(command) != 0;
}

static void test_cancel_leaves_nothing(void **state)
{
    (void)state;
    smoe_err err;
    checkpoint_write(&plain);
    for (cancel_at = 1; cancel_at < 30; cancel_at += 7) {
        assert_int_equal(shatter("ckpt", "gone", DTYPE_Q8_0, DTYPE_Q8_0, 2, &err), SMOE_CANCELLED);
        assert_true(out_is_clean("gone"));
    }
    cancel_at = 0;
    must(shatter("ckpt", "gone", DTYPE_Q8_0, DTYPE_Q8_0, 2, &err),
         &err); /* a rerun starts cleanly */
}

/* A write that the system refuses half way (here: a file size limit in place of a full disk). An
 * older model of the same name must survive. */
static void test_write_error(void **state)
{
    (void)state;
    smoe_err err;
    struct rlimit old, low;
    vault v;
    scout s;
    make(&plain, "kept", DTYPE_Q8_0, DTYPE_Q8_0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = (struct rlimit){200000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    smoe_status status = shatter("ckpt", "full", DTYPE_F32, DTYPE_Q8_0, 2, &err);
    smoe_status again = shatter("ckpt", "kept", DTYPE_F32, DTYPE_Q8_0, 2, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, SMOE_IO);
    assert_int_equal(again, SMOE_IO);
    assert_true(out_is_clean("full"));
    open_pair("kept", &v, &s);
    assert_int_equal(v.gate.type, DTYPE_Q8_0);
    close_pair(&v, &s);
}

static void test_verify_finds_damage(void **state)
{
    (void)state;
    smoe_err err;
    vault v;
    scout s;
    make(&plain, "hurt", DTYPE_Q8_0, DTYPE_Q8_0);
    open_pair("hurt", &v, &s);
    FILE *f = fopen(v.st.file.path, "r+b");
    assert_int_equal(fseek(f, (long)v.record_offset[CHECKPOINT_EXPERTS + 1] + 100, SEEK_SET), 0);
    fputs("damage", f);
    fclose(f);
    assert_int_equal(shatter_verify(&v, &s, NULL, &err), SMOE_FORMAT);
    expect_text(err.text, "blk.1.exp.1 at offset");
    close_pair(&v, &s);
}

static void test_describe(void **state)
{
    (void)state;
    smoe_err err;
    shatter_plan *plan;
    buf text;
    char size[32];
    shatter_options o = {scratch_path("ckpt"), NULL, NULL, DTYPE_Q4_K, DTYPE_Q8_0, 1};
    checkpoint_write(&plain);
    buf_init(&text, 1 << 16);
    must(shatter_plan_new(&o, NULL, &plan, &err), &err);
    must(shatter_plan_describe(plan, &text, &err), &err);
    expect_text(text.data, "rows of 96 do not fit the blocks of q4_K");
    assert_string_equal(shatter_plan_summary(plan).vault_path, "ckpt.smoe");
    assert_int_equal(shatter_plan_summary(plan).n_records, CHECKPOINT_EXPERTS);
    shatter_plan_free(plan);
    buf_fini(&text);
    assert_string_equal(shatter_size_text(999, size), "999 bytes");
    assert_string_equal(shatter_size_text(1000, size), "1.0 kB");
    assert_string_equal(shatter_size_text(999999, size), "1.0 MB");
    assert_string_equal(shatter_size_text(UINT64_C(123456789012), size), "123 GB");
}

/* Every allocation refused in turn: SMOE_NOMEM and nothing left behind, until it succeeds. */
static void test_out_of_memory(void **state)
{
    (void)state;
    smoe_err err;
    checkpoint c = plain;
    c.dir = "small";
    c.n_embd = c.n_ff_exp = 32;
    checkpoint_write(&c);
    for (uint64_t nth = 1;; nth++) {
        mem_fail_nth(nth);
        smoe_status status = shatter("small", "oom", DTYPE_Q8_0, DTYPE_Q8_0, 1, &err);
        mem_fail_nth(0);
        if (status == SMOE_OK) {
            break;
        }
        if (status != SMOE_NOMEM) {
            fail_msg("allocation %llu: %s", (unsigned long long)nth, err.text);
        }
        assert_true(out_is_clean("oom"));
        assert_true(nth < 5000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_export_refused),
        cmocka_unit_test(test_odd_rows),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_lineage),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_untrained_tokens),
        cmocka_unit_test(test_tied),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_cancel_leaves_nothing),
        cmocka_unit_test(test_write_error),
        cmocka_unit_test(test_verify_finds_damage),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
