/* expert_cache.h: experts of a vault that is larger than memory: an expert_source over a ring of
 * slots and asynchronous reads.
 *
 * Owns the rules of who reads when (expert_cache.c); the slots are ring.h's, the reads aio.h's. A
 * record's checksum is verified at its first read. A read that fails ends the demand that awaits
 * it, with file, record, offset and reason; its slot is free again and the next demand tries anew.
 * After opening nothing is allocated. */
#ifndef CACHE_EXPERT_CACHE_H
#define CACHE_EXPERT_CACHE_H

#include "cache/aio.h"
#include "cache/cache_stats.h"
#include "cache/heat.h"
#include "cache/ring.h"
#include "formats/vault.h"
#include "model/expert_source.h"

typedef struct expert_cache_params {
    const vault *vault;           /* borrowed */
    uint32_t n_slots;             /* 1 .. the number of records */
    aio_kind kind;
    bool direct;
    uint32_t depth;
    heat *heat;                   /* what is demanded is counted here; borrowed; may be NULL */
    struct aio_backend *backend;  /* tests: instead of kind's; taken over, as aio_open does */
} expert_cache_params;

/* Places of the demand's list in the order in which something happens to them. */
typedef struct place_queue {
    uint32_t *places; /* [n_expert] */
    uint32_t first, n;
} place_queue;

typedef struct expert_cache {
    expert_source source; /* first: a pointer to it is a pointer to the cache */
    const vault *vault;
    ring ring;
    aio *aio;
    bool is_buffered;
    uint32_t depth;
    uint8_t *verified;      /* [n_layer * n_expert]: checksum seen to be right once */
    /* the demand */
    uint32_t *demand;       /* [n_expert] records */
    uint32_t n_demand, n_given;
    uint32_t n_awaited;     /* places whose reads are under way */
    place_queue missing;    /* no slot yet */
    place_queue ready;      /* in RAM */
    smoe_status failure;    /* of a read that the demand awaits */
    smoe_err failure_err;
    /* the hint */
    uint32_t *hint;         /* [n_expert] records */
    uint32_t n_hint, hint_at;
    bool hint_sure;
    /* what is read while nothing is asked for */
    heat *heat;             /* or NULL: nothing */
    bool warming_failed;    /* one of these reads failed: no more of them */
    /* the reads */
    aio_read *batch;        /* [n_slots] for one aio_submit */
    uint32_t n_batch;
    uint32_t n_reading;     /* slots in SLOT_READING */
    uint64_t busy_since_ns; /* since when n_reading > 0 */
    cache_stats stats;
} expert_cache;

smoe_status expert_cache_init(expert_cache *c, const expert_cache_params *p, smoe_err *err);
void expert_cache_fini(expert_cache *c); /* waits for reads in flight */
/* Between demands: keeps a few reads going that fill FREE slots with the hottest records that are
 * absent. Never waits. False when none is under way: there is nothing (more) to do. */
bool expert_cache_warm(expert_cache *c);

#endif
