/* panel_simd_avx512.h: the types and steps of panel_body.h for AVX-512 with VNNI. Says what each
 * means; the siblings implement the same. */
#ifndef QUANT_PANEL_SIMD_AVX512_H
#define QUANT_PANEL_SIMD_AVX512_H

#include "quant/simd_avx512.h"

/* A tile of the matrix product: TILE_PANELS panels times so many vectors, in registers. */
#define TILE_VECTORS 6
enum {
    TILE_PANELS = 2,
    CAN_PRESCALE = 1,  /* dot_signed takes sums of 256 products of bytes */
    SIGNED_BIAS = 128, /* what dot_signed wants added to its weights */
};

typedef __m512i w64;  /* 64 bytes: four of each of 16 rows */
typedef __m512i x4;   /* four activations, for every row */
typedef __m512i s16;  /* 16 sums */
typedef __m512i part; /* 16 sums of one group, before its scale */
typedef __m512i scl;  /* 16 scales */

static inline w64 w64_load(const void *p) { return _mm512_loadu_si512(p); }
static inline void w64_store(void *p, w64 v) { _mm512_storeu_si512(p, v); }
static inline w64 w64_set1(int byte) { return _mm512_set1_epi8((char)byte); }
static inline w64 w64_and(w64 a, int mask) { return _mm512_and_si512(a, w64_set1(mask)); }
static inline w64 w64_or(w64 a, w64 b) { return _mm512_or_si512(a, b); }
static inline w64 w64_xor(w64 a, int mask) { return _mm512_xor_si512(a, w64_set1(mask)); }
static inline w64 w64_add(w64 a, int n) { return _mm512_add_epi8(a, w64_set1(n)); }
/* Whole-word shifts: bits cross into the next byte, so mask after (right) or before (left). */
static inline w64 w64_shr(w64 a, int n) { return _mm512_srli_epi16(a, (unsigned)n); }
static inline w64 w64_shl(w64 a, int n) { return _mm512_slli_epi16(a, (unsigned)n); }

static inline int32_t load_int(const void *p)
{
    int32_t v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
}

static inline x4 x4_load(const void *p) { return _mm512_set1_epi32(load_int(p)); }

/* How many dot_part of levels 0..max fit a part. */
#define PART_STEPS(max) 64
static inline part part_zero(void) { return _mm512_setzero_si512(); }
/* Plus, per row, the sum of its four weights (0..63) times the four activations. */
static inline part dot_part(part p, w64 w, x4 x) { return _mm512_dpbusd_epi32(p, w, x); }

/* The scales of group i (0..3) of four whose bytes are the bytes of a lane. */
static inline scl scl_unsigned(w64 quads, int i)
{
    return _mm512_and_si512(_mm512_srli_epi32(quads, 8 * (unsigned)i), _mm512_set1_epi32(255));
}

static inline scl scl_signed(w64 quads, int i)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(quads, 24 - 8 * (unsigned)i), 24);
}

/* w * s modulo 256, s of a lane for all its bytes, s < 256 */
static inline w64 w64_scaled(w64 w, scl s)
{
    const __m512i twice = _mm512_or_si512(s, _mm512_slli_epi32(s, 16));
    const __m512i even = _mm512_mullo_epi16(_mm512_and_si512(w, _mm512_set1_epi16(255)), twice);
    const __m512i odd = _mm512_mullo_epi16(_mm512_srli_epi16(w, 8), twice);
    return _mm512_or_si512(_mm512_and_si512(even, _mm512_set1_epi16(255)),
                           _mm512_slli_epi16(odd, 8));
}

static inline void scl_store(void *p, scl v) { _mm512_storeu_si512(p, v); }
static inline scl scl_load(const void *p) { return _mm512_loadu_si512(p); }

static inline s16 s16_zero(void) { return _mm512_setzero_si512(); }
/* sum + p * s */
static inline s16 s16_add_scaled(s16 sum, part p, scl s)
{
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(p, s));
}
/* sum + the two products of pairs of 16-bit integers, per row */
static inline s16 s16_add_pairs(s16 sum, w64 pairs, x4 x)
{
    return _mm512_dpwssd_epi32(sum, pairs, x);
}
/* a - (b << n) */
static inline s16 s16_sub_shl(s16 a, s16 b, int n)
{
    return _mm512_sub_epi32(a, _mm512_slli_epi32(b, (unsigned)n));
}
static inline v16 v16_from_s16(s16 s) { return _mm512_cvtepi32_ps(s); }
/* a * b - c, one rounding */
static inline v16 v16_fms(v16 a, v16 b, v16 c) { return _mm512_fmsub_ps(a, b, c); }

/* Four bytes per lane to pairs of 16 bits: bytes 0 and 2, or 1 and 3. */
static inline w64 pairs_unsigned(w64 quads, int odd)
{
    return odd ? _mm512_srli_epi16(quads, 8) : _mm512_and_si512(quads, _mm512_set1_epi16(255));
}

static inline w64 pairs_signed(w64 quads, int odd)
{
    return _mm512_srai_epi16(odd ? quads : _mm512_slli_epi16(quads, 8), 8);
}

/* Signed weights (SIGNED_BIAS added) times activations; bias = act_block.bias32 of the group. */
static inline s16 signed_start(const int32_t *bias) { return _mm512_set1_epi32(load_int(bias)); }
static inline s16 dot_signed(s16 sum, w64 w, x4 x) { return _mm512_dpbusd_epi32(sum, w, x); }

#endif
