/* panel_simd_avx2.h: the types and steps of panel_body.h for AVX2; what each means is said in
 * panel_simd_avx512.h.
 *
 * The multiply of bytes adds pairs of products into 16 bits and saturates. A part therefore stays
 * in 16 bits, two sums per row, for as many steps as cannot overflow; the multiply by the scale
 * widens it. Signed weights go in as magnitudes with their signs moved to the activations: at most
 * 2 * 128 * 127, which fits. AVX-VNNI adds four products into 32 bits and has neither trouble:
 * there everything is as in AVX-512. */
#ifndef QUANT_PANEL_SIMD_AVX2_H
#define QUANT_PANEL_SIMD_AVX2_H

#include "quant/simd_avx2.h"

#define TILE_VECTORS 4
#if defined(__AVXVNNI__)
enum { TILE_PANELS = 1, CAN_PRESCALE = 1, SIGNED_BIAS = 128 };
#else
enum { TILE_PANELS = 1, CAN_PRESCALE = 0, SIGNED_BIAS = 0 };
#endif

typedef struct w64 {
    __m256i lo, hi; /* rows 0..7, 8..15 */
} w64;
typedef __m256i x4;
typedef w64 s16;
typedef w64 part; /* pairs of 16-bit sums; with VNNI 32-bit sums */
typedef w64 scl;  /* each scale twice, in 16 bits; with VNNI once, in 32 bits */

