/* expert_cache.c: see expert_cache.h. The rules:
 *
 *   1. A demand sorts its places: resident records are ready, those whose reads are under way are
 *      awaited, the others missing. What it finds is awaited or ready and so never a victim.
 *   2. Missing records get slots in order, as many as there are victims, and their reads are
 *      submitted together. The rest follows in next(), as slots are released: a ring smaller than
 *      the list works, as long as the model lets go of what it was handed.
 *   3. A hint is served only when no demanded record lacks a slot. Sure ones queue up behind the
 *      demanded reads; guesses are read only while no demanded read is under way, few at a time.
 *      They take free or coldest slots, and never one that the same hint has filled.
 *   4. The next demand ends a hint: reads that were not started are taken back, and what was read
 *      for nothing is the first to give way. So a demanded read waits behind a hinted one only if
 *      the drive has already been given that one.
 *   5. An abandoned demand takes back what was not started; the rest arrives and becomes resident.
 *   6. While nothing is asked for, the hottest absent records are read into FREE slots, hottest
 *      first, no more at a time than the drive takes at once: so none is ever queued, and a demand
 *      finds nothing to take back. They stay in the list where the free slots were: behind all that
 *      was demanded, a hotter one before a cooler one.
 *
 * The state of a slot is drawn in ring.h. Tags of reads are slots. */
#include "cache/expert_cache.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cache/aio_backend.h"
#include "cache/record_read.h"

enum {
    GUESS_DEPTH = 2, /* reads that nobody asked for in flight: a demand waits for no more */
    REAP_MAX = 64,
};

static expert_cache *cache_of(expert_source *source)
{
    return (expert_cache *)source;
}

static void push(place_queue *q, uint32_t place)
{
    q->places[q->n++] = place;
}

static bool is_empty(const place_queue *q)
{
    return q->first == q->n;
}

/* ---- starting reads ---- */

/* Gives a victim to a record; its read is part of the next batch. */
static ring_slot *assign(expert_cache *c, uint32_t slot, uint32_t record)
{
    ring_slot *s = &c->ring.slots[slot];
    c->stats.n_evictions += s->record != RING_NONE;
    c->stats.n_guesses_wasted += s->is_guess;
    c->stats.n_warmed_wasted += s->is_warm;
    ring_assign(&c->ring, slot, record);
    c->batch[c->n_batch++] = (aio_read){c->vault->record_offset[record], s->data,
                                        (uint32_t)c->vault->record_bytes, slot};
    if (c->n_reading++ == 0) {
        c->busy_since_ns = clock_ns();
    }
    return s;
}

static ring_slot *take_slot(expert_cache *c, uint32_t slot, uint32_t record)
{
    ring_make_newest(&c->ring, slot);
    return assign(c, slot, record);
}

static void start_missing(expert_cache *c)
{
    while (!is_empty(&c->missing)) {
        uint32_t slot = ring_find_victim(&c->ring);
        if (slot == RING_NONE) {
            return;
        }
        uint32_t place = c->missing.places[c->missing.first++];
        take_slot(c, slot, c->demand[place])->place = place;
        c->n_awaited++;
    }
}

static void start_hint(expert_cache *c)
{
    uint32_t limit = c->hint_sure ? 2 * c->depth : GUESS_DEPTH;
    while (c->hint_at < c->n_hint && c->n_reading < limit && (c->hint_sure || c->n_awaited == 0)) {
        uint32_t record = c->hint[c->hint_at++];
        if (c->ring.slot_of_record[record] != RING_NONE) {
            continue;
        }
        uint32_t slot = ring_find_victim(&c->ring);
        if (slot == RING_NONE || c->ring.slots[slot].is_guess) {
            c->n_hint = c->hint_at; /* the ring is full of better things */
            return;
        }
        take_slot(c, slot, record)->is_guess = true;
        c->stats.n_guessed++;
    }
}

