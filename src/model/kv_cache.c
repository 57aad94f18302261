/* kv_cache.c: see kv_cache.h. */
#include "model/kv_cache.h"

#include <string.h>

#include "base/mem.h"
#include "quant/attn_q8.h"
#include "quant/blocks.h"

enum { RUN = ATTN_Q8_DIMS }; /* dimensions that are converted at a time */

static uint32_t round_up(uint32_t n_ctx)
{
    return (n_ctx + KV_PANEL - 1) / KV_PANEL * KV_PANEL;
}

smoe_status kv_cache_check(const model_config *cfg, dtype type, smoe_err *err)
{
    const dtype_info *info = dtype_get(type);
    if (cfg->n_embd_head % info->block_elems != 0) {
        return err_set(err, SMOE_RANGE,
                       "a KV cache in %s needs heads of a multiple of %u dimensions, and this "
                       "model's have %u; use --kv-type f16 or f32",
                       info->name, (unsigned)info->block_elems, cfg->n_embd_head);
    }
    return SMOE_OK;
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
                     .row_bytes = dtype_row_bytes(type, cfg->n_embd_head),
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

/* One position in f32 or f16, whose elements have `width` bytes. */
static inline void store_plain(const kv_cache *kv, const kernels *table, size_t at, uint32_t lane,
                               const float *key, const float *value, size_t width)
{
    uint8_t run[RUN * sizeof(float)];
    for (uint32_t i = 0; i < kv->n_embd_head; i += RUN) {
        uint32_t n = kv->n_embd_head - i < RUN ? kv->n_embd_head - i : RUN;
        table->quantize_row(kv->type, key + i, run, n);
        for (uint32_t e = 0; e < n; e++) {
            memcpy(kv->k + at + ((size_t)(i + e) * KV_PANEL + lane) * width, run + e * width,
                   width);
        }
    }
    table->quantize_row(kv->type, value, kv->v + at + lane * kv->row_bytes, kv->n_embd_head);
}

static void store_q8(const kv_cache *kv, const kernels *table, size_t at, uint32_t lane,
                     const float *key, const float *value)
{
    for (uint32_t i = 0; i < kv->n_embd_head; i += RUN, at += ATTN_Q8_TILE_BYTES) {
        uint8_t *k = kv->k + at, *v = kv->v + at;
        block_q8_0 block;
        table->quantize_row(DTYPE_Q8_0, key + i, &block, RUN);
        memcpy(k + 2 * lane, block.d, sizeof block.d);
        for (int e = 0; e < RUN; e++) {
            k[attn_q8_key_at((int)lane, e)] = (uint8_t)block.qs[e];
        }
        table->quantize_row(DTYPE_Q8_0, value + i, &block, RUN);
        memcpy(v + 2 * lane, block.d, sizeof block.d);
        for (int e = 0; e < RUN; e++) {
            v[attn_q8_value_at((int)lane, e)] = (uint8_t)block.qs[e];
        }
    }
}

void kv_cache_store(kv_cache *kv, const kernels *table, uint32_t layer, uint32_t head,
                    uint32_t position, const float *key, const float *value)
{
    uint32_t lane = position % KV_PANEL;
    size_t at = kv_cache_at(kv, layer, head, position - lane);
    if (kv->type == DTYPE_Q8_0) {
        store_q8(kv, table, at, lane, key, value);
    } else if (kv->type == DTYPE_F16) {
        store_plain(kv, table, at, lane, key, value, 2);
    } else {
        store_plain(kv, table, at, lane, key, value, 4);
    }
}
