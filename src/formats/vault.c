/* vault.c: the file of routed experts: opening (every offset, size and name checked), reading
 * records. After vault_open, a record is found by arithmetic and read by one pread. */
#include "formats/vault.h"

#include <stdio.h>

#include "base/mem.h"
#include "formats/checksum.h"
#include "formats/vault_meta.h"
#include "json/json_read.h"

#define MAX_RECORD_BYTES (UINT64_C(1) << 34)

static smoe_status bad_layout(const vault *v, const char *matrix, const char *what, smoe_err *err)
{
    return err_set(err, SMOE_FORMAT,
                   "%s: \"%s\" in metadata \"smoe.record\" %s; make the file again "
                   "with smoe shatter",
                   v->st.file.path, matrix, what);
}

static uint64_t matrix_bytes(const matrix_layout *m)
{
    return dtype_matrix_bytes(m->type, m->rows, m->cols);
}

static smoe_status parse_matrix(const vault *v, const json_value *record, const char *name,
                                matrix_layout *m, smoe_err *err)
{
    const json_value *o = jr_get(record, name);
    slice type_name;
    int64_t rows, cols, offset;
    if (!jr_string(jr_get(o, "type"), &type_name) || jr_len(jr_get(o, "shape")) != 2 ||
        !jr_int(jr_at(jr_get(o, "shape"), 0), &rows) ||
        !jr_int(jr_at(jr_get(o, "shape"), 1), &cols) || !jr_int(jr_get(o, "offset"), &offset)) {
        return bad_layout(v, name, "lacks type, shape or offset", err);
    }
    const dtype_info *info = dtype_from_name(type_name);
    if (info == NULL || !(info->is_float_weight || info->is_quantized)) {
        return bad_layout(v, name, "has a type that this program does not know", err);
    }
    if (rows <= 0 || cols <= 0 || offset < 0) {
        return bad_layout(v, name, "has a shape or an offset that is not positive", err);
    }
    *m = (matrix_layout){info->type, (uint64_t)rows, (uint64_t)cols, (uint64_t)offset};
    if (dtype_row_bytes(m->type, m->cols) == 0) {
        return bad_layout(v, name, "has rows that do not divide into blocks of its type", err);
    }
    if (m->offset % VAULT_MATRIX_ALIGN != 0 || m->offset > MAX_RECORD_BYTES ||
        matrix_bytes(m) == 0 || matrix_bytes(m) > MAX_RECORD_BYTES) {
        return bad_layout(v, name, "is misaligned or too large", err);
    }
    return SMOE_OK;
}

static smoe_status parse_record_layout(vault *v, smoe_err *err)
{
    slice text;
    json_value *record = NULL;
    smoe_status status;
    CHECK(vault_meta_need(&v->st, "smoe.record", &text, err));
    CHECK(jr_parse(text, "metadata \"smoe.record\"", &record, err));
    CHECK(parse_matrix(v, record, "gate", &v->gate, err));
    CHECK(parse_matrix(v, record, "up", &v->up, err));
    CHECK(parse_matrix(v, record, "down", &v->down, err));
    if (v->up.rows != v->gate.rows || v->up.cols != v->gate.cols || v->down.rows != v->gate.cols ||
        v->down.cols != v->gate.rows) {
        status = bad_layout(v, "gate", "and \"up\", \"down\" have shapes that do not fit together",
                            err);
    } else if (v->gate.offset + matrix_bytes(&v->gate) > v->up.offset ||
               v->up.offset + matrix_bytes(&v->up) > v->down.offset) {
        status = bad_layout(v, "gate", "overlaps its neighbours", err);
    }
out:
    jr_free(record);
    return status;
}

/* Digits without a leading zero, below limit; advances *s. */
static bool take_number(slice *s, uint32_t limit, uint32_t *out)
{
    size_t n = 0;
    *out = 0;
    while (n < s->len && n < 6 && s->data[n] >= '0' && s->data[n] <= '9') {
        *out = *out * 10 + (uint32_t)(s->data[n++] - '0');
    }
    bool ok = n > 0 && (n == 1 || s->data[0] != '0') && *out < limit;
    s->data += n;
    s->len -= n;
    return ok;
}

static bool take_text(slice *s, const char *text)
{
    slice t = slice_from(text);
    if (!slice_starts(*s, t)) {
        return false;
    }
    s->data += t.len;
    s->len -= t.len;
    return true;
}

static bool take_record_name(slice *name, uint32_t *layer, uint32_t *expert)
{
    return take_text(name, "blk.") && take_number(name, MODEL_MAX_LAYERS, layer) &&
           take_text(name, ".exp.") && take_number(name, MODEL_MAX_EXPERTS, expert);
}

