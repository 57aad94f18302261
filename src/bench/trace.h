/* trace.h: which experts a model chose, token by token: recorded, replayed, judged.
 *
 * The file, little-endian:
 *    0   8  "smoetrce"
 *    8   4  version, 1
 *   12   4  n_layer: layers with experts
 *   16   4  n_expert
 *   20   4  n_used: experts per token
 *   24  32  lineage of the model in hex digits; 32 times '0' when no model chose
 *   56   8  zero
 *   64      passes up to the end of the file, each: 4 bytes n_tokens, then 2 bytes an expert
 *           [n_tokens][n_layer][n_used]
 *
 * A pass is what the engine computed in one go: a chunk of a prompt, or one token. */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <stdint.h>

#include "base/buf.h"

typedef struct trace_shape {
    uint32_t n_layer, n_expert, n_used; /* 1 .. 512, 1 .. 4096, 1 .. n_expert */
} trace_shape;

typedef struct trace {
    trace_shape shape;
    char lineage[33];
    uint64_t n_tokens, n_passes;
    buf passes;  /* uint32_t: tokens of each */
    buf experts; /* uint16_t [n_tokens][n_layer][n_used] */
} trace;

/* lineage NULL: no model's. */
void trace_init(trace *t, const trace_shape *shape, const char *lineage);
void trace_fini(trace *t);
/* A pass more; its experts are zero until they are filled in through trace_at. */
smoe_status trace_add_pass(trace *t, uint32_t n_tokens, smoe_err *err);
uint32_t trace_pass_tokens(const trace *t, uint64_t pass);
/* [n_used] of a token and layer; valid until the next trace_add_pass. */
uint16_t *trace_at(const trace *t, uint64_t token, uint32_t layer);

/* SMOE_FORMAT when the file is no trace, ends within a pass, or names an expert that does not
 * exist or stands twice. On failure *t needs no trace_fini. */
smoe_status trace_read(const char *path, trace *t, smoe_err *err);
/* SMOE_RANGE when the trace is empty. Complete or not at all. */
smoe_status trace_write(const trace *t, const char *path, smoe_err *err);

#endif
