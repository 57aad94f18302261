/* act.h: activations as the panel kernels read them: 8-bit integers with one scale per 256.
 *
 * A vector of n floats is ceil(n / 256) blocks; what lies past n in the last block is zero. The
 * sums are there because the kernels multiply unsigned weights: a group's offset or minimum is
 * then one product with the sum of its activations, taken once per vector instead of once per row.
 *
 * A block that holds a value that is not finite gets d = NaN and zero levels: every dot with it is
 * NaN, so a broken activation cannot come out as plausible numbers. A block whose largest value is
 * below ACT_TINY counts as zero (the reciprocal of its scale would overflow). */
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
    float d;            /*   0: x[e] ~ d * qs[e] */
    int8_t qs[256];     /*   4: -127..127 */
    int16_t sums16[16]; /* 260: sums of 16 levels, even first */
    int16_t sums32[8];  /* 292: sums of 32 levels, even first */
    int32_t bias32[8];  /* 308: -128 * (sum of 32 levels), in order */
} act_block;
_Static_assert(sizeof(act_block) == 340 && offsetof(act_block, bias32) == 308,
               "act_block is 340 bytes");

static inline int64_t act_n_blocks(int64_t n)
{
    return (n + ACT_ELEMS - 1) / ACT_ELEMS;
}

/* x [n] -> out [act_n_blocks(n)].  d = amax / 127; level = nearest(x * (127 / amax)), ties to
 * even. */
void act_quantize_ref(const float *x, int64_t n, act_block *out);

/* The finer format, for matrices that 8 bits hurt: two vectors, to be multiplied like any other
 * two and added. With d = amax / 16256 and level = nearest(x * (16256 / amax)) = 128 * h + l,
 * l in -64..63: `hi` gets the levels h with scale 128 * d, `lo` the levels l with scale d. The
 * result is dot(hi) + dot(lo), in this order. */
void act_quantize_fine_ref(const float *x, int64_t n, act_block *hi, act_block *lo);

#endif
