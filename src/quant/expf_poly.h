/* expf_poly.h: the constants of the kernels' exp, shared by the scalar form (kernels_scalar.c) and
 * the vector form (kernels_body.h), which run the same operations in the same order.
 *
 * exp(x) = 2^k * exp(r),  k = round(x / ln 2),  r = x - k ln 2,  |r| <= ln(2) / 2:
 *   t = fma(x, LOG2E, SHIFT)            next to 1.5 * 2^23 floats are integers: t = SHIFT + k
 *   k = t - SHIFT
 *   r = fma(k, -LN2_LO, fma(k, -LN2_HI, x))   (Cody and Waite: the inner fma is exact)
 *   p = Taylor polynomial of degree 7 in r    (truncation: r^8 / 8! < 6e-9, a tenth of half an ulp)
 *   p * 2^(k/2) * 2^(k - k/2)                 (two factors: only the last product rounds, so
 *                                              subnormals are right and overflow gives infinity)
 * x is first clamped to [LO, HI], past which the result is 0 or infinity anyway. */
#ifndef QUANT_EXPF_POLY_H
#define QUANT_EXPF_POLY_H

#define EXPF_LO (-104.0f) /* exp(-104) < 2^-150, half of the smallest subnormal */
#define EXPF_HI 89.0f     /* exp(89) > FLT_MAX */
#define EXPF_LOG2E 0x1.715476p+0f
#define EXPF_LN2_HI 0x1.62e43p-1f
#define EXPF_LN2_LO (-0x1.05c61p-29f)
#define EXPF_SHIFT 12582912.0f
#define EXPF_SHIFT_BITS 0x4b400000

#define EXPF_C2 (1.0f / 2)
#define EXPF_C3 (1.0f / 6)
#define EXPF_C4 (1.0f / 24)
#define EXPF_C5 (1.0f / 120)
#define EXPF_C6 (1.0f / 720)
#define EXPF_C7 (1.0f / 5040)

#endif
