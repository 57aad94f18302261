/* safetensors.c: reads and checks the header of one safetensors file.
 *
 * The header is untrusted: every number is bounded before it is used, every byte range is inside
 * the file, and no two ranges overlap. What passes here can be read by offset without further
 * checks. */
#include "formats/safetensors.h"

#include <stdlib.h>

#include "base/mem.h"
#include "json/json_read.h"

#define MAX_HEADER_BYTES (UINT64_C(256) << 20)

/* Bytes per element of the published dtypes; 0 = unknown to us, so the size is not checked. */
static uint64_t width_of(slice type_name)
{
    static const struct {
        const char *name;
        uint64_t width;
    } widths[] = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
        {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
        {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},     {"C64", 8},
    };
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        if (slice_is(type_name, widths[i].name)) {
            return widths[i].width;
        }
    }
    return 0;
}

static smoe_status bad_tensor(const safetensors *st, slice name, const char *what, smoe_err *err)
{
    return err_set(err, SMOE_FORMAT,
                   "%s: tensor \"%.*s\": %s; the file is damaged or not safetensors", st->file.path,
                   NAME_ARG(name), what);
}

/* Also computes what the shape and the type say the size must be (0 and false when unknown). */
static smoe_status read_shape(const safetensors *st, const json_value *v, tensor_info *t,
                              uint64_t *n_elems, smoe_err *err)
{
    if (v == NULL || jr_kind(v) != JSON_KIND_ARRAY) {
        return bad_tensor(st, t->name, "\"shape\" is not an array", err);
    }
    if (jr_len(v) > TENSOR_MAX_DIMS) {
        return bad_tensor(st, t->name, "\"shape\" has more than 8 dimensions", err);
    }
    t->n_dims = (uint32_t)jr_len(v);
    *n_elems = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        int64_t dim;
        if (!jr_int(jr_at(v, i), &dim) || dim < 0) {
            return bad_tensor(st, t->name, "\"shape\" holds something that is not a size", err);
        }
        t->shape[i] = (uint64_t)dim;
        if (__builtin_mul_overflow(*n_elems, t->shape[i], n_elems)) {
            return bad_tensor(st, t->name, "\"shape\" is larger than 64 bits can count", err);
        }
    }
    return SMOE_OK;
}

static smoe_status read_offsets(const safetensors *st, const json_value *v, tensor_info *t,
                                smoe_err *err)
{
    int64_t begin, end;
    if (jr_len(v) != 2 || !jr_int(jr_at(v, 0), &begin) || !jr_int(jr_at(v, 1), &end)) {
        return bad_tensor(st, t->name, "\"data_offsets\" is not a pair of integers", err);
    }
    uint64_t data_bytes = st->file.size_bytes - st->data_offset;
    if (begin < 0 || end < begin || (uint64_t)end > data_bytes) {
        return err_set(
            err, SMOE_FORMAT,
            "%s: tensor \"%.*s\" is said to lie at bytes %lld..%lld of the data, which has "
            "%llu bytes; the file is truncated or damaged: fetch it again",
            st->file.path, NAME_ARG(t->name), (long long)begin, (long long)end,
            (unsigned long long)data_bytes);
    }
    t->offset = st->data_offset + (uint64_t)begin;
    t->n_bytes = (uint64_t)(end - begin);
    return SMOE_OK;
}

