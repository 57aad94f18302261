/* test_aio_faults.c: what drives, file systems and other processes do to reads, and how each ends:
 * with all of its bytes, or with one error after a bounded number of attempts. Other reads go on
 * meanwhile, and the next ones work. */
#include "../support/fault_aio.h"
#include "../support/read_file.h"

#include <errno.h>

#include "base/clock.h"
#include "base/map.h"

enum { N_BLOCKS = 32, DEPTH = 4, RECORD_BLOCKS = 4, N_RECORDS = N_BLOCKS / RECORD_BLOCKS };

struct fixture {
    struct read_file r;
    aio_backend *backend;
    aio *a;
    int errors[N_RECORDS]; /* of the last read_records, by record; -1 = not read */
};

static void open_reads(struct fixture *f, bool direct)
{
    smoe_err err = {0};
    f->backend = fault_aio_new(f->r.f.fd, DEPTH);
    assert_non_null(f->backend);
    const aio_params p = {.file = &f->r.f, .direct = direct, .depth = DEPTH,
                          .max_queued = N_RECORDS, .backend = f->backend};
    ASSERT_OK(aio_open(&p, &f->a, &err), &err);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    read_file_make(&f->r, N_BLOCKS);
    open_reads(f, false);
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    aio_close(f->a);
    read_file_remove(&f->r);
    free(f);
    return 0;
}

static uint64_t offset_of(uint32_t record)
{
    return (uint64_t)record * RECORD_BLOCKS * BLOCK;
}

/* The rule for all attempts at this record. */
static fault_rule rule_for(uint32_t record, fault_kind kind, uint32_t n_times, uint32_t amount)
{
    return (fault_rule){kind, offset_of(record), offset_of(record + 1), n_times, amount};
}

static void submit_all(struct fixture *f)
{
    aio_read reads[N_RECORDS];
    read_file_forget(&f->r);
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        f->errors[i] = -1;
        reads[i] = read_file_read(&f->r, i * RECORD_BLOCKS, RECORD_BLOCKS);
        reads[i].tag = i;
    }
    aio_submit(f->a, reads, N_RECORDS);
}

/* Reaps the rest; a read that is done twice, or wrong without an error, fails. */
static void reap_all(struct fixture *f)
{
    for (aio_done done; aio_reap(f->a, &done, 1, true) == 1;) {
        assert_int_equal(f->errors[done.tag], -1);
        f->errors[done.tag] = done.error;
        if (done.error == 0) {
            assert_true(read_file_is_right(&f->r, done.tag * RECORD_BLOCKS, RECORD_BLOCKS));
        }
    }
}

/* Reads every record under these rules: `record` ends with `error`, the others without. Then once
 * more without faults. */
static void expect(struct fixture *f, const fault_rule *rules, uint32_t n, uint32_t record,
                   int error)
{
    fault_aio_set(f->backend, rules, n);
    submit_all(f);
    reap_all(f);
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        assert_int_equal(f->errors[i], i == record ? error : 0);
    }
    fault_aio_set(f->backend, NULL, 0);
    submit_all(f);
    reap_all(f);
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        assert_int_equal(f->errors[i], 0);
    }
}

static void test_short_reads(void **state)
{
    struct fixture *f = *state;
    static const uint32_t amounts[] = {1, 511, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK};
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        const fault_rule rule = rule_for(3, FAULT_SHORT, 5, amounts[i]);
        expect(f, &rule, 1, 3, 0);
    }
    /* every attempt at everything, for ever */
    const fault_rule rule = {FAULT_SHORT, 0, UINT64_MAX, FAULT_FOR_EVER, 5000};
    expect(f, &rule, 1, 0, 0);
}

/* A direct read cannot begin anywhere: it resumes at the last multiple of AIO_ALIGN. */
static void test_short_direct_reads(void **state)
{
    struct fixture *f = *state;
    smoe_err err = {0};
    aio_close(f->a);
    f->backend = fault_aio_new(f->r.f.fd, DEPTH);
    assert_non_null(f->backend);
    aio_params p = {.file = &f->r.f, .direct = true, .depth = DEPTH, .max_queued = N_RECORDS,
                    .backend = f->backend};
    f->a = NULL;
    if (aio_open(&p, &f->a, &err) == SMOE_UNSUPPORTED) {
        skip();
    }
    fault_rule rule = {FAULT_SHORT, 0, UINT64_MAX, FAULT_FOR_EVER, BLOCK + 100};
    expect(f, &rule, 1, 0, 0);
    rule = rule_for(2, FAULT_SHORT, 3, 100); /* nothing usable, three times */
    expect(f, &rule, 1, 2, 0);
    rule.n_times = FAULT_FOR_EVER;
    expect(f, &rule, 1, 2, EIO);
}

static void test_eio_once(void **state)
{
    struct fixture *f = *state;
    for (uint32_t n_times = 1; n_times <= 3; n_times++) {
        const fault_rule rule = rule_for(5, FAULT_ERROR, n_times, EIO);
        expect(f, &rule, 1, 5, 0);
    }
}

static void test_eio_for_ever(void **state)
{
    struct fixture *f = *state;
    const fault_rule rule = rule_for(5, FAULT_ERROR, FAULT_FOR_EVER, EIO);
    expect(f, &rule, 1, 5, EIO);
    assert_int_equal(fault_aio_n_faults(f->backend), 4); /* one attempt and three retries */
}

