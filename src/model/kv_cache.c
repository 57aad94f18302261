/* kv_cache.c: see kv_cache.h. */
#include "model/kv_cache.h"

#include "base/mem.h"

static uint32_t round_up(uint32_t n_ctx)
{
    return (n_ctx + KV_BLOCK - 1) / KV_BLOCK * KV_BLOCK;
}

uint64_t kv_cache_bytes(const model_config *cfg, dtype type, uint32_t n_ctx)
{
    return 2 * (uint64_t)cfg->n_layer * cfg->n_head_kv * round_up(n_ctx) *
           dtype_row_bytes(type, cfg->n_embd_head);
}

smoe_status kv_cache_init(kv_cache *kv, const model_config *cfg, dtype type, uint32_t n_ctx,
                          smoe_err *err)
{
    *kv = (kv_cache){.type = type, .n_layer = cfg->n_layer, .n_head_kv = cfg->n_head_kv,
                     .n_ctx = round_up(n_ctx), .n_embd_head = cfg->n_embd_head,
                     .elem_bytes = dtype_row_bytes(type, 1),
                     .n_bytes = kv_cache_bytes(cfg, type, n_ctx) / 2};
    kv->k = mem_pages_alloc(kv->n_bytes);
    kv->v = mem_pages_alloc(kv->n_bytes);
    if (!kv->k || !kv->v) {
        unsigned long long n_bytes = 2ull * kv->n_bytes;
        kv_cache_fini(kv);
        return err_nomem(err, "the KV cache (a smaller --ctx needs less)", n_bytes);
    }
    return SMOE_OK;
}

void kv_cache_fini(kv_cache *kv)
{
    mem_pages_free(kv->k, kv->n_bytes);
    mem_pages_free(kv->v, kv->n_bytes);
    *kv = (kv_cache){0};
}
