/* weight_pool.h: random weights at disk speed: a few MiB of a type are made once, and every matrix
 * is a copy of them from some other place on.
 *
 * The weights are normally distributed and quantised like any others, so that blocks are valid and
 * activations keep their size whatever the type. */
#ifndef BENCH_WEIGHT_POOL_H
#define BENCH_WEIGHT_POOL_H

#include "base/pool.h"
#include "base/rng.h"
#include "formats/dtype.h"

enum { WEIGHT_POOLS_MAX = 16 };

/* Groups of 16 rows as a stored matrix has them: panels, or rows of a plain type. */
typedef struct weight_pool {
    dtype type;
    uint64_t cols;
    float std;
    uint64_t group_bytes;
    size_t n_groups;
    uint8_t *groups;
} weight_pool;

typedef struct weight_pools {
    pool *threads; /* borrowed */
    rng rng;
    weight_pool pools[WEIGHT_POOLS_MAX];
    size_t n_pools;
} weight_pools;

void weight_pools_init(weight_pools *p, pool *threads);
void weight_pools_fini(weight_pools *p);
/* The pool of weights [.., cols] with this standard deviation; makes it when it is new. cols is a
 * multiple of the type's block. */
smoe_status weight_pools_get(weight_pools *p, dtype type, uint64_t cols, float std,
                             const weight_pool **out, smoe_err *err);

/* A stored matrix, as pieces of a pool that follow each other:
 *   weight_pieces m = weight_pieces_of(p, from, n_bytes);
 *   while (weight_pieces_next(&m)) { m.data[0 .. m.n_bytes) } */
typedef struct weight_pieces {
    const weight_pool *pool;
    size_t group;          /* where the next piece starts */
    uint64_t n_left_bytes;
    const uint8_t *data;
    uint64_t n_bytes;
} weight_pieces;

weight_pieces weight_pieces_of(weight_pools *p, const weight_pool *from, uint64_t n_bytes);
bool weight_pieces_next(weight_pieces *m);

#endif
