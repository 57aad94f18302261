/* quantize_body.h: floats to blocks, the bits of quantize_ref.c many times faster; a part of
 * kernels_body.h, once for all instruction sets.
 *
 * The one idea: the search for the scale of a group is a long chain of float operations, but the
 * groups of a row know nothing of each other. So 16 groups are fitted at once, one group per lane:
 * the weights are transposed to x[element][lane], every lane goes through the very operations of
 * the reference in the reference's order (nothing is reassociated or fused; division and square
 * root are exact to the last bit in vectors too), and each `if` becomes a selection. 16 groups are
 * one super-block of q2_K and q6_K, two of q4_K.
 *
 * The search keeps no levels, only the line they were rounded on: almost always they are replaced
 * at the end, by levels for the scales that the block really stores. That last step is element by
 * element and runs on the row as it lies. */
#ifndef QUANT_QUANTIZE_BODY_H
#define QUANT_QUANTIZE_BODY_H

#include "quant/quantize_pack.h"

enum { MAX_GROUP = 32, CACHE_LINE = 64 };

/* ---- steps shared by the types ---- */

static inline bool all_finite(const float *x, int n)
{
    uint32_t max = 0;

    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof(bits));
        bits &= 0x7fffffff;
        max = bits > max ? bits : max;
    }
    return max < 0x7f800000;
}

/* clamp(nearest_int(v), lo, hi), also where that gives "some integer": the float of exponent 2^23
 * and of the mantissa that nearest_int reads off stands for the integer until it is clamped. */
static inline v16 nearest_clamped(v16 v, float lo, float hi)
{
    const v16 shifted = v16_mantissa(v16_add(v, v16_set1(ROUND_MAGIC)));
    const v16 clamped = v16_clamp(shifted, ROUND_MAGIC + lo, ROUND_MAGIC + hi);
    return v16_sub(clamped, v16_set1(ROUND_MAGIC));
}

static inline void zip_rows(const v16 in[LANES], v16 out[LANES])
{
    for (int i = 0; i < LANES / 2; i++) {
        out[2 * i] = v16_zip_lo(in[i], in[i + LANES / 2]);
        out[2 * i + 1] = v16_zip_hi(in[i], in[i + LANES / 2]);
    }
}

/* out[16 * e + l] = x[stride * l + e] for e, l < 16. A zip of rows rotates the eight bits of an
 * element's position (row, column) by one, so four of them exchange rows and columns. */
static inline void transpose(const float *x, int stride, float *out)
{
    v16 a[LANES], b[LANES];

    for (int l = 0; l < LANES; l++) {
        a[l] = v16_load(x + stride * l);
    }
    zip_rows(a, b);
    zip_rows(b, a);
    zip_rows(a, b);
    zip_rows(b, a);
    for (int e = 0; e < LANES; e++) {
        v16_store(out + LANES * e, a[e]);
    }
}

/* ---- q8_0 ---- */

/* roundf (ties away from zero) where the result is within +-127, else 0; NaN gives 0. */
static inline v16 q8_levels(v16 v)
{
    const v16 magic = v16_set1(ROUND_MAGIC), zero = v16_set1(0.0f);
    const v16 size = v16_abs(v);
    const v16 even = v16_sub(v16_add(size, magic), magic);
    const m16 was_tie = v16_eq(v16_sub(size, even), v16_set1(0.5f)); /* went down to the even one */
    const v16 rounded = v16_add(even, v16_select(was_tie, v16_set1(1.0f), zero));
    const v16 level = v16_select(v16_lt(rounded, v16_set1(127.5f)), rounded, zero);
    return v16_select(v16_lt(v, zero), v16_sub(zero, level), level);
}

