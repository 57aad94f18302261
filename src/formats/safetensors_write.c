/* safetensors_write.c: see safetensors_write.h. */
#include "formats/safetensors_write.h"

#include <unistd.h>

#include "base/mem.h"
#include "json/json_write.h"

#define MAX_HEADER_BYTES (UINT64_C(100) << 20) /* what the published readers accept */

void safetensors_writer_init(safetensors_writer *w)
{
    *w = (safetensors_writer){.out = FILE_WRITER_CLOSED};
    arena_init(&w->arena);
}

void safetensors_writer_fini(safetensors_writer *w)
{
    file_abort(&w->out);
    mem_free(w->tensors);
    mem_free(w->meta);
    arena_fini(&w->arena);
    safetensors_writer_init(w);
}

smoe_status safetensors_writer_meta(safetensors_writer *w, const char *key, slice value,
                                    smoe_err *err)
{
    size_t i = 0;
    slice copy = arena_slice(&w->arena, value);
    while (i < w->n_meta && !slice_is(w->meta[i * 2], key)) {
        i++;
    }
    if (i == w->cap_meta) {
        size_t cap = w->cap_meta * 2 + 16;
        slice *grown = mem_realloc(w->meta, cap * 2 * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err, "metadata", cap * 2 * sizeof *grown);
        }
        w->meta = grown;
        w->cap_meta = cap;
    }
    slice key_copy = i < w->n_meta ? w->meta[i * 2] : arena_slice(&w->arena, slice_from(key));
    if (copy.data == NULL || key_copy.data == NULL) {
        return err_nomem(err, "metadata", value.len);
    }
    w->meta[i * 2] = key_copy;
    w->meta[i * 2 + 1] = copy;
    w->n_meta += i == w->n_meta;
    return SMOE_OK;
}

smoe_status safetensors_writer_add(safetensors_writer *w, slice name, const char *type_name,
                                   const uint64_t *shape, uint32_t n_dims, uint64_t n_bytes,
                                   smoe_err *err)
{
    if (w->n_tensors == w->cap_tensors) {
        size_t cap = w->cap_tensors * 2 + 64;
        tensor_info *grown = mem_realloc(w->tensors, cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err, "the tensor table", cap * sizeof *grown);
        }
        w->tensors = grown;
        w->cap_tensors = cap;
    }
    tensor_info t = {.name = arena_slice(&w->arena, name),
                     .type_name = arena_slice(&w->arena, slice_from(type_name)),
                     .n_dims = n_dims,
                     .offset = w->data_bytes,
                     .n_bytes = n_bytes};
    if (t.name.data == NULL || t.type_name.data == NULL) {
        return err_nomem(err, "a tensor name", name.len);
    }
    if (n_dims > TENSOR_MAX_DIMS ||
        __builtin_add_overflow(w->data_bytes, n_bytes, &w->data_bytes)) {
        return err_set(err, SMOE_INTERNAL, "tensor \"%.*s\" has too many dimensions or bytes",
                       NAME_ARG(name));
    }
    memcpy(t.shape, shape, n_dims * sizeof *shape);
    w->tensors[w->n_tensors++] = t;
    return SMOE_OK;
}

static smoe_status render(const safetensors_writer *w, buf *out, smoe_err *err)
{
    json_writer j;
    jw_init(&j, out);
    jw_begin_object(&j);
    jw_key(&j, "__metadata__");
    jw_begin_object(&j);
    for (size_t i = 0; i < w->n_meta; i++) {
        jw_key_slice(&j, w->meta[i * 2]);
        jw_string(&j, w->meta[i * 2 + 1]);
    }
    jw_end_object(&j);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const tensor_info *t = &w->tensors[i];
        jw_key_slice(&j, t->name);
        jw_begin_object(&j);
        jw_key(&j, "dtype");
        jw_string(&j, t->type_name);
        jw_key(&j, "shape");
        jw_begin_array(&j);
        for (uint32_t d = 0; d < t->n_dims; d++) {
            jw_uint(&j, t->shape[d]);
        }
        jw_end_array(&j);
        jw_key(&j, "data_offsets");
        jw_begin_array(&j);
        jw_uint(&j, t->offset);
        jw_uint(&j, t->offset + t->n_bytes);
        jw_end_array(&j);
        jw_end_object(&j);
    }
    jw_end_object(&j);
    return jw_finish(&j, err);
}

/* Header bytes as they stand in the file: length, JSON, spaces up to w->header_bytes (set here when
 * it is still 0, to the next multiple of align). */
static smoe_status make_header(safetensors_writer *w, uint64_t align, buf *out, smoe_err *err)
{
    TRY(buf_append(out, "\0\0\0\0\0\0\0\0", 8, err));
    TRY(render(w, out, err));
    if (w->header_bytes == 0) {
        w->header_bytes = (out->len + align - 1) / align * align;
    }
    if (out->len > w->header_bytes) {
        return err_set(err, SMOE_INTERNAL, "the header of %s grew while its data was written",
                       w->out.path);
    }
    while (out->len < w->header_bytes) {
        TRY(buf_putc(out, ' ', err));
    }
    for (int i = 0; i < 8; i++) {
        out->data[i] = (char)((w->header_bytes - 8) >> (8 * i) & 255);
    }
    return SMOE_OK;
}

smoe_status safetensors_writer_begin(safetensors_writer *w, const char *path, uint64_t align,
                                     smoe_err *err)
{
    buf header;
    smoe_status status;
    buf_init(&header, MAX_HEADER_BYTES);
    CHECK(make_header(w, align, &header, err));
    CHECK(file_create(&w->out, path, err));
    CHECK(file_write(&w->out, header.data, header.len, err));
out:
    buf_fini(&header);
    return status;
}

smoe_status safetensors_writer_append(safetensors_writer *w, const void *data, uint64_t n_bytes,
                                      smoe_err *err)
{
    return file_write(&w->out, data, n_bytes, err);
}

smoe_status safetensors_writer_seal(safetensors_writer *w, smoe_err *err)
{
    buf header;
    smoe_status status;
    buf_init(&header, MAX_HEADER_BYTES);
    if (w->out.n_written != w->header_bytes + w->data_bytes) {
        status = err_set(err, SMOE_INTERNAL, "%s: %llu bytes of data were declared, %llu written",
                         w->out.path, (unsigned long long)w->data_bytes,
                         (unsigned long long)(w->out.n_written - w->header_bytes));
        goto out;
    }
    CHECK(make_header(w, 1, &header, err));
    CHECK(file_write_at(&w->out, 0, header.data, header.len, err));
    if (fsync(w->out.fd) != 0) {
        status = err_errno(err, SMOE_IO, "%s cannot be flushed to disk", w->out.path_partial);
        goto out;
    }
    w->sealed = true;
out:
    buf_fini(&header);
    return status;
}

smoe_status safetensors_writer_finish(safetensors_writer *w, smoe_err *err)
{
    if (!w->sealed) {
        TRY(safetensors_writer_seal(w, err));
    }
    return file_commit(&w->out, err);
}
