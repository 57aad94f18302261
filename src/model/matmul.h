/* matmul.h: weights times activations, panels of rows spread over the threads.
 *
 * Quantised matrices lie in panels (quant/panel.h) and take activations of 8 bits, or of twice 8
 * bits where the caller asks for the finer format; plain ones (f32, f16, bf16) lie row by row and
 * take floats. Every output is a function of one weight row and one activation row alone: a batch
 * of n equals n single calls, bit for bit, whatever the threads. */
#ifndef MODEL_MATMUL_H
#define MODEL_MATMUL_H

#include "base/pool.h"
#include "model/weights.h"
#include "quant/kernels.h"
#include "quant/panel.h"

enum { MATMUL_MAX_PARTS = 3, MATMUL_STRIPE_ROWS = 64 };

typedef struct compute {
    const kernels *k;
    const panel_kernels *panel;
    pool *pool;
    /* [n_threads][thread_scratch_len] floats: a stripe of outputs */
    float *thread_scratch;
    uint64_t thread_scratch_len;
} compute;

/* Floats of scratch that one thread needs for batches of at most n_batch. */
uint64_t matmul_scratch_len(uint32_t n_batch);

/* n activation vectors, as matrices of one kind take them. Borrows x; act is the caller's memory:
 * [n * (fine ? 2 : 1)][act_n_blocks(cols)], the fine format being two vectors (hi, lo) for each. */
typedef struct activations {
    const float *x; /* [n][cols] */
    uint32_t n;
    uint64_t cols;
    bool quantised; /* act is set: for matrices in panels */
    bool fine;
    act_block *act;
} activations;

/* Blocks of one vector of x in act. */
static inline size_t activations_blocks(const activations *a)
{
    return (size_t)act_n_blocks((int64_t)a->cols) * (a->fine ? 2 : 1);
}

/* Makes x [n][like->cols] ready for matrices such as `like` (all of them in panels, or none):
 * quantises it into a->act, spread over the threads, or only borrows it. */
void activations_set(const compute *c, activations *a, const matrix *like, const float *x,
                     uint32_t n, bool fine);

typedef struct matmul_part {
    const matrix *w;   /* [rows, a->cols] */
    const float *bias; /* [rows], or NULL */
    float *y;          /* [n][rows] */
} matmul_part;

/* All parts in one pass over the threads: y = x * transposed w + bias. */
void matmul(const compute *c, const activations *a, const matmul_part *parts, uint32_t n_parts);

/* Rows [row0, row0 + n_rows) of one part, on this thread; row0 a multiple of 16. y gets row r of
 * vector j at y[j * y_stride + r - row0]. */
void matmul_stripe(const compute *c, const activations *a, const matrix *w, uint64_t row0,
                   uint64_t n_rows, float *y, uint64_t y_stride, uint32_t thread);

#endif
