/* pool.h: a fixed set of threads that run one parallel loop at a time.
 *
 * Work is split into contiguous ranges; which thread gets which range never influences a result
 * (design A4): a body writes only outputs of its own range. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct pool pool;
typedef void pool_fn(void *ctx, size_t begin, size_t end, uint32_t thread);

/* n_threads counts the caller */
smoe_status pool_new(uint32_t n_threads, pool **out, smoe_err *err);
void pool_free(pool *p);
uint32_t pool_n_threads(const pool *p);
/* Calls fn over [0, n) in ranges of at least `grain` items and returns when all are done.
 * `thread` is 0 .. n_threads-1 (for per-thread scratch). Allocates nothing. Not reentrant. */
void pool_for(pool *p, size_t n, size_t grain, pool_fn *fn, void *ctx);

#endif