static inline w64 w64_load(const void *p)
{
    return (w64){_mm256_loadu_si256(p), _mm256_loadu_si256((const __m256i *)p + 1)};
}
static inline void w64_store(void *p, w64 v)
{
    _mm256_storeu_si256(p, v.lo);
    _mm256_storeu_si256((__m256i *)p + 1, v.hi);
}
static inline w64 w64_and(w64 a, int mask)
{
    const __m256i m = _mm256_set1_epi8((char)mask);
    return (w64){_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
}
static inline w64 w64_or(w64 a, w64 b)
{
    return (w64){_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
static inline w64 w64_xor(w64 a, int mask)
{
    const __m256i m = _mm256_set1_epi8((char)mask);
    return (w64){_mm256_xor_si256(a.lo, m), _mm256_xor_si256(a.hi, m)};
}
static inline w64 w64_add(w64 a, int n)
{
    const __m256i m = _mm256_set1_epi8((char)n);
    return (w64){_mm256_add_epi8(a.lo, m), _mm256_add_epi8(a.hi, m)};
}
static inline w64 w64_shr(w64 a, int n)
{
    return (w64){_mm256_srli_epi16(a.lo, n), _mm256_srli_epi16(a.hi, n)};
}
static inline w64 w64_shl(w64 a, int n)
{
    return (w64){_mm256_slli_epi16(a.lo, n), _mm256_slli_epi16(a.hi, n)};
}

static inline int32_t load_int(const void *p)
{
    int32_t v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
}

static inline x4 x4_load(const void *p) { return _mm256_set1_epi32(load_int(p)); }

/* A compiler may add in any order; the one written is the one that fits 16 registers. */
#define IN_ORDER(v) __asm__("" : "+x"((v).lo), "+x"((v).hi))

static inline part part_zero(void)
{
    return (part){_mm256_setzero_si256(), _mm256_setzero_si256()};
}

#if defined(__AVXVNNI__)
#define PART_STEPS(max) 64
static inline part dot_part(part p, w64 w, x4 x)
{
    p.lo = _mm256_dpbusd_avx_epi32(p.lo, w.lo, x);
    p.hi = _mm256_dpbusd_avx_epi32(p.hi, w.hi, x);
    IN_ORDER(p);
    return p;
}

static inline scl scl_unsigned(w64 quads, int i)
{
    const __m256i low = _mm256_set1_epi32(255);
    return (scl){_mm256_and_si256(_mm256_srli_epi32(quads.lo, 8 * i), low),
                 _mm256_and_si256(_mm256_srli_epi32(quads.hi, 8 * i), low)};
}
static inline scl scl_signed(w64 quads, int i)
{
    return (scl){_mm256_srai_epi32(_mm256_slli_epi32(quads.lo, 24 - 8 * i), 24),
                 _mm256_srai_epi32(_mm256_slli_epi32(quads.hi, 24 - 8 * i), 24)};
}
static inline __m256i scaled_8(__m256i w, __m256i s)
{
    const __m256i twice = _mm256_or_si256(s, _mm256_slli_epi32(s, 16));
    const __m256i low = _mm256_set1_epi16(255);
    const __m256i even = _mm256_mullo_epi16(_mm256_and_si256(w, low), twice);
    const __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(w, 8), twice);
    return _mm256_or_si256(_mm256_and_si256(even, low), _mm256_slli_epi16(odd, 8));
}
static inline w64 w64_scaled(w64 w, scl s)
{
    return (w64){scaled_8(w.lo, s.lo), scaled_8(w.hi, s.hi)};
}
#else
#define PART_STEPS(max) (32767 / (2 * 127 * (max)))
static inline part dot_part(part p, w64 w, x4 x)
{
    p.lo = _mm256_add_epi16(p.lo, _mm256_maddubs_epi16(w.lo, x));
    p.hi = _mm256_add_epi16(p.hi, _mm256_maddubs_epi16(w.hi, x));
    IN_ORDER(p);
    return p;
}

static inline scl shuffle(w64 v, __m256i index)
{
    return (scl){_mm256_shuffle_epi8(v.lo, index), _mm256_shuffle_epi8(v.hi, index)};
}
/* Byte i of every lane, in byte 0 and byte 2; the others zero. */
static inline scl scl_unsigned(w64 quads, int i)
{
    const __m256i lanes = _mm256_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c, 0, 0x00040004,
                                            0x00080008, 0x000c000c);
    return shuffle(quads, _mm256_or_si256(lanes, _mm256_set1_epi32((int)0x80008000 | 0x10001 * i)));
}
static inline scl scl_signed(w64 quads, int i)
{
    const scl s = scl_unsigned(quads, i);
    return (scl){_mm256_srai_epi16(_mm256_slli_epi16(s.lo, 8), 8),
                 _mm256_srai_epi16(_mm256_slli_epi16(s.hi, 8), 8)};
}
static inline w64 w64_scaled(w64 w, scl s) /* never used, as CAN_PRESCALE is 0 */
{
    (void)s;
    return w;
}
#endif

static inline void scl_store(void *p, scl v) { w64_store(p, v); }
static inline scl scl_load(const void *p) { return w64_load(p); }

static inline s16 s16_zero(void) { return part_zero(); }
#if defined(__AVXVNNI__)
static inline s16 s16_add_scaled(s16 sum, part p, scl s)
{
    return (s16){_mm256_add_epi32(sum.lo, _mm256_mullo_epi32(p.lo, s.lo)),
                 _mm256_add_epi32(sum.hi, _mm256_mullo_epi32(p.hi, s.hi))};
}
static inline s16 s16_add_pairs(s16 sum, w64 pairs, x4 x)
{
    return (s16){_mm256_dpwssd_avx_epi32(sum.lo, pairs.lo, x),
                 _mm256_dpwssd_avx_epi32(sum.hi, pairs.hi, x)};
}
#else
static inline s16 s16_add_scaled(s16 sum, part p, scl s)
{
    return (s16){_mm256_add_epi32(sum.lo, _mm256_madd_epi16(p.lo, s.lo)),
                 _mm256_add_epi32(sum.hi, _mm256_madd_epi16(p.hi, s.hi))};
}
static inline s16 s16_add_pairs(s16 sum, w64 pairs, x4 x)
{
    return (s16){_mm256_add_epi32(sum.lo, _mm256_madd_epi16(pairs.lo, x)),
                 _mm256_add_epi32(sum.hi, _mm256_madd_epi16(pairs.hi, x))};
}
#endif
static inline s16 s16_sub_shl(s16 a, s16 b, int n)
{
    return (s16){_mm256_sub_epi32(a.lo, _mm256_slli_epi32(b.lo, n)),
                 _mm256_sub_epi32(a.hi, _mm256_slli_epi32(b.hi, n))};
}
static inline v16 v16_from_s16(s16 s)
{
    return (v16){_mm256_cvtepi32_ps(s.lo), _mm256_cvtepi32_ps(s.hi)};
}
static inline v16 v16_fms(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}

static inline w64 pairs_unsigned(w64 quads, int odd)
{
    const __m256i low = _mm256_set1_epi16(255);
    return odd ? w64_shr(quads, 8)
               : (w64){_mm256_and_si256(quads.lo, low), _mm256_and_si256(quads.hi, low)};
}
static inline w64 pairs_signed(w64 quads, int odd)
{
    const w64 high = odd ? quads : w64_shl(quads, 8);
    return (w64){_mm256_srai_epi16(high.lo, 8), _mm256_srai_epi16(high.hi, 8)};
}

#if defined(__AVXVNNI__)
static inline s16 signed_start(const int32_t *bias)
{
    const __m256i start = _mm256_set1_epi32(load_int(bias));
    return (s16){start, start};
}
static inline s16 dot_signed(s16 sum, w64 w, x4 x) { return dot_part(sum, w, x); }
#else
static inline s16 signed_start(const int32_t *bias)
{
    (void)bias;
    return s16_zero();
}
static inline __m256i dot_signed_8(__m256i sum, __m256i w, __m256i x)
{
    const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
}
static inline s16 dot_signed(s16 sum, w64 w, x4 x)
{
    sum.lo = dot_signed_8(sum.lo, w.lo, x);
    sum.hi = dot_signed_8(sum.hi, w.hi, x);
    IN_ORDER(sum);
    return sum;
}
#endif

#endif
