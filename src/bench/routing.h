/* routing.h: which experts a token would go to, without a model: a stated law of locality.
 *
 * Each layer has its own order of popularity, drawn once; the expert at place k = 0, 1, ... has
 * the weight (1 + k / n_used)^-zipf, Zipf's law in Mandelbrot's form. A token chooses n_used
 * experts one after another. Each choice is, with probability `reuse`, one of those that the
 * layer's previous token chose, all equally likely; else one by the weights. What the token has
 * already chosen is left out. Both parameters 0: uniform. */
#ifndef BENCH_ROUTING_H
#define BENCH_ROUTING_H

#include "bench/trace.h"

typedef struct routing_law {
    double zipf;  /* 0 .. 8 */
    double reuse; /* 0 .. 1 */
} routing_law;

/* Calibrated so that an LRU ring of 13 % and 26 % of Qwen3-30B-A3B's records hits about 53 % and
 * 76 %; docs/performance.md has the command. */
extern const routing_law ROUTING_STICKY, ROUTING_UNIFORM;

typedef struct routing routing;

/* The same seed gives the same choices on every machine, however tokens are grouped in passes. */
smoe_status routing_new(const trace_shape *shape, const routing_law *law, uint64_t seed,
                        routing **out, smoe_err *err);
void routing_free(routing *r);
/* The choices [n_used] of the layer's next token. */
void routing_next(routing *r, uint32_t layer, uint16_t *experts);
/* n_tokens passes of one token each, appended to t (of the same shape). */
smoe_status routing_trace(routing *r, uint32_t n_tokens, trace *t, smoe_err *err);

#endif