/* Short, then a bad place in the rest of it: what was read does not count as success. */
static void test_eio_after_short_read(void **state)
{
    struct fixture *f = *state;
    const fault_rule rules[] = {
        rule_for(1, FAULT_SHORT, 1, BLOCK),
        {FAULT_ERROR, offset_of(1) + BLOCK, offset_of(2), FAULT_FOR_EVER, EIO},
    };
    expect(f, rules, 2, 1, EIO);
}

static void test_interrupted(void **state)
{
    struct fixture *f = *state;
    static const int errors[] = {EINTR, EAGAIN};
    for (int i = 0; i < 2; i++) {
        fault_rule rule = rule_for(6, FAULT_ERROR, 100, (uint32_t)errors[i]);
        expect(f, &rule, 1, 6, 0);
        rule.n_times = FAULT_FOR_EVER;
        expect(f, &rule, 1, 6, errors[i]);
    }
}

/* Any other error is not worth a second attempt. */
static void test_other_error(void **state)
{
    struct fixture *f = *state;
    const fault_rule rule = rule_for(0, FAULT_ERROR, FAULT_FOR_EVER, ENXIO);
    expect(f, &rule, 1, 0, ENXIO);
    assert_int_equal(fault_aio_n_faults(f->backend), 1);
}

/* Wrong bytes are no error of the read: the owner's checksum finds them. */
static void test_wrong_bytes(void **state)
{
    struct fixture *f = *state;
    const size_t n_bytes = RECORD_BLOCKS * BLOCK;
    const aio_read read = read_file_read(&f->r, 0, RECORD_BLOCKS);
    const fault_rule rule = rule_for(0, FAULT_WRONG, 1, 0);
    uint64_t hashes[2];
    fault_aio_set(f->backend, &rule, 1);
    for (int i = 0; i < 2; i++) {
        aio_done done;
        aio_submit(f->a, &read, 1);
        assert_int_equal(aio_reap(f->a, &done, 1, true), 1);
        assert_int_equal(done.error, 0);
        hashes[i] = hash_bytes(f->r.memory, n_bytes);
        assert_int_equal(read_file_is_right(&f->r, 0, RECORD_BLOCKS), i == 1);
    }
    assert_true(hashes[0] != hashes[1]);
}

/* Cut within record 6, while reads of it are queued: buffered and direct. */
static void test_truncated_file(void **state)
{
    struct fixture *f = *state;
    for (int direct = 0; direct < 2; direct++) {
        smoe_err err = {0};
        aio *a = NULL;
        const aio_params p = {.file = &f->r.f, .kind = AIO_THREADS, .direct = direct, .depth = 1,
                              .max_queued = N_RECORDS};
        if (aio_open(&p, &a, &err) == SMOE_UNSUPPORTED) {
            continue;
        }
        aio *before = f->a;
        f->a = a;
        assert_int_equal(truncate(f->r.path, (off_t)offset_of(6) + BLOCK + 100), 0);
        submit_all(f);
        reap_all(f);
        f->a = before;
        aio_close(a);
        for (uint32_t i = 0; i < N_RECORDS; i++) {
            assert_int_equal(f->errors[i], i < 6 ? 0 : ENODATA);
        }
    }
}

/* One read takes a second: the others are done long before, and nobody waits for it in vain. */
static void test_slow_read(void **state)
{
    struct fixture *f = *state;
    const fault_rule rule = rule_for(0, FAULT_SLOW, 1, 1000);
    fault_aio_set(f->backend, &rule, 1);
    uint64_t start_ns = clock_ns();
    submit_all(f);
    aio_done done;
    for (uint32_t n = 0; n < N_RECORDS - 1; n++) {
        assert_int_equal(aio_reap(f->a, &done, 1, true), 1);
        assert_int_not_equal(done.tag, 0);
        assert_int_equal(done.error, 0);
    }
    assert_int_equal(aio_n_pending(f->a), 1);
    assert_int_equal(aio_reap(f->a, &done, 1, true), 1);
    assert_int_equal(done.tag, 0);
    assert_int_equal(done.error, 0);
    assert_true(clock_ns() - start_ns >= 1000000000u);
    assert_true(read_file_is_right(&f->r, 0, RECORD_BLOCKS));
}

/* The memory is the read's until it ends: closing waits. */
static void test_close_during_slow_read(void **state)
{
    struct fixture *f = *state;
    const fault_rule rule = rule_for(1, FAULT_SLOW, 1, 300);
    uint64_t start_ns = clock_ns();
    fault_aio_set(f->backend, &rule, 1);
    submit_all(f);
    aio_close(f->a);
    assert_true(clock_ns() - start_ns >= 300000000u);
    open_reads(f, false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        TEST(test_short_reads),
        TEST(test_short_direct_reads),
        TEST(test_eio_once),
        TEST(test_eio_for_ever),
        TEST(test_eio_after_short_read),
        TEST(test_interrupted),
        TEST(test_other_error),
        TEST(test_wrong_bytes),
        TEST(test_truncated_file),
        TEST(test_slow_read),
        TEST(test_close_during_slow_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
