/* test_budget.c: how memory is split, at and around every limit. */
#include "../../support/test.h"

#include "engine/budget.h"

static const uint64_t MIB = 1 << 20;

/* 100 MiB of scout, KV and scratch; 64 records of 1 MiB, of which one token needs 8. */
static budget_request request(uint64_t limit_mib, uint32_t n_ring)
{
    return (budget_request){.mem_limit_bytes = limit_mib * MIB, .available_bytes = 8192 * MIB,
                            .scout_bytes = 60 * MIB, .kv_bytes = 30 * MIB,
                            .scratch_bytes = 10 * MIB, .record_bytes = MIB, .n_records = 64,
                            .n_ring_min = 8,
                            .n_ring_asked = n_ring};
}

static void test_ring_takes_what_is_left(void **state)
{
    (void)state;
    smoe_err err;
    budget b;
    budget_request r = request(1, 0);
    assert_int_equal(budget_split(&r, &b, &err), SMOE_RANGE);
    uint64_t fixed_mib = b.fixed_bytes / MIB; /* with the overhead */
    assert_true(fixed_mib > 100);
    for (uint64_t n = 8; n < 100; n++) {
        r = request(fixed_mib + n, 0);
        ASSERT_OK(budget_split(&r, &b, &err), &err);
        assert_int_equal(b.n_ring, n < 64 ? n : 64);
        assert_true(b.fixed_bytes + b.n_ring * r.record_bytes <= b.limit_bytes);
    }
    r = request(fixed_mib + 7, 0);
    ASSERT_FAILS(budget_split(&r, &b, &err), SMOE_RANGE, &err, "8 experts of 1.00 MiB");
}

/* What buffered reads leave for a moment makes the ring smaller, but never too small. */
static void test_page_cache_gives_way(void **state)
{
    (void)state;
    smoe_err err;
    budget b;
    budget_request r = request(1, 0);
    assert_int_equal(budget_split(&r, &b, &err), SMOE_RANGE);
    uint64_t fixed_mib = b.fixed_bytes / MIB;
    for (uint64_t n = 8; n < 40; n++) {
        r = request(fixed_mib + n, 0);
        r.page_cache_bytes = 5 * MIB;
        ASSERT_OK(budget_split(&r, &b, &err), &err);
        assert_int_equal(b.n_ring, n < 13 ? 8 : n - 5);
    }
}

static void test_ring_as_asked(void **state)
{
    (void)state;
    smoe_err err;
    budget b;
    budget_request r = request(4096, 8);
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_int_equal(b.n_ring, 8);
    r = request(4096, 7);
    ASSERT_FAILS(budget_split(&r, &b, &err), SMOE_RANGE, &err, "give at least 8");
    r = request(4096, 1000000);
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_int_equal(b.n_ring, 64); /* never more slots than records */
    r = request(160, 40);
    ASSERT_FAILS(budget_split(&r, &b, &err), SMOE_RANGE, &err, "--ring");
}

static void test_few_records_need_few_slots(void **state)
{
    (void)state;
    smoe_err err;
    budget b;
    budget_request r = request(4096, 0);
    r.n_records = 4;
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_int_equal(b.n_ring, 4);
    r = request(4096, 0);
    r.n_records = r.n_ring_min = 0; /* a model of dense layers only */
    r.record_bytes = 0;
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_int_equal(b.n_ring, 1);
}

static void test_the_machine_is_the_limit(void **state)
{
    (void)state;
    smoe_err err;
    budget b;
    budget_request r = request(0, 0);
    r.available_bytes = 1024 * MIB;
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_true(b.limit_bytes < 1024 * MIB && b.limit_bytes > 900 * MIB);
    r.available_bytes = 100 * 1024 * MIB;
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_true(b.limit_bytes <= (100 * 1024 - 512) * MIB);
    r.available_bytes = 0; /* a system that does not say */
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_int_equal(b.n_ring, 64);
}

static void test_no_overflow(void **state)
{
    (void)state;
    smoe_err err;
    budget b;
    budget_request r = request(4096, 0);
    r.mem_limit_bytes = UINT64_MAX;
    ASSERT_OK(budget_split(&r, &b, &err), &err);
    assert_int_equal(b.n_ring, 64);
    r = request(4096, 0);
    r.record_bytes = UINT64_MAX;
    assert_int_equal(budget_split(&r, &b, &err), SMOE_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_takes_what_is_left),
        cmocka_unit_test(test_page_cache_gives_way),
        cmocka_unit_test(test_ring_as_asked),
        cmocka_unit_test(test_few_records_need_few_slots),
        cmocka_unit_test(test_the_machine_is_the_limit),
        cmocka_unit_test(test_no_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
