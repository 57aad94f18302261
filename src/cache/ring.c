/* ring.c: see ring.h. */
#include "cache/ring.h"

#include <string.h>

#include "base/mem.h"

static void unlink_slot(ring *r, uint32_t i)
{
    ring_slot *s = &r->slots[i];
    if (s->prev == RING_NONE) {
        r->newest = s->next;
    } else {
        r->slots[s->prev].next = s->next;
    }
    if (s->next == RING_NONE) {
        r->oldest = s->prev;
    } else {
        r->slots[s->next].prev = s->prev;
    }
}

static void link_newest(ring *r, uint32_t i)
{
    ring_slot *s = &r->slots[i];
    s->prev = RING_NONE;
    s->next = r->newest;
    if (r->newest == RING_NONE) {
        r->oldest = i;
    } else {
        r->slots[r->newest].prev = i;
    }
    r->newest = i;
}

void ring_make_newest(ring *r, uint32_t i)
{
    unlink_slot(r, i);
    link_newest(r, i);
}

void ring_make_oldest(ring *r, uint32_t i)
{
    ring_slot *s = &r->slots[i];
    unlink_slot(r, i);
    s->next = RING_NONE;
    s->prev = r->oldest;
    if (r->oldest == RING_NONE) {
        r->newest = i;
    } else {
        r->slots[r->oldest].next = i;
    }
    r->oldest = i;
}

uint32_t ring_find_victim(const ring *r)
{
    uint32_t i = r->oldest;
    while (i != RING_NONE) {
        const ring_slot *s = &r->slots[i];
        if (s->state != SLOT_READING && s->pins == 0 && s->place == RING_NONE) {
            break;
        }
        i = s->prev;
    }
    return i;
}

uint32_t ring_find_free(const ring *r)
{
    uint32_t i = r->newest;
    while (i != RING_NONE && r->slots[i].state != SLOT_FREE) {
        i = r->slots[i].next;
    }
    return i;
}

static void forget(ring *r, ring_slot *s)
{
    if (s->record != RING_NONE) {
        r->slot_of_record[s->record] = RING_NONE;
        s->record = RING_NONE;
    }
    s->state = SLOT_FREE;
    s->is_guess = s->is_warm = s->is_older = false;
}

void ring_assign(ring *r, uint32_t i, uint32_t record)
{
    ring_slot *s = &r->slots[i];
    forget(r, s);
    s->record = record;
    s->state = SLOT_READING;
    r->slot_of_record[record] = i;
}

void ring_arrived(ring *r, uint32_t i)
{
    r->slots[i].state = SLOT_RESIDENT;
}

void ring_drop(ring *r, uint32_t i)
{
    forget(r, &r->slots[i]);
    ring_make_oldest(r, i);
}

smoe_status ring_init(ring *r, uint32_t n_slots, uint64_t record_bytes, uint32_t n_ids,
                      smoe_err *err)
{
    *r = (ring){.n_slots = n_slots, .newest = RING_NONE, .oldest = RING_NONE};
    r->slots = mem_calloc(n_slots, sizeof *r->slots);
    r->slot_of_record = mem_calloc(n_ids, sizeof *r->slot_of_record);
    if (record_bytes && n_slots <= SIZE_MAX / record_bytes) {
        r->memory_bytes = n_slots * record_bytes;
        r->memory = mem_pages_alloc(r->memory_bytes);
    }
    if (!r->slots || !r->slot_of_record || !r->memory) {
        ring_fini(r);
        return err_nomem(err, "the ring (a smaller --ring needs less)", n_slots * record_bytes);
    }
    memset(r->slot_of_record, 0xff, n_ids * sizeof *r->slot_of_record);
    for (uint32_t i = 0; i < n_slots; i++) {
        r->slots[i] = (ring_slot){.data = r->memory + i * record_bytes,
                                  .record = RING_NONE, .place = RING_NONE};
        link_newest(r, i);
    }
    return SMOE_OK;
}

void ring_fini(ring *r)
{
    mem_pages_free(r->memory, r->memory_bytes);
    mem_free(r->slots);
    mem_free(r->slot_of_record);
    *r = (ring){0};
}
