/* act.h: activations as the panel kernels read them: 8-bit integers with one scale per 256, or
 * per 32 for weights that have a scale per 32 themselves.
 *
 * A vector of n floats is ceil(n / 256) blocks; what lies past n in the last block is zero. The
 * sums are there because the kernels multiply unsigned weights: a group's offset or minimum is
 * then one product with the sum of its activations, taken once per vector instead of once per row.
 *
 * Values that share a scale with one that is not finite get d = NaN and zero levels: every dot with
 * them is NaN, so a broken activation cannot come out as plausible numbers. Where the largest value
 * is below ACT_TINY all count as zero (the reciprocal of the scale would overflow). */
#ifndef QUANT_ACT_H
#define QUANT_ACT_H

#include <stddef.h>
#include <stdint.h>

enum { ACT_ELEMS = 256 };
#define ACT_TINY 0x1p-100f

/* Native byte order: lives in memory only. "Even first" means that each four sums a b c d lie in
 * the order a c b d: a pair of neighbours then meets the pair of 16-bit integers that masking
 * (a, c) or shifting (b, d) makes of four bytes. */
typedef struct act_block {
    float d[8];         /*   0: x[e] ~ d[e / 32] * qs[e]; all the same when one serves 256 */
    int8_t qs[256];     /*  32: -127..127 */
    int16_t sums16[16]; /* 288: sums of 16 levels, even first */
    int16_t sums32[8];  /* 320: sums of 32 levels, even first */
    int32_t bias32[8];  /* 336: -128 * (sum of 32 levels), in order */
} act_block;
_Static_assert(sizeof(act_block) == 368 && offsetof(act_block, bias32) == 336,
               "act_block is 368 bytes");

static inline int64_t act_n_blocks(int64_t n)
{
    return (n + ACT_ELEMS - 1) / ACT_ELEMS;
}

/* x [n] -> out [act_n_blocks(n)], a scale for every scale_elems (32 or 256) values: d = amax / 127,
 * level = nearest(x * (127 / amax)), ties to even. */
void act_quantize_ref(const float *x, int64_t n, int scale_elems, act_block *out);

#endif
