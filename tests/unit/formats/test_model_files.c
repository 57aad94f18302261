/* Vault and scout: what opening refuses, how records are found and checked, how MODEL is found. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "formats/checksum.h"
#include "formats/safetensors_write.h"
#include "formats/vault.h"
#include "scratch.h"

#define LINEAGE "0123456789abcdef0123456789abcdef"
#define RECORD                                                                                     \
    "{\"gate\":{\"type\":\"f32\",\"shape\":[4,8],\"offset\":0},"                                   \
    "\"up\":{\"type\":\"f32\",\"shape\":[4,8],\"offset\":128},"                                    \
    "\"down\":{\"type\":\"f32\",\"shape\":[8,4],\"offset\":256}}"
#define CONFIG                                                                                     \
    "{\"model_type\":\"qwen3_moe\",\"hidden_size\":8,\"num_hidden_layers\":1,"                     \
    "\"num_attention_heads\":1,\"num_key_value_heads\":1,\"head_dim\":8,"                          \
    "\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,"                     \
    "\"vocab_size\":10,\"max_position_embeddings\":16,\"rms_norm_eps\":1e-6,"                      \
    "\"rope_theta\":1e4,\"tie_word_embeddings\":true}"

/* A file to be written, with one thing wrong where a test wants it. */
typedef struct sketch {
    const char *version, *kind, *arch, *lineage, *record, *eos, *types, *config;
    const char *names[3];
    uint64_t record_bytes, align;
    bool drop_tensor;
    uint64_t embd_u8_bytes; /* the embedding as U8 of this size; 0 = F32 */
} sketch;

static const sketch good = {"2",         NULL,        "qwen3_moe",
                            LINEAGE,     RECORD,      "[3]",
                            "{}",        CONFIG,      {"blk.0.exp.0", "blk.0.exp.1", NULL},
                            VAULT_ALIGN, VAULT_ALIGN, false,
                            0};

static void must(smoe_status status, const smoe_err *err)
{
    if (status != SMOE_OK) {
        fail_msg("%s", err->text);
    }
}

static void common(safetensors_writer *w, const sketch *s, const char *kind)
{
    smoe_err err;
    safetensors_writer_init(w);
    must(safetensors_writer_meta(w, "smoe.format_version", slice_from(s->version), &err), &err);
    must(safetensors_writer_meta(w, "smoe.kind", slice_from(s->kind ? s->kind : kind), &err), &err);
    must(safetensors_writer_meta(w, "smoe.architecture", slice_from(s->arch), &err), &err);
    must(safetensors_writer_meta(w, "smoe.lineage", slice_from(s->lineage), &err), &err);
}

static const char *write_vault(const sketch *s)
{
    smoe_err err;
    safetensors_writer w;
    char sums[3 * CHECKSUM_HEX];
    size_t n = 0;
    uint8_t *record = calloc(1, s->record_bytes);
    assert_non_null(record);
    common(&w, s, "vault");
    must(safetensors_writer_meta(&w, "smoe.record", slice_from(s->record), &err), &err);
    for (; n < 3 && s->names[n] != NULL; n++) {
        record[5] = (uint8_t)n;
        checksum_to_hex(hash_bytes(record, s->record_bytes), sums + n * CHECKSUM_HEX);
        must(safetensors_writer_add(&w, slice_from(s->names[n]), "U8", &s->record_bytes, 1,
                                    s->record_bytes, &err),
             &err);
    }
    must(safetensors_writer_meta(&w, "smoe.checksums", slice_of(sums, n * CHECKSUM_HEX), &err),
         &err);
    must(safetensors_writer_begin(&w, scratch_path("m.smoe"), s->align, &err), &err);
    for (size_t i = 0; i < n; i++) {
        record[5] = (uint8_t)i;
        must(safetensors_writer_append(&w, record, s->record_bytes, &err), &err);
    }
    must(safetensors_writer_finish(&w, &err), &err);
    safetensors_writer_fini(&w);
    free(record);
    return scratch_path("m.smoe");
}

