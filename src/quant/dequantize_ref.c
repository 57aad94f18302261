/* dequantize_ref.c: blocks to floats, one weight at a time.
 *
 * The one idea: each product and difference is a float operation of its own, in ggml's order and
 * never fused, so the result is ggml's to the last bit. Any bytes are a valid block. */
#include "quant/quant.h"

#include <math.h>
#include <string.h>

#include "quant/blocks.h"

static void dequantize_q4_0(const void *block, float *y)
{
    const block_q4_0 *b = block;
    const float d = f16_to_f32(half_get(b->d));

    for (int e = 0; e < Q4_0_ELEMS; e++) {
        y[e] = (float)((b->qs[e % 16] >> 4 * (e / 16) & 15) - 8) * d;
    }
}

static void dequantize_q8_0(const void *block, float *y)
{
    const block_q8_0 *b = block;
    const float d = f16_to_f32(half_get(b->d));

    for (int e = 0; e < Q8_0_ELEMS; e++) {
        y[e] = (float)b->qs[e] * d;
    }
}

static void dequantize_q2_K(const void *block, float *y)
{
    const block_q2_K *b = block;
    const float d = f16_to_f32(half_get(b->d));
    const float dmin = f16_to_f32(half_get(b->dmin));

    for (int e = 0; e < QK_K; e++) {
        const uint8_t scale_min = b->scales[e / 16];
        const float scale = d * (float)(scale_min & 15);
        const float min = dmin * (float)(scale_min >> 4);
        const int q = b->qs[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
        const float scaled = scale * (float)q;
        y[e] = scaled - min;
    }
}

static void dequantize_q3_K(const void *block, float *y)
{
    const block_q3_K *b = block;
    const float d = f16_to_f32(half_get(b->d));

    for (int e = 0; e < QK_K; e++) {
        const int low = b->qs[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
        const int high = b->hmask[e % 32] >> e / 32 & 1;
        const float scale = d * (float)(q3_K_scale(b->scales, e / 16) - 32);
        y[e] = scale * (float)((low | high << 2) - 4);
    }
}

static void dequantize_q4_K(const void *block, float *y)
{
    const block_q4_K *b = block;
    const float d = f16_to_f32(half_get(b->d));
    const float dmin = f16_to_f32(half_get(b->dmin));

    for (int e = 0; e < QK_K; e++) {
        uint8_t scale, min;
        q4_K_scale_min(b->scales, e / 32, &scale, &min);
        const int q = b->qs[32 * (e / 64) + e % 32] >> 4 * (e % 64 / 32) & 15;
        const float scaled = d * (float)scale * (float)q;
        y[e] = scaled - dmin * (float)min;
    }
}

static void dequantize_q5_K(const void *block, float *y)
{
    const block_q5_K *b = block;
    const float d = f16_to_f32(half_get(b->d));
    const float dmin = f16_to_f32(half_get(b->dmin));

    for (int e = 0; e < QK_K; e++) {
        uint8_t scale, min;
        q4_K_scale_min(b->scales, e / 32, &scale, &min);
        const int low = b->qs[32 * (e / 64) + e % 32] >> 4 * (e % 64 / 32) & 15;
        const int high = b->qh[e % 32] >> e / 32 & 1;
        const float scaled = d * (float)scale * (float)(low | high << 4);
        y[e] = scaled - dmin * (float)min;
    }
}

static void dequantize_q6_K(const void *block, float *y)
{
    const block_q6_K *b = block;
    const float d = f16_to_f32(half_get(b->d));

    for (int e = 0; e < QK_K; e++) {
        const int low = b->ql[64 * (e / 128) + e % 64] >> 4 * (e % 128 / 64) & 15;
        const int high = b->qh[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
        y[e] = d * (float)b->scales[e / 16] * (float)((low | high << 4) - 32);
    }
}

/* Plain types: blocks of one. */
static void dequantize_f32(const void *x, float *y)
{
    memcpy(y, x, sizeof *y);
}

static void dequantize_f16(const void *x, float *y)
{
    *y = f16_to_f32(half_get(x));
}

static void dequantize_bf16(const void *x, float *y)
{
    *y = bf16_to_f32(half_get(x));
}

typedef void block_dequantizer(const void *block, float *y);

static block_dequantizer *const DEQUANTIZERS[] = {
    [DTYPE_F32] = dequantize_f32, [DTYPE_F16] = dequantize_f16,
    [DTYPE_BF16] = dequantize_bf16, [DTYPE_Q4_0] = dequantize_q4_0,
    [DTYPE_Q8_0] = dequantize_q8_0, [DTYPE_Q2_K] = dequantize_q2_K,
    [DTYPE_Q3_K] = dequantize_q3_K, [DTYPE_Q4_K] = dequantize_q4_K,
    [DTYPE_Q5_K] = dequantize_q5_K, [DTYPE_Q6_K] = dequantize_q6_K,
};

bool quant_supported(dtype type)
{
    return (size_t)type < sizeof DEQUANTIZERS / sizeof *DEQUANTIZERS && DEQUANTIZERS[type] != NULL;
}

void dequantize_row_ref(dtype type, const void *x, float *y, int64_t n)
{
    if (!quant_supported(type)) { /* never numbers that look right */
        for (int64_t i = 0; i < n; i++) {
            y[i] = NAN;
        }
        return;
    }
    const dtype_info *info = dtype_get(type);
    const int64_t n_blocks = n / info->block_elems;
    for (int64_t i = 0; i < n_blocks; i++) {
        DEQUANTIZERS[type]((const uint8_t *)x + i * info->block_bytes, y + i * info->block_elems);
    }
}
