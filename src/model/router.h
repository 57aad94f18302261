/* router.h: which experts a token goes to, and with what weight. */
#ifndef MODEL_ROUTER_H
#define MODEL_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "quant/kernels.h"

/* logits [n_expert] (overwritten by the softmax): the n_used most likely experts, most likely
 * first, ties to the lower index. Weights are softmax probabilities, divided by their sum when
 * `normalize` (norm_topk_prob). False when a logit is not finite. */
bool router_select(const kernels *k, float *logits, uint32_t n_expert, uint32_t n_used,
                   bool normalize, uint32_t *experts, float *expert_weights);

#endif
