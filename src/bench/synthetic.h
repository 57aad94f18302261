/* synthetic.h: a model of a named shape with random weights: a scout and a vault as smoe shatter
 * writes them (formats/vault.h), without tokenizer or end tokens. For speed, not for answers.
 *
 * Weights are normal, of standard deviation 1 / sqrt(cols), smaller by sqrt(2 layers) where a
 * matrix writes to the residual stream, and 1 in the embedding: activations stay finite, tokens
 * stay distinct through all layers, and so the router spreads them over all experts. */
#ifndef BENCH_SYNTHETIC_H
#define BENCH_SYNTHETIC_H

#include "base/pool.h"
#include "bench/shape.h"
#include "bench/sizes.h"
#include "formats/vault.h"

typedef struct synthetic {
    model_shape shape;
    model_config config;
    buf config_text;
    char lineage[33];  /* of shape, layers and types */
    const char *dir;   /* borrowed */
    char *vault_path, *scout_path;
    model_sizes sizes;
    uint64_t n_bytes;  /* of data in both files */
    bool is_written;   /* both files are there already, and are this model */
} synthetic;

typedef struct synthetic_events { /* both may be NULL */
    void *ctx;
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    bool (*cancelled)(void *ctx);
} synthetic_events;

/* Plans <dir>/<shape>-<layers>-<experts>-<scout>.{smoe,scout.safetensors} and looks whether they
 * are there. SMOE_USAGE when a type does not fit the shape; SMOE_MISMATCH when files of these names
 * are something else: nothing is overwritten. */
smoe_status synthetic_init(synthetic *s, const model_shape *shape, dtype experts,
                           dtype scout_type, const char *dir, smoe_err *err);
void synthetic_fini(synthetic *s);
/* Writes both files, on this thread but for the random weights; makes dir when it is missing. */
smoe_status synthetic_write(synthetic *s, pool *threads, const synthetic_events *events,
                            smoe_err *err);

#endif
