/* scout.c: the file of dense tensors and of the checkpoint's own text files.
 *
 * Opening parses the embedded config.json and checks that every dense tensor it calls for is there,
 * of the right shape and size, so that loading never meets a surprise. */
#include "formats/vault.h"

#include "base/mem.h"
#include "formats/checksum.h"
#include "formats/vault_meta.h"
#include "json/json_read.h"

enum { MAX_IDS = 65536, MAX_CONFIG_BYTES = 16 << 20, PIECE_BYTES = 1 << 20 };
#define MAX_FILE_BYTES (UINT64_C(1) << 30)

/* A block-typed tensor's shape stands in smoe.types; a plain one's in the file's own table. */
static smoe_status find_block_typed(const scout *s, const tensor_info *t, scout_tensor *out,
                                    smoe_err *err)
{
    const json_value *entry = jr_get(s->types, t->name.data), *shape = jr_get(entry, "shape");
    slice type_name;
    int64_t rows = 0, cols = 0;
    const dtype_info *info = jr_string(jr_get(entry, "type"), &type_name)
                                 ? dtype_from_name(type_name)
                                 : NULL;
    if (info == NULL || !info->is_quantized || jr_len(shape) != 2 ||
        !jr_int(jr_at(shape, 0), &rows) || !jr_int(jr_at(shape, 1), &cols) || rows <= 0 ||
        cols <= 0) {
        return err_set(err, SMOE_FORMAT,
                       "%s: metadata \"smoe.types\" does not give \"%.*s\" a block type "
                       "and a shape that this program knows",
                       s->st.file.path, NAME_ARG(t->name));
    }
    uint64_t n_bytes = dtype_matrix_bytes(info->type, (uint64_t)rows, (uint64_t)cols);
    if (n_bytes == 0 || n_bytes != t->n_bytes) {
        return err_set(err, SMOE_FORMAT,
                       "%s: \"%.*s\" has %llu bytes, which do not hold %lld x %lld "
                       "elements of %s in panels of %d rows",
                       s->st.file.path, NAME_ARG(t->name), (unsigned long long)t->n_bytes,
                       (long long)rows, (long long)cols, info->name, DTYPE_PANEL_ROWS);
    }
    *out = (scout_tensor){info->type, 2, (uint64_t)rows, (uint64_t)cols, t->offset, t->n_bytes};
    return SMOE_OK;
}

smoe_status scout_find(const scout *s, slice name, scout_tensor *out, smoe_err *err)
{
    const tensor_info *t = safetensors_find(&s->st, name);
    if (t == NULL) {
        return err_set(err, SMOE_FORMAT,
                       "%s has no tensor \"%.*s\"; make it again with smoe shatter",
                       s->st.file.path, NAME_ARG(name));
    }
    if (t->type == DTYPE_U8) {
        return find_block_typed(s, t, out, err);
    }
    const dtype_info *info = dtype_get(t->type);
    if (info == NULL || !info->is_float_weight || t->n_dims < 1 || t->n_dims > 2) {
        return err_set(err, SMOE_FORMAT,
                       "%s: tensor \"%.*s\" (%s, %u dimensions) is not a vector or "
                       "matrix of weights",
                       s->st.file.path, NAME_ARG(name), t->type_name.data, t->n_dims);
    }
    uint64_t rows = t->n_dims == 2 ? t->shape[0] : 1;
    *out = (scout_tensor){t->type, t->n_dims, rows, t->shape[t->n_dims - 1], t->offset, t->n_bytes};
    return SMOE_OK;
}

static smoe_status check_sum(const scout *s, const tensor_info *t, uint64_t found, smoe_err *err)
{
    uint64_t expected = checksum_from_list(s->checksums, (size_t)(t - s->st.tensors));
    if (found != expected) {
        return err_set(
            err, SMOE_FORMAT,
            "%s: \"%.*s\" at offset %llu is damaged: checksum %016llx expected, %016llx found; "
            "copy the file again or make it again with smoe shatter",
            s->st.file.path, NAME_ARG(t->name), (unsigned long long)t->offset,
            (unsigned long long)expected, (unsigned long long)found);
    }
    return SMOE_OK;
}

static smoe_status read_checked(const scout *s, const tensor_info *t, void *data, smoe_err *err)
{
    checksum sum;
    TRY(file_read_at(&s->st.file, t->offset, data, t->n_bytes, err));
    checksum_init(&sum);
    checksum_add(&sum, data, (size_t)t->n_bytes);
    return check_sum(s, t, checksum_end(&sum), err);
}

smoe_status scout_read_tensor(const scout *s, slice name, void *data, smoe_err *err)
{
    scout_tensor found;
    TRY(scout_find(s, name, &found, err));
    return read_checked(s, safetensors_find(&s->st, name), data, err);
}

smoe_status scout_check_tensor(const scout *s, size_t i, smoe_err *err)
{
    const tensor_info *t = &s->st.tensors[i];
    smoe_status status = SMOE_OK;
    checksum sum;
    char *piece = mem_alloc(PIECE_BYTES);
    if (piece == NULL) {
        return err_nomem(err, "a read buffer", PIECE_BYTES);
    }
    checksum_init(&sum);
    for (uint64_t at = 0; at < t->n_bytes; at += PIECE_BYTES) {
        uint64_t n = t->n_bytes - at < PIECE_BYTES ? t->n_bytes - at : PIECE_BYTES;
        CHECK(file_read_at(&s->st.file, t->offset + at, piece, n, err));
        checksum_add(&sum, piece, (size_t)n);
    }
    status = check_sum(s, t, checksum_end(&sum), err);
out:
    mem_free(piece);
    return status;
}

