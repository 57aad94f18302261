/* expert_cache.c: see expert_cache.h.
 *
 *   state      pins   in LRU list   slot_of_record
 *   free       0      yes, oldest   -
 *   resident   0      yes           -> slot
 *   pinned     > 0    yes           -> slot; skipped when a victim is sought
 *
 * Everything happens on the session's thread: there are no locks. */
#include "cache/expert_cache.h"

#include <string.h>

#include "base/mem.h"

static expert_cache *cache_of(expert_source *source)
{
    return (expert_cache *)source;
}

static void unlink_slot(expert_cache *c, uint32_t i)
{
    cache_slot *s = &c->slots[i];
    if (s->prev == CACHE_NONE) {
        c->newest = s->next;
    } else {
        c->slots[s->prev].next = s->next;
    }
    if (s->next == CACHE_NONE) {
        c->oldest = s->prev;
    } else {
        c->slots[s->next].prev = s->prev;
    }
}

static void push_newest(expert_cache *c, uint32_t i)
{
    cache_slot *s = &c->slots[i];
    s->prev = CACHE_NONE;
    s->next = c->newest;
    if (c->newest == CACHE_NONE) {
        c->oldest = i;
    } else {
        c->slots[c->newest].prev = i;
    }
    c->newest = i;
}

/* The least recently used slot that nobody holds. */
static uint32_t find_victim(const expert_cache *c)
{
    uint32_t i = c->oldest;
    while (i != CACHE_NONE && c->slots[i].pins > 0) {
        i = c->slots[i].prev;
    }
    return i;
}

/* Reads a record into a slot of its own. On failure the slot is free, and the cache as good as
 * before. */
static smoe_status load(expert_cache *c, uint32_t record, uint32_t *slot_out, smoe_err *err)
{
    uint32_t i = find_victim(c);
    if (i == CACHE_NONE) {
        return err_set(err, SMOE_INTERNAL, "all %u slots of the ring are pinned", c->n_slots);
    }
    cache_slot *s = &c->slots[i];
    if (s->record != CACHE_NONE) {
        c->slot_of_record[s->record] = CACHE_NONE;
        s->record = CACHE_NONE;
        c->stats.n_evictions++;
    }
    const vault *v = c->vault;
    uint32_t layer = record / v->n_expert, expert = record % v->n_expert;
    if (c->verified[record]) {
        TRY(file_read_at(&v->st.file, v->record_offset[record], s->data, v->record_bytes, err));
    } else {
        TRY(vault_read_record(v, layer, expert, s->data, err));
        c->verified[record] = 1;
    }
    c->stats.bytes_read += v->record_bytes;
    s->record = record;
    c->slot_of_record[record] = i;
    *slot_out = i;
    return SMOE_OK;
}

static smoe_status cache_demand(expert_source *source, uint32_t layer, const uint32_t *experts,
                                uint32_t n, smoe_err *err)
{
    expert_cache *c = cache_of(source);
    (void)err;
    memcpy(c->demand, experts, n * sizeof *experts);
    c->demand_layer = layer;
    c->n_demand = n;
    c->n_given = 0;
    return SMOE_OK;
}

/* Reads are synchronous: what is asked for next is read next. */
static smoe_status cache_next(expert_source *source, bool wait, uint32_t *i_out,
                              const uint8_t **record_out, smoe_err *err)
{
    expert_cache *c = cache_of(source);
    *i_out = EXPERT_NONE;
    if (c->n_given == c->n_demand) {
        return SMOE_OK;
    }
    uint32_t record = c->demand_layer * c->vault->n_expert + c->demand[c->n_given];
    uint32_t i = c->slot_of_record[record];
    if (i == CACHE_NONE && !wait) {
        return SMOE_OK;
    }
    c->stats.n_acquires++;
    if (i == CACHE_NONE) {
        TRY(load(c, record, &i, err));
    } else {
        c->stats.n_hits++;
    }
    unlink_slot(c, i);
    push_newest(c, i);
    c->slots[i].pins++;
    *record_out = c->slots[i].data;
    *i_out = c->n_given++;
    return SMOE_OK;
}

static void cache_abandon(expert_source *source)
{
    expert_cache *c = cache_of(source);
    c->n_demand = c->n_given = 0;
}

static void cache_release(expert_source *source, uint32_t layer, uint32_t expert)
{
    expert_cache *c = cache_of(source);
    c->slots[c->slot_of_record[layer * c->vault->n_expert + expert]].pins--;
}

smoe_status expert_cache_init(expert_cache *c, const vault *v, uint32_t n_slots, smoe_err *err)
{
    size_t n_ids = (size_t)v->n_layer * v->n_expert;
    *c = (expert_cache){.source = {cache_demand, cache_next, cache_release, cache_abandon, NULL,
                                   NULL, n_slots},
                        .vault = v, .n_slots = n_slots, .newest = CACHE_NONE, .oldest = CACHE_NONE};
    c->slots = mem_calloc(n_slots, sizeof *c->slots);
    c->slot_of_record = mem_calloc(n_ids, sizeof *c->slot_of_record);
    c->verified = mem_calloc(n_ids, 1);
    c->memory = v->record_bytes && n_slots <= SIZE_MAX / v->record_bytes
                    ? mem_pages_alloc((size_t)n_slots * v->record_bytes)
                    : NULL;
    c->demand = mem_calloc(v->n_expert, sizeof *c->demand);
    if (!c->slots || !c->slot_of_record || !c->demand || !c->verified || !c->memory) {
        expert_cache_fini(c);
        return err_nomem(err, "the ring (a smaller --ring needs less)", n_slots * v->record_bytes);
    }
    memset(c->slot_of_record, 0xff, n_ids * sizeof *c->slot_of_record);
    for (uint32_t i = 0; i < n_slots; i++) {
        c->slots[i] = (cache_slot){.data = c->memory + (size_t)i * v->record_bytes,
                                   .record = CACHE_NONE};
        push_newest(c, i);
    }
    return SMOE_OK;
}

void expert_cache_fini(expert_cache *c)
{
    if (c->vault) {
        mem_pages_free(c->memory, (size_t)c->n_slots * c->vault->record_bytes);
    }
    mem_free(c->slots);
    mem_free(c->slot_of_record);
    mem_free(c->verified);
    mem_free(c->demand);
    *c = (expert_cache){0};
}
