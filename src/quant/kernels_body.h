/* kernels_body.h: the vector kernels, once for all instruction sets. An including file
 * (kernels_avx2.c and its siblings) first includes the simd_*.h that defines the 16 lanes, and
 * names the table.
 *
 * The one idea: the 16 partial sums of kernels.h are the 16 lanes of v16 whatever the register
 * width, so equal results on every machine follow from the types. Tails go through the same vector
 * operations on padded copies; lanes past the end are never written back. */
#include <math.h>
#include <string.h>

#include "quant/attn_ahead.h"
#include "quant/blocks.h"
#include "quant/kernels_tables.h"

enum { LANES = 16 };

#include "quant/quantize_body.h"

/* ---- partial vectors: the first m lanes, m >= 1; m >= LANES means all ---- */

static inline v16 load_n(const float *x, int64_t m)
{
    if (m >= LANES) {
        return v16_load(x);
    }
    float padded[LANES] = {0};
    memcpy(padded, x, (size_t)m * sizeof(float));
    return v16_load(padded);
}

static inline void store_n(float *y, v16 v, int64_t m)
{
    if (m >= LANES) {
        v16_store(y, v);
        return;
    }
    float all[LANES];
    v16_store(all, v);
    memcpy(y, all, (size_t)m * sizeof(float));
}

static inline v16 load_f16_n(const uint16_t *x, int64_t m)
{
    if (m >= LANES) {
        return v16_from_f16(x);
    }
    uint16_t padded[LANES] = {0};
    memcpy(padded, x, (size_t)m * sizeof(uint16_t));
    return v16_from_f16(padded);
}

/* The first m lanes of v, the others of old. */
static inline v16 merge_n(v16 v, v16 old, int64_t m)
{
    if (m >= LANES) {
        return v;
    }
    float merged[LANES];
    v16_store(merged, old);
    store_n(merged, v, m);
    return v16_load(merged);
}

/* ---- blocks to floats ---- */

/* The plain types count as blocks of 16 elements. */
typedef struct block_layout {
    int n_elems; /* a multiple of LANES and a divisor of QK_K */
    size_t n_bytes;
    void (*decode)(const void *blocks, float *y, int64_t n_blocks);
} block_layout;

static void decode_f32(const void *blocks, float *y, int64_t n_blocks)
{
    if (n_blocks > 0) { /* an empty row may have no address */
        memcpy(y, blocks, (size_t)n_blocks * LANES * sizeof(float));
    }
}

static void decode_f16(const void *blocks, float *y, int64_t n_blocks)
{
    const uint8_t *x = blocks;

    for (int64_t i = 0; i < n_blocks * LANES; i += LANES) {
        v16_store(y + i, v16_from_f16(x + 2 * i));
    }
}

static void decode_bf16(const void *blocks, float *y, int64_t n_blocks)
{
    const uint8_t *x = blocks;

    for (int64_t i = 0; i < n_blocks * LANES; i += LANES) {
        v16_store(y + i, v16_from_bf16(x + 2 * i));
    }
}

static void decode_q4_0(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q4_0 *b = blocks;
    const v16 eight = v16_set1(8.0f);

    for (int64_t i = 0; i < n_blocks; i++, b++, y += Q4_0_ELEMS) {
        const v16 d = v16_set1(f16_scale(half_get(b->d)));
        const b16 bytes = b16_load(b->qs);
        v16_store(y, v16_mul(v16_sub(v16_from_u8(b16_and(bytes, 15)), eight), d));
        v16_store(y + LANES,
                  v16_mul(v16_sub(v16_from_u8(b16_and(b16_shr(bytes, 4), 15)), eight), d));
    }
}

static void decode_q8_0(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q8_0 *b = blocks;

    for (int64_t i = 0; i < n_blocks; i++, b++, y += Q8_0_ELEMS) {
        const v16 d = v16_set1(f16_scale(half_get(b->d)));
        v16_store(y, v16_mul(v16_from_i8(b16_load(b->qs)), d));
        v16_store(y + LANES, v16_mul(v16_from_i8(b16_load(b->qs + LANES)), d));
    }
}

static inline void decode_block_q2_K(const block_q2_K *b, float *y)
{
    const float d = f16_scale(half_get(b->d));
    const float dmin = f16_scale(half_get(b->dmin));

    for (int i = 0; i < 4; i++) { /* 16 bytes hold 2 bits of four groups, 32 elements apart */
        const b16 bytes = b16_load(b->qs + 16 * i);
        for (int j = 0; j < 4; j++) {
            const int g = 8 * (i / 2) + 2 * j + i % 2;
            const v16 scale = v16_set1(d * (float)(b->scales[g] & 15));
            const v16 min = v16_set1(dmin * (float)(b->scales[g] >> 4));
            const v16 q = v16_from_u8(b16_and(b16_shr(bytes, 2 * j), 3));
            v16_store(y + 16 * g, v16_sub(v16_mul(scale, q), min));
        }
    }
}

