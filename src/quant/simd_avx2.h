/* simd_avx2.h: the 16 lanes of kernels_body.h as two AVX2 registers; lo holds lanes 0..7. What each
 * function means is said in simd_avx512.h. */
#ifndef QUANT_SIMD_AVX2_H
#define QUANT_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "quant/expf_poly.h"

enum { PLAIN_ROWS = 2, PLAIN_VECTORS = 3 };

#define IN_REGISTERS(v) ((void)(v)) /* of 16, twelve hold sums */

typedef struct v16 {
    __m256 lo, hi;
} v16;
typedef __m128i b16;
typedef v16 m16; /* all bits of a lane, or none */

static inline v16 v16_set1(float f) { return (v16){_mm256_set1_ps(f), _mm256_set1_ps(f)}; }

static inline v16 v16_load(const void *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps((const float *)p + 8)};
}

static inline void v16_store(void *p, v16 v)
{
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps((float *)p + 8, v.hi);
}

static inline v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

static inline v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

static inline v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}

static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

static inline v16 v16_sqrt(v16 v) { return (v16){_mm256_sqrt_ps(v.lo), _mm256_sqrt_ps(v.hi)}; }

static inline v16 v16_abs(v16 v)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, v.lo), _mm256_andnot_ps(sign, v.hi)};
}

static inline m16 v16_lt(v16 a, v16 b)
{
    return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}

static inline m16 v16_eq(v16 a, v16 b)
{
    return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}

static inline m16 m16_and(m16 a, m16 b)
{
    return (m16){_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}

static inline v16 v16_select(m16 m, v16 yes, v16 no)
{
    return (v16){_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

static inline v16 v16_mantissa(v16 v)
{
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffff));
    const __m256 exponent = _mm256_set1_ps(0x1p23f);
    return (v16){_mm256_or_ps(_mm256_and_ps(v.lo, mask), exponent),
                 _mm256_or_ps(_mm256_and_ps(v.hi, mask), exponent)};
}

/* Zips eight lanes; the instructions work within halves of a register. */
static inline v16 zip_8(__m256 a, __m256 b)
{
    const __m256 lo = _mm256_unpacklo_ps(a, b), hi = _mm256_unpackhi_ps(a, b);
    return (v16){_mm256_permute2f128_ps(lo, hi, 0x20), _mm256_permute2f128_ps(lo, hi, 0x31)};
}

static inline v16 v16_zip_lo(v16 a, v16 b) { return zip_8(a.lo, b.lo); }
static inline v16 v16_zip_hi(v16 a, v16 b) { return zip_8(a.hi, b.hi); }

static inline v16 v16_clamp(v16 v, float lo, float hi)
{
    const __m256 l = _mm256_set1_ps(lo), h = _mm256_set1_ps(hi);
    return (v16){_mm256_min_ps(h, _mm256_max_ps(l, v.lo)),
                 _mm256_min_ps(h, _mm256_max_ps(l, v.hi))};
}

static inline __m256 max_nan_8(__m256 max, __m256 v)
{
    return _mm256_blendv_ps(_mm256_max_ps(v, max), v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

static inline v16 v16_max_nan(v16 max, v16 v)
{
    return (v16){max_nan_8(max.lo, v.lo), max_nan_8(max.hi, v.hi)};
}

static inline __m256 pow2_8(__m256i k)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23));
}

static inline __m256 mul_pow2_8(__m256 v, __m256 shifted)
{
    const __m256i k =
        _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(EXPF_SHIFT_BITS));
    const __m256i half = _mm256_srai_epi32(k, 1);
    return _mm256_mul_ps(_mm256_mul_ps(v, pow2_8(half)), pow2_8(_mm256_sub_epi32(k, half)));
}

static inline v16 v16_mul_pow2(v16 v, v16 shifted)
{
    return (v16){mul_pow2_8(v.lo, shifted.lo), mul_pow2_8(v.hi, shifted.hi)};
}

static inline float v16_reduce(v16 v)
{
    const __m256 s8 = _mm256_add_ps(v.lo, v.hi);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

static inline v16 v16_from_f16(const void *p)
{
    const __m128i *h = p;
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128(h)), _mm256_cvtph_ps(_mm_loadu_si128(h + 1))};
}

static inline void v16_to_f16(void *p, v16 v)
{
    __m128i *h = p;
    _mm_storeu_si128(h, _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(h + 1, _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT));
}

static inline __m256 from_bf16_8(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

static inline v16 v16_from_bf16(const void *p)
{
    const __m128i *h = p;
    return (v16){from_bf16_8(_mm_loadu_si128(h)), from_bf16_8(_mm_loadu_si128(h + 1))};
}

static inline float f16_scale(uint16_t h) { return _cvtsh_ss(h); }

static inline b16 b16_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline b16 b16_or(b16 a, b16 b) { return _mm_or_si128(a, b); }
static inline b16 b16_and(b16 a, int mask) { return _mm_and_si128(a, _mm_set1_epi8((char)mask)); }
static inline b16 b16_shr(b16 a, int n) { return _mm_srli_epi16(a, n); }
static inline b16 b16_shl(b16 a, int n) { return _mm_slli_epi16(a, n); }

static inline v16 v16_from_u8(b16 b)
{
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(b)),
                 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(b, 8)))};
}

static inline v16 v16_from_i8(b16 b)
{
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(b, 8)))};
}

static inline __m128i low_words_8(__m256 v)
{
    const __m256i low_byte = _mm256_and_si256(_mm256_cvtps_epi32(v), _mm256_set1_epi32(255));
    return _mm_packus_epi32(_mm256_castsi256_si128(low_byte),
                            _mm256_extracti128_si256(low_byte, 1));
}

static inline void v16_to_bytes(void *p, v16 v)
{
    _mm_storeu_si128(p, _mm_packus_epi16(low_words_8(v.lo), low_words_8(v.hi)));
}

#endif