static void quantize_q8_0(const float *x, void *block)
{
    block_q8_0 *b = block;
    uint32_t max_bits = 0; /* of floats without sign, the larger has the larger bits */
    float abs_max;

    for (int e = 0; e < Q8_0_ELEMS; e++) {
        uint32_t bits;
        memcpy(&bits, x + e, sizeof(bits));
        bits &= 0x7fffffff;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    if (max_bits >= 0x7f800000) {
        memset(b, 0, sizeof(*b));
        half_put(b->d, F16_NAN);
        return;
    }
    memcpy(&abs_max, &max_bits, sizeof(abs_max));
    const float d = abs_max / 127.0f;
    const v16 inverse = v16_set1(d != 0 ? 1.0f / d : 0.0f);
    half_put(b->d, f16_from_f32(d));
    for (int e = 0; e < Q8_0_ELEMS; e += LANES) {
        v16_to_bytes(b->qs + e, q8_levels(v16_mul(v16_load(x + e), inverse)));
    }
}

/* ---- q6_K ---- */

typedef struct q6_fit {
    float scale[LANES];
    float inverse[LANES]; /* levels: round(inverse * x); 0: a tiny group, all -32 */
} q6_fit;

static inline v16 q6_levels(v16 v)
{
    return nearest_clamped(v, -(float)Q6_MAX, (float)Q6_MAX - 1.0f);
}

static inline void q6_sums(const float *x, v16 inverse, v16 *sum_xl, v16 *sum_l2)
{
    *sum_xl = v16_set1(0.0f);
    *sum_l2 = v16_set1(0.0f);
    for (int i = 0; i < Q6_GROUP; i++) {
        const v16 xi = v16_load(x + LANES * i);
        const v16 level = q6_levels(v16_mul(inverse, xi));
        const v16 weight = v16_mul(xi, xi);
        *sum_xl = v16_add(*sum_xl, v16_mul(v16_mul(weight, xi), level));
        *sum_l2 = v16_add(*sum_l2, v16_mul(v16_mul(weight, level), level));
    }
}

/* q6_fit_group of quantize_ref.c; x [element][lane]. */
static void q6_fit_lanes(const float *x, q6_fit *fit)
{
    const v16 zero = v16_set1(0.0f);
    v16 abs_max = zero, extreme = zero;
    v16 sum_xl, sum_l2;

    for (int i = 0; i < Q6_GROUP; i++) {
        const v16 xi = v16_load(x + LANES * i);
        const m16 larger = v16_lt(abs_max, v16_abs(xi));
        abs_max = v16_select(larger, v16_abs(xi), abs_max);
        extreme = v16_select(larger, xi, extreme);
    }
    v16 best_inverse = v16_div(v16_set1(-(float)Q6_MAX), extreme);
    q6_sums(x, best_inverse, &sum_xl, &sum_l2);
    v16 scale = v16_select(v16_eq(sum_l2, zero), zero, v16_div(sum_xl, sum_l2));
    v16 best = v16_mul(scale, sum_xl);
    for (int step = -Q6_N_STEPS; step <= Q6_N_STEPS; step++) {
        if (step == 0) {
            continue;
        }
        const v16 inverse = v16_div(v16_set1(-((float)Q6_MAX + 0.1f * (float)step)), extreme);
        q6_sums(x, inverse, &sum_xl, &sum_l2);
        const m16 better = m16_and(v16_lt(zero, sum_l2),
                                   v16_lt(v16_mul(best, sum_l2), v16_mul(sum_xl, sum_xl)));
        best_inverse = v16_select(better, inverse, best_inverse);
        scale = v16_select(better, v16_div(sum_xl, sum_l2), scale);
        best = v16_select(better, v16_mul(scale, sum_xl), best);
    }
    const m16 is_tiny = v16_lt(abs_max, v16_set1(GROUP_MIN_ABS));
    v16_store(fit->scale, v16_select(is_tiny, zero, scale));
    v16_store(fit->inverse, v16_select(is_tiny, zero, best_inverse));
}

static void quantize_q6_K(const float *x, void *block)
{
    block_q6_K *b = block;
    _Alignas(CACHE_LINE) float lanes[QK_K];
    uint8_t q[QK_K];
    q6_fit fit;

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return;
    }
    transpose(x, Q6_GROUP, lanes);
    q6_fit_lanes(lanes, &fit);
    if (!q6_K_put_scales(b, fit.scale)) {
        return;
    }
    for (int g = 0; g < Q6_N_GROUPS; g++) {
        const v16 xg = v16_load(x + Q6_GROUP * g);
        const bool keep = fit.scale[g] == 0; /* the levels of the fit stay; they decode to zero */
        const v16 level = q6_levels(keep ? v16_mul(v16_set1(fit.inverse[g]), xg)
                                         : v16_div(xg, v16_set1(fit.scale[g])));
        const bool is_tiny = keep && fit.inverse[g] == 0;
        v16_to_bytes(q + Q6_GROUP * g,
                     is_tiny ? v16_set1(0.0f) : v16_add(level, v16_set1((float)Q6_MAX)));
    }
    q6_K_put_levels(b, q);
}

