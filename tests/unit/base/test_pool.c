/* test_pool.c: every item exactly once, whatever the threads, the length and the grain. */
#include "../../support/test.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/pool.h"

enum { MAX_ITEMS = 1000, MAX_THREADS = 7 };

struct work {
    uint8_t n_visits[MAX_ITEMS];
    size_t grain, n;
    uint32_t n_threads;
    _Atomic uint32_t n_wrong;
};

static void visit(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    struct work *w = ctx;
    w->n_wrong += begin >= end || end > w->n || thread >= w->n_threads;
    w->n_wrong += end - begin < w->grain && end != w->n;
    for (size_t i = begin; i < end; i++) {
        w->n_visits[i]++;
    }
}

static void test_every_item_once(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 3, 16, 17, 100, 999, MAX_ITEMS};
    for (uint32_t n_threads = 1; n_threads <= MAX_THREADS; n_threads += 2) {
        pool *p;
        smoe_err err;
        ASSERT_OK(pool_new(n_threads, &p, &err), &err);
        assert_int_equal(pool_n_threads(p), n_threads);
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            for (size_t grain = 0; grain <= 64; grain = grain * 3 + 1) {
                struct work w = {.n = lengths[i], .grain = grain, .n_threads = n_threads};
                pool_for(p, lengths[i], grain, visit, &w);
                assert_int_equal(w.n_wrong, 0);
                for (size_t k = 0; k < lengths[i]; k++) {
                    assert_int_equal(w.n_visits[k], 1);
                }
            }
        }
        pool_free(p);
    }
}

static void add_one(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        ((uint64_t *)ctx)[i]++;
    }
}

/* Plain, not atomic: a thread that still works on the last loop when the next one begins would lose
 * an update (and a thread sanitizer would say so). */
static void test_many_loops_in_a_row(void **state)
{
    (void)state;
    enum { N = 64, N_LOOPS = 4000 };
    uint64_t counters[N] = {0};
    pool *p;
    smoe_err err;
    ASSERT_OK(pool_new(4, &p, &err), &err);
    uint64_t n_allocs = mem_alloc_count();
    for (int i = 0; i < N_LOOPS; i++) {
        pool_for(p, N, 1, add_one, counters);
        if (i % 1000 == 0) {
            usleep(2000); /* long enough for the workers to fall asleep */
        }
    }
    assert_int_equal(mem_alloc_count() - n_allocs, 0);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(counters[i], N_LOOPS);
    }
    pool_free(p);
}

static void test_start_and_stop(void **state)
{
    (void)state;
    smoe_err err;
    for (int i = 0; i < 50; i++) {
        pool *p;
        ASSERT_OK(pool_new(3, &p, &err), &err);
        pool_free(p);
    }
    pool_free(NULL);
}

static void test_refused_memory(void **state)
{
    (void)state;
    smoe_err err;
    pool *p;
    smoe_status status = SMOE_NOMEM;
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        mem_fail_nth(nth);
        status = pool_new(3, &p, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
    }
    pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_many_loops_in_a_row),
        cmocka_unit_test(test_start_and_stop),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
