/* chooser.h: what a benchmark does when a router has spoken: it puts choices of a law or of a trace
 * in place of the model's, and records what was chosen. */
#ifndef BENCH_CHOOSER_H
#define BENCH_CHOOSER_H

#include "bench/routing.h"

typedef struct chooser {
    trace_shape shape;
    routing *law;        /* owned; NULL: the model chooses, or replay does */
    const trace *replay; /* borrowed; NULL: none. From its beginning again when it ends */
    trace *record;       /* borrowed; NULL: nothing is recorded */
    uint16_t *choice;    /* [n_used] */
    uint64_t token;      /* tokens of earlier passes */
    uint32_t layer, n_pass; /* of the running pass: layers with experts so far, tokens */
    smoe_status status;  /* of recording; err is its sentence */
    smoe_err err;
} chooser;

/* law NULL and replay NULL: the model chooses. SMOE_MISMATCH: replay has another shape. */
smoe_status chooser_init(chooser *c, const trace_shape *shape, const routing_law *law,
                         const trace *replay, smoe_err *err);
void chooser_fini(chooser *c);
/* A smoe_routed (engine/routed.h); ctx is the chooser. */
void chooser_on_routed(void *ctx, uint32_t layer, uint32_t *experts, uint32_t n_tokens);

#endif
