/* quantize_pack.h: the half of quantising that happens once per block: the scales of its groups
 * into few bits, the levels into bytes, and the constants of the search. The reference
 * (quantize_ref.c) and the vector quantisers (quantize_body.h) share it; how to find the scales and
 * levels of a group is what each of them says in its own way. */
#ifndef QUANT_QUANTIZE_PACK_H
#define QUANT_QUANTIZE_PACK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "quant/blocks.h"
#include "quant/quant.h"

/* q6_K: groups whose weights are all smaller are stored as zero. */
#define GROUP_MIN_ABS 1e-15f
#define F16_NAN 0x7e00 /* the scale of a block that holds a weight that is not finite */
/* 1.5 * 2^23. Next to it the floats are the integers, so adding it rounds to nearest, ties to even;
 * the integer is then the mantissa less 2^22. */
#define ROUND_MAGIC 12582912.0f

enum {
    Q2_GROUP = 16, /* weights of a group */
    Q4_GROUP = 32,
    Q6_GROUP = 16,
    Q2_N_GROUPS = QK_K / Q2_GROUP, /* groups of a super-block */
    Q4_N_GROUPS = QK_K / Q4_GROUP,
    Q6_N_GROUPS = QK_K / Q6_GROUP,
    Q6_MAX = 32,    /* levels -32 .. 31, stored with 32 added */
    Q6_N_STEPS = 9, /* tries levels per extreme weight of 32 + 0.1 step, step -9 .. 9 */
};

/* q2_K and q4_K: x ~ scale * q - min, both >= 0 */
typedef struct affine {
    int n_elems; /* of a group */
    int q_max;   /* levels 0 .. q_max */
    int n_steps; /* tries step 0 .. n_steps of: (first + 0.1 step + q_max) / range */
    float first;
    bool use_abs; /* error: |difference|, else its square */
} affine;

static const affine AFFINE_Q2_K = {Q2_GROUP, 3, 15, -0.5f, true};
static const affine AFFINE_Q4_K = {Q4_GROUP, 15, 20, -1.0f, false};

/* As many weights as a block of the type has -> one block. */
typedef void block_quantizer(const float *x, void *block);

static inline void quantize_blocks(dtype type, block_quantizer *quantize, const float *x, void *y,
                                   int64_t n)
{
    const dtype_info *info = dtype_get(type);
    const int64_t n_blocks = n / info->block_elems;

    for (int64_t i = 0; i < n_blocks; i++) {
        quantize(x + i * info->block_elems, (uint8_t *)y + i * info->block_bytes);
    }
}

/* Rounds to nearest, ties to even. Outside +-4194303, and of a NaN, the result is some integer;
 * every caller clamps or masks. */
static inline int nearest_int(float v)
{
    const float shifted = v + ROUND_MAGIC;
    uint32_t bits;

    memcpy(&bits, &shifted, sizeof(bits));
    return (int)(bits & 0x7fffff) - 0x400000;
}

static inline float largest(const float *x, int n)
{
    float max = 0;

    for (int i = 0; i < n; i++) {
        max = x[i] > max ? x[i] : max;
    }
    return max;
}

/* Each put_scales stores the scales (and mins) of the groups in a block of zeros, and replaces each
 * by what the block gives back for it. Each put_levels stores the levels of a super-block. */

static inline void q2_K_put_scales(block_q2_K *b, float scales[Q2_N_GROUPS],
                                   float mins[Q2_N_GROUPS])
{
    const float max_scale = largest(scales, Q2_N_GROUPS);
    const float max_min = largest(mins, Q2_N_GROUPS);

    for (int g = 0; g < Q2_N_GROUPS; g++) {
        if (max_scale > 0) {
            b->scales[g] = (uint8_t)nearest_int(15.0f / max_scale * scales[g]);
        }
        if (max_min > 0) {
            b->scales[g] |= (uint8_t)((unsigned)nearest_int(15.0f / max_min * mins[g]) << 4);
        }
    }
    half_put(b->d, f16_from_f32(max_scale / 15.0f));
    half_put(b->dmin, f16_from_f32(max_min / 15.0f));
    const float d = f16_to_f32(half_get(b->d));
    const float dmin = f16_to_f32(half_get(b->dmin));
    for (int g = 0; g < Q2_N_GROUPS; g++) {
        scales[g] = d * (float)(b->scales[g] & 15);
        mins[g] = dmin * (float)(b->scales[g] >> 4);
    }
}