static const char *write_scout(const sketch *s)
{
    smoe_err err;
    safetensors_writer w;
    model_config c;
    dense_tensor t;
    char sums[64 * CHECKSUM_HEX];
    size_t n = 0;
    uint64_t n_bytes[64];
    static const uint8_t zeros[4096];
    checksum sum;
    must(model_config_parse(slice_from(CONFIG), "test", &c, &err), &err);
    common(&w, s, "scout");
    must(safetensors_writer_meta(&w, "smoe.types", slice_from(s->types), &err), &err);
    must(safetensors_writer_meta(&w, "smoe.eos_ids", slice_from(s->eos), &err), &err);
    must(safetensors_writer_meta(&w, "smoe.penalty_exempt_ids", slice_from("[]"), &err), &err);
    size_t first = s->drop_tensor ? 1 : 0;
    for (size_t i = first; model_config_dense_tensor(&c, i, &t); i++) {
        bool is_u8 = i == 0 && s->embd_u8_bytes != 0;
        uint64_t shape[2] = {is_u8 ? 1 : t.rows, is_u8 ? s->embd_u8_bytes : t.cols};
        n_bytes[i] = is_u8 ? s->embd_u8_bytes : t.rows * t.cols * 4;
        must(safetensors_writer_add(&w, slice_from(t.name), is_u8 ? "U8" : "F32",
                                    t.n_dims == 1 ? &shape[1] : shape, t.n_dims, n_bytes[i], &err),
             &err);
        checksum_init(&sum);
        checksum_add(&sum, zeros, n_bytes[i]);
        checksum_to_hex(checksum_end(&sum), sums + n++ * CHECKSUM_HEX);
    }
    uint64_t len = strlen(s->config);
    must(safetensors_writer_add(&w, slice_from("file/config.json"), "U8", &len, 1, len, &err),
         &err);
    checksum_init(&sum);
    checksum_add(&sum, s->config, len);
    checksum_to_hex(checksum_end(&sum), sums + n++ * CHECKSUM_HEX);
    must(safetensors_writer_meta(&w, "smoe.checksums", slice_of(sums, n * CHECKSUM_HEX), &err),
         &err);
    must(safetensors_writer_begin(&w, scratch_path("m.scout.safetensors"), 64, &err), &err);
    for (size_t i = first; model_config_dense_tensor(&c, i, &t); i++) {
        must(safetensors_writer_append(&w, zeros, n_bytes[i], &err), &err);
    }
    must(safetensors_writer_append(&w, s->config, len, &err), &err);
    must(safetensors_writer_finish(&w, &err), &err);
    safetensors_writer_fini(&w);
    return scratch_path("m.scout.safetensors");
}

static void expect_text(const smoe_err *err, const char *part)
{
    if (strstr(err->text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err->text, part);
    }
}

static void refuse_vault(const sketch *s, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    vault v;
    assert_int_not_equal(vault_open(&v, write_vault(s), &err), SMOE_OK);
    expect_text(&err, part);
}

static void refuse_scout(const sketch *s, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    scout sc;
    assert_int_not_equal(scout_open(&sc, write_scout(s), &err), SMOE_OK);
    expect_text(&err, part);
}

static void damage(const char *path, uint64_t offset)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

