/* attention.h: causal grouped-query attention of one layer over the KV cache.
 *
 * For query position p: scores are dots with keys 0..p in order; softmax with our exp and the exact
 * maximum; the output sums values 0..p in ascending order, one fused multiply-add each. No result
 * depends on how the prompt was cut into chunks. */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include "model/kv_cache.h"
#include "model/matmul.h"

/* Writes the keys and values [n][n_head_kv * n_embd_head] of positions pos0.. into the cache. */
void attention_store(const compute *c, kv_cache *kv, uint32_t layer, uint32_t pos0, uint32_t n,
                     const float *k, const float *v);

/* q, out: [n][n_head * n_embd_head], query positions pos0 .. pos0+n-1 (their keys already stored).
 * scores: [n_threads][n_ctx] scratch. Scores are scaled by 1 / sqrt(n_embd_head). */
void attention(const compute *c, const kv_cache *kv, uint32_t layer, uint32_t n_head, uint32_t pos0,
               uint32_t n, const float *q, float *scores, float *out);

#endif
