/* quantize_ref.c: floats to blocks, bit for bit as ggml's reference quantisers do without an
 * importance matrix (quantize_row_q4_0_ref, _q8_0_ref, _q2_K_ref, _q3_K_ref, _q4_K_ref,
 * _q5_K_ref, _q6_K_ref).
 *
 * The one idea: equal bits need equal arithmetic, so every sum runs in ggml's order, in float, with
 * one rounding per operation (the build forbids contraction). A block that holds a weight that is
 * not finite gets a NaN scale: it decodes to NaN throughout instead of to plausible numbers. */
#include "quant/quant.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "quant/blocks.h"
#include "quant/quantize_pack.h"

static int clamp_int(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static bool all_finite(const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

/* ---- q8_0 ---- */

static void quantize_q8_0(const float *x, void *block)
{
    block_q8_0 *b = block;
    float abs_max = 0;

    if (!all_finite(x, Q8_0_ELEMS)) {
        memset(b, 0, sizeof(*b));
        half_put(b->d, F16_NAN);
        return;
    }
    for (int e = 0; e < Q8_0_ELEMS; e++) {
        abs_max = fmaxf(abs_max, fabsf(x[e]));
    }
    const float d = abs_max / 127.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    half_put(b->d, f16_from_f32(d));
    for (int e = 0; e < Q8_0_ELEMS; e++) {
        /* 1/d overflows when d is subnormal; the product may then be infinite or NaN. */
        const float q = roundf(x[e] * inverse);
        b->qs[e] = (int8_t)(q >= -127 && q <= 127 ? (int)q : 0);
    }
}

/* ---- q4_0: the extreme weight gets level -8 ---- */

static void quantize_q4_0(const float *x, void *block)
{
    block_q4_0 *b = block;
    float abs_max = 0, extreme = 0;

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, Q4_0_ELEMS)) {
        half_put(b->d, F16_NAN);
        return;
    }
    for (int e = 0; e < Q4_0_ELEMS; e++) {
        if (abs_max < fabsf(x[e])) {
            abs_max = fabsf(x[e]);
            extreme = x[e];
        }
    }
    const float d = extreme / -8;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    half_put(b->d, f16_from_f32(d));
    for (int e = 0; e < Q4_0_ELEMS; e++) {
        /* 1/d overflows when d is subnormal; the product may then be infinite or NaN. */
        const float q = x[e] * inverse + 8.5f;
        const int level = q >= 0 && q < 17 ? clamp_int((int)q, 0, 15) : 0; /* d is then 0 as f16 */
        b->qs[e % 16] |= (uint8_t)(level << 4 * (e / 16));
    }
}

/* ---- q6_K: q = 32 + round(x / scale), scale of either sign ---- */

static int q6_level(float x, float inverse)
{
    return clamp_int(nearest_int(inverse * x), -Q6_MAX, Q6_MAX - 1);
}

/* Sums of the least-squares fit x ~ scale * level with weights x^2. */
static void q6_sums(const float *x, float inverse, float *sum_xl, float *sum_l2)
{
    *sum_xl = 0;
    *sum_l2 = 0;
    for (int i = 0; i < Q6_GROUP; i++) {
        const float level = (float)q6_level(x[i], inverse);
        const float weight = x[i] * x[i];
        *sum_xl += weight * x[i] * level;
        *sum_l2 += weight * level * level;
    }
}

/* The best scale of one group, and its levels (ggml: make_qx_quants with rmse_type 1): starts with
 * the extreme weight on level -32 and tries 18 scales nearby. */
static float q6_fit_group(const float *x, uint8_t *q)
{
    float abs_max = 0, extreme = 0;
    float sum_xl, sum_l2;

    for (int i = 0; i < Q6_GROUP; i++) {
        if (fabsf(x[i]) > abs_max) {
            abs_max = fabsf(x[i]);
            extreme = x[i];
        }
    }
    if (abs_max < GROUP_MIN_ABS) {
        memset(q, 0, Q6_GROUP);
        return 0;
    }
    float best_inverse = (float)-Q6_MAX / extreme;
    q6_sums(x, best_inverse, &sum_xl, &sum_l2);
    float scale = sum_l2 != 0 ? sum_xl / sum_l2 : 0.0f;
    float best = scale * sum_xl;
    for (int step = -Q6_N_STEPS; step <= Q6_N_STEPS; step++) {
        if (step == 0) {
            continue;
        }
        const float inverse = -((float)Q6_MAX + 0.1f * (float)step) / extreme;
        q6_sums(x, inverse, &sum_xl, &sum_l2);
        if (sum_l2 > 0 && sum_xl * sum_xl > best * sum_l2) {
            best_inverse = inverse;
            scale = sum_xl / sum_l2;
            best = scale * sum_xl;
        }
    }
    for (int i = 0; i < Q6_GROUP; i++) {
        q[i] = (uint8_t)(Q6_MAX + q6_level(x[i], best_inverse));
    }
    return scale;
}

