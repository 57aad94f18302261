/* half.c: f16 and bf16, both ways, in integer arithmetic.
 *
 * Narrowing rounds to nearest, ties to even. A NaN stays a quiet NaN with the top of its payload,
 * which is what F16C and NEON do, so that hardware and this file agree on every bit. */
#include "quant/quant.h"

#include <string.h>

static uint32_t f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static float f32_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = (h >> 10) & 31;
    const uint32_t mantissa = h & 0x3ff;

    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24, exact */
        return f32_from_bits(sign | f32_bits((float)mantissa * 0x1p-24f));
    }
    if (exponent == 31) {
        const uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
        return f32_from_bits(sign | 0x7f800000 | quiet | mantissa << 13);
    }
    return f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f16_from_f32(float f)
{
    const uint32_t bits = f32_bits(f);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const uint32_t abs = bits & 0x7fffffff;
    uint32_t h;

    if (abs > 0x7f800000) { /* NaN */
        h = 0x7e00 | (abs >> 13 & 0x3ff);
    } else if (abs >= 0x477ff000) { /* 65520, halfway past the largest f16: infinity */
        h = 0x7c00;
    } else if (abs < 0x38800000) { /* below 2^-14: next to 0.5 a float has the grid of subnormals */
        h = f32_bits(f32_from_bits(abs) + 0.5f) - f32_bits(0.5f);
    } else { /* rebias 127 to 15; a carry out of the mantissa belongs in the exponent */
        h = (abs - 0x38000000 + 0xfff + (abs >> 13 & 1)) >> 13;
    }
    return (uint16_t)(sign | h);
}

float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

uint16_t bf16_from_f32(float f)
{
    const uint32_t bits = f32_bits(f);

    if ((bits & 0x7fffffff) > 0x7f800000) { /* NaN: rounding could carry it into infinity */
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
