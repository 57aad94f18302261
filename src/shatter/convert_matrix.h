/* convert_matrix.h: one matrix of a checkpoint -> its stored form, step by step; private to
 * shatter/. */
#ifndef SHATTER_CONVERT_MATRIX_H
#define SHATTER_CONVERT_MATRIX_H

#include "base/pool.h"
#include "formats/checksum.h"
#include "quant/kernels.h"
#include "shatter/plan.h"

/* What all matrices share. source, kernels and pool are borrowed; the buffers grow as needed. */
typedef struct converter {
    const source *source;
    const kernels *kernels; /* every table makes the same blocks */
    pool *pool;
    uint8_t *in, *out;
    size_t in_bytes, out_bytes;
} converter;

void converter_fini(converter *c);

/* One matrix under way. After begin, and after every next: */
typedef struct conversion {
    converter *c;
    const matrix_source *m;
    dtype type;
    uint64_t n_rows_done; /* finished when it is m->rows */
    uint64_t n_read;      /* bytes of the checkpoint that this step read */
    const uint8_t *out;   /* the stored bytes that this step made, */
    uint64_t n_out;       /* which follow those of the step before */
    checksum source_sum;  /* of all bytes read so far */
} conversion;

/* Reads nothing but the source of a transposed matrix. m must outlive the conversion. */
smoe_status conversion_begin(conversion *v, converter *c, const matrix_source *m, dtype type,
                             smoe_err *err);
/* The next few MiB of rows. They go to dst, which has room for the rest of the matrix, or to a
 * buffer that the next step overwrites when dst is NULL. SMOE_NUMERIC when a value is not finite or
 * too large for the type. */
smoe_status conversion_next(conversion *v, uint8_t *dst, smoe_err *err);

#endif
