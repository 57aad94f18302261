/* smoe/logprobs.h: how likely a token was to the model, and which ones were likelier.
 *
 * Natural logarithms of the model's own distribution: the softmax of its logits at temperature 1,
 * before any penalty, temperature or filter. What is below -9999 counts as -9999. */
#ifndef SMOE_LOGPROBS_H
#define SMOE_LOGPROBS_H

#include <stdint.h>

enum { SMOE_MAX_TOP_LOGPROBS = 20 };

typedef struct smoe_logprob {
    int32_t id;
    double logprob;
} smoe_logprob;

typedef struct smoe_logprobs {
    smoe_logprob chosen;                     /* also when it is none of the following */
    uint32_t n_top;
    smoe_logprob top[SMOE_MAX_TOP_LOGPROBS]; /* most likely first, of equals the lower id */
} smoe_logprobs;

#endif