static smoe_status read_tensor(safetensors *st, slice name, const json_value *v, tensor_info *t,
                               smoe_err *err)
{
    t->name = arena_slice(&st->arena, name);
    slice type_name;
    if (t->name.data == NULL) {
        return err_nomem(err, "a tensor name", name.len);
    }
    if (!jr_string(jr_get(v, "dtype"), &type_name)) {
        return bad_tensor(st, name, "\"dtype\" is missing or not a string", err);
    }
    t->type_name = arena_slice(&st->arena, type_name);
    if (t->type_name.data == NULL) {
        return err_nomem(err, "a tensor type", type_name.len);
    }
    const dtype_info *info = dtype_from_safetensors(type_name);
    t->type = info == NULL ? DTYPE_OTHER : info->type;
    uint64_t n_elems = 0, width = width_of(type_name), n_bytes;
    TRY(read_shape(st, jr_get(v, "shape"), t, &n_elems, err));
    TRY(read_offsets(st, jr_get(v, "data_offsets"), t, err));
    if (width != 0 && (__builtin_mul_overflow(n_elems, width, &n_bytes) || n_bytes != t->n_bytes)) {
        return err_set(
            err, SMOE_FORMAT,
            "%s: tensor \"%.*s\" has %llu bytes, but its shape holds %llu elements of %s "
            "(%llu bytes each); the file is damaged: fetch it again",
            st->file.path, NAME_ARG(name), (unsigned long long)t->n_bytes,
            (unsigned long long)n_elems, t->type_name.data, (unsigned long long)width);
    }
    return SMOE_OK;
}

static smoe_status read_meta(safetensors *st, const json_value *v, smoe_err *err)
{
    if (jr_kind(v) != JSON_KIND_OBJECT) {
        return err_set(err, SMOE_FORMAT, "%s: \"__metadata__\" is %s, not an object", st->file.path,
                       jr_kind_name(v));
    }
    size_t n = jr_len(v);
    st->meta = arena_array(&st->arena, n * 2, sizeof *st->meta);
    if (st->meta == NULL) {
        return err_nomem(err, "metadata", n * 2 * sizeof *st->meta);
    }
    for (void *it = jr_iter(v); it != NULL; it = jr_next(v, it)) {
        slice value;
        if (!jr_string(jr_iter_value(it), &value)) {
            return err_set(err, SMOE_FORMAT, "%s: metadata \"%.*s\" is %s, not a string",
                           st->file.path, NAME_ARG(jr_iter_key(it)),
                           jr_kind_name(jr_iter_value(it)));
        }
        slice *pair = &st->meta[st->n_meta * 2];
        pair[0] = arena_slice(&st->arena, jr_iter_key(it));
        pair[1] = arena_slice(&st->arena, value);
        if (pair[0].data == NULL || pair[1].data == NULL) {
            return err_nomem(err, "metadata", value.len);
        }
        st->n_meta++;
    }
    return SMOE_OK;
}

static int by_offset(const void *a, const void *b)
{
    const tensor_info *x = a, *y = b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Sorts the table, refuses overlaps and builds the index of names. */
static smoe_status index_tensors(safetensors *st, smoe_err *err)
{
    if (st->n_tensors != 0) {
        qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_offset);
    }
    if (!map_reserve(&st->by_name, st->n_tensors)) {
        return err_nomem(err, "the index of tensors", st->n_tensors * sizeof(map_entry));
    }
    for (size_t i = 0; i < st->n_tensors; i++) {
        const tensor_info *t = &st->tensors[i];
        if (i > 0 && t->offset < t[-1].offset + t[-1].n_bytes) {
            return err_set(
                err, SMOE_FORMAT,
                "%s: tensors \"%.*s\" and \"%.*s\" overlap; the file is damaged: fetch it "
                "again",
                st->file.path, NAME_ARG(t[-1].name), NAME_ARG(t->name));
        }
        if (!map_put(&st->by_name, t->name, i)) {
            return err_nomem(err, "the index of tensors", sizeof(map_entry));
        }
    }
    return SMOE_OK;
}

