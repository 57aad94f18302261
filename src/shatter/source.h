/* source.h: the tensors of a checkpoint directory, one file or many; private to shatter/. */
#ifndef SHATTER_SOURCE_H
#define SHATTER_SOURCE_H

#include "base/map.h"
#include "formats/safetensors.h"

typedef struct source {
    char *dir;
    safetensors *shards;
    size_t n_shards, n_open;
    map by_name;   /* -> index over all tensors: first[shard] + index within the shard */
    size_t *first; /* [n_shards + 1] */
    bool *used;    /* [first[n_shards]]; set by whoever needs the tensor */
} source;

/* model.safetensors, or every shard that model.safetensors.index.json names. What the shards' own
 * headers hold is what counts; the index must agree with it. */
smoe_status source_open(source *s, const char *dir, smoe_err *err);
void source_close(source *s);

/* false when absent. Marks it used. */
bool source_find(source *s, const char *name, size_t *shard, const tensor_info **info);
/* The i-th tensor that nobody asked for; NULL past the last. */
const tensor_info *source_unused(const source *s, size_t i, size_t *shard);

#endif
