/* export.c: one matrix of a model as a file of its own: standard blocks, row after row, and nothing
 * else. The stored order (quant/panel.h) is undone bit for bit; plain types are copied. */
#include <sys/stat.h>

#include "base/mem.h"
#include "quant/panel.h"
#include "shatter/shatter.h"

/* Renaming over an open file would replace the model by one of its matrices. */
static bool is_file(const char *path, const file *f)
{
    struct stat a, b;
    return stat(path, &a) == 0 && fstat(f->fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static smoe_status no_matrix(const scout *s, slice name, smoe_err *err)
{
    return err_set(err, SMOE_USAGE,
                   "\"%.*s\" is no matrix of this model; name a tensor of %s (such as "
                   "model.embed_tokens.weight) or an expert's blk.LAYER.exp.EXPERT.gate, .up or "
                   ".down",
                   NAME_ARG(name), s->st.file.path);
}

static smoe_status alloc(uint64_t n_bytes, uint8_t **out, smoe_err *err)
{
    *out = mem_alloc((size_t)n_bytes);
    return *out == NULL ? err_nomem(err, "a matrix", n_bytes) : SMOE_OK;
}

/* Reads what holds the matrix and checks its checksum. *offset, 0 so far, is where it starts. */
static smoe_status read_stored(const vault *v, const scout *s, slice name, exported_matrix *m,
                               uint8_t **data, uint64_t *offset, smoe_err *err)
{
    uint32_t layer, expert;
    const matrix_layout *layout;
    scout_tensor t;
    if (vault_parse_matrix_name(v, name, &layer, &expert, &layout)) {
        *m = (exported_matrix){.type = layout->type, .rows = layout->rows, .cols = layout->cols};
        *offset = layout->offset;
        TRY(alloc(v->record_bytes, data, err));
        return vault_read_record(v, layer, expert, *data, err);
    }
    if (safetensors_find(&s->st, name) == NULL || slice_starts(name, slice_from("file/"))) {
        return no_matrix(s, name, err);
    }
    TRY(scout_find(s, name, &t, err));
    *m = (exported_matrix){.type = t.type, .rows = t.rows, .cols = t.cols};
    TRY(alloc(t.n_bytes, data, err));
    return scout_read_tensor(s, name, *data, err);
}

static smoe_status write_rows(file_writer *w, const exported_matrix *m, const uint8_t *stored,
                              smoe_err *err)
{
    smoe_status status = SMOE_OK;
    uint64_t row_bytes = dtype_row_bytes(m->type, m->cols);
    if (!dtype_get(m->type)->is_quantized) {
        return file_write(w, stored, m->n_bytes, err);
    }
    uint8_t *rows;
    TRY(alloc(PANEL_ROWS * row_bytes, &rows, err));
    for (uint64_t at = 0; at < m->rows; at += PANEL_ROWS) {
        uint64_t n = m->rows - at < PANEL_ROWS ? m->rows - at : PANEL_ROWS;
        panel_unpack(m->type, stored + at * row_bytes, n, m->cols, rows);
        CHECK(file_write(w, rows, n * row_bytes, err));
    }
out:
    mem_free(rows);
    return status;
}

smoe_status shatter_export(const vault *v, const scout *s, const char *name, const char *path,
                           exported_matrix *m, smoe_err *err)
{
    smoe_status status;
    file_writer w = FILE_WRITER_CLOSED;
    uint8_t *data = NULL;
    uint64_t offset = 0;
    if (is_file(path, &v->st.file) || is_file(path, &s->st.file)) {
        return err_set(err, SMOE_USAGE, "%s is a file of this very model; give another name", path);
    }
    CHECK(read_stored(v, s, slice_from(name), m, &data, &offset, err));
    m->n_bytes = m->rows * dtype_row_bytes(m->type, m->cols);
    CHECK(file_create(&w, path, err));
    CHECK(write_rows(&w, m, data + offset, err));
    CHECK(file_commit(&w, err));
out:
    file_abort(&w);
    mem_free(data);
    return status;
}
