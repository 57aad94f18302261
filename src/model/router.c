/* router.c: see router.h. */
#include "model/router.h"

#include <math.h>

bool router_select(const kernels *k, float *logits, uint32_t n_expert, uint32_t n_used,
                   bool normalize, uint32_t *experts, float *expert_weights)
{
    float max = k->vec_max(logits, n_expert);
    if (!isfinite(max)) {
        return false;
    }
    float sum = k->vec_exp_sub_max(logits, n_expert, max);
    k->vec_scale(logits, 1.0f / sum, n_expert);
    float total = 0;
    for (uint32_t i = 0; i < n_used; i++) {
        uint32_t best = 0;
        for (uint32_t e = 1; e < n_expert; e++) {
            best = logits[e] > logits[best] ? e : best;
        }
        experts[i] = best;
        expert_weights[i] = logits[best];
        total += logits[best];
        logits[best] = -1; /* taken: probabilities are never negative */
    }
    for (uint32_t i = 0; normalize && i < n_used; i++) {
        expert_weights[i] /= total;
    }
    return true;
}
