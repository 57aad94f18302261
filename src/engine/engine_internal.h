/* engine_internal.h: what engine.c and session.c share. */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "base/pool.h"
#include "cache/experts.h"
#include "engine/prewarm.h"
#include "formats/vault.h"
#include "model/weights.h"
#include "quant/kernels.h"
#include "quant/panel.h"
#include "smoe/engine.h"

struct smoe_engine {
    smoe_engine_info info;
    vault vault;
    scout scout;
    weights weights;
    io_mode io;
    io_wish wish; /* that io keeps to */
    experts experts;
    prewarm prewarm; /* zero = off */
    pool *pool;
    const kernels *kernels;
    const panel_kernels *panel_kernels;
    dtype kv_type;
    uint32_t n_batch;
};

#endif
