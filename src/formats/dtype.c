/* dtype.c: the table of element types. One line per type; every other fact is computed from it.
 * Weights come first, the finest before the others. */
#include "formats/dtype.h"

static const dtype_info types[] = {
    /* type       name    safetensors elems bytes float  quantized */
    {DTYPE_F32, "f32", "F32", 1, 4, true, false},
    {DTYPE_F16, "f16", "F16", 1, 2, true, false},
    {DTYPE_BF16, "bf16", "BF16", 1, 2, true, false},
    {DTYPE_Q8_0, "q8_0", "U8", 32, 34, false, true},
    {DTYPE_Q6_K, "q6_K", "U8", 256, 210, false, true},
    {DTYPE_Q5_K, "q5_K", "U8", 256, 176, false, true},
    {DTYPE_Q4_K, "q4_K", "U8", 256, 144, false, true},
    {DTYPE_Q4_0, "q4_0", "U8", 32, 18, false, true},
    {DTYPE_Q3_K, "q3_K", "U8", 256, 110, false, true},
    {DTYPE_Q2_K, "q2_K", "U8", 256, 84, false, true},
    {DTYPE_I8, "i8", "I8", 1, 1, false, false},
    {DTYPE_U8, "u8", "U8", 1, 1, false, false},
};

enum { N_TYPES = sizeof types / sizeof types[0] };

const dtype_info *dtype_get(dtype type)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (types[i].type == type) {
            return &types[i];
        }
    }
    return NULL;
}

const dtype_info *dtype_weight(size_t i)
{
    return i < DTYPE_N_WEIGHTS ? &types[i] : NULL;
}

const dtype_info *dtype_from_name(slice name)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (slice_is(name, types[i].name)) {
            return &types[i];
        }
    }
    return NULL;
}

const dtype_info *dtype_from_safetensors(slice name)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (!types[i].is_quantized && slice_is(name, types[i].safetensors)) {
            return &types[i];
        }
    }
    return NULL;
}

uint64_t dtype_row_bytes(dtype type, uint64_t n_elems)
{
    const dtype_info *info = dtype_get(type);
    if (info == NULL || n_elems % info->block_elems != 0) {
        return 0;
    }
    uint64_t n_bytes;
    if (__builtin_mul_overflow(n_elems / info->block_elems, (uint64_t)info->block_bytes,
                               &n_bytes)) {
        return 0;
    }
    return n_bytes;
}

uint64_t dtype_stored_rows(dtype type, uint64_t rows)
{
    const dtype_info *info = dtype_get(type);
    if (info == NULL || !info->is_quantized || rows % DTYPE_PANEL_ROWS == 0) {
        return rows;
    }
    uint64_t n_filling = DTYPE_PANEL_ROWS - rows % DTYPE_PANEL_ROWS;
    return rows > UINT64_MAX - n_filling ? 0 : rows + n_filling;
}

uint64_t dtype_matrix_bytes(dtype type, uint64_t rows, uint64_t cols)
{
    uint64_t n_bytes;
    return __builtin_mul_overflow(dtype_stored_rows(type, rows), dtype_row_bytes(type, cols),
                                  &n_bytes)
               ? 0
               : n_bytes;
}
