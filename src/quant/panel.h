/* panel.h: quantised weights in the order the kernels read them, and the kernels: matrix times one
 * vector, matrix times many. (Plain types lie row by row: kernels.h.)
 *
 * LAYOUT. A matrix [rows, cols] is ceil(rows / 16) panels; a panel is 16 rows. A panel is its
 * blocks in the order of the columns; a panel block is the same block (blocks.h) of all 16 rows,
 * cut into units that lie side by side:
 *
 *     field 0 of row 0, of row 1, ... of row 15,  field 1 of row 0, ... of row 15,  ...
 *
 * where a field is an f16 scale (2 bytes), and everything else is cut into fields of 4 bytes, in
 * the order of blocks.h. So a panel block has exactly the bytes of its 16 blocks, one 64-byte
 * vector holds the same 4 bytes of 16 rows, and a lane is a row:
 *
 *     type   bytes of a panel block, and where its parts start
 *     q8_0    544 =   0 d, 32 qs
 *     q4_0    288 =   0 d, 32 qs
 *     q2_K   1344 =   0 scales, 256 qs, 1280 d, 1312 dmin
 *     q3_K   1760 =   0 hmask, 512 qs, 1536 scales, 1728 d
 *     q4_K   2304 =   0 d, 32 dmin, 64 scales, 256 qs
 *     q5_K   2816 =   0 d, 32 dmin, 64 scales, 256 qh, 768 qs
 *     q6_K   3360 =   0 ql, 2048 qh, 3072 scales, 3328 d
 *
 * Rows that fill up the last panel are zero bytes.
 *
 * THE RESULT (design A4: the same bits on every machine, for every batch). Activations are as act.h
 * has them. Per row, with dx = the activations' d, x = their levels, and all
 * integer sums exact:
 *
 *     K types:  acc = 0;  per 256 columns in ascending order:  acc = fma(dx, S, acc)
 *     q4_K q5_K q2_K:  S = fma(d, (float)sum_g sc_g * sum q*x, -(dmin * (float)sum_g m_g * sum x))
 *     q6_K q3_K:       S = d * (float)sum_g sc_g * sum (q - offset)*x      offset 32, 4; sc signed
 *     q8_0 q4_0:  acc = 0;  per 32 columns in ascending order:
 *                 acc = fma(d * dx, (float)sum q*x, acc) */
#ifndef QUANT_PANEL_H
#define QUANT_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/dtype.h"
#include "quant/act.h"
#include "quant/attn_q8.h"

enum { PANEL_ROWS = 16 };

bool panel_supported(dtype type); /* the quantised types */
/* Columns that share a scale of the activations (act.h): 32 or 256; 0 when unsupported. Types of 32
 * take activations of 256 as well. */
int panel_act_scale(dtype type);
/* Bytes of one panel, of a whole matrix; 0 when unsupported, when cols is not a multiple of the
 * block, or when the number overflows. */
uint64_t panel_bytes(dtype type, uint64_t cols);
uint64_t panel_matrix_bytes(dtype type, uint64_t rows, uint64_t cols);

/* Standard rows, one after another <-> panels; any addresses that do not overlap. Sizes as above
 * must not be 0. Whole panels are independent: a caller may split the rows at multiples of 16. */
void panel_pack(dtype type, const void *rows, uint64_t n_rows, uint64_t cols, void *panels);
void panel_unpack(dtype type, const void *panels, uint64_t n_rows, uint64_t cols, void *rows);

/* x of a product: n vectors of act_n_blocks(cols) blocks each, `stride` blocks apart (ignored for
 * one). */
typedef struct panel_x {
    const act_block *data;
    int64_t stride;
    int64_t n;
} panel_x;

typedef struct panel_kernels {
    const char *name; /* "scalar" "avx2" "avx2_vnni" "avx512" "neon" "neon_dot" */
    /* out[j * out_stride + r] = row r . vector j, for r < n_rows (the first of which starts a
     * panel). `type` is panel_supported, cols a multiple of its block. Panels may start anywhere;
     * 64-byte alignment is faster, and so are slices of an even number of panels. One vector or
     * many: the same numbers. */
    void (*matmul)(dtype type, const void *panels, int64_t n_rows, int64_t cols, panel_x x,
                   float *out, int64_t out_stride);
    void (*act_quantize)(const float *x, int64_t n, int scale_elems, act_block *out);
    /* Attention over keys and values of 8 bits: attn_q8.h. */
    void (*attn_q8_quantize)(const float *x, int64_t d, int16_t *levels, float *scale);
    void (*attn_q8_scores)(const void *keys, attn_q8_query q, int64_t n_rows, int64_t d,
                           int64_t n_tiles, float *scores, int64_t stride);
    void (*attn_q8_values)(const void *values, const float *p, int64_t stride, int64_t n_rows,
                           int64_t d, int64_t n, float *out);
} panel_kernels;

/* The best table that this CPU runs, or the one asked for by name; NULL when the name is unknown or
 * the CPU lacks it. "avx512" needs VNNI. */
const panel_kernels *panel_kernels_get(const char *name);

#endif
