/* matmul.h: weights times activations, rows spread over the threads.
 *
 * Every output is kernels->vec_dot of one weight row and one activation row, whatever the batch and
 * the thread: a batch of n equals n single calls, bit for bit. */
#ifndef MODEL_MATMUL_H
#define MODEL_MATMUL_H

#include "base/pool.h"
#include "model/weights.h"
#include "quant/kernels.h"

typedef struct compute {
    const kernels *k;
    pool *pool;
    /* [n_threads][row_scratch_len]: one dequantised weight row per thread */
    float *row_scratch;
    uint64_t row_scratch_len;
} compute;

/* y [n][w->rows] = x [n][w->cols] * transposed w, plus bias [w->rows] unless NULL.
 * w->cols <= row_scratch_len when n > 1. */
void matmul(const compute *c, const matrix *w, const float *bias, const float *x, uint32_t n,
            float *y);

#endif
