/* vault_write.c: see vault_write.h. */
#include "formats/vault_write.h"

#include <stdio.h>

#include "formats/checksum.h"

enum { LINEAGE_LEN = 32, MAX_META_BYTES = 64 << 20 };

/* Room for a value that is known only at the end. */
static smoe_status reserve(safetensors_writer *w, const char *key, size_t len, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    buf zeros;
    buf_init(&zeros, MAX_META_BYTES);
    for (size_t i = 0; i < len; i++) {
        CHECK(buf_putc(&zeros, '0', err));
    }
    CHECK(safetensors_writer_meta(w, key, buf_slice(&zeros), err));
out:
    buf_fini(&zeros);
    return status;
}

smoe_status vault_write_common(safetensors_writer *w, const char *kind, const char *arch,
                               const char *lineage, size_t n_sums, smoe_err *err)
{
    char version[16];
    snprintf(version, sizeof version, "%d", VAULT_FORMAT_VERSION);
    TRY(safetensors_writer_meta(w, "smoe.format_version", slice_from(version), err));
    TRY(safetensors_writer_meta(w, "smoe.kind", slice_from(kind), err));
    TRY(safetensors_writer_meta(w, "smoe.architecture", slice_from(arch), err));
    if (lineage != NULL) {
        TRY(safetensors_writer_meta(w, "smoe.lineage", slice_from(lineage), err));
    } else {
        TRY(reserve(w, "smoe.lineage", LINEAGE_LEN, err));
    }
    return reserve(w, "smoe.checksums", n_sums * CHECKSUM_HEX, err);
}

static void write_type_and_shape(json_writer *w, dtype type, uint64_t rows, uint64_t cols)
{
    jw_key(w, "type");
    jw_cstr(w, dtype_get(type)->name);
    jw_key(w, "shape");
    jw_begin_array(w);
    jw_uint(w, rows);
    jw_uint(w, cols);
    jw_end_array(w);
}

static void write_layout(json_writer *w, const char *name, const matrix_layout *m)
{
    jw_key(w, name);
    jw_begin_object(w);
    write_type_and_shape(w, m->type, m->rows, m->cols);
    jw_key(w, "offset");
    jw_uint(w, m->offset);
    jw_end_object(w);
}

static smoe_status write_record_layout(safetensors_writer *writer, const matrix_layout *gate,
                                       const matrix_layout *up, const matrix_layout *down,
                                       smoe_err *err)
{
    smoe_status status;
    json_writer w;
    buf text;
    buf_init(&text, MAX_META_BYTES);
    jw_init(&w, &text);
    jw_begin_object(&w);
    write_layout(&w, "gate", gate);
    write_layout(&w, "up", up);
    write_layout(&w, "down", down);
    jw_end_object(&w);
    CHECK(jw_finish(&w, err));
    CHECK(safetensors_writer_meta(writer, "smoe.record", buf_slice(&text), err));
out:
    buf_fini(&text);
    return status;
}

smoe_status vault_write_records(safetensors_writer *w, const model_config *cfg,
                                const matrix_layout *gate, const matrix_layout *up,
                                const matrix_layout *down, uint64_t record_bytes, smoe_err *err)
{
    for (uint32_t layer = 0; layer < cfg->n_layer; layer++) {
        for (uint32_t expert = 0; cfg->is_sparse[layer] && expert < cfg->n_expert; expert++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%u.exp.%u", layer, expert);
            TRY(safetensors_writer_add(w, slice_from(name), "U8", &record_bytes, 1, record_bytes,
                                       err));
        }
    }
    return write_record_layout(w, gate, up, down, err);
}

smoe_status scout_write_tensor(safetensors_writer *w, json_writer *types, const dense_tensor *t,
                               dtype type, smoe_err *err)
{
    const dtype_info *info = dtype_get(type);
    uint64_t shape[2] = {t->rows, t->cols};
    if (info->is_quantized) { /* as the bytes of whole panels */
        shape[0] = dtype_stored_rows(type, t->rows);
        shape[1] = dtype_row_bytes(type, t->cols);
        jw_key(types, t->name);
        jw_begin_object(types);
        write_type_and_shape(types, type, t->rows, t->cols);
        jw_end_object(types);
    }
    return safetensors_writer_add(w, slice_from(t->name), info->safetensors,
                                  t->n_dims == 1 ? &shape[1] : shape, t->n_dims,
                                  dtype_matrix_bytes(type, t->rows, t->cols), err);
}
