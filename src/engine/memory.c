/* memory.c: see memory.h. */
#include "engine/memory.h"

#include "model/kv_cache.h"
#include "model/scratch.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

smoe_status memory_split_make(const model_config *cfg, uint32_t n_ctx, dtype kv_type,
                              uint32_t n_threads, budget_request *r, memory_split *out,
                              smoe_err *err)
{
    r->n_ring_min = cfg->n_layer_sparse * cfg->n_expert_used;
    r->kv_bytes = out->kv_bytes = kv_cache_bytes(cfg, kv_type, n_ctx);
    out->n_batch = min_u32(n_ctx, BATCH_RESIDENT);
    r->scratch_bytes = out->scratch_bytes = scratch_bytes(cfg, out->n_batch, n_ctx, n_threads);
    if (budget_split(r, &out->budget, NULL) == SMOE_OK && out->budget.n_ring == r->n_records) {
        return SMOE_OK;
    }
    out->n_batch = min_u32(n_ctx, BATCH_STREAMED);
    for (;;) {
        r->scratch_bytes = out->scratch_bytes = scratch_bytes(cfg, out->n_batch, n_ctx, n_threads);
        smoe_status status = budget_split(r, &out->budget, err);
        bool is_small = r->scratch_bytes <= out->budget.limit_bytes / BATCH_SCRATCH_PART;
        if ((status == SMOE_OK && is_small) || out->n_batch <= BATCH_LEAST) {
            return status;
        }
        out->n_batch -= out->n_batch / 4;
    }
}