static bool parse_record_name(slice name, uint32_t *layer, uint32_t *expert)
{
    return take_record_name(&name, layer, expert) && name.len == 0;
}

bool vault_parse_matrix_name(const vault *v, slice name, uint32_t *layer, uint32_t *expert,
                             const matrix_layout **layout)
{
    *layout = NULL;
    if (take_record_name(&name, layer, expert)) {
        *layout = slice_is(name, ".gate")   ? &v->gate
                  : slice_is(name, ".up")   ? &v->up
                  : slice_is(name, ".down") ? &v->down
                                            : NULL;
    }
    return *layout != NULL;
}

static smoe_status check_record(const vault *v, const tensor_info *t, smoe_err *err)
{
    const char *path = v->st.file.path;
    if (t->type != DTYPE_U8 || t->n_bytes != v->record_bytes) {
        return err_set(err, SMOE_FORMAT,
                       "%s: record \"%.*s\" has %llu bytes of %s; every record of this "
                       "file has %llu bytes of U8",
                       path, NAME_ARG(t->name), (unsigned long long)t->n_bytes, t->type_name.data,
                       (unsigned long long)v->record_bytes);
    }
    if (t->offset % VAULT_ALIGN != 0) {
        return err_set(err, SMOE_FORMAT,
                       "%s: record \"%.*s\" starts at byte %llu, which is not a "
                       "multiple of %d; make the file again with smoe shatter",
                       path, NAME_ARG(t->name), (unsigned long long)t->offset, VAULT_ALIGN);
    }
    return SMOE_OK;
}

static smoe_status check_record_size(vault *v, smoe_err *err)
{
    const char *path = v->st.file.path;
    if (v->st.n_tensors == 0) {
        return err_set(err, SMOE_FORMAT, "%s holds no records; make it again with smoe shatter",
                       path);
    }
    v->n_records = v->st.n_tensors;
    v->record_bytes = v->st.tensors[0].n_bytes;
    uint64_t needed = v->down.offset + matrix_bytes(&v->down);
    if (v->record_bytes < needed || v->record_bytes % VAULT_ALIGN != 0 ||
        v->record_bytes > MAX_RECORD_BYTES) {
        return err_set(err, SMOE_FORMAT,
                       "%s: a record has %llu bytes; it must be a multiple of %d and "
                       "at least the %llu of its layout",
                       path, (unsigned long long)v->record_bytes, VAULT_ALIGN,
                       (unsigned long long)needed);
    }
    return SMOE_OK;
}

/* Names -> tables. Two passes: the first finds how many layers and experts there are. */
static smoe_status index_records(vault *v, smoe_err *err)
{
    slice checksums;
    uint32_t layer, expert;
    int64_t last = -1;
    TRY(check_record_size(v, err));
    TRY(vault_meta_need(&v->st, "smoe.checksums", &checksums, err));
    if (!checksum_list_ok(checksums, v->n_records)) {
        return err_set(err, SMOE_FORMAT,
                       "%s: metadata \"smoe.checksums\" does not hold one checksum for "
                       "each of its %zu records",
                       v->st.file.path, v->n_records);
    }
    for (size_t i = 0; i < v->n_records; i++) {
        const tensor_info *t = &v->st.tensors[i];
        if (!parse_record_name(t->name, &layer, &expert)) {
            return err_set(err, SMOE_FORMAT,
                           "%s: \"%.*s\" is not the name of a record "
                           "(blk.LAYER.exp.EXPERT)",
                           v->st.file.path, NAME_ARG(t->name));
        }
        int64_t order = (int64_t)layer * MODEL_MAX_EXPERTS + expert;
        if (order <= last) {
            return err_set(err, SMOE_FORMAT,
                           "%s: record \"%.*s\" is out of order; records lie by layer, "
                           "then expert",
                           v->st.file.path, NAME_ARG(t->name));
        }
        last = order;
        TRY(check_record(v, t, err));
        v->n_layer = layer + 1;
        v->n_expert = expert + 1 > v->n_expert ? expert + 1 : v->n_expert;
    }
    size_t n = (size_t)v->n_layer * v->n_expert;
    v->record_offset = mem_calloc(n, sizeof *v->record_offset);
    v->record_checksum = mem_calloc(n, sizeof *v->record_checksum);
    if (v->record_offset == NULL || v->record_checksum == NULL) {
        return err_nomem(err, "the table of records", n * 2 * sizeof(uint64_t));
    }
    for (size_t i = 0; i < v->n_records; i++) {
        parse_record_name(v->st.tensors[i].name, &layer, &expert);
        size_t at = (size_t)layer * v->n_expert + expert;
        v->record_offset[at] = v->st.tensors[i].offset;
        v->record_checksum[at] = checksum_from_list(checksums, i);
    }
    return SMOE_OK;
}

