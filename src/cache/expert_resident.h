/* expert_resident.h: experts of a vault that fits memory: read once, then handed out as pointers.
 *
 * Opening reads the vault from its first byte to its last in large pieces and verifies every
 * checksum on all threads while the next pieces load. Afterwards nothing of the machinery of
 * reading is left, and nothing can fail. */
#ifndef CACHE_EXPERT_RESIDENT_H
#define CACHE_EXPERT_RESIDENT_H

#include "base/pool.h"
#include "cache/aio.h"
#include "cache/cache_stats.h"
#include "formats/vault.h"
#include "model/expert_source.h"

typedef struct expert_resident_params {
    const vault *vault;           /* borrowed */
    pool *pool;                   /* borrowed while opening */
    aio_kind kind;
    bool direct;
    struct aio_backend *backend;  /* tests: instead of kind's; taken over, as aio_open does */
    /* Called after every piece; false ends the loading with SMOE_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, uint64_t n_done, uint64_t n_total);
    void *progress_ctx;
} expert_resident_params;

enum { EXPERT_RESIDENT_DEPTH = 16 }; /* pieces in flight; of a test's backend too */

typedef struct expert_resident {
    expert_source source;    /* first: a pointer to it is a pointer to this */
    uint32_t n_expert;
    uint64_t record_bytes;
    uint64_t *offset;        /* [n_layer * n_expert] in memory; dense layers have no records */
    uint8_t *memory;         /* mem_pages [memory_bytes] */
    uint64_t memory_bytes;
    uint32_t *demand;        /* [n_expert] */
    uint32_t demand_layer, n_demand, n_given;
    cache_stats stats;
} expert_resident;

smoe_status expert_resident_init(expert_resident *r, const expert_resident_params *p,
                                 smoe_err *err);
void expert_resident_fini(expert_resident *r);

#endif