/* ---- q2_K and q4_K ---- */

typedef struct affine_fit {
    float scale[LANES], offset[LANES]; /* x ~ scale * q - offset */
    float inverse[LANES], from[LANES]; /* the levels: round(inverse * (x - from)) */
} affine_fit;

/* What the least squares of a trial need. */
typedef struct level_sums {
    v16 l, l2, xl;
} level_sums;

/* Levels of a trial, and affine_solve's sums over them. */
static inline level_sums affine_levels(const affine *a, const float *x, const float *weights,
                                       v16 inverse, v16 from, float *levels)
{
    const float q_max = (float)a->q_max;
    level_sums s = {v16_set1(0.0f), v16_set1(0.0f), v16_set1(0.0f)};

    for (int i = 0; i < a->n_elems; i++) {
        const v16 xi = v16_load(x + LANES * i);
        const v16 level = nearest_clamped(v16_mul(inverse, v16_sub(xi, from)), 0.0f, q_max);
        const v16 weighted = v16_mul(v16_load(weights + LANES * i), level);
        v16_store(levels + LANES * i, level);
        s.l = v16_add(s.l, weighted);
        s.l2 = v16_add(s.l2, v16_mul(weighted, level));
        s.xl = v16_add(s.xl, v16_mul(weighted, xi));
    }
    return s;
}

static inline v16 affine_error(const affine *a, const float *x, const float *weights,
                               const float *levels, v16 scale, v16 min)
{
    v16 sum = v16_set1(0.0f);

    for (int i = 0; i < a->n_elems; i++) {
        const v16 line = v16_add(v16_mul(scale, v16_load(levels + LANES * i)), min);
        const v16 diff = v16_sub(line, v16_load(x + LANES * i));
        const v16 error = a->use_abs ? v16_abs(diff) : v16_mul(diff, diff);
        sum = v16_add(sum, v16_mul(v16_load(weights + LANES * i), error));
    }
    return sum;
}

/* Lanes of the result: the levels determine a line. */
static inline m16 affine_solve(const level_sums *s, v16 sum_w, v16 sum_x, v16 *scale, v16 *min)
{
    const v16 zero = v16_set1(0.0f);
    const v16 determinant = v16_sub(v16_mul(sum_w, s->l2), v16_mul(s->l, s->l));

    *scale = v16_div(v16_sub(v16_mul(sum_w, s->xl), v16_mul(sum_x, s->l)), determinant);
    *min = v16_div(v16_sub(v16_mul(s->l2, sum_x), v16_mul(s->l, s->xl)), determinant);
    const m16 above = v16_lt(zero, *min);
    *min = v16_select(above, zero, *min);
    *scale = v16_select(above, v16_div(s->xl, s->l2), *scale);
    return v16_lt(zero, determinant);
}

/* affine_fit_group of quantize_ref.c; x and weights [element][lane]. A group of equal weights needs
 * no case of its own: its range is zero, so its levels are round(infinity * 0), which counts as 0;
 * they determine no line in any trial, and scale stays 1 / infinity. */
