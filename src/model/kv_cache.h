/* kv_cache.h: keys and values of every position so far, one contiguous run per layer and kv head.
 *
 *   f32, f16   k: [n_layer][n_head_kv][n_ctx / 16][n_embd_head][16]   a lane is a position
 *              v: [n_layer][n_head_kv][n_ctx][n_embd_head]            a lane is a dimension
 *   q8_0       k, v: [n_layer][n_head_kv][n_ctx / 16][n_embd_head / 32] tiles of quant/attn_q8.h:
 *              16 positions of 32 dimensions in 544 bytes, each position with its own scale
 *
 * n_ctx rounded up to a multiple of 16. No position has a part in another's bytes, so truncation is
 * free: positions past the valid length are simply written again. Which positions are valid is the
 * session's knowledge. */
#ifndef MODEL_KV_CACHE_H
#define MODEL_KV_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/dtype.h"
#include "formats/model_config.h"
#include "quant/kernels.h"

enum { KV_PANEL = 16 };

typedef struct kv_cache {
    dtype type; /* DTYPE_F32, DTYPE_F16 or DTYPE_Q8_0 */
    uint32_t n_layer, n_head_kv, n_ctx, n_embd_head; /* n_ctx: rounded up to 16 */
    size_t row_bytes; /* of one position of one kv head */
    uint8_t *k, *v;   /* mem_pages: untouched context costs no memory yet */
    size_t n_bytes;   /* of each */
} kv_cache;

/* SMOE_RANGE when the heads of this model do not fit the type's blocks. */
smoe_status kv_cache_check(const model_config *cfg, dtype type, smoe_err *err);
uint64_t kv_cache_bytes(const model_config *cfg, dtype type, uint32_t n_ctx); /* k and v together */
/* For a type that kv_cache_check accepts. */
smoe_status kv_cache_init(kv_cache *kv, const model_config *cfg, dtype type, uint32_t n_ctx,
                          smoe_err *err);
void kv_cache_fini(kv_cache *kv);

/* Writes the key and the value [n_embd_head] of one position. */
void kv_cache_store(kv_cache *kv, const kernels *table, uint32_t layer, uint32_t head,
                    uint32_t position, const float *key, const float *value);

/* Bytes from k, and from v, to the 16 positions from `position` (a multiple of 16) on. */
static inline size_t kv_cache_at(const kv_cache *kv, uint32_t layer, uint32_t head,
                                 uint32_t position)
{
    return (((size_t)layer * kv->n_head_kv + head) * kv->n_ctx + position) * kv->row_bytes;
}

#endif
