/* sizes.h: how large the two files of a model would be, and what its work is, from its config.json
 * alone. */
#ifndef BENCH_SIZES_H
#define BENCH_SIZES_H

#include "bench/work.h"

typedef struct model_sizes {
    dtype experts, scout;
    matrix_layout gate, up, down;
    uint64_t record_bytes, n_records;
    uint64_t vault_bytes, scout_bytes; /* of data; without the checkpoint's text files */
    uint64_t n_params;                 /* of the checkpoint */
} model_sizes;

/* Vectors stay plain, routers too, as smoe shatter keeps them. SMOE_USAGE when a type does not fit
 * the rows of the model that `name` names, or cannot be computed with. */
smoe_status model_sizes_of(const model_config *cfg, const char *name, dtype experts,
                           dtype scout_type, model_sizes *out, smoe_err *err);
dtype model_sizes_type(const model_sizes *s, const dense_tensor *t); /* in the scout */
model_work model_sizes_work(const model_config *cfg, const model_sizes *s);

#endif