static smoe_status read_table(safetensors *st, const json_value *root, smoe_err *err)
{
    if (jr_kind(root) != JSON_KIND_OBJECT) {
        return err_set(err, SMOE_FORMAT, "%s: the safetensors header is %s, not an object",
                       st->file.path, jr_kind_name(root));
    }
    st->tensors = arena_array(&st->arena, jr_len(root), sizeof *st->tensors);
    if (st->tensors == NULL) {
        return err_nomem(err, "the tensor table", jr_len(root) * sizeof *st->tensors);
    }
    for (void *it = jr_iter(root); it != NULL; it = jr_next(root, it)) {
        if (slice_is(jr_iter_key(it), "__metadata__")) {
            TRY(read_meta(st, jr_iter_value(it), err));
        } else {
            TRY(read_tensor(st, jr_iter_key(it), jr_iter_value(it), &st->tensors[st->n_tensors],
                            err));
            st->n_tensors++;
        }
    }
    return index_tensors(st, err);
}

/* Reads the length prefix; leaves it in *n_bytes, checked against the file. */
static smoe_status read_length(safetensors *st, uint64_t *n_bytes, smoe_err *err)
{
    unsigned char raw[8];
    if (st->file.size_bytes < sizeof raw) {
        return err_set(err, SMOE_FORMAT,
                       "%s has %llu bytes; a safetensors file has at least 8: it is "
                       "truncated or something else",
                       st->file.path, (unsigned long long)st->file.size_bytes);
    }
    TRY(file_read_at(&st->file, 0, raw, sizeof raw, err));
    if (memcmp(raw, "version ", sizeof raw) == 0) {
        return err_set(err, SMOE_FORMAT,
                       "%s is a Git LFS pointer, not the file itself; fetch the real "
                       "one (git lfs pull)",
                       st->file.path);
    }
    *n_bytes = 0;
    for (int i = 7; i >= 0; i--) {
        *n_bytes = *n_bytes << 8 | raw[i];
    }
    if (*n_bytes > st->file.size_bytes - sizeof raw) {
        return err_set(err, SMOE_FORMAT,
                       "%s says that its header has %llu bytes, but the whole file has %llu; it is "
                       "truncated or not safetensors: fetch it again",
                       st->file.path, (unsigned long long)*n_bytes,
                       (unsigned long long)st->file.size_bytes);
    }
    if (*n_bytes > MAX_HEADER_BYTES) {
        return err_set(err, SMOE_FORMAT,
                       "%s says that its header has %llu bytes; at most %llu are "
                       "accepted",
                       st->file.path, (unsigned long long)*n_bytes,
                       (unsigned long long)MAX_HEADER_BYTES);
    }
    return SMOE_OK;
}

smoe_status safetensors_open(safetensors *st, const char *path, smoe_err *err)
{
    smoe_status status;
    char *text = NULL;
    json_value *root = NULL;
    uint64_t n_bytes = 0;
    *st = (safetensors){.file = FILE_CLOSED};
    arena_init(&st->arena);
    map_init(&st->by_name);
    CHECK(file_open(&st->file, path, err));
    CHECK(read_length(st, &n_bytes, err));
    st->data_offset = 8 + n_bytes;
    text = mem_alloc((size_t)n_bytes);
    if (text == NULL) {
        status = err_nomem(err, "a safetensors header", n_bytes);
        goto out;
    }
    CHECK(file_read_at(&st->file, 8, text, n_bytes, err));
    CHECK(jr_parse(slice_of(text, (size_t)n_bytes), path, &root, err));
    CHECK(read_table(st, root, err));
out:
    jr_free(root);
    mem_free(text);
    if (status != SMOE_OK) {
        safetensors_close(st);
    }
    return status;
}

void safetensors_close(safetensors *st)
{
    file_close(&st->file);
    map_fini(&st->by_name);
    arena_fini(&st->arena);
    *st = (safetensors){.file = FILE_CLOSED};
}

const tensor_info *safetensors_find(const safetensors *st, slice name)
{
    uint64_t i;
    return map_get(&st->by_name, name, &i) ? &st->tensors[i] : NULL;
}

bool safetensors_meta(const safetensors *st, const char *key, slice *value)
{
    for (size_t i = 0; i < st->n_meta; i++) {
        if (slice_is(st->meta[i * 2], key)) {
            *value = st->meta[i * 2 + 1];
            return true;
        }
    }
    return false;
}