static void quantize_q6_K(const float *x, void *block)
{
    block_q6_K *b = block;
    uint8_t q[QK_K];
    float scales[Q6_N_GROUPS];

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return;
    }
    for (int g = 0; g < Q6_N_GROUPS; g++) {
        scales[g] = q6_fit_group(x + Q6_GROUP * g, q + Q6_GROUP * g);
    }
    if (!q6_K_put_scales(b, scales)) {
        return;
    }
    for (int g = 0; g < Q6_N_GROUPS; g++) {
        if (scales[g] == 0) {
            continue; /* the levels of the fit stay; they decode to zero */
        }
        for (int i = 0; i < Q6_GROUP; i++) {
            const int l = nearest_int(x[Q6_GROUP * g + i] / scales[g]);
            q[Q6_GROUP * g + i] = (uint8_t)(Q6_MAX + clamp_int(l, -Q6_MAX, Q6_MAX - 1));
        }
    }
    q6_K_put_levels(b, q);
}

/* ---- q3_K: q = 4 + round(x / scale), scale of either sign ---- */

enum { Q3_GROUP = 16, Q3_MAX = 4 };

/* One pass over the group: moves each level to where the others want it, if the fit gets better. */
static bool q3_improve(const float x[Q3_GROUP], int levels[Q3_GROUP], float *sum_xl, float *sum_l2)
{
    bool changed = false;

    for (int i = 0; i < Q3_GROUP; i++) {
        const float weight = x[i] * x[i];
        float xl = *sum_xl - weight * x[i] * (float)levels[i];
        if (!(xl > 0)) {
            continue;
        }
        float l2 = *sum_l2 - weight * (float)levels[i] * (float)levels[i];
        const int level = clamp_int(nearest_int(x[i] * l2 / xl), -Q3_MAX, Q3_MAX - 1);
        if (level == levels[i]) {
            continue;
        }
        xl += weight * x[i] * (float)level;
        l2 += weight * (float)level * (float)level;
        if (l2 > 0 && xl * xl * *sum_l2 > *sum_xl * *sum_xl * l2) {
            levels[i] = level;
            *sum_xl = xl;
            *sum_l2 = l2;
            changed = true;
        }
    }
    return changed;
}

/* The best scale of one group, and its levels + 4 (ggml: make_q3_quants with do_rmse). */
static float q3_fit_group(const float x[Q3_GROUP], uint8_t q[Q3_GROUP])
{
    int levels[Q3_GROUP];
    float abs_max = 0, extreme = 0, sum_xl = 0, sum_l2 = 0;

    for (int i = 0; i < Q3_GROUP; i++) {
        if (fabsf(x[i]) > abs_max) {
            abs_max = fabsf(x[i]);
            extreme = x[i];
        }
    }
    if (abs_max < GROUP_MIN_ABS) {
        memset(q, 0, Q3_GROUP);
        return 0;
    }
    const float inverse = (float)-Q3_MAX / extreme;
    for (int i = 0; i < Q3_GROUP; i++) {
        const float weight = x[i] * x[i];
        levels[i] = clamp_int(nearest_int(inverse * x[i]), -Q3_MAX, Q3_MAX - 1);
        sum_xl += weight * x[i] * (float)levels[i];
        sum_l2 += weight * (float)levels[i] * (float)levels[i];
    }
    for (int pass = 0; pass < 5 && q3_improve(x, levels, &sum_xl, &sum_l2); pass++) {
    }
    for (int i = 0; i < Q3_GROUP; i++) {
        q[i] = (uint8_t)(levels[i] + Q3_MAX);
    }
    return sum_l2 > 0 ? sum_xl / sum_l2 : 0.0f;
}

static void q3_put_scale(uint8_t scales[12], int g, int scale)
{
    scales[g % 8] |= (uint8_t)((scale & 15) << 4 * (g / 8));
    scales[8 + g % 4] |= (uint8_t)(scale >> 4 << 2 * (g / 4));
}

