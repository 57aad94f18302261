/* matmul.h: weights times activations, panels of rows spread over the threads.
 *
 * Quantised matrices lie in panels (quant/panel.h) and take activations of 8 bits (quant/act.h);
 * plain ones (f32, f16, bf16) lie row by row and take floats. Every output is a function of one
 * weight row and one activation row alone: a batch of n equals n single calls, bit for bit,
 * whatever the threads. */
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
} compute;

/* What matrices multiply: bits, because several matrices may share one set of activations. */
enum { TAKES_FLOATS = 1, TAKES_SCALES_OF_32 = 2, TAKES_SCALES_OF_256 = 4 };

unsigned matrix_takes(const matrix *m);

/* n activation vectors. Borrows x; act is the caller's memory. */
typedef struct activations {
    const float *x; /* [n][cols] */
    uint32_t n;
    uint64_t cols;
    unsigned takers; /* TAKES_ bits of the matrices that these are for */
    act_block *act;  /* [n][act_n_blocks(cols)], set unless all of them take floats */
} activations;

/* Makes x [n][cols] ready for matrices that take `takers`: quantises it into a->act, spread over
 * the threads, or only borrows it. */
void activations_set(const compute *c, activations *a, unsigned takers, const float *x, uint32_t n,
                     uint64_t cols);

typedef struct matmul_part {
    const matrix *w;   /* [rows, a->cols] */
    const float *bias; /* [rows], or NULL */
    float *y;          /* [n][rows] */
} matmul_part;

/* All parts, which take what a has, in one pass over the threads: y = x * transposed w + bias. */
void matmul(const compute *c, const activations *a, const matmul_part *parts, uint32_t n_parts);

/* Rows [row0, row0 + n_rows) of one part, on this thread; row0 a multiple of 16. y gets row r of
 * vector j at y[j * y_stride + r - row0]. */
void matmul_stripe(const compute *c, const activations *a, const matrix *w, uint64_t row0,
                   uint64_t n_rows, float *y, uint64_t y_stride);

#endif
