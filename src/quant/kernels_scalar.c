/* kernels_scalar.c: the reference kernels, in plain C that says what every other table must
 * compute.
 *
 * The one idea: the order of additions is part of the definition (kernels.h), so 16 partial sums
 * are kept here too, where nothing is gained by them. */
#include "quant/kernels.h"

#include <math.h>
#include <string.h>

#include "quant/blocks.h"
#include "quant/expf_poly.h"
#include "quant/kernels_tables.h"
#include "quant/quant.h"

enum { LANES = 16 };

static float pow2i(int32_t k) /* -126 <= k <= 127; any k gives some float */
{
    const uint32_t bits = ((uint32_t)k + 127) << 23;
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

float kernel_expf(float x)
{
    uint32_t bits;

    x = x < EXPF_LO ? EXPF_LO : x; /* NaN compares false and passes */
    x = x > EXPF_HI ? EXPF_HI : x;
    const float t = fmaf(x, EXPF_LOG2E, EXPF_SHIFT);
    const float k = t - EXPF_SHIFT;
    const float r = fmaf(k, -EXPF_LN2_LO, fmaf(k, -EXPF_LN2_HI, x));
    float p = EXPF_C7;
    p = fmaf(p, r, EXPF_C6);
    p = fmaf(p, r, EXPF_C5);
    p = fmaf(p, r, EXPF_C4);
    p = fmaf(p, r, EXPF_C3);
    p = fmaf(p, r, EXPF_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    memcpy(&bits, &t, sizeof(bits));
    const int32_t exponent = (int32_t)(bits - EXPF_SHIFT_BITS);
    const int32_t half = exponent >> 1;
    return p * pow2i(half) * pow2i((int32_t)((uint32_t)exponent - (uint32_t)half));
}

/* Element i goes to partial i % 16; a caller that continues a row starts at a multiple of 16. */
static void dot_add(float partial[LANES], const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        partial[i % LANES] = fmaf(x[i], y[i], partial[i % LANES]);
    }
}

static float reduce(float partial[LANES])
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int l = 0; l < width; l++) {
            partial[l] += partial[l + width];
        }
    }
    return partial[0];
}

static float vec_dot_f32_scalar(const float *x, const float *y, int64_t n)
{
    float partial[LANES] = {0};

    dot_add(partial, x, y, n);
    return reduce(partial);
}

static void matmul_plain_scalar(dtype type, const void *rows, int64_t n_rows, int64_t cols,
                                const float *x, int64_t x_stride, int64_t n_x, float *out,
                                int64_t out_stride)
{
    const size_t row_bytes = dtype_row_bytes(type, (uint64_t)cols);

    for (int64_t r = 0; r < n_rows; r++) {
        const uint8_t *row = (const uint8_t *)rows + (size_t)r * row_bytes;
        for (int64_t j = 0; j < n_x; j++) {
            float partial[LANES] = {0};
            for (int64_t k = 0; k < cols; k += QK_K) {
                const int64_t n = cols - k < QK_K ? cols - k : QK_K;
                float w[QK_K];
                dequantize_row_ref(type, row + dtype_row_bytes(type, (uint64_t)k), w, n);
                dot_add(partial, w, x + j * x_stride + k, n);
            }
            out[j * out_stride + r] = reduce(partial);
        }
    }
}

static void vec_mad_f32_scalar(float *y, const float *x, float a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = fmaf(a, x[i], y[i]);
    }
}

static float kv_at(dtype type, const void *kv, int64_t i)
{
    return type == DTYPE_F16 ? f16_to_f32(((const uint16_t *)kv)[i]) : ((const float *)kv)[i];
}

static void attn_scores_scalar(dtype type, const void *k_blocks, const float *q, int64_t n_rows,
                               int64_t d, int64_t n_blocks, float *scores, int64_t stride)
{
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t j = 0; j < n_blocks * LANES; j++) {
            const int64_t first = j / LANES * d * LANES + j % LANES;
            float sum = 0;
            for (int64_t i = 0; i < d; i++) {
                sum = fmaf(kv_at(type, k_blocks, first + i * LANES), q[r * d + i], sum);
            }
            scores[r * stride + j] = sum;
        }
    }
}

static void attn_values_scalar(dtype type, const void *v, const float *p, int64_t stride,
                               int64_t n_rows, int64_t d, int64_t n, float *out)
{
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t i = 0; i < d; i++) {
            float sum = out[r * d + i];
            for (int64_t j = 0; j < n; j++) {
                sum = fmaf(p[r * stride + j], kv_at(type, v, j * d + i), sum);
            }
            out[r * d + i] = sum;
        }
    }
}

static void rms_norm_scalar(const float *x, const float *w, float *y, int64_t n, float eps)
{
    const float mean = vec_dot_f32_scalar(x, x, n) / (float)n;
    const float scale = 1.0f / sqrtf(mean + eps);

    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] * scale * w[i];
    }
}

static void rope_scalar(float *head, const float *cos_in, const float *sin_in, int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        const float a = head[i], b = head[i + half];
        head[i] = a * cos_in[i] - b * sin_in[i];
        head[i + half] = b * cos_in[i] + a * sin_in[i];
    }
}

static void swiglu_scalar(const float *gate, const float *up, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = gate[i] / (1.0f + kernel_expf(-gate[i])) * up[i];
    }
}

static float vec_exp_sub_max_scalar(float *x, int64_t n, float max)
{
    float partial[LANES] = {0};

    for (int64_t i = 0; i < n; i++) {
        x[i] = kernel_expf(x[i] - max);
        partial[i % LANES] += x[i];
    }
    return reduce(partial);
}

static float vec_max_scalar(const float *x, int64_t n)
{
    float max = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        max = x[i] > max || isnan(x[i]) ? x[i] : max; /* nothing is > NaN: it stays */
    }
    return max;
}

static void vec_scale_scalar(float *x, float a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] *= a;
    }
}

static void vec_add_scalar(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

const kernels kernels_scalar = {
    .name = "scalar",
    .dequantize_row = dequantize_row_ref,
    .quantize_row = quantize_row_ref,
    .vec_dot_f32 = vec_dot_f32_scalar,
    .matmul_plain = matmul_plain_scalar,
    .vec_mad_f32 = vec_mad_f32_scalar,
    .attn_scores = attn_scores_scalar,
    .attn_values = attn_values_scalar,
    .rms_norm = rms_norm_scalar,
    .rope = rope_scalar,
    .swiglu = swiglu_scalar,
    .vec_exp_sub_max = vec_exp_sub_max_scalar,
    .vec_max = vec_max_scalar,
    .vec_scale = vec_scale_scalar,
    .vec_add = vec_add_scalar,
};
