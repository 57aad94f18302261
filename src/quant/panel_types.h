/* panel_types.h: how the vector kernels read each type's panel block (offsets: panel.h): its levels
 * in the order of the columns, its scales and mins. Included by panel_body.h after the 64-byte
 * vectors.
 *
 * Group g is 16 or 32 columns; step s of a group is four columns. `type`, g and s are constants
 * wherever these are called, so that the switches and shifts fold. */
#ifndef QUANT_PANEL_TYPES_H
#define QUANT_PANEL_TYPES_H

#if defined(PANEL_PLAIN_LOOPS) /* builds with sanitisers */
#define INLINE static inline
#define UNROLL
#elif defined(__clang__)
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { MAX_GROUPS = 16, N_STEPS = 64 }; /* of 256 columns */

INLINE bool has_mins(dtype type)
{
    return type == DTYPE_Q2_K || type == DTYPE_Q4_K || type == DTYPE_Q5_K;
}

INLINE bool is_signed(dtype type) /* blocks of 32 with a scale each */
{
    return type == DTYPE_Q8_0 || type == DTYPE_Q4_0;
}

/* Bytes of 256 columns of a panel. */
INLINE size_t bytes_of_256(dtype type)
{
    return type == DTYPE_Q4_0   ? 8 * 288
           : type == DTYPE_Q8_0 ? 8 * 544
           : type == DTYPE_Q2_K ? 1344
           : type == DTYPE_Q3_K ? 1760
           : type == DTYPE_Q4_K ? 2304
           : type == DTYPE_Q5_K ? 2816
                                : 3360;
}

INLINE int n_groups(dtype type)
{
    return type == DTYPE_Q4_K || type == DTYPE_Q5_K ? 8 : 16;
}

INLINE int max_level(dtype type)
{
    return type == DTYPE_Q2_K   ? 3
           : type == DTYPE_Q3_K ? 7
           : type == DTYPE_Q4_K ? 15
           : type == DTYPE_Q5_K ? 31
                                : 63;
}

/* Scale times level fits a byte: where bytes do not saturate, unpacking multiplies them. */
INLINE bool is_prescaled(dtype type)
{
    return CAN_PRESCALE && type == DTYPE_Q2_K;
}

INLINE int offset_bits(dtype type) /* level = q - 2^bits */
{
    return type == DTYPE_Q3_K ? 2 : 5;
}

INLINE const uint8_t *d_of(dtype type, const uint8_t *b)
{
    switch (type) {
    case DTYPE_Q2_K: return b + 1280;
    case DTYPE_Q3_K: return b + 1728;
    case DTYPE_Q6_K: return b + 3328;
    default: return b;
    }
}

/* n bits of vector v of the part that starts at p, from bit `shift` of each byte. */
INLINE w64 bits_of(const uint8_t *p, int v, int shift, int n)
{
    const w64 bytes = w64_load(p + 64 * v);
    return w64_and(shift != 0 ? w64_shr(bytes, shift) : bytes, (1 << n) - 1);
}

/* The levels of step s of group g, unsigned. */
INLINE w64 weights_of(dtype type, const uint8_t *b, int g, int s)
{
    const int half = g / 8, row = g % 8; /* of 16-column groups: halves of 128 columns */
    const int v = 4 * (row % 2) + s;     /* vector of 32 columns that share bytes */

    switch (type) {
    case DTYPE_Q2_K:
        return bits_of(b + 256, 8 * half + v, 2 * (row / 2), 2);
    case DTYPE_Q3_K:
        return w64_or(bits_of(b + 512, 8 * half + v, 2 * (row / 2), 2),
                      w64_shl(bits_of(b, v, 4 * half + row / 2, 1), 2));
    case DTYPE_Q4_K:
        return bits_of(b + 256, 8 * (g / 2) + s, 4 * (g % 2), 4);
    case DTYPE_Q5_K:
        return w64_or(bits_of(b + 768, 8 * (g / 2) + s, 4 * (g % 2), 4),
                      w64_shl(bits_of(b + 256, s, g, 1), 4));
    default: /* q6_K */
        return w64_or(bits_of(b, 16 * half + 4 * (row % 4) + s, 4 * (row / 4), 4),
                      w64_shl(bits_of(b + 2048, 8 * half + v, 2 * (row / 2), 2), 4));
    }
}

/* Step s of a block of 32, signed, plus SIGNED_BIAS. */
INLINE w64 signed_weights_of(dtype type, const uint8_t *b, int s)
{
    if (type == DTYPE_Q8_0) {
        const w64 w = w64_load(b + 32 + 64 * s);
        return SIGNED_BIAS != 0 ? w64_xor(w, SIGNED_BIAS) : w;
    }
    return w64_add(bits_of(b + 32, s % 4, 4 * (s / 4), 4), SIGNED_BIAS - 8);
}

/* The scales of groups 4i .. 4i + 3: byte 4 * row + group % 4. Signed where has_mins is false. */
INLINE w64 scales_of(dtype type, const uint8_t *b, int i)
{
    switch (type) {
    case DTYPE_Q2_K:
        return bits_of(b, i, 0, 4);
    case DTYPE_Q3_K:
        return w64_add(w64_or(bits_of(b + 1536, i % 2, 4 * (i / 2), 4),
                              w64_shl(bits_of(b + 1536, 2, 2 * i, 2), 4)),
                       -32);
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return i == 0 ? bits_of(b + 64, 0, 0, 6)
                      : w64_or(bits_of(b + 64, 2, 0, 4), w64_shl(bits_of(b + 64, 0, 6, 2), 4));
    default:
        return w64_load(b + 3072 + 64 * i);
    }
}

/* What multiplies the sums of the activations: the mins, or the scales of types with an offset. */
INLINE w64 mins_of(dtype type, const uint8_t *b, int i)
{
    switch (type) {
    case DTYPE_Q2_K:
        return bits_of(b, i, 4, 4);
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return i == 0 ? bits_of(b + 64, 1, 0, 6)
                      : w64_or(bits_of(b + 64, 2, 4, 4), w64_shl(bits_of(b + 64, 1, 6, 2), 4));
    default:
        return scales_of(type, b, i);
    }
}

INLINE scl scale_of(dtype type, w64 scales, int i)
{
    return has_mins(type) ? scl_unsigned(scales, i) : scl_signed(scales, i);
}

INLINE w64 min_pairs_of(dtype type, w64 mins, int odd)
{
    return has_mins(type) ? pairs_unsigned(mins, odd) : pairs_signed(mins, odd);
}

/* The sums of activations that belong to pair i of the mins. */
INLINE x4 sum_pair_of(dtype type, const act_block *x, int i)
{
    return x4_load(n_groups(type) == 8 ? x->sums32 + 2 * i : x->sums16 + 2 * i);
}

/* S of panel.h. */
INLINE v16 finish(dtype type, s16 sum, s16 sum_mins, v16 d, v16 dmin)
{
    if (has_mins(type)) {
        return v16_fms(d, v16_from_s16(sum), v16_mul(dmin, v16_from_s16(sum_mins)));
    }
    return v16_mul(d, v16_from_s16(s16_sub_shl(sum, sum_mins, offset_bits(type))));
}

#endif