static void submit_batch(expert_cache *c)
{
    if (c->n_batch > 0) {
        aio_submit(c->aio, c->batch, c->n_batch);
        c->n_batch = 0;
    }
}

static void start_reads(expert_cache *c)
{
    start_missing(c);
    if (is_empty(&c->missing)) {
        start_hint(c);
    }
    submit_batch(c);
}

/* RING_NONE when every record that was ever demanded is there. */
static uint32_t hottest_absent(const expert_cache *c)
{
    uint32_t n_ids = c->vault->n_layer * c->vault->n_expert, hottest = RING_NONE, most = 0;
    for (uint32_t i = 0; i < n_ids; i++) {
        if (c->heat->counts[i] > most && c->ring.slot_of_record[i] == RING_NONE) {
            most = c->heat->counts[i];
            hottest = i;
        }
    }
    return hottest;
}

static void start_warming(expert_cache *c)
{
    uint32_t limit = c->depth < GUESS_DEPTH ? c->depth : GUESS_DEPTH;
    while (c->n_reading < limit) {
        uint32_t slot = ring_find_free(&c->ring);
        uint32_t record = slot == RING_NONE ? RING_NONE : hottest_absent(c);
        if (record == RING_NONE) {
            break;
        }
        assign(c, slot, record)->is_warm = true;
        c->stats.n_warmed++;
    }
    submit_batch(c);
}

/* ---- finishing reads ---- */

static void reading_ended(expert_cache *c)
{
    if (--c->n_reading == 0) {
        c->stats.read_ns += clock_ns() - c->busy_since_ns;
    }
}

/* What has arrived is what the vault promises: always there, and once proven right. */
static smoe_status judge_read(expert_cache *c, const ring_slot *s, int error, smoe_err *err)
{
    const vault *v = c->vault;
    uint32_t record = s->record;
    TRY(record_read_status(v, record, error, err));
    c->stats.bytes_read += v->record_bytes;
    if (!c->verified[record]) {
        TRY(vault_check_record(v, record / v->n_expert, record % v->n_expert, s->data, err));
        c->verified[record] = 1;
    }
    return SMOE_OK;
}

static void finish_read(expert_cache *c, const aio_done *done)
{
    smoe_err err;
    ring_slot *s = &c->ring.slots[done->tag];
    uint32_t place = s->place;
    smoe_status status = judge_read(c, s, done->error, &err);
    if (c->is_buffered) { /* what is in a slot needs no second copy in the page cache */
        file_forget(&c->vault->st.file, c->vault->record_offset[s->record],
                    c->vault->record_bytes);
    }
    reading_ended(c);
    c->n_awaited -= place != RING_NONE;
    if (status == SMOE_OK) {
        ring_arrived(&c->ring, done->tag);
        if (place != RING_NONE) {
            push(&c->ready, place);
        }
        return;
    }
    bool is_older = s->is_older;
    s->place = RING_NONE;
    c->warming_failed |= s->is_warm; /* those who ask for it will hear of it */
    ring_drop(&c->ring, done->tag);
    if (place != RING_NONE && is_older) { /* the failure is of the past: it is tried anew */
        push(&c->missing, place);
    } else if (place != RING_NONE && c->failure == SMOE_OK) {
        c->failure = status;
        c->failure_err = err;
    }
}

static void reap(expert_cache *c, bool wait)
{
    aio_done done[REAP_MAX];
    uint64_t start_ns = wait ? clock_ns() : 0;
    uint32_t n = aio_reap(c->aio, done, REAP_MAX, wait);
    c->stats.wait_ns += wait ? clock_ns() - start_ns : 0;
    for (uint32_t i = 0; i < n; i++) {
        finish_read(c, &done[i]);
    }
}

static void cache_poll(expert_source *source)
{
    expert_cache *c = cache_of(source);
    if (c->n_reading > 0) {
        reap(c, false);
    }
    start_reads(c);
}

