/* ring.h: the slots: which record lies where, and which slot gives way.
 *
 *   state      record   data                 leaves the state by
 *   FREE       -        undefined            ring_assign
 *   READING    yes      being written        ring_arrived, ring_drop
 *   RESIDENT   yes      the record's bytes   being a victim: ring_assign, ring_drop
 *
 * One LRU list over all layers holds every slot, in whatever state, kept across tokens and turns.
 * A slot is held, and never a victim, while it is READING, pinned (pins > 0: handed out), or
 * awaited (place: announced and not handed out yet).
 *
 * Everything happens on the session's thread: there are no locks. */
#ifndef CACHE_RING_H
#define CACHE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define RING_NONE UINT32_MAX /* no slot, no record, no place */

typedef enum slot_state { SLOT_FREE, SLOT_READING, SLOT_RESIDENT } slot_state;

typedef struct ring_slot {
    uint8_t *data;       /* [record_bytes] */
    uint32_t record;     /* layer * n_expert + expert, or RING_NONE */
    uint32_t place;      /* in the list of the demand that awaits it, or RING_NONE */
    uint32_t pins;
    uint32_t prev, next; /* LRU list by slot index: prev is more recently used */
    slot_state state;
    bool is_guess;       /* read on a hint and not demanded since */
    bool is_older;       /* the read had begun before the demand that awaits it */
    bool is_warm;        /* read while nothing was asked for, and not demanded since */
} ring_slot;

typedef struct ring {
    ring_slot *slots;
    uint32_t n_slots;
    uint32_t newest, oldest;
    uint32_t *slot_of_record; /* [n_ids], or RING_NONE */
    uint8_t *memory;          /* mem_pages [memory_bytes] */
    uint64_t memory_bytes;
} ring;

/* n_ids: records are numbered below it. */
smoe_status ring_init(ring *r, uint32_t n_slots, uint64_t record_bytes, uint32_t n_ids,
                      smoe_err *err);
void ring_fini(ring *r);

/* The least recently used slot that is not held, or RING_NONE. */
uint32_t ring_find_victim(const ring *r);
/* The FREE slot that is nearest to those in use, or RING_NONE. A walk over those in use. */
uint32_t ring_find_free(const ring *r);
/* Gives the slot, which is not held, to a record: READING. It keeps its place in the list. */
void ring_assign(ring *r, uint32_t slot, uint32_t record);
void ring_arrived(ring *r, uint32_t slot);
/* Forgets the slot's record: FREE, least recently used. It is neither pinned nor awaited. */
void ring_drop(ring *r, uint32_t slot);
void ring_make_newest(ring *r, uint32_t slot);
void ring_make_oldest(ring *r, uint32_t slot);

#endif
