/* blocks.h: ggml's quantised blocks as they lie on disk, byte by byte.
 *
 * Every member is a byte array, so a block may start at any address and no compiler pads it. Halves
 * (f16) are little-endian pairs of bytes. Element e of a block is always the e-th weight of the
 * row. */
#ifndef QUANT_BLOCKS_H
#define QUANT_BLOCKS_H

#include <stdint.h>

enum {
    Q8_0_ELEMS = 32, /* weights of one q8_0 block */
    Q4_0_ELEMS = 32, /* weights of one q4_0 block */
    QK_K = 256,      /* weights of one K-quant super-block */
};

/* 8 bits: w[e] = d * qs[e] */
typedef struct block_q8_0 {
    uint8_t d[2]; /*  0: scale, f16 */
    int8_t qs[32]; /* 2: one signed byte per weight */
} block_q8_0;
_Static_assert(sizeof(block_q8_0) == 34, "q8_0 is 34 bytes for 32 weights");

/* 4.5 bits: w[e] = d * (q - 8) */
typedef struct block_q4_0 {
    uint8_t d[2];   /* 0: scale, f16 */
    uint8_t qs[16]; /* 2: q in 0..15; byte e%16, low nibble when e < 16 */
} block_q4_0;
_Static_assert(sizeof(block_q4_0) == 18, "q4_0 is 18 bytes for 32 weights");

/* 2.625 bits: 16 groups of 16; w[e] = (d * scale[g]) * q - (dmin * min[g]), g = e / 16 */
typedef struct block_q2_K {
    uint8_t scales[16]; /* 0: per group: low nibble scale, high nibble min */
    uint8_t qs[64];     /* 16: q in 0..3; byte 32*(e/128) + e%32, bits 2*((e%128)/32) and up */
    uint8_t d[2];       /* 80: scale of the scales, f16 */
    uint8_t dmin[2];    /* 82: scale of the mins, f16 */
} block_q2_K;
_Static_assert(sizeof(block_q2_K) == 84, "q2_K is 84 bytes for 256 weights");

/* 3.4375 bits: 16 groups of 16; w[e] = (d * (scale[g] - 32)) * (q - 4), g = e / 16 */
typedef struct block_q3_K {
    uint8_t hmask[32];  /*   0: bit 2 of q: byte e%32, bit e/32 */
    uint8_t qs[64];     /*  32: bits 0 and 1: byte 32*(e/128) + e%32, bits 2*((e%128)/32) and up */
    uint8_t scales[12]; /*  96: sixteen 6-bit scales, see q3_K_scale */
    uint8_t d[2];       /* 108: scale of the scales, f16 */
} block_q3_K;
_Static_assert(sizeof(block_q3_K) == 110, "q3_K is 110 bytes for 256 weights");

/* 4.5 bits: 8 groups of 32; w[e] = (d * scale[g]) * q - (dmin * min[g]), g = e / 32 */
typedef struct block_q4_K {
    uint8_t d[2];       /* 0: scale of the scales, f16 */
    uint8_t dmin[2];    /* 2: scale of the mins, f16 */
    uint8_t scales[12]; /* 4: eight 6-bit scales and mins, see q4_K_scale_min */
    uint8_t qs[128];    /* 16: q in 0..15; byte 32*(e/64) + e%32, low nibble when e%64 < 32 */
} block_q4_K;
_Static_assert(sizeof(block_q4_K) == 144, "q4_K is 144 bytes for 256 weights");

/* 5.5 bits: 8 groups of 32; w[e] = (d * scale[g]) * q - (dmin * min[g]), g = e / 32 */
typedef struct block_q5_K {
    uint8_t d[2];       /*  0: scale of the scales, f16 */
    uint8_t dmin[2];    /*  2: scale of the mins, f16 */
    uint8_t scales[12]; /*  4: as in q4_K */
    uint8_t qh[32];     /* 16: bit 4 of q: byte e%32, bit e/32 */
    uint8_t qs[128];    /* 48: bits 0..3, as in q4_K */
} block_q5_K;
_Static_assert(sizeof(block_q5_K) == 176, "q5_K is 176 bytes for 256 weights");

/* 6.5625 bits: 16 groups of 16; w[e] = (d * scales[g]) * (q - 32), g = e / 16 */
typedef struct block_q6_K {
    uint8_t ql[128];   /*   0: low 4 bits of q: byte 64*(e/128) + e%64, low nibble if e%128 < 64 */
    uint8_t qh[64];    /* 128: high 2 bits: byte 32*(e/128) + e%32, bits 2*((e%128)/32) and up */
    int8_t scales[16]; /* 192: signed scale per group */
    uint8_t d[2];      /* 208: scale of the scales, f16 */
} block_q6_K;
_Static_assert(sizeof(block_q6_K) == 210, "q6_K is 210 bytes for 256 weights");

static inline uint16_t half_get(const uint8_t p[2])
{
    return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline void half_put(uint8_t p[2], uint16_t h)
{
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* Groups 0..3 keep their 6 bits in bytes 0..3 (scale) and 4..7 (min). Groups 4..7 keep 4 low bits
 * of both in bytes 8..11 and their 2 high bits on top of the bytes of group g-4. */
static inline void q4_K_scale_min(const uint8_t scales[12], int g, uint8_t *scale, uint8_t *min)
{
    if (g < 4) {
        *scale = scales[g] & 63;
        *min = scales[g + 4] & 63;
    } else {
        *scale = (uint8_t)((scales[g + 4] & 15) | (scales[g - 4] >> 6) << 4);
        *min = (uint8_t)(scales[g + 4] >> 4 | (scales[g] >> 6) << 4);
    }
}

/* 0..63, of which 32 is subtracted: low 4 bits in bytes 0..7, groups 0..7 in the low nibbles and
 * 8..15 in the high ones; high 2 bits of group g in byte 8 + g%4, bits 2*(g/4) and up. */
static inline uint8_t q3_K_scale(const uint8_t scales[12], int g)
{
    const int low = scales[g % 8] >> 4 * (g / 8) & 15;
    const int high = scales[8 + g % 4] >> 2 * (g / 4) & 3;
    return (uint8_t)(low | high << 4);
}

#endif
