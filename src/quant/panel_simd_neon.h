/* panel_simd_neon.h: the types and steps of panel_body.h for NEON; what each means is said in
 * panel_simd_avx512.h. All weights are below 128 or signed, so the signed dot product does for all;
 * without the dot-product instruction (ARMv8.0) widening multiplies take its place. */
#ifndef QUANT_PANEL_SIMD_NEON_H
#define QUANT_PANEL_SIMD_NEON_H

#include "quant/simd_neon.h"

#define TILE_VECTORS 4
enum { TILE_PANELS = 1, CAN_PRESCALE = 1, SIGNED_BIAS = 0 };

typedef struct w64 {
    uint8x16_t v[4]; /* rows 4i .. 4i+3 */
} w64;
typedef int8x16_t x4;
typedef struct s16 {
    int32x4_t v[4];
} s16;
typedef s16 part;
typedef s16 scl;

#define W64_EACH(expr) ((w64){{expr(0), expr(1), expr(2), expr(3)}})
#define S16_EACH(expr) ((s16){{expr(0), expr(1), expr(2), expr(3)}})
#define WORDS(q) vreinterpretq_s32_u8(q)
#define SHORTS(q) vreinterpretq_s16_u8(q)
#define BYTES_OF_SHORTS(q) vreinterpretq_u8_s16(q)

static inline w64 w64_load(const void *p)
{
    const uint8_t *b = p;
    return (w64){{vld1q_u8(b), vld1q_u8(b + 16), vld1q_u8(b + 32), vld1q_u8(b + 48)}};
}
static inline void w64_store(void *p, w64 a)
{
    for (int i = 0; i < 4; i++) {
        vst1q_u8((uint8_t *)p + 16 * i, a.v[i]);
    }
}
static inline w64 w64_and(w64 a, int mask)
{
#define EXPR(i) vandq_u8(a.v[i], vdupq_n_u8((uint8_t)mask))
    return W64_EACH(EXPR);
#undef EXPR
}
static inline w64 w64_or(w64 a, w64 b)
{
#define EXPR(i) vorrq_u8(a.v[i], b.v[i])
    return W64_EACH(EXPR);
#undef EXPR
}
static inline w64 w64_xor(w64 a, int mask)
{
#define EXPR(i) veorq_u8(a.v[i], vdupq_n_u8((uint8_t)mask))
    return W64_EACH(EXPR);
#undef EXPR
}
static inline w64 w64_add(w64 a, int n)
{
#define EXPR(i) vaddq_u8(a.v[i], vdupq_n_u8((uint8_t)n))
    return W64_EACH(EXPR);
#undef EXPR
}
static inline w64 w64_shr(w64 a, int n)
{
#define EXPR(i) vshlq_u8(a.v[i], vdupq_n_s8((int8_t)-n))
    return W64_EACH(EXPR);
#undef EXPR
}
static inline w64 w64_shl(w64 a, int n)
{
#define EXPR(i) vshlq_u8(a.v[i], vdupq_n_s8((int8_t)n))
    return W64_EACH(EXPR);
#undef EXPR
}

static inline x4 x4_load(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

static inline int32x4_t dot_4(int32x4_t sum, uint8x16_t w, x4 x)
{
    const int8x16_t s = vreinterpretq_s8_u8(w);
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, s, x);
#else
    const int32x4_t lo = vpaddlq_s16(vmull_s8(vget_low_s8(s), vget_low_s8(x)));
    const int32x4_t hi = vpaddlq_s16(vmull_high_s8(s, x));
    return vaddq_s32(sum, vpaddq_s32(lo, hi));
#endif
}

#define PART_STEPS(max) 64
static inline s16 s16_zero(void)
{
#define EXPR(i) vdupq_n_s32(0)
    return S16_EACH(EXPR);
#undef EXPR
}
static inline part part_zero(void) { return s16_zero(); }
static inline part dot_part(part p, w64 w, x4 x)
{
#define EXPR(i) dot_4(p.v[i], w.v[i], x)
    return S16_EACH(EXPR);
#undef EXPR
}

