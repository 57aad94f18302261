/* sampler.h: from logits to one token (design A3). */
#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H

#include <stddef.h>

#include "base/rng.h"
#include "quant/kernels.h"
#include "smoe/engine.h"

enum { SAMPLER_WINDOW = 256, SAMPLER_MAX_TOP_K = 1024 };

typedef struct candidate {
    float p;
    int32_t id;
} candidate;

typedef struct sampler {
    const kernels *k;
    uint32_t n_vocab;
    uint8_t *exempt;      /* [n_vocab]: 1 = the repetition penalty never touches it */
    uint32_t *seen;       /* [n_vocab]: the round in which the penalty last met this id */
    uint32_t round;
    candidate *heap;      /* [SAMPLER_MAX_TOP_K] */
} sampler;

smoe_status sampler_init(sampler *s, const kernels *k, uint32_t n_vocab, const int32_t *exempt_ids,
                         size_t n_exempt_ids, smoe_err *err);
void sampler_fini(sampler *s);

/* logits [n_vocab] are overwritten. stream: the ids so far; its last 256 are penalised. */
int32_t sampler_next(sampler *s, const smoe_sampling *sampling, float *logits,
                     const int32_t *stream, size_t n_stream, rng *r);

#endif