static void decode_q2_K(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q2_K *b = blocks;

    for (int64_t i = 0; i < n_blocks; i++) {
        decode_block_q2_K(b + i, y + i * QK_K);
    }
}

static inline void decode_block_q3_K(const block_q3_K *b, float *y)
{
    const float d = f16_scale(half_get(b->d));

    for (int g = 0; g < 16; g++) { /* 16 bytes hold 2 bits of four groups, the third of eight */
        const int shift = 2 * (g % 8 / 2);
        const b16 bytes = b16_load(b->qs + 32 * (g / 8) + 16 * (g % 2));
        const b16 low = b16_and(b16_shr(bytes, shift), 3);
        const b16 high = b16_and(b16_shr(b16_load(b->hmask + 16 * (g % 2)), g / 2), 1);
        const v16 q = v16_sub(v16_from_u8(b16_or(low, b16_shl(high, 2))), v16_set1(4.0f));
        const float scale = d * (float)(q3_K_scale(b->scales, g) - 32);
        v16_store(y + 16 * g, v16_mul(v16_set1(scale), q));
    }
}

static void decode_q3_K(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q3_K *b = blocks;

    for (int64_t i = 0; i < n_blocks; i++) {
        decode_block_q3_K(b + i, y + i * QK_K);
    }
}

static inline void decode_block_q4_K(const block_q4_K *b, float *y)
{
    const float d = f16_scale(half_get(b->d));
    const float dmin = f16_scale(half_get(b->dmin));

    for (int g = 0; g < 8; g += 2) { /* 32 bytes hold group g in low nibbles, g + 1 in high ones */
        uint8_t scale_lo, min_lo, scale_hi, min_hi;
        q4_K_scale_min(b->scales, g, &scale_lo, &min_lo);
        q4_K_scale_min(b->scales, g + 1, &scale_hi, &min_hi);
        const v16 d_lo = v16_set1(d * (float)scale_lo), m_lo = v16_set1(dmin * (float)min_lo);
        const v16 d_hi = v16_set1(d * (float)scale_hi), m_hi = v16_set1(dmin * (float)min_hi);
        for (int i = 0; i < 32; i += LANES) {
            const b16 bytes = b16_load(b->qs + 16 * g + i);
            const v16 q_lo = v16_from_u8(b16_and(bytes, 15));
            const v16 q_hi = v16_from_u8(b16_and(b16_shr(bytes, 4), 15));
            v16_store(y + 32 * g + i, v16_sub(v16_mul(d_lo, q_lo), m_lo));
            v16_store(y + 32 * g + 32 + i, v16_sub(v16_mul(d_hi, q_hi), m_hi));
        }
    }
}

static void decode_q4_K(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q4_K *b = blocks;

    for (int64_t i = 0; i < n_blocks; i++) {
        decode_block_q4_K(b + i, y + i * QK_K);
    }
}

static inline void decode_block_q5_K(const block_q5_K *b, float *y)
{
    const float d = f16_scale(half_get(b->d));
    const float dmin = f16_scale(half_get(b->dmin));

    for (int g = 0; g < 8; g++) { /* as q4_K, with the fifth bits of all groups in 32 bytes */
        uint8_t scale, min;
        q4_K_scale_min(b->scales, g, &scale, &min);
        for (int i = 0; i < 32; i += LANES) {
            const b16 bytes = b16_load(b->qs + 32 * (g / 2) + i);
            const b16 low = b16_and(b16_shr(bytes, 4 * (g % 2)), 15);
            const b16 high = b16_and(b16_shr(b16_load(b->qh + i), g), 1);
            const v16 q = v16_from_u8(b16_or(low, b16_shl(high, 4)));
            v16_store(y + 32 * g + i, v16_sub(v16_mul(v16_set1(d * (float)scale), q),
                                              v16_set1(dmin * (float)min)));
        }
    }
}

static void decode_q5_K(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q5_K *b = blocks;

    for (int64_t i = 0; i < n_blocks; i++) {
        decode_block_q5_K(b + i, y + i * QK_K);
    }
}