static void quantize_q3_K(const float *x, void *block)
{
    block_q3_K *b = block;
    uint8_t q[QK_K];
    float scales[QK_K / Q3_GROUP];
    float abs_max = 0, extreme = 0;

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return;
    }
    for (int g = 0; g < QK_K / Q3_GROUP; g++) {
        scales[g] = q3_fit_group(x + Q3_GROUP * g, q + Q3_GROUP * g);
        if (fabsf(scales[g]) > abs_max) {
            abs_max = fabsf(scales[g]);
            extreme = scales[g];
        }
    }
    if (extreme != 0) {
        const float inverse = -32.0f / extreme;
        for (int g = 0; g < QK_K / Q3_GROUP; g++) {
            q3_put_scale(b->scales, g, clamp_int(nearest_int(inverse * scales[g]), -32, 31) + 32);
        }
        half_put(b->d, f16_from_f32(1 / inverse));
    }
    for (int g = 0; g < QK_K / Q3_GROUP; g++) {
        const float scale = f16_to_f32(half_get(b->d)) * (float)(q3_K_scale(b->scales, g) - 32);
        for (int i = 0; scale != 0 && i < Q3_GROUP; i++) {
            const int level = nearest_int(x[Q3_GROUP * g + i] / scale);
            q[Q3_GROUP * g + i] = (uint8_t)(clamp_int(level, -Q3_MAX, Q3_MAX - 1) + Q3_MAX);
        }
    }
    for (int e = 0; e < QK_K; e++) {
        b->hmask[e % 32] |= (uint8_t)(q[e] >> 2 << e / 32);
        b->qs[32 * (e / 128) + e % 32] |= (uint8_t)((q[e] & 3) << 2 * (e % 128 / 32));
    }
}

/* ---- q2_K, q4_K and q5_K: x ~ scale * q - min, both >= 0 ---- */

static const affine AFFINE_Q5_K = {Q4_GROUP, 31, 15, -0.5f, false};

static void affine_levels(const affine *a, const float *x, float inverse, float min, uint8_t *q)
{
    for (int i = 0; i < a->n_elems; i++) {
        q[i] = (uint8_t)clamp_int(nearest_int(inverse * (x[i] - min)), 0, a->q_max);
    }
}

static float affine_error(const affine *a, const float *x, const float *weights, const uint8_t *q,
                          float scale, float min)
{
    float sum = 0;

    for (int i = 0; i < a->n_elems; i++) {
        const float diff = scale * (float)q[i] + min - x[i];
        sum += weights[i] * (a->use_abs ? fabsf(diff) : diff * diff);
    }
    return sum;
}

/* Weighted least squares of x ~ scale * q + min for given levels, min <= 0. False when the levels
 * do not determine a line. */
static bool affine_solve(const affine *a, const float *x, const float *weights, const uint8_t *q,
                         float sum_w, float sum_x, float *scale, float *min)
{
    float sum_l = 0, sum_l2 = 0, sum_xl = 0;

    for (int i = 0; i < a->n_elems; i++) {
        const float level = (float)q[i];
        sum_l += weights[i] * level;
        sum_l2 += weights[i] * level * level;
        sum_xl += weights[i] * level * x[i];
    }
    const float determinant = sum_w * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0)) {
        return false;
    }
    *scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    *min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    if (*min > 0) {
        *min = 0;
        *scale = sum_xl / sum_l2;
    }
    return true;
}

/* The best scale and levels of one group; *offset gets -min (ggml: make_qkx2_quants). */
static float affine_fit_group(const affine *a, const float *x, const float *weights, uint8_t *q,
                              float *offset)
{
    uint8_t trial[32];
    float min = x[0], max = x[0];
    float sum_w = weights[0];
    float sum_x = sum_w * x[0];

    for (int i = 1; i < a->n_elems; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
        sum_w += weights[i];
        sum_x += weights[i] * x[i];
    }
    min = min > 0 ? 0 : min;
    if (max == min) {
        memset(q, 0, (size_t)a->n_elems);
        *offset = -min;
        return 0;
    }
    float inverse = (float)a->q_max / (max - min);
    float scale = 1 / inverse;
    affine_levels(a, x, inverse, min, q);
    float best_error = affine_error(a, x, weights, q, scale, min);
    for (int step = 0; step <= a->n_steps; step++) {
        float trial_scale, trial_min;
        /* min is the best so far, not the group's: later trials start from it, as in ggml. */
        inverse = (a->first + 0.1f * (float)step + (float)a->q_max) / (max - min);
        affine_levels(a, x, inverse, min, trial);
        if (!affine_solve(a, x, weights, trial, sum_w, sum_x, &trial_scale, &trial_min)) {
            continue;
        }
        const float error = affine_error(a, x, weights, trial, trial_scale, trial_min);
        if (error < best_error) {
            memcpy(q, trial, (size_t)a->n_elems);
            best_error = error;
            scale = trial_scale;
            min = trial_min;
        }
    }
    *offset = -min;
    return scale;
}

