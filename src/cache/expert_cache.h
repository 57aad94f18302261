/* expert_cache.h: the ring: a bounded set of slots in RAM that hold records of the vault.
 *
 * One global LRU over all layers, kept across tokens and turns. A slot is free, or holds one
 * record; with pins > 0 it is pinned and never evicted. This implementation reads synchronously, on
 * the thread that asks; expert_source.h is all that the model sees of it. */
#ifndef CACHE_EXPERT_CACHE_H
#define CACHE_EXPERT_CACHE_H

#include "formats/vault.h"
#include "model/expert_source.h"

typedef struct cache_slot {
    uint8_t *data;        /* [record_bytes] */
    uint32_t record;      /* layer * n_expert + expert, or CACHE_NONE */
    uint32_t pins;
    uint32_t prev, next;  /* LRU list by slot index: prev is more recently used */
} cache_slot;

#define CACHE_NONE UINT32_MAX /* no slot, no record */

typedef struct cache_stats {
    uint64_t n_acquires, n_hits, n_evictions, bytes_read;
} cache_stats;

typedef struct expert_cache {
    expert_source source; /* first: a pointer to it is a pointer to the cache */
    const vault *vault;
    uint32_t n_slots;
    cache_slot *slots;
    uint32_t newest, oldest;  /* ends of the LRU list */
    uint32_t *slot_of_record; /* [n_layer * n_expert], or CACHE_NONE */
    uint8_t *verified;        /* [n_layer * n_expert]: checksum seen to be right once */
    uint32_t *demand;         /* [n_expert] what the model waits for, in its order */
    uint32_t demand_layer, n_demand, n_given;
    uint8_t *memory;          /* mem_pages [n_slots * record_bytes] */
    cache_stats stats;
} expert_cache;

/* n_slots: 1 .. the number of records. The vault is borrowed. */
smoe_status expert_cache_init(expert_cache *c, const vault *v, uint32_t n_slots, smoe_err *err);
void expert_cache_fini(expert_cache *c);

#endif
