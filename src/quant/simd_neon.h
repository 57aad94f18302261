/* simd_neon.h: the 16 lanes of kernels_body.h as four NEON registers; a holds lanes 0..3. What each
 * function means is said in simd_avx512.h. */
#ifndef QUANT_SIMD_NEON_H
#define QUANT_SIMD_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "quant/expf_poly.h"

enum { PLAIN_ROWS = 2, PLAIN_VECTORS = 2 };

#define IN_REGISTERS(v) __asm__("" : "+w"((v).a), "+w"((v).b), "+w"((v).c), "+w"((v).d))

typedef struct v16 {
    float32x4_t a, b, c, d;
} v16;
typedef uint8x16_t b16;
typedef struct m16 {
    uint32x4_t a, b, c, d;
} m16;

#define V16_EACH_2(f, x, y) \
    ((v16){f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), f((x).d, (y).d)})

static inline v16 v16_set1(float f)
{
    const float32x4_t v = vdupq_n_f32(f);
    return (v16){v, v, v, v};
}

/* Bytes, because the address need not be a float's. */
static inline float32x4_t load_4(const uint8_t *p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
static inline void store_4(uint8_t *p, float32x4_t v) { vst1q_u8(p, vreinterpretq_u8_f32(v)); }

static inline v16 v16_load(const void *p)
{
    const uint8_t *x = p;
    return (v16){load_4(x), load_4(x + 16), load_4(x + 32), load_4(x + 48)};
}

static inline void v16_store(void *p, v16 v)
{
    uint8_t *x = p;
    store_4(x, v.a);
    store_4(x + 16, v.b);
    store_4(x + 32, v.c);
    store_4(x + 48, v.d);
}

static inline v16 v16_add(v16 x, v16 y) { return V16_EACH_2(vaddq_f32, x, y); }
static inline v16 v16_sub(v16 x, v16 y) { return V16_EACH_2(vsubq_f32, x, y); }
static inline v16 v16_mul(v16 x, v16 y) { return V16_EACH_2(vmulq_f32, x, y); }
static inline v16 v16_div(v16 x, v16 y) { return V16_EACH_2(vdivq_f32, x, y); }

static inline v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                 vfmaq_f32(z.d, x.d, y.d)};
}

static inline v16 v16_sqrt(v16 v)
{
    return (v16){vsqrtq_f32(v.a), vsqrtq_f32(v.b), vsqrtq_f32(v.c), vsqrtq_f32(v.d)};
}

static inline v16 v16_abs(v16 v)
{
    return (v16){vabsq_f32(v.a), vabsq_f32(v.b), vabsq_f32(v.c), vabsq_f32(v.d)};
}

static inline m16 v16_lt(v16 x, v16 y)
{
    return (m16){vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b), vcltq_f32(x.c, y.c),
                 vcltq_f32(x.d, y.d)};
}

static inline m16 v16_eq(v16 x, v16 y)
{
    return (m16){vceqq_f32(x.a, y.a), vceqq_f32(x.b, y.b), vceqq_f32(x.c, y.c),
                 vceqq_f32(x.d, y.d)};
}

static inline m16 m16_and(m16 x, m16 y)
{
    return (m16){vandq_u32(x.a, y.a), vandq_u32(x.b, y.b), vandq_u32(x.c, y.c),
                 vandq_u32(x.d, y.d)};
}

static inline v16 v16_select(m16 m, v16 yes, v16 no)
{
    return (v16){vbslq_f32(m.a, yes.a, no.a), vbslq_f32(m.b, yes.b, no.b),
                 vbslq_f32(m.c, yes.c, no.c), vbslq_f32(m.d, yes.d, no.d)};
}

static inline float32x4_t mantissa_4(float32x4_t v)
{
    const uint32x4_t kept = vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x7fffff));
    return vreinterpretq_f32_u32(vorrq_u32(kept, vdupq_n_u32(0x4b000000)));
}

static inline v16 v16_mantissa(v16 v)
{
    return (v16){mantissa_4(v.a), mantissa_4(v.b), mantissa_4(v.c), mantissa_4(v.d)};
}

static inline v16 v16_zip_lo(v16 x, v16 y)
{
    return (v16){vzip1q_f32(x.a, y.a), vzip2q_f32(x.a, y.a), vzip1q_f32(x.b, y.b),
                 vzip2q_f32(x.b, y.b)};
}

static inline v16 v16_zip_hi(v16 x, v16 y)
{
    return (v16){vzip1q_f32(x.c, y.c), vzip2q_f32(x.c, y.c), vzip1q_f32(x.d, y.d),
                 vzip2q_f32(x.d, y.d)};
}

/* FMIN and FMAX give NaN when either operand is NaN. */
static inline v16 v16_clamp(v16 v, float lo, float hi)
{
    const v16 low = v16_set1(lo), high = v16_set1(hi);
    const v16 raised = V16_EACH_2(vmaxq_f32, low, v);
    return V16_EACH_2(vminq_f32, high, raised);
}