smoe_status vault_open(vault *v, const char *path, smoe_err *err)
{
    smoe_status status;
    *v = (vault){0};
    CHECK(safetensors_open(&v->st, path, err));
    CHECK(vault_meta_check(&v->st, "vault", v->lineage, err));
    CHECK(parse_record_layout(v, err));
    CHECK(index_records(v, err));
out:
    if (status != SMOE_OK) {
        vault_close(v);
    }
    return status;
}

void vault_close(vault *v)
{
    safetensors_close(&v->st);
    mem_free(v->record_offset);
    mem_free(v->record_checksum);
    *v = (vault){.st = {.file = FILE_CLOSED}};
}

/* The record's index in the tables, or an error that names what is missing. */
static smoe_status find_record(const vault *v, uint32_t layer, uint32_t expert, size_t *at,
                               smoe_err *err)
{
    *at = (size_t)layer * v->n_expert + expert;
    if (layer >= v->n_layer || expert >= v->n_expert || v->record_offset[*at] == 0) {
        return err_set(err, SMOE_FORMAT,
                       "%s has no record for expert %u of layer %u; make the file again "
                       "with smoe shatter",
                       v->st.file.path, expert, layer);
    }
    return SMOE_OK;
}

static smoe_status check_shapes(const vault *v, const scout *s, smoe_err *err)
{
    const model_config *c = &s->config;
    if (v->gate.rows != c->n_ff_exp || v->gate.cols != c->n_embd || v->n_expert != c->n_expert) {
        return err_set(
            err, SMOE_MISMATCH,
            "%s holds %u experts of %llu x %llu, but %s describes %u experts of %u x %u; make "
            "both again with smoe shatter",
            v->st.file.path, v->n_expert, (unsigned long long)v->gate.rows,
            (unsigned long long)v->gate.cols, s->st.file.path, c->n_expert, c->n_ff_exp, c->n_embd);
    }
    return SMOE_OK;
}

smoe_status vault_check_pair(const vault *v, const scout *s, smoe_err *err)
{
    size_t at;
    if (strcmp(v->lineage, s->lineage) != 0) {
        return err_set(
            err, SMOE_MISMATCH,
            "%s (lineage %s) and %s (lineage %s) were made from different checkpoints; use the "
            "two files of one smoe shatter",
            v->st.file.path, v->lineage, s->st.file.path, s->lineage);
    }
    TRY(check_shapes(v, s, err));
    for (uint32_t layer = 0; layer < s->config.n_layer; layer++) {
        for (uint32_t expert = 0; s->config.is_sparse[layer] && expert < v->n_expert; expert++) {
            TRY(find_record(v, layer, expert, &at, err));
        }
    }
    size_t n_expected = (size_t)s->config.n_layer_sparse * s->config.n_expert;
    if (v->n_records != n_expected) {
        return err_set(err, SMOE_MISMATCH,
                       "%s holds %zu records, but %s describes %zu; make both again "
                       "with smoe shatter",
                       v->st.file.path, v->n_records, s->st.file.path, n_expected);
    }
    return SMOE_OK;
}

smoe_status vault_check_record(const vault *v, uint32_t layer, uint32_t expert, const void *data,
                               smoe_err *err)
{
    size_t at;
    TRY(find_record(v, layer, expert, &at, err));
    uint64_t found = hash_bytes(data, (size_t)v->record_bytes);
    if (found != v->record_checksum[at]) {
        return err_set(
            err, SMOE_FORMAT,
            "%s: record blk.%u.exp.%u at offset %llu is damaged: checksum %016llx expected, "
            "%016llx found; copy the file again or make it again with smoe shatter",
            v->st.file.path, layer, expert, (unsigned long long)v->record_offset[at],
            (unsigned long long)v->record_checksum[at], (unsigned long long)found);
    }
    return SMOE_OK;
}

smoe_status vault_read_record(const vault *v, uint32_t layer, uint32_t expert, void *data,
                              smoe_err *err)
{
    size_t at;
    TRY(find_record(v, layer, expert, &at, err));
    TRY(file_read_at(&v->st.file, v->record_offset[at], data, v->record_bytes, err));
    return vault_check_record(v, layer, expert, data, err);
}
