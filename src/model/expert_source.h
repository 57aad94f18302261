/* expert_source.h: how the model asks for experts without knowing where they are.
 *
 * cache/ implements this over the vault; tests implement it over RAM. A record handed out by
 * acquire is pinned: it stays at its address, unchanged, until it is released. */
#ifndef MODEL_EXPERT_SOURCE_H
#define MODEL_EXPERT_SOURCE_H

#include <stdint.h>

#include "base/err.h"

typedef struct expert_source {
    /* The experts that a layer will acquire, as soon as its router has spoken; may start reads.
     * A demand, never wrong: every id listed will be acquired. */
    void (*prefetch)(struct expert_source *self, uint32_t layer, const uint32_t *experts,
                     uint32_t n);
    /* Pins the record and returns its bytes (gate, up, down as in the vault's record layout). */
    smoe_status (*acquire)(struct expert_source *self, uint32_t layer, uint32_t expert,
                           const uint8_t **record, smoe_err *err);
    void (*release)(struct expert_source *self, uint32_t layer, uint32_t expert);
    uint32_t max_pinned; /* how many records may be pinned at the same time; at least 1 */
} expert_source;

#endif
