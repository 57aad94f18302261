/* kv_cache.h: keys and values of every position so far, one contiguous run per layer and kv head.
 *
 *   k: [n_layer][n_head_kv][n_ctx / 16][n_embd_head][16]   a lane is a position
 *   v: [n_layer][n_head_kv][n_ctx][n_embd_head]            a lane is a dimension
 *
 * in f16 or f32, n_ctx rounded up to a multiple of 16, as kernels.h's attn_scores and attn_values
 * read them. Truncation is free: positions past the valid length are simply written again. Which
 * positions are valid is the session's knowledge. */
#ifndef MODEL_KV_CACHE_H
#define MODEL_KV_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/dtype.h"
#include "formats/model_config.h"

enum { KV_BLOCK = 16 };

typedef struct kv_cache {
    dtype type; /* DTYPE_F16 or DTYPE_F32 */
    uint32_t n_layer, n_head_kv, n_ctx, n_embd_head; /* n_ctx: rounded up to 16 */
    size_t elem_bytes;
    uint8_t *k, *v;   /* mem_pages: untouched context costs no memory yet */
    size_t n_bytes;   /* of each */
} kv_cache;

uint64_t kv_cache_bytes(const model_config *cfg, dtype type, uint32_t n_ctx); /* k and v together */
smoe_status kv_cache_init(kv_cache *kv, const model_config *cfg, dtype type, uint32_t n_ctx,
                          smoe_err *err);
void kv_cache_fini(kv_cache *kv);

/* Element where the keys, and the values, of one layer and kv head start. */
static inline size_t kv_cache_at(const kv_cache *kv, uint32_t layer, uint32_t head)
{
    return ((size_t)layer * kv->n_head_kv + head) * kv->n_ctx * kv->n_embd_head;
}

#endif
