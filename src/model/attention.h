/* attention.h: causal grouped-query attention of one layer over the KV cache.
 *
 * THE ORDER (design A4): positions are cut into blocks of ATTENTION_BLOCK, counted from position 0.
 * In a block: scores of the queries scaled by 1 / sqrt(n_embd_head), their exact maximum, exp, the
 * sum (kernels.h), the weighted values. Blocks are merged in ascending order, each time rescaled to
 * the larger maximum. So no result depends on how the prompt was cut into chunks or the work among
 * threads.
 *
 * Over f32 and f16 both products are chains of fma (kernels.h), over q8_0 they are exact integers
 * (attn_q8.h). */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include "model/kv_cache.h"
#include "model/matmul.h"

enum { ATTENTION_BLOCK = 256 };

/* Bytes of scratch for one thread, and for one token that is decoded: its queries and what each
 * block gave. */
size_t attention_thread_bytes(const model_config *cfg);
size_t attention_token_bytes(const model_config *cfg, uint32_t n_ctx);

typedef struct attention_scratch {
    uint8_t *threads; /* [n_threads][attention_thread_bytes] */
    uint8_t *token;   /* [attention_token_bytes] */
} attention_scratch;

/* Writes the keys and values [n][n_head_kv * n_embd_head] of positions pos0.. into the cache. */
void attention_store(const compute *c, kv_cache *kv, uint32_t layer, uint32_t pos0, uint32_t n,
                     const float *k, const float *v);

/* q, out: [n][n_head * n_embd_head], query positions pos0 .. pos0+n-1 (their keys already
 * stored). */
void attention(const compute *c, const kv_cache *kv, uint32_t layer, const model_config *cfg,
               uint32_t pos0, uint32_t n, const float *q, const attention_scratch *scratch,
               float *out);

#endif