static inline void decode_block_q6_K(const block_q6_K *b, float *y)
{
    const float d = f16_scale(half_get(b->d));

    for (int i = 0; i < 4; i++) { /* 16 bytes of qh hold the top bits of four groups */
        const int half = i / 2, part = i % 2;
        const b16 high = b16_load(b->qh + 16 * i);
        for (int j = 0; j < 4; j++) {
            const int g = 8 * half + 2 * j + part;
            const b16 low = b16_load(b->ql + 64 * half + 32 * (j % 2) + 16 * part);
            const b16 low4 = b16_and(b16_shr(low, 4 * (j / 2)), 15);
            const b16 high2 = b16_and(b16_shr(high, 2 * j), 3);
            const v16 q = v16_sub(v16_from_u8(b16_or(low4, b16_shl(high2, 4))), v16_set1(32.0f));
            v16_store(y + 16 * g, v16_mul(v16_set1(d * (float)b->scales[g]), q));
        }
    }
}

static void decode_q6_K(const void *blocks, float *y, int64_t n_blocks)
{
    const block_q6_K *b = blocks;

    for (int64_t i = 0; i < n_blocks; i++) {
        decode_block_q6_K(b + i, y + i * QK_K);
    }
}

static const block_layout LAYOUT_F32 = {LANES, LANES * sizeof(float), decode_f32};
static const block_layout LAYOUT_F16 = {LANES, LANES * sizeof(uint16_t), decode_f16};
static const block_layout LAYOUT_BF16 = {LANES, LANES * sizeof(uint16_t), decode_bf16};
static const block_layout LAYOUT_Q4_0 = {Q4_0_ELEMS, sizeof(block_q4_0), decode_q4_0};
static const block_layout LAYOUT_Q8_0 = {Q8_0_ELEMS, sizeof(block_q8_0), decode_q8_0};
static const block_layout LAYOUT_Q2_K = {QK_K, sizeof(block_q2_K), decode_q2_K};
static const block_layout LAYOUT_Q3_K = {QK_K, sizeof(block_q3_K), decode_q3_K};
static const block_layout LAYOUT_Q4_K = {QK_K, sizeof(block_q4_K), decode_q4_K};
static const block_layout LAYOUT_Q5_K = {QK_K, sizeof(block_q5_K), decode_q5_K};
static const block_layout LAYOUT_Q6_K = {QK_K, sizeof(block_q6_K), decode_q6_K};

static inline const block_layout *layout_of(dtype type)
{
    switch (type) {
    case DTYPE_F32: return &LAYOUT_F32;
    case DTYPE_F16: return &LAYOUT_F16;
    case DTYPE_BF16: return &LAYOUT_BF16;
    case DTYPE_Q4_0: return &LAYOUT_Q4_0;
    case DTYPE_Q8_0: return &LAYOUT_Q8_0;
    case DTYPE_Q2_K: return &LAYOUT_Q2_K;
    case DTYPE_Q3_K: return &LAYOUT_Q3_K;
    case DTYPE_Q4_K: return &LAYOUT_Q4_K;
    case DTYPE_Q5_K: return &LAYOUT_Q5_K;
    case DTYPE_Q6_K: return &LAYOUT_Q6_K;
    default: return NULL;
    }
}

/* The last m < n_elems elements of a row of a plain type (f32, f16, bf16). */
static void decode_tail(const block_layout *b, const uint8_t *x, float y[LANES], int64_t m)
{
    uint8_t padded[LANES * sizeof(float)] = {0};

    memcpy(padded, x, (size_t)m * (b->n_bytes / LANES));
    b->decode(padded, y, 1);
}

static void dequantize_row(dtype type, const void *x, float *y, int64_t n)
{
    const block_layout *b = layout_of(type);

    if (b == NULL) { /* not quant_supported: never numbers that look right */
        for (int64_t i = 0; i < n; i++) {
            y[i] = NAN;
        }
        return;
    }
    const int64_t n_blocks = n / b->n_elems;
    const int64_t n_tail = n % b->n_elems;
    b->decode(x, y, n_blocks);
    if (n_tail > 0 && b->n_elems == LANES) {
        float tail[LANES];
        decode_tail(b, (const uint8_t *)x + (size_t)n_blocks * b->n_bytes, tail, n_tail);
        memcpy(y + n - n_tail, tail, (size_t)n_tail * sizeof(float));
    }
}

/* ---- dots ---- */

static inline v16 dot_add(v16 sum, const float *x, const float *y, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        sum = v16_fma(v16_load(x + i), v16_load(y + i), sum);
    }
    if (i < n) {
        sum = merge_n(v16_fma(load_n(x + i, n - i), load_n(y + i, n - i), sum), sum, n - i);
    }
    return sum;
}

static float vec_dot_f32(const float *x, const float *y, int64_t n)
{
    return v16_reduce(dot_add(v16_set1(0), x, y, n));
}

#include "quant/plain_body.h"

/* ---- attention ---- */

#include "quant/attn_body.h"

/* ---- element by element ---- */

