/* test_pool.c: every item exactly once, whatever the threads, the length, the grain and what else
 * the machine has to do. */
#include "../../support/test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cpu.h"
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

/* Loops of few and of many ranges, some after a rest; every item once per loop. */
static void run_loops(uint32_t n_threads)
{
    enum { N = 256, N_LOOPS = 300 };
    uint64_t counters[N] = {0};
    pool *p;
    smoe_err err;
    ASSERT_OK(pool_new(n_threads, &p, &err), &err);
    for (int i = 0; i < N_LOOPS; i++) {
        pool_for(p, N, i % 2 ? 1 : 100, add_one, counters);
        if (i % 100 == 0) {
            usleep(1000);
        }
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(counters[i], N_LOOPS);
    }
    pool_free(p);
}

static void test_more_threads_than_cores(void **state)
{
    (void)state;
    run_loops(8 * cpu_n_cores());
    run_loops(64);
#ifdef __linux__
    cpu_set_t all, one; /* threads inherit the mask: those that spin are in the way of the others */
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_n_cores(), 1);
    run_loops(4);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
#endif
}

/* One process per core that never sleeps; they end with this one, whatever happens to it. */
static void test_beside_busy_processes(void **state)
{
    (void)state;
    enum { MAX_BUSY = 16 };
    pid_t busy[MAX_BUSY], self = getpid();
    uint32_t n_cores = cpu_n_cores(), n = n_cores < MAX_BUSY ? n_cores : MAX_BUSY;
    for (uint32_t i = 0; i < n; i++) {
        busy[i] = fork();
        assert_true(busy[i] >= 0);
        if (busy[i] == 0) {
            while (getppid() == self) {
            }
            _exit(0);
        }
    }
    run_loops(n_cores);
    run_loops(2 * n_cores + 1);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(kill(busy[i], SIGKILL), 0);
        assert_int_equal(waitpid(busy[i], NULL, 0), busy[i]);
    }
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Processor time, not time: a busy machine can only make it less. */
static void test_at_rest_it_sleeps(void **state)
{
    (void)state;
    enum { REST_US = 300 * 1000 };
    uint64_t counters[64] = {0};
    pool *p;
    smoe_err err;
    ASSERT_OK(pool_new(4, &p, &err), &err);
    pool_for(p, 64, 1, add_one, counters);
    uint64_t before = process_cpu_ns();
    usleep(REST_US);
    assert_true(process_cpu_ns() - before < (uint64_t)REST_US * 1000 / 2);
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
        cmocka_unit_test(test_more_threads_than_cores),
        cmocka_unit_test(test_beside_busy_processes),
        cmocka_unit_test(test_at_rest_it_sleeps),
        cmocka_unit_test(test_start_and_stop),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
