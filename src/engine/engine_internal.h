/* engine_internal.h: what engine.c and session.c share. */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "base/pool.h"
#include "cache/experts.h"
#include "formats/vault.h"
#include "model/weights.h"
#include "quant/kernels.h"
#include "quant/panel.h"
#include "smoe/engine.h"

/* Tokens in one prefill pass. When experts are resident, more bring nothing; when they are read, an
 * expert's read serves the whole pass, so a pass is as long as scratch may grow. */
enum { BATCH_RESIDENT = 1024, BATCH_STREAMED = 4096, BATCH_LEAST = 32 };
static const uint64_t BATCH_SCRATCH_PART = 10; /* of the budget, at most one part of so many */

struct smoe_engine {
    smoe_engine_info info;
    vault vault;
    scout scout;
    weights weights;
    io_mode io;
    experts experts;
    pool *pool;
    const kernels *kernels;
    const panel_kernels *panel_kernels;
    dtype kv_type;
    uint32_t n_batch;
};

#endif
