/* checkpoint.h: small made-up checkpoints for the shatter tests, in every form that shatter reads.
 * Values are a fixed function of tensor name and element: the same model in two forms is equal. */
#ifndef TEST_CHECKPOINT_H
#define TEST_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/dtype.h"

typedef struct checkpoint {
    const char *dir; /* under the scratch directory; created */
    dtype type;      /* f32, f16 or bf16 */
    uint32_t n_embd, n_ff_exp;
    bool fused, transposed, sharded, tied, redundant_head;
    const char *skip;        /* a tensor left out; NULL = none */
    const char *extra;       /* a tensor too many */
    const char *wrong_type;  /* a tensor stored as I32 */
    const char *wrong_shape; /* a tensor with one row too many */
    const char *not_finite;  /* a tensor that holds a NaN */
    const char *zero_row_of; /* the embedding row of this id (a number) is zero */
    bool no_tokenizer, no_rope_theta;
} checkpoint;

enum { CHECKPOINT_LAYERS = 2, CHECKPOINT_EXPERTS = 3, CHECKPOINT_VOCAB = 16 };

void checkpoint_write(const checkpoint *c);
/* The value that a tensor's element has after rounding to the checkpoint's type. */
float checkpoint_value(const checkpoint *c, const char *name, uint64_t element);

#endif