/* Takes back a read that was not started. */
static bool withdraw(expert_cache *c, uint32_t slot)
{
    if (c->ring.slots[slot].state != SLOT_READING || !aio_withdraw(c->aio, slot)) {
        return false;
    }
    reading_ended(c);
    ring_drop(&c->ring, slot);
    return true;
}

/* ---- the interface ---- */

static void end_hint(expert_cache *c)
{
    for (uint32_t i = 0; i < c->hint_at; i++) {
        uint32_t slot = c->ring.slot_of_record[c->hint[i]];
        ring_slot *s = slot == RING_NONE ? NULL : &c->ring.slots[slot];
        if (!s || !s->is_guess) {
            continue;
        }
        if (withdraw(c, slot)) {
            c->stats.n_guessed--;
            continue;
        }
        s->is_guess = false;
        c->stats.n_guesses_wasted++;
        if (s->state == SLOT_RESIDENT) {
            ring_make_oldest(&c->ring, slot);
        }
    }
    c->n_hint = c->hint_at = 0;
}

static smoe_status cache_demand(expert_source *source, uint32_t layer, const uint32_t *experts,
                                uint32_t n, smoe_err *err)
{
    expert_cache *c = cache_of(source);
    (void)err;
    c->n_demand = n;
    c->n_given = 0;
    c->missing.first = c->missing.n = c->ready.first = c->ready.n = 0;
    c->stats.n_acquires += n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t record = layer * c->vault->n_expert + experts[i];
        uint32_t slot = c->ring.slot_of_record[record];
        c->demand[i] = record;
        if (c->heat) {
            heat_count(c->heat, record);
        }
        if (slot == RING_NONE) {
            push(&c->missing, i);
            continue;
        }
        ring_slot *s = &c->ring.slots[slot];
        ring_make_newest(&c->ring, slot);
        c->stats.n_guesses_used += s->is_guess;
        c->stats.n_warmed_used += s->is_warm;
        s->is_guess = s->is_warm = false;
        s->place = i;
        if (s->state == SLOT_RESIDENT) {
            push(&c->ready, i);
            c->stats.n_hits++;
        } else {
            s->is_older = true;
            c->n_awaited++;
        }
    }
    end_hint(c);
    start_reads(c);
    return SMOE_OK;
}

static smoe_status cache_next(expert_source *source, bool wait, uint32_t *i_out,
                              const uint8_t **record_out, smoe_err *err)
{
    expert_cache *c = cache_of(source);
    *i_out = EXPERT_NONE;
    cache_poll(source);
    while (c->failure == SMOE_OK && is_empty(&c->ready)) {
        if (!wait || c->n_given == c->n_demand) {
            return SMOE_OK;
        }
        if (c->n_reading == 0) {
            return err_set(err, SMOE_INTERNAL, "all %u slots of the ring are pinned",
                           c->ring.n_slots);
        }
        reap(c, true);
        start_reads(c);
    }
    if (c->failure != SMOE_OK) {
        if (err) {
            *err = c->failure_err;
        }
        return c->failure;
    }
    uint32_t place = c->ready.places[c->ready.first++];
    ring_slot *s = &c->ring.slots[c->ring.slot_of_record[c->demand[place]]];
    s->place = RING_NONE;
    s->pins++;
    c->n_given++;
    *record_out = s->data;
    *i_out = place;
    return SMOE_OK;
}

static void cache_release(expert_source *source, uint32_t layer, uint32_t expert)
{
    expert_cache *c = cache_of(source);
    uint32_t slot = c->ring.slot_of_record[layer * c->vault->n_expert + expert];
    c->ring.slots[slot].pins--;
}

static void cache_abandon(expert_source *source)
{
    expert_cache *c = cache_of(source);
    for (uint32_t i = 0; i < c->n_demand; i++) {
        uint32_t slot = c->ring.slot_of_record[c->demand[i]];
        if (slot != RING_NONE && c->ring.slots[slot].place == i) {
            c->ring.slots[slot].place = RING_NONE;
            withdraw(c, slot);
        }
    }
    end_hint(c);
    c->n_demand = c->n_given = c->n_awaited = 0;
    c->missing.first = c->missing.n = c->ready.first = c->ready.n = 0;
    c->failure = SMOE_OK;
}

