/* memory.h: where the memory of a model's engine goes: the engine's own choice, known before any
 * file is there. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine/budget.h"
#include "formats/dtype.h"
#include "formats/model_config.h"

/* Tokens in one prefill pass. When experts are resident, more bring nothing; when they are read, an
 * expert's read serves the whole pass, so a pass is as long as scratch may grow. */
enum { BATCH_RESIDENT = 1024, BATCH_STREAMED = 4096, BATCH_LEAST = 32 };
enum { BATCH_SCRATCH_PART = 10 }; /* of the budget, at most one part of so many */

typedef struct memory_split {
    budget budget;
    uint64_t kv_bytes, scratch_bytes;
    uint32_t n_batch;
} memory_split;

/* r: all but kv_bytes, scratch_bytes and n_ring_min, which are set here. Everything resident if
 * that fits; else the longest pass whose scratch is a small part of the budget, and a ring of what
 * is left. The pass gives way before a ring is refused. On SMOE_RANGE (budget_split) *out holds the
 * last attempt. */
smoe_status memory_split_make(const model_config *cfg, uint32_t n_ctx, dtype kv_type,
                              uint32_t n_threads, budget_request *r, memory_split *out,
                              smoe_err *err);

#endif
