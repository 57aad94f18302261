/* rope.c: see rope.h. Tables are made in double from dmath, so libm decides nothing. */
#include "model/rope.h"

#include <math.h>

#include "base/dmath.h"

static const double TWO_PI = 6.283185307179586;

/* Yarn: the pair index at which a wave makes n_turns over the original context. */
static double yarn_pair_of_turns(const rope_config *rope, uint32_t n_embd_head, double n_turns)
{
    return n_embd_head * dmath_log(rope->n_ctx_orig / (n_turns * TWO_PI)) /
           (2 * dmath_log(rope->theta));
}

/* Yarn: the share of interpolation of pair i: 0 = keep the frequency, 1 = divide it by factor. */
static double yarn_ramp(const rope_config *rope, uint32_t n_embd_head, uint32_t i)
{
    double low = yarn_pair_of_turns(rope, n_embd_head, rope->beta_fast);
    double high = yarn_pair_of_turns(rope, n_embd_head, rope->beta_slow);
    if (rope->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, n_embd_head - 1.0);
    if (low == high) {
        high += 0.001; /* the published formula's guard against a ramp of no width */
    }
    return fmin(fmax((i - low) / (high - low), 0), 1);
}

/* Llama 3: long waves are divided by factor, short ones kept, those between blended. */
static double llama3_scale(const rope_config *rope, double freq)
{
    double wavelength = TWO_PI / freq;
    double low = rope->n_ctx_orig / rope->low_freq_factor;
    double high = rope->n_ctx_orig / rope->high_freq_factor;
    if (wavelength < high) {
        return freq;
    }
    if (wavelength > low) {
        return freq / rope->factor;
    }
    double smooth = (rope->n_ctx_orig / wavelength - rope->low_freq_factor) /
                    (rope->high_freq_factor - rope->low_freq_factor);
    return (1 - smooth) * freq / rope->factor + smooth * freq;
}

void rope_frequencies(const rope_config *rope, uint32_t n_embd_head, float *inv_freq)
{
    for (uint32_t i = 0; i < n_embd_head / 2; i++) {
        double freq = dmath_pow(rope->theta, -2.0 * i / n_embd_head);
        switch (rope->kind) {
        case ROPE_DEFAULT:
            break;
        case ROPE_LINEAR:
            freq /= rope->factor;
            break;
        case ROPE_YARN: {
            double ramp = yarn_ramp(rope, n_embd_head, i);
            freq = freq / rope->factor * ramp + freq * (1 - ramp);
            break;
        }
        case ROPE_LLAMA3:
            freq = llama3_scale(rope, freq);
            break;
        }
        inv_freq[i] = (float)freq;
    }
}

void rope_cos_sin(const rope_config *rope, const float *inv_freq, uint32_t n_embd_head,
                  uint32_t position, float *cos_out, float *sin_out)
{
    double scale = rope->kind == ROPE_YARN ? rope->attention_factor : 1;
    for (uint32_t i = 0; i < n_embd_head / 2; i++) {
        /* The reference multiplies in float32; at long positions that rounding is part of the
         * model. */
        float angle = (float)position * inv_freq[i];
        double s, c;
        dmath_sincos(angle, &s, &c);
        cos_out[i] = (float)(c * scale);
        sin_out[i] = (float)(s * scale);
    }
}
