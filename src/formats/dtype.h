/* dtype.h: element types: ggml's block types under ggml's names and numbers, plus raw bytes. */
#ifndef FORMATS_DTYPE_H
#define FORMATS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

typedef enum dtype {
    DTYPE_F32 = 0,
    DTYPE_F16 = 1,
    DTYPE_Q4_0 = 2,
    DTYPE_Q8_0 = 8,
    DTYPE_Q2_K = 10,
    DTYPE_Q3_K = 11,
    DTYPE_Q4_K = 12,
    DTYPE_Q5_K = 13,
    DTYPE_Q6_K = 14,
    DTYPE_I8 = 24,
    DTYPE_BF16 = 30,
    DTYPE_U8 = 1000, /* raw bytes; not a ggml type */
    DTYPE_OTHER = 1001, /* a safetensors type that nothing here computes with (F64, BOOL, ...) */
} dtype;

typedef struct dtype_info {
    dtype type;
    const char *name;            /* ggml's: "q4_K" */
    const char *safetensors;     /* "F32", or "U8" for block types */
    uint32_t block_elems;        /* 1 for plain types */
    uint32_t block_bytes;
    bool is_float_weight;        /* f32, f16, bf16 */
    bool is_quantized;
} dtype_info;

const dtype_info *dtype_get(dtype type);                   /* NULL when unknown or DTYPE_OTHER */
/* The types that a matrix of weights can have, from the finest (f32) to the coarsest (q2_K), 0 <= i
 * < DTYPE_N_WEIGHTS; NULL past the last. */
enum { DTYPE_N_WEIGHTS = 10 };
const dtype_info *dtype_weight(size_t i);
const dtype_info *dtype_from_name(slice name);             /* ggml names; NULL when unknown */
const dtype_info *dtype_from_safetensors(slice name);      /* "BF16" ...; NULL when unknown */
/* Bytes of one row of n elements; 0 when n is not a multiple of the block. */
uint64_t dtype_row_bytes(dtype type, uint64_t n_elems);

/* A stored matrix of a quantised type is whole panels of 16 rows (quant/panel.h has their inner
 * order); the rows that fill up the last panel are zero bytes. Plain types lie row by row. */
enum { DTYPE_PANEL_ROWS = 16 };
/* Rows that a stored matrix takes up, and its bytes; 0 when the number does not fit 64 bits or
 * cols is not a multiple of the block. */
uint64_t dtype_stored_rows(dtype type, uint64_t rows);
uint64_t dtype_matrix_bytes(dtype type, uint64_t rows, uint64_t cols);

#endif