/* vshlq shifts left by a signed count: -24 .. 24. */
static inline scl scl_unsigned(w64 quads, int n)
{
#define EXPR(i) \
    vandq_s32(vshlq_s32(WORDS(quads.v[i]), vdupq_n_s32(-8 * n)), vdupq_n_s32(255))
    return S16_EACH(EXPR);
#undef EXPR
}
static inline scl scl_signed(w64 quads, int n)
{
#define EXPR(i) vshrq_n_s32(vshlq_s32(WORDS(quads.v[i]), vdupq_n_s32(24 - 8 * n)), 24)
    return S16_EACH(EXPR);
#undef EXPR
}
static inline w64 w64_scaled(w64 w, scl s)
{
#define EXPR(i) vmulq_u8(w.v[i], vreinterpretq_u8_s32(vmulq_n_s32(s.v[i], 0x01010101)))
    return W64_EACH(EXPR);
#undef EXPR
}
static inline void scl_store(void *p, scl s)
{
    for (int i = 0; i < 4; i++) {
        vst1q_u8((uint8_t *)p + 16 * i, vreinterpretq_u8_s32(s.v[i]));
    }
}
static inline scl scl_load(const void *p)
{
#define EXPR(i) vreinterpretq_s32_u8(vld1q_u8((const uint8_t *)p + 16 * (i)))
    return S16_EACH(EXPR);
#undef EXPR
}

static inline s16 s16_add_scaled(s16 sum, part p, scl s)
{
#define EXPR(i) vmlaq_s32(sum.v[i], p.v[i], s.v[i])
    return S16_EACH(EXPR);
#undef EXPR
}
static inline int32x4_t add_pairs_4(int32x4_t sum, uint8x16_t pairs, x4 x)
{
    const int16x8_t p = SHORTS(pairs), q = vreinterpretq_s16_s8(x);
    const int32x4_t lo = vmull_s16(vget_low_s16(p), vget_low_s16(q));
    return vaddq_s32(sum, vpaddq_s32(lo, vmull_high_s16(p, q)));
}
static inline s16 s16_add_pairs(s16 sum, w64 pairs, x4 x)
{
#define EXPR(i) add_pairs_4(sum.v[i], pairs.v[i], x)
    return S16_EACH(EXPR);
#undef EXPR
}
static inline s16 s16_sub_shl(s16 a, s16 b, int n)
{
#define EXPR(i) vsubq_s32(a.v[i], vshlq_s32(b.v[i], vdupq_n_s32(n)))
    return S16_EACH(EXPR);
#undef EXPR
}
static inline v16 v16_from_s16(s16 s)
{
    return (v16){vcvtq_f32_s32(s.v[0]), vcvtq_f32_s32(s.v[1]), vcvtq_f32_s32(s.v[2]),
                 vcvtq_f32_s32(s.v[3])};
}
static inline v16 v16_fms(v16 x, v16 y, v16 z)
{
    const v16 minus = {vnegq_f32(z.a), vnegq_f32(z.b), vnegq_f32(z.c), vnegq_f32(z.d)};
    return v16_fma(x, y, minus);
}

static inline w64 pairs_unsigned(w64 quads, int odd)
{
#define EXPR(i)                                                                         \
    vreinterpretq_u8_u16(odd ? vshrq_n_u16(vreinterpretq_u16_u8(quads.v[i]), 8)         \
                             : vandq_u16(vreinterpretq_u16_u8(quads.v[i]), vdupq_n_u16(255)))
    return W64_EACH(EXPR);
#undef EXPR
}
static inline w64 pairs_signed(w64 quads, int odd)
{
#define EXPR(i)           \
    BYTES_OF_SHORTS(      \
        vshrq_n_s16(odd ? SHORTS(quads.v[i]) : vshlq_n_s16(SHORTS(quads.v[i]), 8), 8))
    return W64_EACH(EXPR);
#undef EXPR
}

static inline s16 signed_start(const int32_t *bias)
{
    (void)bias;
    return s16_zero();
}
static inline s16 dot_signed(s16 sum, w64 w, x4 x) { return dot_part(sum, w, x); }

#endif
