/* test_expert_cache.c: the ring over a vault of 3 layers x 8 experts that this test writes itself:
 * what is hit, what is evicted, what a pin protects, in which order reads go, what a failing read
 * leaves behind. */
#include "../../support/fault_aio.h"
#include "../../support/test.h"

#include <errno.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cache/expert_cache.h"

enum { N_LAYER = 3, N_EXPERT = 8, N_RECORDS = N_LAYER * N_EXPERT, RECORD_BYTES = VAULT_ALIGN };

struct fixture {
    char dir[64], path[128];
    vault v;
    uint64_t offsets[N_RECORDS], checksums[N_RECORDS];
};

static uint8_t byte_of(uint32_t record, size_t i)
{
    return (uint8_t)(record * 31 + i * 7 + (i >> 8));
}

static void write_records(struct fixture *f)
{
    FILE *out = fopen(f->path, "r+");
    assert_non_null(out);
    for (uint32_t r = 0; r < N_RECORDS; r++) {
        static uint8_t data[RECORD_BYTES];
        for (size_t i = 0; i < RECORD_BYTES; i++) {
            data[i] = byte_of(r, i);
        }
        f->checksums[r] = hash_bytes(data, RECORD_BYTES);
        f->offsets[r] = (uint64_t)(N_RECORDS - r) * RECORD_BYTES; /* any order, 0 unused */
        fseek(out, (long)f->offsets[r], SEEK_SET);
        fwrite(data, 1, RECORD_BYTES, out);
    }
    fclose(out);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    smoe_err err;
    test_dir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/records", f->dir);
    fclose(fopen(f->path, "w"));
    write_records(f);
    f->v = (vault){.record_bytes = RECORD_BYTES, .n_layer = N_LAYER, .n_expert = N_EXPERT,
                   .n_records = N_RECORDS, .record_offset = f->offsets,
                   .record_checksum = f->checksums};
    ASSERT_OK(file_open(&f->v.st.file, f->path, &err), &err);
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    file_close(&f->v.st.file);
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static void overwrite(const struct fixture *f, uint32_t record, char byte)
{
    FILE *out = fopen(f->path, "r+");
    assert_non_null(out);
    fseek(out, (long)f->offsets[record] + 100, SEEK_SET);
    fputc(byte, out);
    fclose(out);
}

static smoe_status open_ring(expert_cache *c, const struct fixture *f, uint32_t n_slots,
                             smoe_err *err)
{
    const expert_cache_params p = {.vault = &f->v, .n_slots = n_slots, .kind = AIO_THREADS,
                                   .depth = 4};
    return expert_cache_init(c, &p, err);
}

/* With a mechanism that does what its rules say. */
static aio_backend *open_faulty(expert_cache *c, const struct fixture *f, uint32_t n_slots,
                                uint32_t depth)
{
    smoe_err err;
    aio_backend *b = fault_aio_new(f->v.st.file.fd, depth);
    const expert_cache_params p = {.vault = &f->v, .n_slots = n_slots, .depth = depth,
                                   .backend = b};
    assert_non_null(b);
    ASSERT_OK(expert_cache_init(c, &p, &err), &err);
    return b;
}

static void expect_bytes(const uint8_t *data, uint32_t record)
{
    for (size_t i = 0; i < RECORD_BYTES; i += 97) {
        assert_int_equal(data[i], byte_of(record, i));
    }
}

static smoe_status acquire(expert_cache *c, uint32_t record, const uint8_t **data, smoe_err *err)
{
    expert_source *s = &c->source;
    uint32_t expert = record % N_EXPERT, i;
    smoe_status status = s->demand(s, record / N_EXPERT, &expert, 1, err);
    if (status == SMOE_OK) {
        status = s->next(s, true, &i, data, err);
    }
    if (status != SMOE_OK) {
        s->abandon(s);
        return status;
    }
    assert_int_equal(i, 0);
    return SMOE_OK;
}

static void release(expert_cache *c, uint32_t record)
{
    c->source.release(&c->source, record / N_EXPERT, record % N_EXPERT);
}

/* Acquires, checks the bytes, releases. */
static void use(expert_cache *c, uint32_t record)
{
    smoe_err err;
    const uint8_t *data = NULL;
    ASSERT_OK(acquire(c, record, &data, &err), &err);
    expect_bytes(data, record);
    release(c, record);
}

static void test_hits_and_evictions(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    ASSERT_OK(open_ring(&c, f, 3, &err), &err);
    assert_int_equal(c.source.max_pinned, 3);
    use(&c, 0);
    use(&c, 1);
    use(&c, 2);
    use(&c, 0); /* now 1 is the oldest */
    assert_int_equal(c.stats.n_hits, 1);
    use(&c, 3);
    assert_int_equal(c.stats.n_evictions, 1);
    assert_int_equal(c.ring.slot_of_record[1], RING_NONE);
    use(&c, 0);
    use(&c, 2);
    use(&c, 3);
    assert_int_equal(c.stats.n_hits, 4);
    assert_int_equal(c.stats.n_acquires, 8);
    assert_int_equal(c.stats.bytes_read, 4 * RECORD_BYTES);
    expert_cache_fini(&c);
}

static void test_pins_protect(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    const uint8_t *a, *b, *again, *none;
    ASSERT_OK(open_ring(&c, f, 2, &err), &err);
    ASSERT_OK(acquire(&c, 0, &a, &err), &err);
    ASSERT_OK(acquire(&c, 1, &b, &err), &err);
    ASSERT_OK(acquire(&c, 0, &again, &err), &err);
    assert_ptr_equal(a, again);
    ASSERT_FAILS(acquire(&c, 2, &none, &err), SMOE_INTERNAL, &err, "all 2 slots");
    release(&c, 0);
    ASSERT_FAILS(acquire(&c, 2, &none, &err), SMOE_INTERNAL, &err, "all 2 slots");
    release(&c, 0); /* two pins, two releases */
    use(&c, 2);
    assert_int_equal(b[5], byte_of(1, 5));
    release(&c, 1);
    expert_cache_fini(&c);
}

static void test_a_failing_read_leaves_a_good_cache(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    const uint8_t *data;
    ASSERT_OK(open_ring(&c, f, 2, &err), &err);
    use(&c, 4);
    use(&c, 5);
    assert_int_equal(truncate(f->path, RECORD_BYTES), 0); /* every record is beyond the end now */
    for (int i = 0; i < 10; i++) {
        ASSERT_FAILS(acquire(&c, 0, &data, &err), SMOE_IO, &err, f->path);
        assert_non_null(strstr(err.text, "blk.0.exp.0"));
        assert_non_null(strstr(err.text, "cut short"));
    }
    use(&c, 5); /* one was given up for the reads that failed, the other is still there */
    write_records(f);
    use(&c, 0);
    use(&c, 4);
    expert_cache_fini(&c);
}

static fault_rule always_eio(const struct fixture *f, uint32_t record)
{
    return (fault_rule){FAULT_ERROR, f->offsets[record], f->offsets[record] + RECORD_BYTES,
                        FAULT_FOR_EVER, EIO};
}

/* One of several records cannot be read: the demand fails with all that is known about it, the
 * others are there for the next one. */
static void test_a_bad_place_on_the_drive(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    aio_backend *b = open_faulty(&c, f, 8, 4);
    expert_source *s = &c.source;
    const uint32_t experts[4] = {0, 1, 2, 3};
    const uint8_t *data;
    uint32_t i;
    const fault_rule rule = always_eio(f, N_EXPERT + 2);
    char offset[32];
    snprintf(offset, sizeof offset, "offset %llu", (unsigned long long)f->offsets[N_EXPERT + 2]);
    fault_aio_set(b, &rule, 1);
    for (int round = 0; round < 3; round++) {
        smoe_status status = SMOE_OK;
        ASSERT_OK(s->demand(s, 1, experts, 4, &err), &err);
        for (int n = 0; status == SMOE_OK; n++) {
            assert_true(n < 4);
            status = s->next(s, true, &i, &data, &err);
            if (status == SMOE_OK) {
                expect_bytes(data, N_EXPERT + experts[i]);
                s->release(s, 1, experts[i]);
            }
        }
        ASSERT_FAILS(status, SMOE_IO, &err, "blk.1.exp.2");
        assert_non_null(strstr(err.text, f->path));
        assert_non_null(strstr(err.text, offset));
        assert_non_null(strstr(err.text, strerror(EIO)));
        s->abandon(s);
    }
    use(&c, N_EXPERT + 1);
    fault_aio_set(b, NULL, 0);
    use(&c, N_EXPERT + 2);
    expert_cache_fini(&c);
}

/* A hint whose read fails harms nobody: the record is only read again. */
static void test_a_hint_fails_in_silence(void **state)
{
    struct fixture *f = *state;
    expert_cache c;
    aio_backend *b = open_faulty(&c, f, 4, 4);
    const uint32_t expert = 3;
    const fault_rule rule = always_eio(f, 3);
    fault_aio_set(b, &rule, 1);
    c.source.hint(&c.source, 0, &expert, 1, true);
    while (c.n_reading > 0) {
        c.source.poll(&c.source);
    }
    assert_int_equal(c.ring.slot_of_record[3], RING_NONE);
    fault_aio_set(b, NULL, 0);
    use(&c, 3);
    expert_cache_fini(&c);
}

static void test_damage_is_seen_on_the_first_read(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    const uint8_t *data;
    ASSERT_OK(open_ring(&c, f, 2, &err), &err);
    overwrite(f, 6, 'x');
    ASSERT_FAILS(acquire(&c, 6, &data, &err), SMOE_FORMAT, &err, "checksum");
    ASSERT_FAILS(acquire(&c, 6, &data, &err), SMOE_FORMAT, &err, f->path);
    overwrite(f, 6, (char)byte_of(6, 100));
    use(&c, 6);
    expert_cache_fini(&c);
}

/* Against a model of an LRU in ten lines: an array of records, newest first. */
static void test_random_use_is_lru(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    rng r = {7};
    for (uint32_t n_slots = 1; n_slots <= N_RECORDS; n_slots++) {
        expert_cache c;
        uint32_t order[N_RECORDS + 1];
        size_t n = 0;
        uint64_t n_hits = 0;
        ASSERT_OK(open_ring(&c, f, n_slots, &err), &err);
        for (int step = 0; step < 400; step++) {
            uint32_t record = (uint32_t)(rng_next(&r) % N_RECORDS);
            size_t at = 0;
            while (at < n && order[at] != record) {
                at++;
            }
            n_hits += at < n;
            n += at == n;
            memmove(order + 1, order, at * sizeof *order);
            order[0] = record;
            n = n > n_slots ? n_slots : n;
            use(&c, record);
            assert_int_equal(c.stats.n_hits, n_hits);
        }
        expert_cache_fini(&c);
    }
}

/* ---- reading ahead ---- */

static void wait_for_reads(expert_cache *c)
{
    while (c->n_reading > 0) {
        c->source.poll(&c->source);
    }
}

static void test_a_hint_is_read_ahead(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    const uint32_t hint[3] = {4, 5, 6};
    ASSERT_OK(open_ring(&c, f, 6, &err), &err);
    for (int sure = 0; sure < 2; sure++) {
        uint32_t layer = (uint32_t)sure;
        c.stats = (cache_stats){0};
        c.source.hint(&c.source, layer, hint, 3, sure);
        wait_for_reads(&c);
        assert_int_equal(c.stats.n_guessed, 3);
        use(&c, layer * N_EXPERT + 5);
        assert_int_equal(c.stats.n_hits, 1);
        assert_int_equal(c.stats.n_guesses_used, 1);
        assert_int_equal(c.stats.n_guesses_wasted, 2); /* the demand ended the hint */
    }
    expert_cache_fini(&c);
}

/* What was read for nothing gives way first; a hint takes no slot from its own kind. */
static void test_a_hint_displaces_the_coldest_only(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    const uint32_t hint[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    ASSERT_OK(open_ring(&c, f, 4, &err), &err);
    use(&c, 0);
    use(&c, 1);
    c.source.hint(&c.source, 1, hint, 8, false);
    wait_for_reads(&c);
    assert_int_equal(c.stats.n_guessed, 4); /* all slots, each once */
    use(&c, 16);
    use(&c, 17);
    use(&c, 18);
    assert_int_equal(c.stats.n_guesses_wasted, 4);
    uint64_t bytes_read = c.stats.bytes_read;
    use(&c, 16);
    use(&c, 17);
    use(&c, 18);
    assert_int_equal(c.stats.bytes_read, bytes_read);
    expert_cache_fini(&c);
}

/* A drive that takes one read at a time: the demand waits for the one that it has, not for those
 * that are queued. */
static void test_a_demand_overtakes_hints(void **state)
{
    struct fixture *f = *state;
    expert_cache c;
    aio_backend *b = open_faulty(&c, f, 8, 1);
    const uint32_t hint[4] = {0, 1, 2, 3};
    const fault_rule slow = {FAULT_SLOW, 0, UINT64_MAX, FAULT_FOR_EVER, 20};
    fault_aio_set(b, &slow, 1);
    c.source.hint(&c.source, 2, hint, 4, true);
    assert_int_equal(c.n_reading, 2); /* one under way, one queued behind it */
    use(&c, 0);
    assert_int_equal(c.stats.n_guessed, 1);
    assert_true(c.stats.bytes_read <= 2 * RECORD_BYTES);
    c.source.hint(&c.source, 2, hint, 4, true);
    use(&c, 16 + 1); /* the queued one itself is demanded: it stays, and is used */
    assert_int_equal(c.stats.n_guesses_used, 1);
    expert_cache_fini(&c);
}

/* ---- reading while nothing is asked for ---- */

/* A ring with a history in which record r was demanded counts[r] times. */
static aio_backend *open_warm(expert_cache *c, heat *h, const struct fixture *f, uint32_t n_slots,
                              uint32_t depth, const uint32_t counts[N_RECORDS])
{
    smoe_err err;
    aio_backend *b = fault_aio_new(f->v.st.file.fd, depth);
    const expert_cache_params p = {.vault = &f->v, .n_slots = n_slots, .depth = depth,
                                   .backend = b, .heat = h};
    ASSERT_OK(heat_init(h, &f->v, &err), &err);
    memcpy(h->counts, counts, N_RECORDS * sizeof *counts);
    assert_non_null(b);
    ASSERT_OK(expert_cache_init(c, &p, &err), &err);
    return b;
}

static void close_warm(expert_cache *c, heat *h)
{
    expert_cache_fini(c);
    heat_fini(h);
}

static void warm(expert_cache *c)
{
    while (expert_cache_warm(c)) {
    }
}

static bool is_resident(const expert_cache *c, uint32_t record)
{
    uint32_t slot = c->ring.slot_of_record[record];
    return slot != RING_NONE && c->ring.slots[slot].state == SLOT_RESIDENT;
}

static void test_the_hottest_fill_what_is_free(void **state)
{
    struct fixture *f = *state;
    expert_cache c;
    heat h;
    const uint32_t counts[N_RECORDS] = {[3] = 9, [4] = 8, [7] = 9, [12] = 1, [20] = 5};
    open_warm(&c, &h, f, 6, 4, counts);
    use(&c, 0);
    use(&c, 1);
    assert_int_equal(h.counts[1], 1);
    warm(&c);
    assert_int_equal(c.stats.n_warmed, 4);
    assert_true(is_resident(&c, 3) && is_resident(&c, 7) && is_resident(&c, 4));
    assert_true(is_resident(&c, 20)); /* 12 finds no free slot, and nothing gives way to it */
    assert_true(is_resident(&c, 0) && is_resident(&c, 1));
    assert_int_equal(c.stats.n_evictions, 0);
    use(&c, 4);
    assert_int_equal(c.stats.n_hits, 1);
    assert_int_equal(c.stats.n_warmed_used, 1);
    use(&c, 16); /* what gives way: the coolest of those not demanded ... */
    assert_false(is_resident(&c, 20));
    use(&c, 17);
    assert_false(is_resident(&c, 7));
    use(&c, 18);
    assert_false(is_resident(&c, 3));
    assert_int_equal(c.stats.n_warmed_wasted, 3);
    use(&c, 19); /* ... and then what was demanded */
    assert_false(is_resident(&c, 0));
    assert_int_equal(c.stats.n_warmed_wasted, 3);
    close_warm(&c, &h);
}

/* With room for all: only what was ever demanded is read, and once. */
static void test_warming_ends(void **state)
{
    struct fixture *f = *state;
    expert_cache c;
    heat h;
    const uint32_t counts[N_RECORDS] = {[3] = 1, [23] = 2};
    open_warm(&c, &h, f, N_RECORDS - 1, 1, counts);
    for (int i = 0; i < 3; i++) {
        warm(&c);
        assert_int_equal(c.stats.n_warmed, 2);
    }
    expert_cache without;
    open_faulty(&without, f, 4, 2);
    assert_false(expert_cache_warm(&without));
    expert_cache_fini(&without);
    close_warm(&c, &h);
}

/* A demand that comes meanwhile finds few reads under way and none queued, and may want one of
 * them. */
static void test_a_demand_while_warming(void **state)
{
    struct fixture *f = *state;
    expert_cache c;
    heat h;
    uint32_t counts[N_RECORDS];
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        counts[i] = N_RECORDS - i;
    }
    for (uint32_t depth = 1; depth <= 4; depth++) {
        aio_backend *b = open_warm(&c, &h, f, 10, depth, counts);
        const fault_rule slow = {FAULT_SLOW, 0, UINT64_MAX, FAULT_FOR_EVER, 20};
        fault_aio_set(b, &slow, 1);
        assert_true(expert_cache_warm(&c));
        uint32_t n = depth < 2 ? 1 : 2;
        assert_int_equal(c.n_reading, n);
        use(&c, 0);
        assert_int_equal(c.stats.n_warmed_used, 1);
        assert_int_equal(c.stats.n_hits, 0);
        use(&c, 20);
        wait_for_reads(&c);
        assert_int_equal(c.stats.bytes_read, (n + 1) * RECORD_BYTES);
        close_warm(&c, &h);
    }
}

/* A drive that fails is left alone until somebody asks. */
static void test_warming_fails_in_silence(void **state)
{
    struct fixture *f = *state;
    expert_cache c;
    heat h;
    const uint32_t counts[N_RECORDS] = {[3] = 9, [4] = 8, [5] = 7, [6] = 6};
    aio_backend *b = open_warm(&c, &h, f, 8, 1, counts);
    const fault_rule rule = always_eio(f, 4);
    fault_aio_set(b, &rule, 1);
    warm(&c);
    assert_int_equal(c.stats.n_warmed, 2);
    assert_true(is_resident(&c, 3));
    assert_int_equal(c.ring.slot_of_record[4], RING_NONE);
    warm(&c);
    assert_int_equal(c.stats.n_warmed, 2);
    fault_aio_set(b, NULL, 0);
    use(&c, 4);
    use(&c, 5);
    close_warm(&c, &h);
}

/* ---- everything at random ---- */

/* Demands of any size, in rings of any size, with hints and abandoned demands, slow and failing
 * reads: every record handed out is right, nothing hangs, and at the end everything is idle. */
static void stress(const struct fixture *f, uint32_t n_slots, uint64_t seed, int n_steps)
{
    static const uint32_t no_history[N_RECORDS];
    smoe_err err;
    expert_cache c;
    heat h;
    rng r = {seed};
    uint32_t depth = 1 + (uint32_t)(rng_next(&r) % 6);
    aio_backend *b = open_warm(&c, &h, f, n_slots, depth, no_history);
    expert_source *s = &c.source;
    const fault_rule rules[] = {
        {FAULT_SLOW, f->offsets[3], f->offsets[3] + RECORD_BYTES, FAULT_FOR_EVER, 2},
        {FAULT_ERROR, f->offsets[9], f->offsets[9] + RECORD_BYTES, 10, EIO},
        {FAULT_SHORT, f->offsets[17], f->offsets[17] + RECORD_BYTES, 10, 4096},
    };
    fault_aio_set(b, rules, 3);
    for (int step = 0; step < n_steps; step++) {
        uint32_t experts[N_EXPERT], others[N_EXPERT], n = 0, i = 0;
        uint32_t layer = (uint32_t)(rng_next(&r) % N_LAYER);
        uint64_t set = rng_next(&r), stop = rng_next(&r) % 40;
        for (uint32_t e = 0; e < N_EXPERT; e++) {
            others[e] = (uint32_t)((e + set) % N_EXPERT);
            if (set >> 8 >> e & 1) {
                experts[n++] = e;
            }
        }
        smoe_status status = s->demand(s, layer, experts, n, &err);
        assert_int_equal(status, SMOE_OK);
        if (set >> 20 & 1) {
            s->hint(s, (layer + 1) % N_LAYER, others, (uint32_t)(set >> 24) % N_EXPERT,
                    set >> 32 & 1);
        }
        uint32_t seen = 0;
        for (uint32_t n_given = 0; n_given < n && n_given != stop;) {
            const uint8_t *data;
            status = s->next(s, rng_next(&r) & 1, &i, &data, &err);
            if (status != SMOE_OK) {
                assert_int_equal(status, SMOE_IO);
                break;
            }
            if (i == EXPERT_NONE) {
                continue;
            }
            assert_false(seen >> i & 1);
            seen |= 1u << i;
            expect_bytes(data, layer * N_EXPERT + experts[i]);
            s->release(s, layer, experts[i]);
            n_given++;
        }
        if (status != SMOE_OK || stop < n) {
            s->abandon(s);
        }
        for (uint64_t n_idle = set >> 40 & 3; n_idle > 0 && expert_cache_warm(&c); n_idle--) {
        }
    }
    s->abandon(s);
    while (c.n_reading > 0) {
        s->poll(s);
    }
    assert_int_equal(aio_n_pending(c.aio), 0);
    assert_int_equal(c.n_awaited, 0);
    for (uint32_t i = 0; i < n_slots; i++) {
        assert_int_equal(c.ring.slots[i].pins, 0);
        assert_int_equal(c.ring.slots[i].place, RING_NONE);
        assert_true(c.ring.slots[i].state != SLOT_READING);
    }
    close_warm(&c, &h);
}

static void test_stress(void **state)
{
    for (uint32_t n_slots = 1; n_slots <= N_RECORDS; n_slots += n_slots < 10 ? 1 : 7) {
        stress(*state, n_slots, n_slots * 977, 30);
    }
}

/* Rings that are closed while reads are under way. */
static void test_close_at_once(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    const uint32_t experts[N_EXPERT] = {7, 6, 5, 4, 3, 2, 1, 0};
    for (int i = 0; i < 20; i++) {
        expert_cache c;
        aio_backend *b = open_faulty(&c, f, 12, 3);
        const fault_rule slow = {FAULT_SLOW, 0, UINT64_MAX, FAULT_FOR_EVER, 1};
        fault_aio_set(b, &slow, 1);
        ASSERT_OK(c.source.demand(&c.source, 1, experts, N_EXPERT, &err), &err);
        expert_cache_fini(&c);
    }
}

static void test_acquire_allocates_nothing(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    ASSERT_OK(open_ring(&c, f, 2, &err), &err);
    uint64_t before = mem_alloc_count();
    for (uint32_t i = 0; i < 3 * N_RECORDS; i++) {
        use(&c, i % N_RECORDS);
    }
    assert_int_equal(mem_alloc_count() - before, 0);
    expert_cache_fini(&c);
}

static void test_refused_memory(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    smoe_status status = SMOE_NOMEM;
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        mem_fail_nth(nth);
        status = open_ring(&c, f, 2, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
    }
    expert_cache_fini(&c);
}

#define WITH_VAULT(f) cmocka_unit_test_setup_teardown(f, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_VAULT(test_hits_and_evictions),
        WITH_VAULT(test_pins_protect),
        WITH_VAULT(test_a_failing_read_leaves_a_good_cache),
        WITH_VAULT(test_damage_is_seen_on_the_first_read),
        WITH_VAULT(test_random_use_is_lru),
        WITH_VAULT(test_a_bad_place_on_the_drive),
        WITH_VAULT(test_a_hint_fails_in_silence),
        WITH_VAULT(test_a_hint_is_read_ahead),
        WITH_VAULT(test_a_hint_displaces_the_coldest_only),
        WITH_VAULT(test_a_demand_overtakes_hints),
        WITH_VAULT(test_the_hottest_fill_what_is_free),
        WITH_VAULT(test_warming_ends),
        WITH_VAULT(test_a_demand_while_warming),
        WITH_VAULT(test_warming_fails_in_silence),
        WITH_VAULT(test_stress),
        WITH_VAULT(test_close_at_once),
        WITH_VAULT(test_acquire_allocates_nothing),
        WITH_VAULT(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
