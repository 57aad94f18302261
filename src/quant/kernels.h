/* kernels.h: the arithmetic of the forward pass, as one table of function pointers per instruction
 * set.
 *
 * THE RULE (design A4): every kernel gives the same bits on every instruction set. Each output
 * element is accumulated in one fixed order:
 *   dot:  16 partial sums; partial l takes elements l, l+16, l+32, ... in ascending order, each
 *         step one fused multiply-add; a tail of n % 16 elements goes to partials 0 .. n%16-1 the
 *         same way; then the tree  s[l] += s[l+8] (l<8), s[l] += s[l+4] (l<4),
 *         s[l] += s[l+2] (l<2), s[0] + s[1].
 *   sum, sum of squares: the same with 16 partials.
 *   exp: our own polynomial (expf_poly.h), never libm's.
 * Denormals are kept (no flush to zero). Inputs may be unaligned; n may be anything >= 0. */
#ifndef QUANT_KERNELS_H
#define QUANT_KERNELS_H

#include <stdint.h>

#include "formats/dtype.h"

typedef struct kernels {
    const char *name; /* "scalar" "avx2" "avx512" "neon" */
    /* x [n] of `type` blocks, at any address -> y [n]. A type that is not quant_supported gives
     * NaN. */
    void (*dequantize_row)(dtype type, const void *x, float *y, int64_t n);
    /* The blocks that quantize_row_ref (quant.h) makes, bit for bit, faster; same contract. */
    void (*quantize_row)(dtype type, const float *x, void *y, int64_t n);
    float (*vec_dot_f32)(const float *x, const float *y, int64_t n);
    /* Rows of a plain type (f32 f16 bf16; panel.h is for the others), one after the other, times
     * vectors: out[j * out_stride + r] = vec_dot_f32(row r as floats, x + j * x_stride, cols) for
     * r < n_rows, j < n_x. */
    void (*matmul_plain)(dtype type, const void *rows, int64_t n_rows, int64_t cols, const float *x,
                         int64_t x_stride, int64_t n_x, float *out, int64_t out_stride);
    /* y[i] = fma(a, x[i], y[i]) */
    void (*vec_mad_f32)(float *y, const float *x, float a, int64_t n);
    /* Attention of n_rows queries over the keys and values of one kv head. Keys, f16 or f32: blocks
     * of 16 positions, [n_blocks][d][16]. For all 16 * n_blocks positions
     *   scores[r * stride + position] = q [n_rows][d] . key, one chain of fma over ascending d
     * Values: [n][d].
     *   out[r * d + i] += sum of p[r * stride + j] * v[j][i], one chain of fma over ascending j
     * that goes on from what out holds. */
    void (*attn_scores)(dtype type, const void *k_blocks, const float *q, int64_t n_rows, int64_t d,
                        int64_t n_blocks, float *scores, int64_t stride);
    void (*attn_values)(dtype type, const void *v, const float *p, int64_t stride, int64_t n_rows,
                        int64_t d, int64_t n, float *out);
    /* y = x * (1 / sqrt(mean(x*x) + eps)) * w   (RMSNorm; x may equal y) */
    void (*rms_norm)(const float *x, const float *w, float *y, int64_t n, float eps);
    /* Rotates pairs (i, i + half) of a head [2 * half] in place, cos and sin [half]:
     * (a, b) -> (a * cos - b * sin, b * cos + a * sin), each product rounded. */
    void (*rope)(float *head, const float *cos_in, const float *sin_in, int64_t half);
    /* y[i] = silu(gate[i]) * up[i]  with silu(x) = x / (1 + exp(-x)) */
    void (*swiglu)(const float *gate, const float *up, float *y, int64_t n);
    /* In place: x[i] = exp(x[i] - max); returns the sum (16 partials and the tree). */
    float (*vec_exp_sub_max)(float *x, int64_t n, float max);
    float (*vec_max)(const float *x, int64_t n); /* exact; n >= 1; NaN if any is NaN */
    void (*vec_scale)(float *x, float a, int64_t n);
    void (*vec_add)(float *y, const float *x, int64_t n); /* y += x */
} kernels;

/* The best table that this CPU runs, or the one that the environment (resolved by main, passed in)
 * asks for by name; NULL name = best. NULL when the name is unknown or the CPU lacks it. A set that
 * adds dot products of integers to another (panel.h: "avx2_vnni", "neon_dot") has that one's table
 * here. */
const kernels *kernels_get(const char *name);
/* exp of the kernels, one value: |relative error| < 2e-7; exp(-inf)=0, NaN stays NaN. */
float kernel_expf(float x);

#endif