static void test_good_pair(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    vault v;
    scout s;
    scout_tensor t;
    uint8_t *record = malloc(VAULT_ALIGN);
    float row[80];
    must(vault_open(&v, write_vault(&good), &err), &err);
    must(scout_open(&s, write_scout(&good), &err), &err);
    must(vault_check_pair(&v, &s, &err), &err);
    assert_int_equal(v.n_records, 2);
    assert_int_equal(v.record_bytes, VAULT_ALIGN);
    assert_int_equal(v.record_offset[1] % VAULT_ALIGN, 0);
    must(vault_read_record(&v, 0, 1, record, &err), &err);
    assert_int_equal(record[5], 1);
    assert_int_equal(vault_read_record(&v, 0, 2, record, &err), SMOE_FORMAT);
    assert_int_equal(vault_read_record(&v, 7, 0, record, &err), SMOE_FORMAT);
    must(scout_find(&s, slice_from("model.embed_tokens.weight"), &t, &err), &err);
    assert_true(t.rows == 10 && t.cols == 8 && t.type == DTYPE_F32 && t.n_bytes == 320);
    must(scout_read_tensor(&s, slice_from("model.embed_tokens.weight"), row, &err), &err);
    assert_int_equal(scout_find(&s, slice_from("lm_head.weight"), &t, &err), SMOE_FORMAT);
    assert_int_equal(scout_find(&s, slice_from("file/config.json"), &t, &err), SMOE_FORMAT);
    assert_true(scout_has_file(&s, "config.json"));
    assert_false(scout_has_file(&s, "tokenizer.json"));
    assert_int_equal(s.n_eos_ids, 1);
    assert_int_equal(s.eos_ids[0], 3);
    scout_close(&s);
    vault_close(&v);
    free(record);
}

static void test_damage_is_found(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    vault v;
    scout s;
    uint8_t *record = malloc(VAULT_ALIGN);
    float row[80];
    must(vault_open(&v, write_vault(&good), &err), &err);
    must(scout_open(&s, write_scout(&good), &err), &err);
    damage(scratch_path("m.smoe"), v.record_offset[1] + 9000);
    must(vault_read_record(&v, 0, 0, record, &err), &err);
    assert_int_equal(vault_read_record(&v, 0, 1, record, &err), SMOE_FORMAT);
    expect_text(&err, "blk.0.exp.1");
    damage(scratch_path("m.scout.safetensors"), s.st.tensors[0].offset + 3);
    assert_int_equal(scout_read_tensor(&s, slice_from("model.embed_tokens.weight"), row, &err),
                     SMOE_FORMAT);
    expect_text(&err, "model.embed_tokens.weight");
    assert_int_equal(scout_check_tensor(&s, 0, &err), SMOE_FORMAT);
    must(scout_check_tensor(&s, 1, &err), &err);
    scout_close(&s);
    vault_close(&v);
    free(record);
}

/* The good sketch with one field changed. */
static sketch changed;
#define WITH(field, value) (changed = good, changed.field = (value), &changed)

static void test_refused(void **state)
{
    (void)state;
    refuse_vault(WITH(version, "3"), "format version 3");
    refuse_vault(WITH(version, "1"), "make it again with smoe shatter");
    refuse_vault(WITH(version, "0"), "not a number");
    refuse_vault(WITH(version, "x"), "not a number");
    refuse_vault(WITH(version, "99999999999"), "not a number");
    refuse_vault(WITH(kind, "scout"), "swapped");
    refuse_vault(WITH(arch, "llama"), "\"llama\"");
    refuse_vault(WITH(lineage, "12"), "32 hex");
    refuse_vault(WITH(record, "{}"), "\"gate\"");
    refuse_vault(WITH(record, "["), "JSON");
    refuse_vault(WITH(names[1], "blk.0.exp.x"), "not the name");
    refuse_vault(WITH(names[1], "blk.0.exp.01"), "not the name");
    refuse_vault(WITH(names[1], "blk.0.exp.4096"), "not the name");
    refuse_vault(WITH(names[0], "blk.1.exp.0"), "out of order");
    refuse_vault(WITH(names[0], NULL), "no records");
    refuse_vault(WITH(record_bytes, 16000), "multiple of 16384");
    refuse_vault(WITH(align, 64), "multiple of 16384");
    refuse_vault(WITH(record, "{\"gate\":{\"type\":\"f32\",\"shape\":[4,8],\"offset\":0},"
                              "\"up\":{\"type\":\"f32\",\"shape\":[4,8],\"offset\":64},"
                              "\"down\":{\"type\":\"f32\",\"shape\":[8,4],\"offset\":256}}"),
                 "overlaps");
    refuse_vault(WITH(record, "{\"gate\":{\"type\":\"q4_K\",\"shape\":[4,8],\"offset\":0}}"),
                 "divide");
    refuse_vault(WITH(record, "{\"gate\":{\"type\":\"f32\",\"shape\":[9223372036854775807,"
                              "9223372036854775807],\"offset\":0}}"),
                 "divide");
    refuse_scout(WITH(version, "3"), "format version 3");
    refuse_scout(WITH(version, "1"), "format version 1, whose rows are not in the order");
    refuse_scout(WITH(kind, "vault"), "swapped");
    refuse_scout(WITH(eos, "[10]"), "below 10");
    refuse_scout(WITH(eos, "[-1]"), "below 10");
    refuse_scout(WITH(eos, "7"), "not an array");
    refuse_scout(WITH(types, "x"), "JSON");
    refuse_scout(WITH(config, "{}"), "model_type");
    refuse_scout(WITH(drop_tensor, true), "model.embed_tokens.weight");
    scratch_write_safetensors("m.smoe", "{}", 0);
    smoe_err err;
    vault v;
    assert_int_equal(vault_open(&v, scratch_path("m.smoe"), &err), SMOE_FORMAT);
    expect_text(&err, "not a smoe vault");
}

