/* test_expert_cache.c: the ring over a vault of 3 layers x 4 experts that this test writes itself:
 * what is hit, what is evicted, what a pin protects, what a failing read leaves behind. */
#include "../../support/test.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cache/expert_cache.h"

enum { N_LAYER = 3, N_EXPERT = 4, N_RECORDS = N_LAYER * N_EXPERT, RECORD_BYTES = VAULT_ALIGN };

struct fixture {
    char dir[64], path[128];
    vault v;
    uint64_t offsets[N_RECORDS], checksums[N_RECORDS];
};

static uint8_t byte_of(uint32_t record, size_t i)
{
    return (uint8_t)(record * 31 + i * 7 + (i >> 8));
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    smoe_err err;
    test_dir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/records", f->dir);
    FILE *out = fopen(f->path, "w");
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
    for (size_t i = 0; i < RECORD_BYTES; i += 97) {
        assert_int_equal(data[i], byte_of(record, i));
    }
    release(c, record);
}

static void test_hits_and_evictions(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    ASSERT_OK(expert_cache_init(&c, &f->v, 3, &err), &err);
    assert_int_equal(c.source.max_pinned, 3);
    use(&c, 0);
    use(&c, 1);
    use(&c, 2);
    use(&c, 0); /* now 1 is the oldest */
    assert_int_equal(c.stats.n_hits, 1);
    use(&c, 3);
    assert_int_equal(c.stats.n_evictions, 1);
    assert_int_equal(c.slot_of_record[1], CACHE_NONE);
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
    ASSERT_OK(expert_cache_init(&c, &f->v, 2, &err), &err);
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
    ASSERT_OK(expert_cache_init(&c, &f->v, 2, &err), &err);
    use(&c, 4);
    use(&c, 5);
    assert_int_equal(truncate(f->path, RECORD_BYTES), 0); /* every record is beyond the end now */
    for (int i = 0; i < 10; i++) {
        ASSERT_FAILS(acquire(&c, 0, &data, &err), SMOE_IO, &err, f->path);
    }
    use(&c, 5); /* one was given up for the reads that failed, the other is still there */
    clean(state);
    make(state);
    f = *state;
    c.vault = &f->v;
    use(&c, 0);
    use(&c, 4);
    expert_cache_fini(&c);
}

static void test_damage_is_seen_on_the_first_read(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    const uint8_t *data;
    ASSERT_OK(expert_cache_init(&c, &f->v, 2, &err), &err);
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
        ASSERT_OK(expert_cache_init(&c, &f->v, n_slots, &err), &err);
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

static void test_acquire_allocates_nothing(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    expert_cache c;
    ASSERT_OK(expert_cache_init(&c, &f->v, 2, &err), &err);
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
        status = expert_cache_init(&c, &f->v, 2, &err);
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
        WITH_VAULT(test_acquire_allocates_nothing),
        WITH_VAULT(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