/* Levels again, now with the scale and min that the block really stores. */
static void affine_requantize(const affine *a, const float *x, float scale, float min, uint8_t *q)
{
    if (scale == 0) {
        return; /* the levels of the fit stay */
    }
    for (int i = 0; i < a->n_elems; i++) {
        q[i] = (uint8_t)clamp_int(nearest_int((x[i] + min) / scale), 0, a->q_max);
    }
}

static void quantize_q2_K(const float *x, void *block)
{
    block_q2_K *b = block;
    uint8_t q[QK_K];
    float weights[Q2_GROUP], scales[Q2_N_GROUPS], mins[Q2_N_GROUPS];

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return;
    }
    for (int g = 0; g < Q2_N_GROUPS; g++) {
        const float *xg = x + Q2_GROUP * g;
        for (int i = 0; i < Q2_GROUP; i++) {
            weights[i] = fabsf(xg[i]);
        }
        scales[g] = affine_fit_group(&AFFINE_Q2_K, xg, weights, q + Q2_GROUP * g, &mins[g]);
    }
    q2_K_put_scales(b, scales, mins);
    for (int g = 0; g < Q2_N_GROUPS; g++) {
        affine_requantize(&AFFINE_Q2_K, x + Q2_GROUP * g, scales[g], mins[g], q + Q2_GROUP * g);
    }
    q2_K_put_levels(b, q);
}

/* d, dmin and scales into a block of zeros, and the levels of both q4_K and q5_K. False when a
 * weight is not finite: d is then NaN. */
static bool q4_K_fit(const affine *a, const float *x, block_q4_K *b, uint8_t q[QK_K])
{
    float weights[Q4_GROUP], scales[Q4_N_GROUPS], mins[Q4_N_GROUPS];

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return false;
    }
    for (int g = 0; g < Q4_N_GROUPS; g++) {
        const float *xg = x + Q4_GROUP * g;
        float sum_x2 = 0;
        for (int i = 0; i < Q4_GROUP; i++) {
            sum_x2 += xg[i] * xg[i];
        }
        const float rms = sqrtf(sum_x2 / (float)Q4_GROUP);
        for (int i = 0; i < Q4_GROUP; i++) {
            weights[i] = rms + fabsf(xg[i]);
        }
        scales[g] = affine_fit_group(a, xg, weights, q + Q4_GROUP * g, &mins[g]);
    }
    q4_K_put_scales(b, scales, mins);
    for (int g = 0; g < Q4_N_GROUPS; g++) {
        affine_requantize(a, x + Q4_GROUP * g, scales[g], mins[g], q + Q4_GROUP * g);
    }
    return true;
}

static void quantize_q4_K(const float *x, void *block)
{
    block_q4_K *b = block;
    uint8_t q[QK_K];

    if (q4_K_fit(&AFFINE_Q4_K, x, b, q)) {
        q4_K_put_levels(b, q);
    }
}

static void quantize_q5_K(const float *x, void *block)
{
    block_q5_K *b = block;
    uint8_t q[QK_K];
    block_q4_K head; /* the same up to the levels */

    const bool ok = q4_K_fit(&AFFINE_Q5_K, x, &head, q);
    memset(b, 0, sizeof(*b));
    memcpy(b, &head, offsetof(block_q4_K, qs));
    for (int e = 0; ok && e < QK_K; e++) {
        b->qs[32 * (e / 64) + e % 32] |= (uint8_t)((q[e] & 15) << 4 * (e % 64 / 32));
        b->qh[e % 32] |= (uint8_t)(q[e] >> 4 << e / 32);
    }
}

/* ---- plain types: blocks of one ---- */

static void quantize_f32(const float *x, void *y)
{
    memcpy(y, x, sizeof *x);
}

static void quantize_f16(const float *x, void *y)
{
    half_put(y, f16_from_f32(*x));
}

static void quantize_bf16(const float *x, void *y)
{
    half_put(y, bf16_from_f32(*x));
}

/* ---- rows ---- */

static block_quantizer *const QUANTIZERS[] = {
    [DTYPE_F32] = quantize_f32, [DTYPE_F16] = quantize_f16,
    [DTYPE_BF16] = quantize_bf16, [DTYPE_Q4_0] = quantize_q4_0,
    [DTYPE_Q8_0] = quantize_q8_0, [DTYPE_Q2_K] = quantize_q2_K,
    [DTYPE_Q3_K] = quantize_q3_K, [DTYPE_Q4_K] = quantize_q4_K,
    [DTYPE_Q5_K] = quantize_q5_K, [DTYPE_Q6_K] = quantize_q6_K,
};

void quantize_row_ref(dtype type, const float *x, void *y, int64_t n)
{
    if (quant_supported(type)) {
        quantize_blocks(type, QUANTIZERS[type], x, y, n);
    }
}