#define EMBD_TYPE(shape)                                                                           \
    "{\"model.embed_tokens.weight\":{\"type\":\"q8_0\",\"shape\":" shape "}}"
#define GATE(type, shape)                                                                          \
    "{\"gate\":{\"type\":\"" type "\",\"shape\":" shape ",\"offset\":0}"
#define MATRIX(name, offset)                                                                       \
    ",\"" name "\":{\"type\":\"q8_0\",\"shape\":[32,32],\"offset\":" offset "}"

/* Rows come in whole panels of 16, and no shape makes that overflow. */
static void test_panels(void **state)
{
    (void)state;
    static const char *const shapes[] = {"[10,32]", "[9223372036854775807,32]",
                                         "[9223372036854775800,9223372036854775776]",
                                         "[542551296285575047,32]"};
    refuse_vault(WITH(record, GATE("q8_0", "[9223372036854775807,32]") "}"), "too large");
    refuse_vault(WITH(record, GATE("q4_K", "[9223372036854775793,256]") "}"), "too large");
    refuse_vault(WITH(record, GATE("bf16", "[9223372036854775807,2]") "}"), "too large");
    refuse_vault(WITH(record, GATE("q8_0", "[542551296285575047,32]") "}"), "too large");
    refuse_vault(WITH(record, GATE("q8_0", "[32,32]") MATRIX("up", "1024") MATRIX("down", "4096")
                                  "}"),
                 "overlaps");
    refuse_vault(WITH(record, GATE("q8_0", "[10,32]") "}"), "\"up\"");
    for (int i = 0; i < 4; i++) {
        char types[128];
        snprintf(types, sizeof types, EMBD_TYPE("%s"), shapes[i]);
        sketch s = good;
        s.types = types;
        s.embd_u8_bytes = 10 * 34; /* rows only, as version 1 had them */
        refuse_scout(&s, "panels of 16 rows");
        s.embd_u8_bytes = 16 * 34;
        refuse_scout(&s, i == 0 ? "is 10 x 32, but the config" : "panels of 16 rows");
    }
}

static void test_matrix_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "blk.0.exp.1",
        "blk.0.exp.1.",
        "blk.0.exp.1.gates",
        "blk.0.exp.01.up",
        "blk.0.exp.",
        "blk.0.exp.4096.down",
        "lk.0.exp.1.up",
        "blk.512.exp.0.gate",
        "blk.-1.exp.0.up",
    };
    const vault v = {.n_layer = 1};
    const matrix_layout *found, *parts[] = {&v.gate, &v.up, &v.down};
    static const char *const names[] = {"blk.0.exp.0.gate", "blk.7.exp.12.up",
                                        "blk.511.exp.4095.down"};
    uint32_t layer, expert;
    for (int i = 0; i < 3; i++) {
        assert_true(vault_parse_matrix_name(&v, slice_from(names[i]), &layer, &expert, &found));
        assert_ptr_equal(found, parts[i]);
    }
    assert_true(layer == 511 && expert == 4095);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(vault_parse_matrix_name(&v, slice_from(wrong[i]), &layer, &expert, &found));
    }
}