static inline v16 v16_max_nan(v16 max, v16 v) { return V16_EACH_2(vmaxq_f32, max, v); }

static inline float32x4_t pow2_4(int32x4_t k)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(k, vdupq_n_s32(127)), 23));
}

static inline float32x4_t mul_pow2_4(float32x4_t v, float32x4_t shifted)
{
    const int32x4_t k = vsubq_s32(vreinterpretq_s32_f32(shifted), vdupq_n_s32(EXPF_SHIFT_BITS));
    const int32x4_t half = vshrq_n_s32(k, 1);
    return vmulq_f32(vmulq_f32(v, pow2_4(half)), pow2_4(vsubq_s32(k, half)));
}

static inline v16 v16_mul_pow2(v16 v, v16 shifted) { return V16_EACH_2(mul_pow2_4, v, shifted); }

static inline float v16_reduce(v16 v)
{
    const float32x4_t s8_lo = vaddq_f32(v.a, v.c), s8_hi = vaddq_f32(v.b, v.d);
    const float32x4_t s4 = vaddq_f32(s8_lo, s8_hi);
    const float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

static inline uint16x8_t load_u16_8(const uint8_t *p) { return vreinterpretq_u16_u8(vld1q_u8(p)); }

static inline v16 v16_from_f16(const void *p)
{
    const float16x8_t lo = vreinterpretq_f16_u16(load_u16_8(p));
    const float16x8_t hi = vreinterpretq_f16_u16(load_u16_8((const uint8_t *)p + 16));
    return (v16){vcvt_f32_f16(vget_low_f16(lo)), vcvt_high_f32_f16(lo),
                 vcvt_f32_f16(vget_low_f16(hi)), vcvt_high_f32_f16(hi)};
}

static inline void v16_to_f16(void *p, v16 v)
{
    uint8_t *x = p;
    const float16x8_t lo = vcvt_high_f16_f32(vcvt_f16_f32(v.a), v.b);
    const float16x8_t hi = vcvt_high_f16_f32(vcvt_f16_f32(v.c), v.d);
    vst1q_u8(x, vreinterpretq_u8_f16(lo));
    vst1q_u8(x + 16, vreinterpretq_u8_f16(hi));
}

static inline v16 v16_from_bf16(const void *p)
{
    const uint16x8_t lo = load_u16_8(p);
    const uint16x8_t hi = load_u16_8((const uint8_t *)p + 16);
    return (v16){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(lo), 16)),
                 vreinterpretq_f32_u32(vshll_high_n_u16(lo, 16)),
                 vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(hi), 16)),
                 vreinterpretq_f32_u32(vshll_high_n_u16(hi, 16))};
}

static inline float f16_scale(uint16_t h)
{
    __fp16 f;

    memcpy(&f, &h, sizeof(f));
    return (float)f;
}

static inline b16 b16_load(const void *p) { return vld1q_u8(p); }
static inline b16 b16_or(b16 x, b16 y) { return vorrq_u8(x, y); }
static inline b16 b16_and(b16 x, int mask) { return vandq_u8(x, vdupq_n_u8((uint8_t)mask)); }
static inline b16 b16_shr(b16 x, int n) { return vshlq_u8(x, vdupq_n_s8((int8_t)-n)); }
static inline b16 b16_shl(b16 x, int n) { return vshlq_u8(x, vdupq_n_s8((int8_t)n)); }

static inline v16 v16_from_u8(b16 b)
{
    const uint16x8_t lo = vmovl_u8(vget_low_u8(b)), hi = vmovl_high_u8(b);
    return (v16){vcvtq_f32_u32(vmovl_u16(vget_low_u16(lo))), vcvtq_f32_u32(vmovl_high_u16(lo)),
                 vcvtq_f32_u32(vmovl_u16(vget_low_u16(hi))), vcvtq_f32_u32(vmovl_high_u16(hi))};
}

static inline v16 v16_from_i8(b16 b)
{
    const int8x16_t s = vreinterpretq_s8_u8(b);
    const int16x8_t lo = vmovl_s8(vget_low_s8(s)), hi = vmovl_high_s8(s);
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_high_s16(lo)),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_high_s16(hi))};
}

static inline int16x8_t low_words_8(float32x4_t lo, float32x4_t hi)
{
    return vmovn_high_s32(vmovn_s32(vcvtq_s32_f32(lo)), vcvtq_s32_f32(hi));
}

static inline void v16_to_bytes(void *p, v16 v)
{
    const int8x8_t lo = vmovn_s16(low_words_8(v.a, v.b));
    vst1q_u8(p, vreinterpretq_u8_s8(vmovn_high_s16(lo, low_words_8(v.c, v.d))));
}

#endif
