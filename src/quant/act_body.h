/* act_body.h: the quantiser of activations. The including file's instruction set decides how the
 * compiler vectorises these loops; every operation in them is exact or rounds once, so the results
 * are the same. */
#ifndef QUANT_ACT_BODY_H
#define QUANT_ACT_BODY_H

#include <math.h>
#include <string.h>

#include "quant/act.h"

#define ACT_MAX 127.0f

typedef struct act_scale {
    float d;
    float inverse; /* 0: all levels are zero */
} act_scale;

/* The scale of n (32 or 256, a constant) values. Magnitudes are compared as bits: of floats that
 * are not negative the larger has the larger bits, and infinity and NaN are above all finite. */
static inline act_scale act_scale_of(const float *x, int n)
{
    uint32_t bits[ACT_ELEMS];
    uint32_t max = 0;
    float abs_max;

    memcpy(bits, x, (size_t)n * sizeof(bits[0]));
    for (int e = 0; e < n; e++) {
        const uint32_t magnitude = bits[e] & 0x7fffffff;
        max = magnitude > max ? magnitude : max;
    }
    memcpy(&abs_max, &max, sizeof(abs_max));
    if (!isfinite(abs_max)) {
        return (act_scale){NAN, 0};
    }
    if (abs_max < ACT_TINY) {
        return (act_scale){0, 0};
    }
    return (act_scale){abs_max / ACT_MAX, ACT_MAX / abs_max};
}

/* Next to 1.5 * 2^23 the floats are the integers: adding rounds to nearest, ties to even. */
static inline void act_levels(const float *x, int n, float inverse, int8_t *levels)
{
    float shifted[ACT_ELEMS];
    int32_t bits[ACT_ELEMS];

    if (inverse == 0) { /* x may be infinite or NaN */
        memset(levels, 0, (size_t)n);
        return;
    }
    for (int e = 0; e < n; e++) {
        shifted[e] = x[e] * inverse + 12582912.0f;
    }
    memcpy(bits, shifted, (size_t)n * sizeof(bits[0]));
    for (int e = 0; e < n; e++) {
        levels[e] = (int8_t)(bits[e] - 0x4b400000);
    }
}

/* a b c d -> a c b d in each four. */
static inline int act_even_first(int i)
{
    return (i & ~3) | (i & 1) << 1 | (i >> 1 & 1);
}

static inline void act_sums(act_block *b)
{
    for (int i = 0; i < 8; i++) {
        int32_t first = 0, second = 0;
        for (int e = 0; e < 16; e++) {
            first += b->qs[32 * i + e];
            second += b->qs[32 * i + 16 + e];
        }
        b->sums16[act_even_first(2 * i)] = (int16_t)first;
        b->sums16[act_even_first(2 * i + 1)] = (int16_t)second;
        b->sums32[act_even_first(i)] = (int16_t)(first + second);
        b->bias32[i] = -128 * (first + second);
    }
}

/* x itself, or the last n < 256 elements of a row followed by zeros. */
static inline const float *act_padded(const float *x, int64_t n, float padded[ACT_ELEMS])
{
    if (n >= ACT_ELEMS) {
        return x;
    }
    memset(padded, 0, ACT_ELEMS * sizeof(float));
    memcpy(padded, x, (size_t)n * sizeof(float));
    return padded;
}

/* 256 values, a scale for every n (32 or 256, a constant). */
static inline void act_quantize_block(const float *x, int n, act_block *out)
{
    for (int first = 0; first < ACT_ELEMS; first += n) {
        const act_scale s = act_scale_of(x + first, n);
        act_levels(x + first, n, s.inverse, out->qs + first);
        for (int i = first / 32; i < (first + n) / 32; i++) {
            out->d[i] = s.d;
        }
    }
    act_sums(out);
}

static inline void act_quantize_rows(const float *x, int64_t n, int scale_elems, act_block *out)
{
    for (; n > 0; n -= ACT_ELEMS, x += ACT_ELEMS, out++) {
        float padded[ACT_ELEMS];
        const float *block = act_padded(x, n, padded);
        if (scale_elems == 32) {
            act_quantize_block(block, 32, out);
        } else {
            act_quantize_block(block, ACT_ELEMS, out);
        }
    }
}

#endif
