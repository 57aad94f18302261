/* convert_matrix.c: see convert_matrix.h.
 *
 * A matrix is a row of strips: a strip is one panel (16 rows) of a quantised type, one row of a
 * plain one. Chunks of whole strips are read, and worker threads turn pieces of a strip into the
 * target type, independently of each other, so the bytes do not depend on the number of threads. A
 * piece is a range of columns, because a panel's blocks lie in the order of the columns: what a
 * thread needs is small however long the rows are. Memory: a chunk in, a chunk out (8 MiB or so, or
 * one strip where that is larger); never a whole tensor, except the source of a transposed expert,
 * which is bounded by the plan. */
#include "shatter/convert_matrix.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "quant/panel.h"

_Static_assert((int)PANEL_ROWS == (int)DTYPE_PANEL_ROWS, "sizes of files and kernels must agree");

enum {
    PIECE_COLS = 1024, /* every block divides it */
    CHUNK_ELEMS = 1 << 21,
    /* of a panel's piece; no quantised type takes more than two bytes for a weight */
    PIECE_BLOCK_BYTES = PANEL_ROWS * PIECE_COLS * 2,
};

typedef struct chunk {
    const kernels *kernels;
    const matrix_source *m;
    dtype type;
    const uint8_t *in;  /* plain: the chunk's rows; transposed: the whole slab */
    uint64_t first_row; /* of the matrix, that the chunk starts with */
    uint64_t n_rows, strip_rows, strip_pieces;
    uint8_t *out;
    float limit; /* what the type can hold */
    atomic_bool over_limit;
} chunk;

void converter_fini(converter *c)
{
    mem_free(c->in);
    mem_free(c->out);
    *c = (converter){0};
}

static smoe_status grow(uint8_t **data, size_t *cap, uint64_t n_bytes, smoe_err *err)
{
    if (n_bytes <= *cap) {
        return SMOE_OK;
    }
    mem_free(*data);
    *data = mem_alloc((size_t)n_bytes);
    *cap = *data == NULL ? 0 : (size_t)n_bytes;
    return *data == NULL ? err_nomem(err, "a conversion buffer", n_bytes) : SMOE_OK;
}

/* The largest magnitude that a type is given. The f16 scales inside blocks overflow above some 1e6
 * (q2_K first, at 65504 * 45); no sane weight is near. f16 ends at 65504; bf16 rounds the topmost
 * f32 values to infinity. */
static float limit_of(dtype type)
{
    return dtype_get(type)->is_quantized ? 1e6f
           : type == DTYPE_F16           ? 65504.0f
           : type == DTYPE_BF16          ? 3.38e38f
                                         : FLT_MAX;
}

static uint64_t strip_rows_of(dtype type)
{
    return dtype_get(type)->is_quantized ? PANEL_ROWS : 1;
}

/* Columns [col, col + n) of a row of a transposed matrix. */
static const uint8_t *gather(const chunk *c, uint64_t row, uint64_t col, size_t n, uint8_t *temp)
{
    const matrix_source *m = c->m;
    size_t width = (size_t)dtype_row_bytes(m->type, 1);
    for (size_t i = 0; i < n; i++) {
        memcpy(temp + i * width, c->in + ((col + i) * m->stride + m->first_col + row) * width,
               width);
    }
    return temp;
}

/* Columns [col, col + n) of a row of the chunk, as floats; false when one is beyond the limit. */
static bool load(const chunk *c, uint64_t row, uint64_t col, size_t n, float *values)
{
    uint8_t temp[PIECE_COLS * sizeof(float)];
    const matrix_source *m = c->m;
    const uint8_t *in = m->transposed ? gather(c, c->first_row + row, col, n, temp)
                                      : c->in + dtype_row_bytes(m->type, row * m->cols + col);
    bool over_limit = false;
    c->kernels->dequantize_row(m->type, in, values, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        over_limit |= !(fabsf(values[i]) <= c->limit); /* also when it is NaN */
    }
    return !over_limit;
}