static const tensor_info *find_file(const scout *s, const char *name)
{
    char key[128] = "file/";
    size_t n = strlen(name);
    if (n >= sizeof key - 5) {
        return NULL;
    }
    memcpy(key + 5, name, n + 1);
    const tensor_info *t = safetensors_find(&s->st, slice_from(key));
    return t != NULL && t->type == DTYPE_U8 ? t : NULL;
}

bool scout_has_file(const scout *s, const char *name)
{
    return find_file(s, name) != NULL;
}

uint64_t scout_file_checksum(const scout *s, const char *name)
{
    const tensor_info *t = find_file(s, name);
    return t != NULL ? checksum_from_list(s->checksums, (size_t)(t - s->st.tensors)) : 0;
}

smoe_status scout_read_file(const scout *s, const char *name, buf *out, smoe_err *err)
{
    const tensor_info *t = find_file(s, name);
    if (t == NULL) {
        return err_set(err, SMOE_FORMAT,
                       "%s does not hold the checkpoint's %s; make it again with smoe "
                       "shatter",
                       s->st.file.path, name);
    }
    if (t->n_bytes > MAX_FILE_BYTES) {
        return err_set(err, SMOE_FORMAT,
                       "%s: the embedded %s has %llu bytes; at most %llu are accepted",
                       s->st.file.path, name, (unsigned long long)t->n_bytes,
                       (unsigned long long)MAX_FILE_BYTES);
    }
    TRY(buf_reserve(out, (size_t)t->n_bytes, err));
    TRY(read_checked(s, t, out->data + out->len, err));
    out->len += (size_t)t->n_bytes;
    out->data[out->len] = '\0';
    return SMOE_OK;
}

static smoe_status parse_ids(scout *s, const char *key, int32_t **ids, size_t *n_ids, smoe_err *err)
{
    slice text;
    json_value *array = NULL;
    smoe_status status;
    CHECK(vault_meta_need(&s->st, key, &text, err));
    CHECK(jr_parse(text, key, &array, err));
    if (jr_kind(array) != JSON_KIND_ARRAY || jr_len(array) > MAX_IDS) {
        status = err_set(err, SMOE_FORMAT, "%s: metadata \"%s\" is not an array of token ids",
                         s->st.file.path, key);
        goto out;
    }
    *ids = mem_calloc(jr_len(array), sizeof **ids);
    if (*ids == NULL) {
        status = err_nomem(err, "a list of token ids", jr_len(array) * sizeof **ids);
        goto out;
    }
    for (size_t i = 0; i < jr_len(array); i++) {
        int64_t id;
        if (!jr_int(jr_at(array, i), &id) || id < 0 || id >= s->config.n_vocab) {
            status = err_set(err, SMOE_FORMAT,
                             "%s: metadata \"%s\" holds something that is not a token "
                             "id below %u",
                             s->st.file.path, key, s->config.n_vocab);
            goto out;
        }
        (*ids)[(*n_ids)++] = (int32_t)id;
    }
out:
    jr_free(array);
    return status;
}

static smoe_status parse_config(scout *s, smoe_err *err)
{
    buf text;
    smoe_status status;
    buf_init(&text, MAX_CONFIG_BYTES);
    CHECK(scout_read_file(s, "config.json", &text, err));
    CHECK(
        model_config_parse(buf_slice(&text), "the config.json inside the scout", &s->config, err));
out:
    buf_fini(&text);
    return status;
}

static smoe_status check_tensors(const scout *s, smoe_err *err)
{
    dense_tensor want;
    scout_tensor found;
    for (size_t i = 0; model_config_dense_tensor(&s->config, i, &want); i++) {
        TRY(scout_find(s, slice_from(want.name), &found, err));
        if (found.n_dims != want.n_dims || found.rows != want.rows || found.cols != want.cols) {
            return err_set(
                err, SMOE_FORMAT,
                "%s: \"%s\" is %llu x %llu, but the config calls for %llu x %llu; make the "
                "file again with smoe shatter",
                s->st.file.path, want.name, (unsigned long long)found.rows,
                (unsigned long long)found.cols, (unsigned long long)want.rows,
                (unsigned long long)want.cols);
        }
    }
    return SMOE_OK;
}

smoe_status scout_open(scout *s, const char *path, smoe_err *err)
{
    smoe_status status;
    slice types;
    *s = (scout){0};
    CHECK(safetensors_open(&s->st, path, err));
    CHECK(vault_meta_check(&s->st, "scout", s->lineage, err));
    CHECK(vault_meta_need(&s->st, "smoe.checksums", &s->checksums, err));
    if (!checksum_list_ok(s->checksums, s->st.n_tensors)) {
        status = err_set(err, SMOE_FORMAT,
                         "%s: metadata \"smoe.checksums\" does not hold one checksum "
                         "for each of its %zu tensors",
                         path, s->st.n_tensors);
        goto out;
    }
    CHECK(vault_meta_need(&s->st, "smoe.types", &types, err));
    CHECK(jr_parse(types, "metadata \"smoe.types\"", &s->types, err));
    CHECK(parse_config(s, err));
    CHECK(check_tensors(s, err));
    CHECK(parse_ids(s, "smoe.eos_ids", &s->eos_ids, &s->n_eos_ids, err));
    CHECK(parse_ids(s, "smoe.penalty_exempt_ids", &s->penalty_exempt_ids, &s->n_penalty_exempt_ids,
                    err));
out:
    if (status != SMOE_OK) {
        scout_close(s);
    }
    return status;
}

void scout_close(scout *s)
{
    safetensors_close(&s->st);
    jr_free(s->types);
    mem_free(s->eos_ids);
    mem_free(s->penalty_exempt_ids);
    *s = (scout){.st = {.file = FILE_CLOSED}};
}
