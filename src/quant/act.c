/* act.c: the reference quantiser of activations, built for the baseline instruction set. */
#include "quant/act.h"

#include "quant/act_body.h"

void act_quantize_ref(const float *x, int64_t n, int scale_elems, act_block *out)
{
    act_quantize_rows(x, n, scale_elems, out);
}
