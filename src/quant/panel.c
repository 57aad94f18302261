/* panel.c: blocks to panels and back. The layout is data: how many fields of each size a block has,
 * in order. */
#include "quant/panel_tables.h"

#include <string.h>

/* A block: n_halves fields of 2 bytes, then n_words of 4, then n_last of 2. */
typedef struct fields {
    dtype type;
    uint8_t n_halves, n_words, n_last;
} fields;

static const fields FIELDS[] = {
    {DTYPE_Q4_0, 1, 4, 0},  {DTYPE_Q8_0, 1, 8, 0},  {DTYPE_Q2_K, 0, 20, 2}, {DTYPE_Q3_K, 0, 27, 1},
    {DTYPE_Q4_K, 2, 35, 0}, {DTYPE_Q5_K, 2, 43, 0}, {DTYPE_Q6_K, 0, 52, 1},
};

static const fields *fields_of(dtype type)
{
    for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++) {
        if (FIELDS[i].type == type) {
            return &FIELDS[i];
        }
    }
    return NULL;
}

bool panel_supported(dtype type)
{
    return fields_of(type) != NULL;
}

int panel_act_scale(dtype type)
{
    if (!panel_supported(type)) {
        return 0;
    }
    return dtype_get(type)->block_elems == 32 ? 32 : ACT_ELEMS;
}

uint64_t panel_bytes(dtype type, uint64_t cols)
{
    uint64_t n_bytes;

    if (!panel_supported(type) ||
        __builtin_mul_overflow(dtype_row_bytes(type, cols), (uint64_t)PANEL_ROWS, &n_bytes)) {
        return 0;
    }
    return n_bytes;
}

uint64_t panel_matrix_bytes(dtype type, uint64_t rows, uint64_t cols)
{
    const uint64_t n_panels = rows / PANEL_ROWS + (rows % PANEL_ROWS != 0);
    uint64_t n_bytes;

    if (__builtin_mul_overflow(n_panels, panel_bytes(type, cols), &n_bytes)) {
        return 0;
    }
    return n_bytes;
}

/* n fields of one row: `width` bytes each, side by side in a row, 16 * width apart in a panel. */
static inline void copy_fields(uint8_t *panel, uint8_t *row, unsigned n, size_t width, bool pack)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t *in_panel = panel + PANEL_ROWS * width * i, *in_row = row + width * i;
        memcpy(pack ? in_panel : in_row, pack ? in_row : in_panel, width);
    }
}

/* One row of one panel, `pack` or the way back. */
static void copy_row(const fields *f, uint8_t *panel, unsigned lane, uint8_t *row,
                     uint64_t n_blocks, bool pack)
{
    const size_t first_bytes = 2u * f->n_halves, words_bytes = 4u * f->n_words;
    const size_t block_bytes = first_bytes + words_bytes + 2u * f->n_last;

    for (uint64_t i = 0; i < n_blocks; i++) {
        uint8_t *p = panel + PANEL_ROWS * block_bytes * i, *r = row + block_bytes * i;
        copy_fields(p + 2 * lane, r, f->n_halves, 2, pack);
        p += PANEL_ROWS * first_bytes;
        r += first_bytes;
        copy_fields(p + 4 * lane, r, f->n_words, 4, pack);
        p += PANEL_ROWS * words_bytes;
        r += words_bytes;
        copy_fields(p + 2 * lane, r, f->n_last, 2, pack);
    }
}

void panel_take_blocks(dtype type, const uint8_t *panel, int lane, int64_t first, int64_t n,
                       uint8_t *blocks)
{
    const size_t offset = (size_t)first * PANEL_ROWS * dtype_get(type)->block_bytes;

    copy_row(fields_of(type), (uint8_t *)(uintptr_t)panel + offset, (unsigned)lane, blocks,
             (uint64_t)n, false);
}

/* Both ways; the side that is read is cast from const by the callers and only read. */
static void copy_matrix(dtype type, uint8_t *panels, uint8_t *rows, uint64_t n_rows, uint64_t cols,
                        bool pack)
{
    const fields *f = fields_of(type);
    const uint64_t row_bytes = dtype_row_bytes(type, cols);
    const uint64_t n_blocks = cols / dtype_get(type)->block_elems;

    for (uint64_t r = 0; r < n_rows; r++) {
        uint8_t *panel = panels + r / PANEL_ROWS * PANEL_ROWS * row_bytes;
        copy_row(f, panel, r % PANEL_ROWS, rows + r * row_bytes, n_blocks, pack);
    }
}

void panel_pack(dtype type, const void *rows, uint64_t n_rows, uint64_t cols, void *panels)
{
    if (n_rows % PANEL_ROWS != 0) {
        const uint64_t n_bytes = panel_bytes(type, cols);
        memset((uint8_t *)panels + n_rows / PANEL_ROWS * n_bytes, 0, n_bytes);
    }
    copy_matrix(type, panels, (uint8_t *)(uintptr_t)rows, n_rows, cols, true);
}

void panel_unpack(dtype type, const void *panels, uint64_t n_rows, uint64_t cols, void *rows)
{
    copy_matrix(type, (uint8_t *)(uintptr_t)panels, rows, n_rows, cols, false);
}
