/* simd_avx512.h: the 16 lanes of kernels_body.h as one AVX-512 register. */
#ifndef QUANT_SIMD_AVX512_H
#define QUANT_SIMD_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "quant/expf_poly.h"

enum { PLAIN_ROWS = 8, PLAIN_VECTORS = 3 }; /* of plain_body.h: products in registers */

/* Loaded once: a compiler may load an operand anew at each use, and loads are what is short. */
#define IN_REGISTERS(v) __asm__("" : "+v"(v))

typedef __m512 v16;  /* 16 floats */
typedef __m128i b16; /* 16 bytes */
typedef __mmask16 m16; /* 16 truths */

static inline v16 v16_set1(float f) { return _mm512_set1_ps(f); }
static inline v16 v16_load(const void *p) { return _mm512_loadu_ps(p); }
static inline void v16_store(void *p, v16 v) { _mm512_storeu_ps(p, v); }
static inline v16 v16_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
static inline v16 v16_sub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
static inline v16 v16_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
static inline v16 v16_div(v16 a, v16 b) { return _mm512_div_ps(a, b); }
/* a * b + c, one rounding */
static inline v16 v16_fma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }

static inline v16 v16_sqrt(v16 v) { return _mm512_sqrt_ps(v); }
static inline v16 v16_abs(v16 v) { return _mm512_abs_ps(v); }

/* False where either is NaN. */
static inline m16 v16_lt(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline m16 v16_eq(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline m16 m16_and(m16 a, m16 b) { return _kand_mask16(a, b); }
static inline v16 v16_select(m16 m, v16 yes, v16 no) { return _mm512_mask_mov_ps(no, m, yes); }

/* The mantissa of v with the sign and exponent of 2^23. */
static inline v16 v16_mantissa(v16 v)
{
    const __m512i kept = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffff));
    return _mm512_castsi512_ps(_mm512_or_si512(kept, _mm512_set1_epi32(0x4b000000)));
}

/* a0 b0 a1 b1 .. a7 b7, and the same of the upper eights */
static inline v16 v16_zip_lo(v16 a, v16 b)
{
    const __m512i from =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, from, b);
}

static inline v16 v16_zip_hi(v16 a, v16 b)
{
    const __m512i from =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, from, b);
}

/* NaN passes: the instructions return their second operand when one is NaN. */
static inline v16 v16_clamp(v16 v, float lo, float hi)
{
    return _mm512_min_ps(_mm512_set1_ps(hi), _mm512_max_ps(_mm512_set1_ps(lo), v));
}

/* The larger; NaN once either is NaN. */
static inline v16 v16_max_nan(v16 max, v16 v)
{
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_max_ps(v, max), is_nan, v);
}

/* v * 2^k, the last step of exp; shifted = EXPF_SHIFT + k. */
static inline v16 v16_mul_pow2(v16 v, v16 shifted)
{
    const __m512i bias = _mm512_set1_epi32(127);
    const __m512i k =
        _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(EXPF_SHIFT_BITS));
    const __m512i half = _mm512_srai_epi32(k, 1);
    const __m512i rest = _mm512_sub_epi32(k, half);
    v = _mm512_mul_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23)));
    return _mm512_mul_ps(v,
                         _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(rest, bias), 23)));
}

/* The tree of kernels.h. */
static inline float v16_reduce(v16 v)
{
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

static inline v16 v16_from_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline void v16_to_f16(void *p, v16 v)
{
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline v16 v16_from_bf16(const void *p)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline float f16_scale(uint16_t h) { return _cvtsh_ss(h); }

static inline b16 b16_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline b16 b16_or(b16 a, b16 b) { return _mm_or_si128(a, b); }
static inline b16 b16_and(b16 a, int mask) { return _mm_and_si128(a, _mm_set1_epi8((char)mask)); }
/* Whole-word shifts: bits cross into the next byte, so mask after (right) or before (left). */
static inline b16 b16_shr(b16 a, int n) { return _mm_srli_epi16(a, n); }
static inline b16 b16_shl(b16 a, int n) { return _mm_slli_epi16(a, n); }
static inline v16 v16_from_u8(b16 b) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(b)); }
static inline v16 v16_from_i8(b16 b) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b)); }

/* v holds integers, -128 .. 255: their low bytes. */
static inline void v16_to_bytes(void *p, v16 v)
{
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}

#endif
