/* test_io_bench.c: the rows of `smoe bench io`, over a file made for the purpose and over records
 * of another; what is left behind (nothing), refused memory, interruption. */
#include "../../support/test.h"

#include <dirent.h>

#include "base/mem.h"
#include "bench/io_bench.h"

enum { RECORD_BYTES = 2 * AIO_ALIGN, N_RECORDS = 40, TRIAL_NS = 1000000, N_ROWS = 12 };

static char dir[64];

struct seen {
    uint32_t n_rows, n_left; /* rows so far; checks for interruption until it comes */
    uint64_t n_written_bytes;
    double direct_bytes_s;
};

static int make(void **state)
{
    (void)state;
    alarm(120); /* a read that hangs ends the test */
    test_dir_make(dir);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    test_dir_remove(dir);
    alarm(0);
    return 0;
}

static void on_progress(void *ctx, uint64_t n_done_bytes, uint64_t n_bytes)
{
    struct seen *s = ctx;
    assert_true(n_done_bytes > s->n_written_bytes && n_done_bytes <= n_bytes);
    s->n_written_bytes = n_done_bytes;
}

static void on_row(void *ctx, const io_bench_row *row)
{
    struct seen *s = ctx;
    assert_int_equal(row->in_order, s->n_rows >= N_ROWS / 2);
    assert_int_equal(row->depth, 1u << s->n_rows % (N_ROWS / 2));
    for (uint32_t way = 0; way < IO_BENCH_N_WAYS; way++) {
        assert_true(row->bytes_s[way] >= 0 && row->cpu_s_per_gb[way] >= 0);
    }
    s->direct_bytes_s += row->bytes_s[1];
    s->n_rows++;
}

static bool on_check(void *ctx)
{
    struct seen *s = ctx;
    return s->n_left > 0 && --s->n_left == 0;
}

static uint32_t n_files(void)
{
    uint32_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2; /* . and .. */
}

static smoe_status make_and_run(struct seen *s, smoe_err *err)
{
    io_bench_file b;
    const io_bench_events events = {s, on_progress, on_row, on_check};
    TRY(io_bench_make(&b, dir, N_RECORDS * RECORD_BYTES - 5, RECORD_BYTES, &events, err));
    assert_int_equal(b.n, N_RECORDS);
    assert_int_equal(n_files(), 1);
    smoe_status status = io_bench_run(&b, TRIAL_NS, 3, &events, err);
    io_bench_close(&b);
    return status;
}

static void test_rows(void **state)
{
    (void)state;
    smoe_err err;
    struct seen s = {0};
    ASSERT_OK(make_and_run(&s, &err), &err);
    assert_int_equal(s.n_rows, N_ROWS);
    assert_int_equal(s.n_written_bytes, N_RECORDS * RECORD_BYTES);
    assert_int_equal(n_files(), 0);
}

/* The records of a file that is there already, in any order, some missing. */
static void test_records_of_another_file(void **state)
{
    (void)state;
    smoe_err err;
    struct seen s = {0};
    io_bench_file made, b;
    uint64_t offsets[N_RECORDS];
    const io_bench_events events = {&s, NULL, on_row, NULL};
    ASSERT_OK(io_bench_make(&made, dir, N_RECORDS * RECORD_BYTES, RECORD_BYTES, NULL, &err), &err);
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        offsets[i] = i % 3 ? made.offsets[N_RECORDS - 1 - i] : 0;
    }
    ASSERT_OK(io_bench_open(&b, made.f.path, offsets, N_RECORDS, RECORD_BYTES, &err), &err);
    ASSERT_OK(io_bench_run(&b, TRIAL_NS, 1, &events, &err), &err);
    assert_int_equal(s.n_rows, N_ROWS);
    assert_int_equal(truncate(b.f.path, AIO_ALIGN), 0);
    ASSERT_FAILS(io_bench_run(&b, TRIAL_NS, 1, NULL, &err), SMOE_IO, &err, "reading 32768 bytes");
    io_bench_close(&b);
    assert_int_equal(n_files(), 1);
    io_bench_close(&made);
    assert_int_equal(n_files(), 0);
}

static void test_interrupted(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 200; n += 60) { /* while writing, and in some row */
        smoe_err err;
        struct seen s = {.n_left = n};
        assert_int_equal(make_and_run(&s, &err), SMOE_CANCELLED);
        assert_int_equal(n_files(), 0);
    }
}

static void test_no_room(void **state)
{
    (void)state;
    smoe_err err;
    io_bench_file b;
    ASSERT_FAILS(io_bench_make(&b, dir, UINT64_C(1) << 50, 1u << 30, NULL, &err), SMOE_RANGE, &err,
                 "is needed there");
}

static void test_refused_memory(void **state)
{
    (void)state;
    uint32_t n_unneeded = 0; /* looking for the leftovers of killed runs is given up in silence */
    for (uint64_t nth = 1; nth < 24; nth++) {
        smoe_err err = {0};
        struct seen s = {0};
        mem_fail_nth(nth);
        smoe_status status = make_and_run(&s, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_NOMEM || status == SMOE_OK);
        n_unneeded += status == SMOE_OK;
        assert_int_equal(n_files(), 0);
    }
    assert_in_range(n_unneeded, 0, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        TEST(test_rows), TEST(test_records_of_another_file), TEST(test_interrupted),
        TEST(test_no_room), TEST(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
