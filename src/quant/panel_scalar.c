/* panel_scalar.c: the reference panel kernels: what every other table must compute.
 *
 * Takes each row's standard blocks back out of the panel, reads them as blocks.h has them, and
 * computes the sums of panel.h one weight at a time. */
#include <math.h>
#include <string.h>

#include "quant/act_body.h"
#include "quant/blocks.h"
#include "quant/panel_tables.h"
#include "quant/quant.h"

enum {
    N_VECTORS = 32,                          /* that share one reading of the weights */
    MAX_ROW_BYTES = ACT_ELEMS * sizeof(float), /* 256 columns of any type */
};

/* 256 columns of one row, in integers: w = scale * level - min, before d and dmin. q8_0 and q4_0
 * have eight blocks with a d each, and scales of 1. */
typedef struct plain_block {
    int16_t levels[QK_K]; /* offset already subtracted */
    int32_t scales[16], mins[16];
    int group_elems;
    float d[8], dmin;
} plain_block;

static void read_affine(plain_block *p, const uint8_t d[2], const uint8_t dmin[2])
{
    p->d[0] = f16_to_f32(half_get(d));
    p->dmin = f16_to_f32(half_get(dmin));
}

static void read_q2_K(const block_q2_K *b, plain_block *p)
{
    read_affine(p, b->d, b->dmin);
    p->group_elems = 16;
    for (int g = 0; g < 16; g++) {
        p->scales[g] = b->scales[g] & 15;
        p->mins[g] = b->scales[g] >> 4;
    }
    for (int e = 0; e < QK_K; e++) {
        p->levels[e] = b->qs[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
    }
}

static void read_q3_K(const block_q3_K *b, plain_block *p)
{
    p->d[0] = f16_to_f32(half_get(b->d));
    p->group_elems = 16;
    for (int g = 0; g < 16; g++) {
        p->scales[g] = q3_K_scale(b->scales, g) - 32;
    }
    for (int e = 0; e < QK_K; e++) {
        const int low = b->qs[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
        const int high = b->hmask[e % 32] >> e / 32 & 1;
        p->levels[e] = (int16_t)((low | high << 2) - 4);
    }
}

static void read_q4_K(const block_q4_K *b, plain_block *p)
{
    read_affine(p, b->d, b->dmin);
    p->group_elems = 32;
    for (int g = 0; g < 8; g++) {
        uint8_t scale, min;
        q4_K_scale_min(b->scales, g, &scale, &min);
        p->scales[g] = scale;
        p->mins[g] = min;
    }
    for (int e = 0; e < QK_K; e++) {
        p->levels[e] = b->qs[32 * (e / 64) + e % 32] >> 4 * (e % 64 / 32) & 15;
    }
}

static void read_q5_K(const block_q5_K *b, plain_block *p)
{
    read_affine(p, b->d, b->dmin);
    p->group_elems = 32;
    for (int g = 0; g < 8; g++) {
        uint8_t scale, min;
        q4_K_scale_min(b->scales, g, &scale, &min);
        p->scales[g] = scale;
        p->mins[g] = min;
    }
    for (int e = 0; e < QK_K; e++) {
        const int low = b->qs[32 * (e / 64) + e % 32] >> 4 * (e % 64 / 32) & 15;
        p->levels[e] = (int16_t)(low | (b->qh[e % 32] >> e / 32 & 1) << 4);
    }
}

static void read_q6_K(const block_q6_K *b, plain_block *p)
{
    p->d[0] = f16_to_f32(half_get(b->d));
    p->group_elems = 16;
    for (int g = 0; g < 16; g++) {
        p->scales[g] = b->scales[g];
    }
    for (int e = 0; e < QK_K; e++) {
        const int low = b->ql[64 * (e / 128) + e % 64] >> 4 * (e % 128 / 64) & 15;
        const int high = b->qh[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
        p->levels[e] = (int16_t)((low | high << 4) - 32);
    }
}

static void read_block_of_32(dtype type, const uint8_t *row, int i, plain_block *p)
{
    const block_q8_0 *q8 = (const block_q8_0 *)row + i;
    const block_q4_0 *q4 = (const block_q4_0 *)row + i;

    p->d[i] = f16_to_f32(half_get(type == DTYPE_Q8_0 ? q8->d : q4->d));
    for (int e = 0; e < 32; e++) {
        p->levels[32 * i + e] = type == DTYPE_Q8_0
                                    ? q8->qs[e]
                                    : (int16_t)((q4->qs[e % 16] >> 4 * (e / 16) & 15) - 8);
    }
}

/* n <= 256 columns that lie as standard blocks at `row`. */
static void read_row(dtype type, const uint8_t *row, int64_t n, plain_block *p)
{
    memset(p, 0, sizeof(*p));
    switch (type) {
    case DTYPE_Q2_K: read_q2_K((const block_q2_K *)row, p); break;
    case DTYPE_Q3_K: read_q3_K((const block_q3_K *)row, p); break;
    case DTYPE_Q4_K: read_q4_K((const block_q4_K *)row, p); break;
    case DTYPE_Q5_K: read_q5_K((const block_q5_K *)row, p); break;
    case DTYPE_Q6_K: read_q6_K((const block_q6_K *)row, p); break;
    default:
        for (int i = 0; i < n / 32; i++) {
            read_block_of_32(type, row, i, p);
        }
    }
}

static int32_t dot_group(const int16_t *levels, const int8_t *x, int n)
{
    int32_t sum = 0;

    for (int i = 0; i < n; i++) {
        sum += levels[i] * x[i];
    }
    return sum;
}

static int32_t sum_group(const int8_t *x, int n)
{
    int32_t sum = 0;

    for (int i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum;
}

/* acc and n / 32 blocks with a scale each. */
static float add_blocks_32(const plain_block *p, const act_block *x, int64_t n, float acc)
{
    for (int i = 0; i < n / 32; i++) {
        const int32_t sum = dot_group(p->levels + 32 * i, x->qs + 32 * i, 32);
        acc = fmaf(p->d[i] * x->d[i], (float)sum, acc);
    }
    return acc;
}

/* S of panel.h, of a K type. */
static float block_dot(dtype type, const plain_block *p, const act_block *x)
{
    const bool has_mins = type == DTYPE_Q2_K || type == DTYPE_Q4_K || type == DTYPE_Q5_K;
    int32_t sum = 0, sum_mins = 0;

    for (int g = 0; g < QK_K / p->group_elems; g++) {
        const int first = p->group_elems * g;
        sum += p->scales[g] * dot_group(p->levels + first, x->qs + first, p->group_elems);
        sum_mins += p->mins[g] * sum_group(x->qs + first, p->group_elems);
    }
    return has_mins ? fmaf(p->d[0], (float)sum, -(p->dmin * (float)sum_mins))
                    : p->d[0] * (float)sum;
}

static void matmul_row(dtype type, const uint8_t *panel, int lane, int64_t cols, panel_x x,
                       float *out, int64_t out_stride)
{
    const int64_t block_elems = dtype_get(type)->block_elems;
    float acc[N_VECTORS] = {0};

    for (int64_t k = 0; k < cols; k += ACT_ELEMS) {
        const int64_t n = cols - k < ACT_ELEMS ? cols - k : ACT_ELEMS;
        uint8_t row[MAX_ROW_BYTES];
        plain_block p;
        panel_take_blocks(type, panel, lane, k / block_elems, n / block_elems, row);
        read_row(type, row, n, &p);
        for (int64_t j = 0; j < x.n; j++) {
            const act_block *b = x.data + j * x.stride + k / ACT_ELEMS;
            if (block_elems == 32) {
                acc[j] = add_blocks_32(&p, b, n, acc[j]);
            } else {
                acc[j] = fmaf(b->d[0], block_dot(type, &p, b), acc[j]);
            }
        }
    }
    for (int64_t j = 0; j < x.n; j++) {
        out[j * out_stride] = acc[j];
    }
}

static void matmul_scalar(dtype type, const void *panels, int64_t n_rows, int64_t cols, panel_x x,
                          float *out, int64_t out_stride)
{
    const size_t one_panel_bytes = panel_bytes(type, (uint64_t)cols);

    for (int64_t r = 0; r < n_rows; r++) {
        const uint8_t *panel = (const uint8_t *)panels + (size_t)(r / PANEL_ROWS) * one_panel_bytes;
        const int lane = (int)(r % PANEL_ROWS);
        for (int64_t j = 0; j < x.n; j += N_VECTORS) {
            const panel_x some = {x.data + j * x.stride, x.stride,
                                  x.n - j < N_VECTORS ? x.n - j : N_VECTORS};
            matmul_row(type, panel, lane, cols, some, out + j * out_stride + r, out_stride);
        }
    }
}

const panel_kernels panel_kernels_scalar = {
    .name = "scalar",
    .matmul = matmul_scalar,
    .act_quantize = act_quantize_ref,
    .attn_q8_quantize = attn_q8_quantize_ref,
    .attn_q8_scores = attn_q8_scores_ref,
    .attn_q8_values = attn_q8_values_ref,
};
