/* expert_source.h: how the model asks for experts without knowing where they are.
 *
 * A layer announces all experts that it needs, takes them in whatever order they arrive, and lets
 * each go when it is computed:
 *
 *   demand(layer, experts)   every id once; reads start together
 *   next() -> i, record      n times: experts[i], pinned: it stays at its address, unchanged ...
 *   release(layer, expert)   ... until here
 *
 * One demand at a time, from one thread. A result must not depend on the order of arrival. cache/
 * implements this over the vault; tests implement it over RAM. */
#ifndef MODEL_EXPERT_SOURCE_H
#define MODEL_EXPERT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define EXPERT_NONE UINT32_MAX

typedef struct expert_source {
    /* Announces the experts [n] of a layer, each once, as soon as its router has spoken. All
     * records of the previous demand have been handed out or abandoned. The list is copied. */
    smoe_status (*demand)(struct expert_source *self, uint32_t layer, const uint32_t *experts,
                          uint32_t n, smoe_err *err);
    /* Hands out one announced expert, each exactly once: *i is its place in the list, *record its
     * bytes (gate, up, down as in the vault's record layout). Without wait, *i = EXPERT_NONE when
     * none is in RAM yet; EXPERT_NONE also when all have been handed out. On an error the demand
     * is to be abandoned. */
    smoe_status (*next)(struct expert_source *self, bool wait, uint32_t *i,
                        const uint8_t **record, smoe_err *err);
    void (*release)(struct expert_source *self, uint32_t layer, uint32_t expert);
    /* Ends a demand early: what was not handed out is forgotten; what was is still released. */
    void (*abandon)(struct expert_source *self);
    /* These experts of a later layer will be demanded: `sure`, then their reads queue up behind
     * those demanded; else it is a guess, for a drive that would idle. Replaces the previous hint.
     * May be ignored; NULL when the source has no use for it. */
    void (*hint)(struct expert_source *self, uint32_t layer, const uint32_t *experts, uint32_t n,
                 bool sure);
    /* Keeps reads going while nothing is asked for; cheap. NULL when there is nothing to do. */
    void (*poll)(struct expert_source *self);
    uint32_t max_pinned; /* how many records may be pinned at the same time; at least 1 */
} expert_source;

#endif