static void refuse_pair(const sketch *vault_sketch, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    vault v;
    scout s;
    must(vault_open(&v, write_vault(vault_sketch), &err), &err);
    must(scout_open(&s, write_scout(&good), &err), &err);
    assert_int_not_equal(vault_check_pair(&v, &s, &err), SMOE_OK);
    expect_text(&err, part);
    scout_close(&s);
    vault_close(&v);
}

static void test_pairs(void **state)
{
    (void)state;
    refuse_pair(WITH(lineage, "0123456789abcdef0123456789abcde0"), "different checkpoints");
    refuse_pair(WITH(names[2], "blk.1.exp.0"), "3 records");
    refuse_pair(WITH(names[1], "blk.1.exp.1"), "no record for expert 1 of layer 0");
    refuse_pair(WITH(names[1], NULL), "1 experts");
}

static void expect_found(const char *model)
{
    smoe_err err = {SMOE_OK, ""};
    char *vault_path, *scout_path;
    must(model_find(model, &vault_path, &scout_path, &err), &err);
    assert_string_equal(vault_path, scratch_path("a model.smoe"));
    assert_string_equal(scout_path, scratch_path("a model.scout.safetensors"));
    mem_free(vault_path);
    mem_free(scout_path);
}

static void expect_not_found(const char *model, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    char *vault_path, *scout_path;
    assert_int_not_equal(model_find(model, &vault_path, &scout_path, &err), SMOE_OK);
    assert_null(vault_path);
    assert_null(scout_path);
    expect_text(&err, part);
}

static void test_find(void **state)
{
    (void)state;
    unlink(scratch_path("m.smoe"));
    unlink(scratch_path("m.scout.safetensors"));
    scratch_write("a model.smoe", "", 0);
    expect_not_found(scratch_path("a model"), "does not");
    expect_not_found(scratch_path(""), "holds no model");
    scratch_write("a model.scout.safetensors", "", 0);
    expect_found(scratch_path("a model"));
    expect_found(scratch_path("a model.smoe"));
    expect_found(scratch_path("a model.scout.safetensors"));
    mkdir(scratch_path("a model"), 0777); /* the checkpoint directory beside its own files */
    expect_found(scratch_path("a model"));
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", scratch_path(""));
    dir[strlen(dir) - 1] = '\0';
    expect_found(dir);
    expect_not_found(scratch_path("b"), "there is no model");
    scratch_write("b.smoe", "", 0);
    scratch_write("b.scout.safetensors", "", 0);
    expect_not_found(dir, "more than one");
}

static smoe_status open_all(smoe_err *err)
{
    vault v = {.st = {.file = FILE_CLOSED}};
    scout s = {.st = {.file = FILE_CLOSED}};
    char *vault_path = NULL, *scout_path = NULL;
    smoe_status status;
    CHECK(model_find(scratch_path("m"), &vault_path, &scout_path, err));
    CHECK(vault_open(&v, vault_path, err));
    CHECK(scout_open(&s, scout_path, err));
    CHECK(vault_check_pair(&v, &s, err));
    CHECK(scout_check_tensor(&s, 0, err));
out:
    vault_close(&v);
    scout_close(&s);
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

/* Every allocation refused in turn: an error each time, never a crash or a leak. */
static void test_out_of_memory(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    smoe_status status = SMOE_NOMEM;
    write_vault(&good);
    write_scout(&good);
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        mem_fail_nth(nth);
        status = open_all(&err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        assert_true(nth < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_pair), cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_panels),
        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_matrix_names),
        cmocka_unit_test(test_find),      cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
