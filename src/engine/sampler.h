/* sampler.h: from logits to one token (design A3), and what the model itself thought of it.
 *
 * Order: repetition penalty; presence and frequency penalty; at a temperature below 1e-4 the
 * maximum; else softmax at that temperature, and of the tokens, most likely first, the shortest
 * head that top-k, top-p or min-p gives. All three count probabilities of the whole, so their
 * order does not matter. */
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
    uint32_t *n_seen;     /* [n_vocab]: how often, in that round */
    candidate *heap;      /* [SAMPLER_MAX_TOP_K] */
    /* What sampler_observe saw. */
    float *raw;           /* [n_vocab]: the logits */
    double log_sum;       /* logarithm of the sum of exp(logit) */
    smoe_logprobs seen_top;
} sampler;

smoe_status sampler_init(sampler *s, const kernels *k, uint32_t n_vocab, const int32_t *exempt_ids,
                         size_t n_exempt_ids, smoe_err *err);
void sampler_fini(sampler *s);

/* logits [n_vocab] are overwritten. stream: the ids so far; its last 256 have the repetition
 * penalty, its last n_generated the presence and the frequency penalty. */
int32_t sampler_next(sampler *s, const smoe_sampling *sampling, float *logits,
                     const int32_t *stream, size_t n_stream, size_t n_generated, rng *r);

/* Before sampler_next: remembers logits [n_vocab], finite, and the n_top likeliest. */
void sampler_observe(sampler *s, const float *logits, uint32_t n_top);
/* After it: what was observed, with id as the chosen one. Valid until the next call. */
const smoe_logprobs *sampler_logprobs(sampler *s, int32_t id);

#endif