static inline void affine_fit_lanes(const affine *a, const float *x, const float *weights,
                                    affine_fit *fit)
{
    _Alignas(CACHE_LINE) float levels[MAX_GROUP * LANES];
    const v16 zero = v16_set1(0.0f), q_max = v16_set1((float)a->q_max);
    v16 min = v16_load(x), max = min;
    v16 sum_w = v16_load(weights);
    v16 sum_x = v16_mul(sum_w, min);

    for (int i = 1; i < a->n_elems; i++) {
        const v16 xi = v16_load(x + LANES * i), weight = v16_load(weights + LANES * i);
        min = v16_select(v16_lt(xi, min), xi, min);
        max = v16_select(v16_lt(max, xi), xi, max);
        sum_w = v16_add(sum_w, weight);
        sum_x = v16_add(sum_x, v16_mul(weight, xi));
    }
    min = v16_select(v16_lt(zero, min), zero, min);
    v16 best_inverse = v16_div(q_max, v16_sub(max, min)), best_from = min;
    v16 scale = v16_div(v16_set1(1.0f), best_inverse);
    affine_levels(a, x, weights, best_inverse, min, levels);
    v16 best_error = affine_error(a, x, weights, levels, scale, min);
    for (int step = 0; step <= a->n_steps; step++) {
        const v16 n_levels = v16_set1(a->first + 0.1f * (float)step + (float)a->q_max);
        const v16 inverse = v16_div(n_levels, v16_sub(max, min));
        const level_sums sums = affine_levels(a, x, weights, inverse, min, levels);
        v16 trial_scale, trial_min;
        const m16 solved = affine_solve(&sums, sum_w, sum_x, &trial_scale, &trial_min);
        const v16 error = affine_error(a, x, weights, levels, trial_scale, trial_min);
        const m16 better = m16_and(solved, v16_lt(error, best_error));
        best_inverse = v16_select(better, inverse, best_inverse);
        best_from = v16_select(better, min, best_from);
        best_error = v16_select(better, error, best_error);
        scale = v16_select(better, trial_scale, scale);
        min = v16_select(better, trial_min, min);
    }
    v16_store(fit->scale, scale);
    v16_store(fit->offset, v16_sub(v16_set1(-0.0f), min));
    v16_store(fit->inverse, best_inverse);
    v16_store(fit->from, best_from);
}

/* The levels of a group for the scale and offset that its block stores, `fit` being what the search
 * found for it in lane l. */
static inline void affine_requantize(const affine *a, const float *x, float scale, float offset,
                                     const affine_fit *fit, int l, uint8_t *q)
{
    for (int i = 0; i < a->n_elems; i += LANES) {
        const v16 xi = v16_load(x + i);
        const v16 v = scale == 0 /* the levels of the fit stay */
                          ? v16_mul(v16_set1(fit->inverse[l]), v16_sub(xi, v16_set1(fit->from[l])))
                          : v16_div(v16_add(xi, v16_set1(offset)), v16_set1(scale));
        v16_to_bytes(q + i, nearest_clamped(v, 0.0f, (float)a->q_max));
    }
}

static void quantize_q2_K(const float *x, void *block)
{
    block_q2_K *b = block;
    _Alignas(CACHE_LINE) float lanes[QK_K], weights[QK_K];
    float scales[Q2_N_GROUPS], mins[Q2_N_GROUPS];
    uint8_t q[QK_K];
    affine_fit fit;

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return;
    }
    transpose(x, Q2_GROUP, lanes);
    for (int i = 0; i < QK_K; i += LANES) {
        v16_store(weights + i, v16_abs(v16_load(lanes + i)));
    }
    affine_fit_lanes(&AFFINE_Q2_K, lanes, weights, &fit);
    memcpy(scales, fit.scale, sizeof(scales));
    memcpy(mins, fit.offset, sizeof(mins));
    q2_K_put_scales(b, scales, mins);
    for (int g = 0; g < Q2_N_GROUPS; g++) {
        affine_requantize(&AFFINE_Q2_K, x + Q2_GROUP * g, scales[g], mins[g], &fit, g,
                          q + Q2_GROUP * g);
    }
    q2_K_put_levels(b, q);
}

