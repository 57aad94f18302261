/* attn_q8_levels.h: the floats of attn_q8.h to levels. The including file's instruction set decides
 * how the compiler vectorises these loops; every operation in them is exact or rounds once, so the
 * results are the same. */
#ifndef QUANT_ATTN_Q8_LEVELS_H
#define QUANT_ATTN_Q8_LEVELS_H

#include <math.h>
#include <string.h>

#include "quant/act.h"
#include "quant/attn_q8.h"

/* Next to 1.5 * 2^23 the floats are the integers: adding rounds to nearest, ties to even. */
#define ATTN_Q8_SHIFT 12582912.0f
#define ATTN_Q8_SHIFT_BITS 0x4b400000

/* One element per turn of a plain loop: cut into pieces of 16, gcc 12 multiplies one by one. */
static inline int16_t attn_q8_level(float scaled)
{
    const float shifted = scaled + ATTN_Q8_SHIFT;
    int32_t bits;

    memcpy(&bits, &shifted, sizeof(bits));
    return (int16_t)(bits - ATTN_Q8_SHIFT_BITS);
}

/* The largest magnitude; infinite or NaN when any is. Magnitudes are compared as bits. */
static inline float attn_q8_max(const float *x, int64_t n)
{
    uint32_t max = 0;
    float f;

    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof(bits));
        bits &= 0x7fffffff;
        max = bits > max ? bits : max;
    }
    memcpy(&f, &max, sizeof(f));
    return f;
}

static inline void attn_q8_quantize_row(const float *x, int64_t d, int16_t *levels, float *scale)
{
    const float max = attn_q8_max(x, d);

    if (!isfinite(max) || max < ACT_TINY) {
        *scale = isfinite(max) ? 0 : NAN;
        memset(levels, 0, (size_t)d * sizeof(*levels));
        return;
    }
    const float inverse = ATTN_Q8_MAX / max;
    *scale = max / ATTN_Q8_MAX;
    for (int64_t i = 0; i < d; i++) {
        levels[i] = attn_q8_level(x[i] * inverse);
    }
}

/* Turns the scales of n positions into t of attn_q8.h; returns max / ATTN_Q8_MAX. */
static inline float attn_q8_multipliers(float *scales, int64_t n)
{
    const float max = attn_q8_max(scales, n);
    const float inverse = isfinite(max) && max > 0 ? ATTN_Q8_MAX / max : 0;

    for (int64_t j = 0; j < n; j++) {
        scales[j] = inverse == 0 ? 0 : scales[j] * inverse;
    }
    return isfinite(max) ? max / ATTN_Q8_MAX : NAN;
}

/* w [n, rounded up to a whole tile]: past n zeros. */
static inline void attn_q8_weights(const float *p, const float *t, int64_t n, int16_t *w)
{
    for (int64_t j = 0; j < n; j++) {
        w[j] = attn_q8_level(p[j] * t[j]);
    }
    for (int64_t j = n; j % ATTN_Q8_POSITIONS != 0; j++) {
        w[j] = 0;
    }
}

#endif