static void cache_hint(expert_source *source, uint32_t layer, const uint32_t *experts, uint32_t n,
                       bool sure)
{
    expert_cache *c = cache_of(source);
    end_hint(c);
    c->hint_sure = sure;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t record = layer * c->vault->n_expert + experts[i];
        uint32_t slot = c->ring.slot_of_record[record];
        c->hint[c->n_hint++] = record;
        if (sure && slot != RING_NONE) { /* must not give way to its neighbours */
            ring_make_newest(&c->ring, slot);
        }
    }
    start_reads(c);
}

bool expert_cache_warm(expert_cache *c)
{
    if (c->n_reading > 0) {
        reap(c, false);
    }
    if (c->heat && !c->warming_failed) {
        start_warming(c);
    }
    return c->n_reading > 0;
}

/* ---- opening ---- */

static smoe_status open_reads(expert_cache *c, const expert_cache_params *p, smoe_err *err)
{
    const aio_params params = {
        .file = &p->vault->st.file,
        .kind = p->kind,
        .direct = p->direct,
        .depth = p->depth,
        .max_queued = p->n_slots, /* each pending read holds a slot */
        .memory = c->ring.memory,
        .memory_bytes = c->ring.memory_bytes,
        .backend = p->backend,
    };
    return aio_open(&params, &c->aio, err);
}

static smoe_status init(expert_cache *c, const expert_cache_params *p, smoe_err *err)
{
    const vault *v = p->vault;
    uint32_t n_ids = v->n_layer * v->n_expert;
    c->verified = mem_calloc(n_ids, 1);
    c->demand = mem_calloc(v->n_expert, sizeof *c->demand);
    c->hint = mem_calloc(v->n_expert, sizeof *c->hint);
    c->missing.places = mem_calloc(v->n_expert, sizeof *c->missing.places);
    c->ready.places = mem_calloc(v->n_expert, sizeof *c->ready.places);
    c->batch = mem_calloc(p->n_slots, sizeof *c->batch);
    if (!c->verified || !c->demand || !c->hint || !c->missing.places || !c->ready.places ||
        !c->batch) {
        return err_nomem(err, "the ring", n_ids);
    }
    if (v->record_bytes > UINT32_C(1) << 30) {
        return err_set(err, SMOE_UNSUPPORTED, "%s: records of %llu bytes are larger than 1 GiB, "
                       "the most that is read at once",
                       v->st.file.path, (unsigned long long)v->record_bytes);
    }
    return ring_init(&c->ring, p->n_slots, v->record_bytes, n_ids, err);
}

smoe_status expert_cache_init(expert_cache *c, const expert_cache_params *p, smoe_err *err)
{
    *c = (expert_cache){.source = {cache_demand, cache_next, cache_release, cache_abandon,
                                   cache_hint, cache_poll, p->n_slots},
                        .vault = p->vault, .is_buffered = !p->direct, .depth = p->depth,
                        .heat = p->heat};
    smoe_status status = init(c, p, err);
    if (status == SMOE_OK) {
        status = open_reads(c, p, err);
    } else if (p->backend) {
        p->backend->close(p->backend);
    }
    if (status != SMOE_OK) {
        expert_cache_fini(c);
    }
    return status;
}

void expert_cache_fini(expert_cache *c)
{
    aio_close(c->aio); /* first: reads in flight write into the slots */
    ring_fini(&c->ring);
    mem_free(c->verified);
    mem_free(c->demand);
    mem_free(c->hint);
    mem_free(c->missing.places);
    mem_free(c->ready.places);
    mem_free(c->batch);
    *c = (expert_cache){0};
}