/* One super-block, whose groups were fitted in lanes first .. first + 7. */
static inline void finish_q4_K(const float *x, const affine_fit *fit, int first, block_q4_K *b)
{
    float scales[Q4_N_GROUPS], mins[Q4_N_GROUPS];
    uint8_t q[QK_K];

    memset(b, 0, sizeof(*b));
    if (!all_finite(x, QK_K)) {
        half_put(b->d, F16_NAN);
        return;
    }
    memcpy(scales, fit->scale + first, sizeof(scales));
    memcpy(mins, fit->offset + first, sizeof(mins));
    q4_K_put_scales(b, scales, mins);
    for (int g = 0; g < Q4_N_GROUPS; g++) {
        affine_requantize(&AFFINE_Q4_K, x + Q4_GROUP * g, scales[g], mins[g], fit, first + g,
                          q + Q4_GROUP * g);
    }
    q4_K_put_levels(b, q);
}

static void quantize_2_q4_K(const float *x, block_q4_K *b)
{
    _Alignas(CACHE_LINE) float lanes[2 * QK_K], weights[2 * QK_K];
    v16 sum_x2 = v16_set1(0.0f);
    affine_fit fit;

    transpose(x, Q4_GROUP, lanes);
    transpose(x + LANES, Q4_GROUP, lanes + LANES * LANES);
    for (int i = 0; i < 2 * QK_K; i += LANES) {
        const v16 xi = v16_load(lanes + i);
        sum_x2 = v16_add(sum_x2, v16_mul(xi, xi));
    }
    const v16 rms = v16_sqrt(v16_div(sum_x2, v16_set1((float)Q4_GROUP)));
    for (int i = 0; i < 2 * QK_K; i += LANES) {
        v16_store(weights + i, v16_add(rms, v16_abs(v16_load(lanes + i))));
    }
    affine_fit_lanes(&AFFINE_Q4_K, lanes, weights, &fit);
    finish_q4_K(x, &fit, 0, b);
    finish_q4_K(x + QK_K, &fit, Q4_N_GROUPS, b + 1);
}

static void quantize_row_q4_K(const float *x, block_q4_K *b, int64_t n_blocks)
{
    int64_t i = 0;

    for (; i + 2 <= n_blocks; i += 2) {
        quantize_2_q4_K(x + i * QK_K, b + i);
    }
    if (i < n_blocks) { /* the last one, beside one of zeros */
        float two[2 * QK_K] = {0};
        block_q4_K blocks[2];
        memcpy(two, x + i * QK_K, QK_K * sizeof(float));
        quantize_2_q4_K(two, blocks);
        b[i] = blocks[0];
    }
}

/* ---- halves ---- */

static inline void quantize_f16(const float x[LANES], uint16_t y[LANES])
{
    v16_to_f16(y, v16_load(x));
}

static inline void quantize_bf16(const float x[LANES], uint16_t y[LANES])
{
    for (int l = 0; l < LANES; l++) { /* bf16_from_f32 of half.c */
        uint32_t bits;
        memcpy(&bits, x + l, sizeof(bits));
        const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
        y[l] = (uint16_t)((is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

static inline void quantize_halves(const float *x, uint8_t *y, int64_t n,
                                   void (*quantize)(const float *x, uint16_t *y))
{
    uint16_t halves[LANES];
    float padded[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        quantize(x + i, halves);
        memcpy(y + 2 * i, halves, sizeof(halves));
    }
    if (i < n) {
        memcpy(padded, x + i, (size_t)(n - i) * sizeof(float));
        quantize(padded, halves);
        memcpy(y + 2 * i, halves, (size_t)(n - i) * sizeof(uint16_t));
    }
}

/* ---- rows ---- */

static void quantize_row(dtype type, const float *x, void *y, int64_t n)
{
    switch (type) {
    case DTYPE_F16:
        quantize_halves(x, y, n, quantize_f16);
        break;
    case DTYPE_BF16:
        quantize_halves(x, y, n, quantize_bf16);
        break;
    case DTYPE_Q8_0:
        quantize_blocks(type, quantize_q8_0, x, y, n);
        break;
    case DTYPE_Q2_K:
        quantize_blocks(type, quantize_q2_K, x, y, n);
        break;
    case DTYPE_Q4_K:
        quantize_row_q4_K(x, y, n / QK_K);
        break;
    case DTYPE_Q6_K:
        quantize_blocks(type, quantize_q6_K, x, y, n);
        break;
    default: /* f32, and what has no fast form */
        quantize_row_ref(type, x, y, n);
        break;
    }
}

#endif
