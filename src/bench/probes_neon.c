/* probes_neon.c: the limits of NEON; built a second time with the dot product. */
#include <arm_neon.h>

typedef int32x4_t vec;
typedef float32x4_t fvec;

static inline vec vec_zero(void) { return vdupq_n_s32(0); }
static inline vec vec_xor_load(vec a, const void *p)
{
    return veorq_s32(a, vreinterpretq_s32_u8(vld1q_u8(p)));
}
static inline vec vec_dot(vec a, vec w, vec x)
{
    const int8x16_t p = vreinterpretq_s8_s32(w), q = vreinterpretq_s8_s32(x);
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(a, p, q);
#else
    int16x8_t products = vmull_s8(vget_low_s8(p), vget_low_s8(q));
    __asm__ volatile("" : "+w"(products)); /* every product anew */
    return vpadalq_s16(a, vmlal_high_s8(products, p, q));
#endif
}
static inline fvec fvec_zero(void) { return vdupq_n_f32(0); }
static inline fvec fvec_fma(fvec a, fvec w, fvec x) { return vfmaq_f32(a, w, x); }

#define KEEP_IN(v) "+w"(v)
#if defined(__ARM_FEATURE_DOTPROD)
#define PROBES_ISA "neon_dot"
#define PROBES_TABLE probes_neon_dot
#else
#define PROBES_ISA "neon"
#define PROBES_TABLE probes_neon
#endif
#include "bench/probes_body.h"