static void convert_pieces(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    chunk *c = ctx;
    float values[PIECE_COLS];
    uint8_t blocks[PIECE_BLOCK_BYTES];
    bool is_panel = c->strip_rows != 1;
    uint64_t strip_bytes = dtype_matrix_bytes(c->type, c->strip_rows, c->m->cols);
    (void)thread;
    for (size_t piece = begin; piece < end; piece++) {
        uint64_t strip = piece / c->strip_pieces, row = strip * c->strip_rows;
        uint64_t col = piece % c->strip_pieces * PIECE_COLS, n = c->m->cols - col;
        uint64_t n_rows = c->n_rows - row < c->strip_rows ? c->n_rows - row : c->strip_rows;
        n = n < PIECE_COLS ? n : PIECE_COLS;
        uint8_t *out = c->out + strip * strip_bytes +
                       dtype_matrix_bytes(c->type, c->strip_rows, col);
        uint8_t *rows = is_panel ? blocks : out;
        for (uint64_t r = 0; r < n_rows; r++) {
            if (!load(c, row + r, col, (size_t)n, values)) {
                atomic_store(&c->over_limit, true);
            }
            c->kernels->quantize_row(c->type, values, rows + r * dtype_row_bytes(c->type, n),
                                     (int64_t)n);
        }
        if (is_panel) {
            panel_pack(c->type, blocks, n_rows, n, out);
        }
    }
}

static smoe_status read_source(conversion *v, uint64_t offset, uint64_t n_bytes, smoe_err *err)
{
    converter *c = v->c;
    TRY(grow(&c->in, &c->in_bytes, n_bytes, err));
    TRY(file_read_at(&c->source->shards[v->m->shard].file, v->m->offset + offset, c->in, n_bytes,
                     err));
    checksum_add(&v->source_sum, c->in, (size_t)n_bytes);
    v->n_read = n_bytes;
    return SMOE_OK;
}

smoe_status conversion_begin(conversion *v, converter *c, const matrix_source *m, dtype type,
                             smoe_err *err)
{
    *v = (conversion){.c = c, .m = m, .type = type};
    checksum_init(&v->source_sum);
    return m->transposed ? read_source(v, 0, matrix_source_bytes(m), err) : SMOE_OK;
}

smoe_status conversion_next(conversion *v, uint8_t *dst, smoe_err *err)
{
    converter *c = v->c;
    const matrix_source *m = v->m;
    chunk k = {.kernels = c->kernels,
               .m = m,
               .type = v->type,
               .first_row = v->n_rows_done,
               .n_rows = m->rows - v->n_rows_done,
               .strip_rows = strip_rows_of(v->type),
               .strip_pieces = (m->cols + PIECE_COLS - 1) / PIECE_COLS,
               .limit = limit_of(v->type)};
    uint64_t n_strips = CHUNK_ELEMS / (k.strip_rows * m->cols);
    uint64_t max_rows = (n_strips == 0 ? 1 : n_strips) * k.strip_rows;
    k.n_rows = k.n_rows < max_rows ? k.n_rows : max_rows;
    n_strips = (k.n_rows + k.strip_rows - 1) / k.strip_rows;
    v->n_out = dtype_matrix_bytes(v->type, k.n_rows, m->cols);
    v->n_read = 0;
    if (!m->transposed) {
        TRY(read_source(v, dtype_row_bytes(m->type, k.first_row * m->cols),
                        dtype_row_bytes(m->type, k.n_rows * m->cols), err));
    }
    if (dst == NULL) {
        TRY(grow(&c->out, &c->out_bytes, v->n_out, err));
    }
    k.in = c->in;
    k.out = dst != NULL ? dst : c->out;
    pool_for(c->pool, (size_t)(n_strips * k.strip_pieces), 1, convert_pieces, &k);
    if (atomic_load(&k.over_limit)) {
        return err_set(
            err, SMOE_NUMERIC,
            "%s: tensor \"%s\" holds a value (after element %llu) that is "
            "not finite or beyond what %s can hold; the checkpoint is damaged: fetch it again",
            c->source->shards[m->shard].file.path, m->name,
            (unsigned long long)(k.first_row * m->cols), dtype_get(v->type)->name);
    }
    v->out = k.out;
    v->n_rows_done += k.n_rows;
    return SMOE_OK;
}