static inline void q2_K_put_levels(block_q2_K *b, const uint8_t q[QK_K])
{
    for (int half = 0; half < 2; half++) {
        const uint8_t *h = q + 128 * half;
        for (int i = 0; i < 32; i++) {
            b->qs[32 * half + i] =
                (uint8_t)(h[i] | h[i + 32] << 2 | h[i + 64] << 4 | h[i + 96] << 6);
        }
    }
}

static inline void q4_K_put_scale_min(uint8_t scales[12], int g, uint8_t scale, uint8_t min)
{
    if (g < 4) {
        scales[g] = scale;
        scales[g + 4] = min;
    } else {
        scales[g + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
        scales[g - 4] |= (uint8_t)(scale >> 4 << 6);
        scales[g] |= (uint8_t)(min >> 4 << 6);
    }
}

static inline void q4_K_put_scales(block_q4_K *b, float scales[Q4_N_GROUPS],
                                   float mins[Q4_N_GROUPS])
{
    const float max_scale = largest(scales, Q4_N_GROUPS);
    const float max_min = largest(mins, Q4_N_GROUPS);
    const float inverse_scale = max_scale > 0 ? 63.0f / max_scale : 0.0f;
    const float inverse_min = max_min > 0 ? 63.0f / max_min : 0.0f;

    for (int g = 0; g < Q4_N_GROUPS; g++) {
        const uint8_t scale = (uint8_t)nearest_int(inverse_scale * scales[g]);
        const uint8_t min = (uint8_t)nearest_int(inverse_min * mins[g]);
        q4_K_put_scale_min(b->scales, g, scale < 63 ? scale : 63, min < 63 ? min : 63);
    }
    half_put(b->d, f16_from_f32(max_scale / 63.0f));
    half_put(b->dmin, f16_from_f32(max_min / 63.0f));
    const float d = f16_to_f32(half_get(b->d));
    const float dmin = f16_to_f32(half_get(b->dmin));
    for (int g = 0; g < Q4_N_GROUPS; g++) {
        uint8_t scale, min;
        q4_K_scale_min(b->scales, g, &scale, &min);
        scales[g] = d * (float)scale;
        mins[g] = dmin * (float)min;
    }
}

static inline void q4_K_put_levels(block_q4_K *b, const uint8_t q[QK_K])
{
    for (int pair = 0; pair < 4; pair++) {
        const uint8_t *h = q + 64 * pair;
        for (int i = 0; i < 32; i++) {
            b->qs[32 * pair + i] = (uint8_t)(h[i] | h[i + 32] << 4);
        }
    }
}

/* False when all scales are tiny: the block stays zero and has no levels. */
static inline bool q6_K_put_scales(block_q6_K *b, float scales[Q6_N_GROUPS])
{
    float abs_max = 0, extreme = 0;

    for (int g = 0; g < Q6_N_GROUPS; g++) {
        if (fabsf(scales[g]) > abs_max) {
            abs_max = fabsf(scales[g]);
            extreme = scales[g];
        }
    }
    if (abs_max < GROUP_MIN_ABS) {
        return false;
    }
    const float inverse = -128.0f / extreme;
    half_put(b->d, f16_from_f32(1 / inverse));
    const float d = f16_to_f32(half_get(b->d));
    for (int g = 0; g < Q6_N_GROUPS; g++) {
        const int level = nearest_int(inverse * scales[g]);
        b->scales[g] = (int8_t)(level < 127 ? level : 127);
        scales[g] = d * (float)b->scales[g];
    }
    return true;
}

static inline void q6_K_put_levels(block_q6_K *b, const uint8_t q[QK_K])
{
    for (int half = 0; half < 2; half++) {
        const uint8_t *h = q + 128 * half;
        for (int i = 0; i < 32; i++) {
            b->ql[64 * half + i] = (uint8_t)((h[i] & 15) | (h[i + 64] & 15) << 4);
            b->ql[64 * half + 32 + i] = (uint8_t)((h[i + 32] & 15) | (h[i + 96] & 15) << 4);
            b->qh[32 * half + i] = (uint8_t)(h[i] >> 4 | h[i + 32] >> 4 << 2 | h[i + 64] >> 4 << 4 |
                                             h[i + 96] >> 4 << 6);
        }
    }
}

#endif
