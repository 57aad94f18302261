/* attn_q8.h: attention over keys and values of 8 bits, in exact integers: the layout, and what the
 * kernels compute (design A4: the same bits on every machine, for every batch). The kernels are in
 * panel.h's tables.
 *
 * LAYOUT. 16 positions of 32 dimensions are a tile of 544 bytes, as many as their 16 blocks of
 * q8_0 (blocks.h), whose scales and levels they are. Position p, dimension i of a tile:
 *
 *     0  scale of p at 2p, f16
 *    32  levels, signed
 *          keys:   64 * (i / 4) + 4 * p + order[i % 4]          a lane is a position
 *          values: 256 * (i / 16) + 64 * (p / 4) + 4 * (i % 16) + order[p % 4]
 *                                                               a lane is a dimension
 *        with order = {0, 2, 1, 3}: so even and odd bytes are pairs of neighbours
 *
 * d dimensions (a multiple of 32) are d / 32 tiles side by side, then come the next 16 positions.
 * No position has a part in another's bytes.
 *
 * QUERIES. levels = nearest(x * (ATTN_Q8_MAX / amax)), ties to even, and d = amax / ATTN_Q8_MAX. A
 * query that is not finite gets d = NaN and zero levels; below ACT_TINY it counts as zero.
 *
 * SCORES. For each 32 dimensions in ascending order total = fma(scale, (float)S, total) from 0,
 * where S is the exact sum of level * level; score = d * total.
 *
 * VALUES. Weights p in 0..1 over n <= 256 positions. For each 32 dimensions, with max the largest
 * scale of the n positions:  t[j] = scale[j] * (ATTN_Q8_MAX / max),  w[j] = nearest(p[j] * t[j]),
 * out = (max / ATTN_Q8_MAX) * (float)(the exact sum of w[j] * level[j]); NaN when max is not
 * finite, 0 when it is 0. */
#ifndef QUANT_ATTN_Q8_H
#define QUANT_ATTN_Q8_H

#include <stdint.h>

enum {
    ATTN_Q8_POSITIONS = 16, /* of a tile */
    ATTN_Q8_DIMS = 32,
    ATTN_Q8_TILE_BYTES = 544,
    ATTN_Q8_MAX_VALUES = 256, /* positions of one call */
    ATTN_Q8_MAX = 32000,      /* levels of queries and weights: 16 bits, some left for rounding */
};

typedef struct attn_q8_query {
    const int16_t *levels; /* [n_rows][d] */
    const float *d;        /* [n_rows] */
} attn_q8_query;

/* Byte of a tile that holds a level. */
static inline int attn_q8_order(int i) { return (i & 1) << 1 | (i >> 1 & 1); }
static inline int attn_q8_key_at(int p, int i)
{
    return 32 + 64 * (i / 4) + 4 * p + attn_q8_order(i % 4);
}
static inline int attn_q8_value_at(int p, int i)
{
    return 32 + 256 * (i / 16) + 64 * (p / 4) + 4 * (i % 16) + attn_q8_order(p % 4);
}

/* The reference. Quantises one query x [d]. */
void attn_q8_quantize_ref(const float *x, int64_t d, int16_t *levels, float *scale);
/* scores[r * stride + j] for 16 * n_tiles positions j. */
void attn_q8_scores_ref(const void *keys, attn_q8_query q, int64_t n_rows, int64_t d,
                        int64_t n_tiles, float *scores, int64_t stride);
/* out [n_rows][d] from p[r * stride + j], j < n. */
void attn_q8_values_ref(const void *values, const float *p, int64_t stride, int64_t n_rows,
                        int64_t d, int64_t n, float *out);

#endif