static void vec_mad_f32(float *y, const float *x, float a, int64_t n)
{
    const v16 factor = v16_set1(a);

    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t m = n - i;
        store_n(y + i, v16_fma(factor, load_n(x + i, m), load_n(y + i, m)), m);
    }
}

static void rms_norm(const float *x, const float *w, float *y, int64_t n, float eps)
{
    const float mean = vec_dot_f32(x, x, n) / (float)n;
    const v16 scale = v16_set1(1.0f / sqrtf(mean + eps));

    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t m = n - i;
        store_n(y + i, v16_mul(v16_mul(load_n(x + i, m), scale), load_n(w + i, m)), m);
    }
}

static void rope(float *head, const float *cos_in, const float *sin_in, int64_t half)
{
    for (int64_t i = 0; i < half; i += LANES) {
        const int64_t m = half - i;
        const v16 a = load_n(head + i, m), b = load_n(head + half + i, m);
        const v16 c = load_n(cos_in + i, m), s = load_n(sin_in + i, m);
        store_n(head + i, v16_sub(v16_mul(a, c), v16_mul(b, s)), m);
        store_n(head + half + i, v16_add(v16_mul(b, c), v16_mul(a, s)), m);
    }
}

/* expf_poly.h explains the steps. */
static inline v16 v16_exp(v16 x)
{
    x = v16_clamp(x, EXPF_LO, EXPF_HI);
    const v16 t = v16_fma(x, v16_set1(EXPF_LOG2E), v16_set1(EXPF_SHIFT));
    const v16 k = v16_sub(t, v16_set1(EXPF_SHIFT));
    const v16 r =
        v16_fma(k, v16_set1(-EXPF_LN2_LO), v16_fma(k, v16_set1(-EXPF_LN2_HI), x));
    v16 p = v16_set1(EXPF_C7);
    p = v16_fma(p, r, v16_set1(EXPF_C6));
    p = v16_fma(p, r, v16_set1(EXPF_C5));
    p = v16_fma(p, r, v16_set1(EXPF_C4));
    p = v16_fma(p, r, v16_set1(EXPF_C3));
    p = v16_fma(p, r, v16_set1(EXPF_C2));
    p = v16_fma(p, r, v16_set1(1.0f));
    p = v16_fma(p, r, v16_set1(1.0f));
    return v16_mul_pow2(p, t);
}

static void swiglu(const float *gate, const float *up, float *y, int64_t n)
{
    const v16 one = v16_set1(1.0f), minus_zero = v16_set1(-0.0f);

    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t m = n - i;
        const v16 g = load_n(gate + i, m);
        const v16 silu = v16_div(g, v16_add(one, v16_exp(v16_sub(minus_zero, g))));
        store_n(y + i, v16_mul(silu, load_n(up + i, m)), m);
    }
}

static float vec_exp_sub_max(float *x, int64_t n, float max)
{
    const v16 maxes = v16_set1(max);
    v16 sum = v16_set1(0);

    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t m = n - i;
        const v16 e = v16_exp(v16_sub(load_n(x + i, m), maxes));
        store_n(x + i, e, m);
        sum = merge_n(v16_add(sum, e), sum, m);
    }
    return v16_reduce(sum);
}

static float vec_max(const float *x, int64_t n)
{
    v16 max = v16_set1(-INFINITY);
    float lanes[LANES];

    for (int64_t i = 0; i < n; i += LANES) {
        max = merge_n(v16_max_nan(max, load_n(x + i, n - i)), max, n - i);
    }
    v16_store(lanes, max);
    for (int l = 1; l < LANES; l++) {
        lanes[0] = lanes[l] > lanes[0] || isnan(lanes[l]) ? lanes[l] : lanes[0];
    }
    return lanes[0];
}

static void vec_scale(float *x, float a, int64_t n)
{
    const v16 factor = v16_set1(a);

    for (int64_t i = 0; i < n; i += LANES) {
        store_n(x + i, v16_mul(load_n(x + i, n - i), factor), n - i);
    }
}

static void vec_add(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        store_n(y + i, v16_add(load_n(y + i, n - i), load_n(x + i, n - i)), n - i);
    }
}

const kernels KERNELS_TABLE = {
    .name = KERNELS_NAME,
    .dequantize_row = dequantize_row,
    .quantize_row = quantize_row,
    .vec_dot_f32 = vec_dot_f32,
    .matmul_plain = matmul_plain,
    .attn_scores = attn_scores,
    .attn_values = attn_values,
    .vec_mad_f32 = vec_mad_f32,
    .rms_norm = rms_norm,
    .rope = rope,
    .swiglu = swiglu,
    .vec_exp_sub_max = vec_exp_sub_max,
    .vec_max = vec_max,
    .vec_scale = vec_scale,
    .vec_add = vec_add,
};
