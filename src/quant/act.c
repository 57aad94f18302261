/* act.c: the reference quantiser of activations, built for the baseline instruction set. */
#include "quant/act.h"

#include "quant/act_body.h"

void act_quantize_ref(const float *x, int64_t n, act_block *out)
{
    act_quantize_rows(x, n, out);
}

void act_quantize_fine_ref(const float *x, int64_t n, act_block *hi, act_block *lo)
{
    act_quantize_rows_fine(x, n, hi, lo);
}
