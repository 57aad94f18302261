/* attn_q8_levels.h: the floats of attn_q8.h to levels. The including file's instruction set decides
 * how the compiler vectorises these loops; every operation in them is exact or rounds once, so the
 * results are the same. */
#ifndef QUANT_ATTN_Q8_LEVELS_H
#define QUANT_ATTN_Q8_LEVELS_H

#include <math.h>
#include <string.h>

#include "quant/act.h"
#include "quant/attn_q8.h"

/* Levels are made so many at a time: next to 1.5 * 2^23 the floats are the integers, and adding
 * rounds to nearest, ties to even. */
enum { ATTN_Q8_STEP = 16 };
#define ATTN_Q8_SHIFT 12582912.0f
#define ATTN_Q8_SHIFT_BITS 0x4b400000

static inline void attn_q8_levels(const float scaled[ATTN_Q8_STEP], int16_t levels[ATTN_Q8_STEP])
{
    float shifted[ATTN_Q8_STEP];
    int32_t bits[ATTN_Q8_STEP];

    for (int i = 0; i < ATTN_Q8_STEP; i++) {
        shifted[i] = scaled[i] + ATTN_Q8_SHIFT;
    }
    memcpy(bits, shifted, sizeof(bits));
    for (int i = 0; i < ATTN_Q8_STEP; i++) {
        levels[i] = (int16_t)(bits[i] - ATTN_Q8_SHIFT_BITS);
    }
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

/* d is a multiple of 16. */
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
    for (int64_t i = 0; i < d; i += ATTN_Q8_STEP) {
        float scaled[ATTN_Q8_STEP];
        for (int e = 0; e < ATTN_Q8_STEP; e++) {
            scaled[e] = x[i + e] * inverse;
        }
        attn_q8_levels(scaled, levels + i);
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

/* w [n, rounded up to 16]: past n zeros. */
static inline void attn_q8_weights(const float *p, const float *t, int64_t n, int16_t *w)
{
    for (int64_t j = 0; j < n; j += ATTN_Q8_STEP) {
        float scaled[ATTN_Q8_STEP] = {0};
        if (n - j >= ATTN_Q8_STEP) {
            for (int e = 0; e < ATTN_Q8_STEP; e++) {
                scaled[e] = p[j + e] * t[j + e];
            }
        } else {
            for (int e = 0; e < n - j; e++) {
                scaled[e] = p[j + e] * t[j + e];
            }
        }
        attn_q8_levels(scaled, w + j);
    }
}

#endif
