/* test_aio.c: every mechanism, direct and buffered: the right bytes under the right tag, each read
 * done once, first in first out; withdrawing, closing with reads in flight, and what is refused. */
#include "../../support/no_uring.h"
#include "../../support/read_file.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "cache/aio_backend.h"

enum { N_BLOCKS = 64 };

static struct read_file r;

static int make(void **state)
{
    (void)state;
    read_file_make(&r, N_BLOCKS);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    read_file_remove(&r);
    return 0;
}

/* NULL where this system does not offer it. */
static aio *open_or_null(aio_kind kind, bool direct, uint32_t depth, bool registered)
{
    smoe_err err = {0};
    aio *a = NULL;
    const aio_params p = {.file = &r.f, .kind = kind, .direct = direct, .depth = depth,
                          .max_queued = N_BLOCKS, .memory = registered ? r.memory : NULL,
                          .memory_bytes = registered ? N_BLOCKS * BLOCK : 0};
    smoe_status status = aio_open(&p, &a, &err);
    if (status == SMOE_UNSUPPORTED) {
        print_message("%s, %s: %s\n", aio_kind_name(kind), direct ? "direct" : "buffered",
                      err.text);
        assert_true(kind == AIO_URING || direct);
        assert_null(a);
    } else {
        ASSERT_OK(status, &err);
    }
    return a;
}

/* Calls fn with every mechanism there is: both kinds, direct and buffered, registered or not, at
 * several depths. */
static void with_each(void (*fn)(aio *a, uint32_t depth))
{
    static const uint32_t depths[] = {1, 3, 8, N_BLOCKS};
    for (int i = 0; i < 8; i++) {
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
            aio *a = open_or_null(i & 1 ? AIO_URING : AIO_THREADS, i & 2, depths[d], i & 4);
            if (a) {
                read_file_forget(&r);
                fn(a, depths[d]);
                aio_close(a);
            }
        }
    }
}

static void read_all(aio *a, uint32_t depth)
{
    (void)depth;
    aio_read reads[N_BLOCKS / 2];
    bool seen[N_BLOCKS] = {0};
    for (uint32_t i = 0; i < N_BLOCKS / 2; i++) {
        reads[i] = read_file_read(&r, N_BLOCKS - 2 - 2 * i, 2);
    }
    aio_submit(a, reads, N_BLOCKS / 2);
    assert_int_equal(aio_n_pending(a), N_BLOCKS / 2);
    for (uint32_t n = 0; n < N_BLOCKS / 2;) {
        aio_done done[5];
        uint32_t n_done = aio_reap(a, done, 5, true);
        assert_in_range(n_done, 1, 5);
        for (uint32_t i = 0; i < n_done; i++) {
            assert_int_equal(done[i].error, 0);
            assert_false(seen[done[i].tag]);
            seen[done[i].tag] = true;
            assert_true(read_file_is_right(&r, done[i].tag, 2));
        }
        n += n_done;
        assert_int_equal(aio_n_pending(a), N_BLOCKS / 2 - n);
    }
    aio_done done;
    assert_int_equal(aio_reap(a, &done, 1, true), 0); /* nothing pending: does not wait */
    assert_int_equal(aio_reap(a, &done, 1, false), 0);
}

static void test_read_all(void **state)
{
    (void)state;
    with_each(read_all);
}

static void poll_only(aio *a, uint32_t depth)
{
    (void)depth;
    aio_read reads[8];
    for (uint32_t i = 0; i < 8; i++) {
        reads[i] = read_file_read(&r, i, 1);
    }
    aio_submit(a, reads, 8);
    for (uint32_t n = 0; n < 8;) {
        aio_done done[8];
        uint32_t n_done = aio_reap(a, done, 8, false);
        for (uint32_t i = 0; i < n_done; i++) {
            assert_int_equal(done[i].error, 0);
            assert_true(read_file_is_right(&r, done[i].tag, 1));
        }
        n += n_done;
        usleep(n_done ? 0 : 100);
    }
    assert_int_equal(aio_n_pending(a), 0);
}

static void test_reap_without_wait(void **state)
{
    (void)state;
    with_each(poll_only);
}

/* Of n reads the last depth.. are queued: every other one of them is withdrawn. */
static void withdraw_some(aio *a, uint32_t depth)
{
    aio_read reads[N_BLOCKS];
    bool expected[N_BLOCKS];
    uint32_t n_expected = 0, last = 0;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        reads[i] = read_file_read(&r, i, 1);
    }
    aio_submit(a, reads, N_BLOCKS);
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        bool withdrawn = i % 2 && aio_withdraw(a, i);
        assert_int_equal(withdrawn, i % 2 && i >= depth);
        expected[i] = !withdrawn;
        n_expected += !withdrawn;
    }
    assert_false(aio_withdraw(a, N_BLOCKS)); /* never submitted */
    assert_int_equal(aio_n_pending(a), n_expected);
    for (aio_done done; aio_reap(a, &done, 1, true) == 1; n_expected--) {
        assert_int_equal(done.error, 0);
        assert_true(expected[done.tag]);
        assert_true(depth > 1 || done.tag >= last); /* first in, first out */
        last = done.tag;
        assert_true(read_file_is_right(&r, done.tag, 1));
        expected[done.tag] = false;
    }
    assert_int_equal(n_expected, 0);
    for (uint32_t i = depth; i < N_BLOCKS; i++) {
        assert_int_equal(r.memory[(size_t)i * BLOCK], i % 2 ? 0xee : read_file_byte(i * BLOCK));
    }
}

static void test_withdraw(void **state)
{
    (void)state;
    with_each(withdraw_some);
}

/* with_each closes it: with reads in flight, and queued ones behind them. */
static void leave(aio *a, uint32_t depth)
{
    (void)depth;
    aio_read reads[N_BLOCKS];
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        reads[i] = read_file_read(&r, i, 1);
    }
    aio_submit(a, reads, N_BLOCKS);
}

static void test_close_with_reads_in_flight(void **state)
{
    (void)state;
    with_each(leave);
    aio_close(NULL);
}

/* Random batches, withdrawals and reaps against a list of what is pending. */
static void stress(aio *a, uint32_t depth)
{
    bool pending[N_BLOCKS] = {0};
    uint32_t n_pending = 0;
    rng random = {depth};
    for (int round = 0; round < 100; round++) {
        aio_read reads[N_BLOCKS];
        uint32_t n = 0;
        for (uint32_t i = 0; i < N_BLOCKS; i++) {
            if (!pending[i] && rng_next(&random) % 8 == 0) {
                memset(r.memory + (size_t)i * BLOCK, 0xee, BLOCK);
                reads[n++] = read_file_read(&r, i, 1);
                pending[i] = true;
            }
        }
        aio_submit(a, reads, n);
        n_pending += n;
        for (int k = 0; k < 3; k++) {
            uint32_t tag = (uint32_t)(rng_next(&random) % N_BLOCKS);
            if (aio_withdraw(a, tag)) {
                assert_true(pending[tag]);
                pending[tag] = false;
                n_pending--;
            }
        }
        aio_done done[N_BLOCKS];
        uint32_t max = 1 + (uint32_t)(rng_next(&random) % N_BLOCKS);
        uint32_t n_done = aio_reap(a, done, max, rng_next(&random) % 2);
        assert_in_range(n_done, 0, max);
        for (uint32_t i = 0; i < n_done; i++) {
            assert_int_equal(done[i].error, 0);
            assert_true(pending[done[i].tag]);
            assert_true(read_file_is_right(&r, done[i].tag, 1));
            pending[done[i].tag] = false;
        }
        n_pending -= n_done;
        assert_int_equal(aio_n_pending(a), n_pending);
    }
}

static void test_stress(void **state)
{
    (void)state;
    with_each(stress);
}

/* Memory registered in small pieces: reads within one piece, and across several. */
static void test_registered_pieces(void **state)
{
    (void)state;
#ifdef HAVE_LIBURING
    smoe_err err = {0};
    aio_backend *backend = NULL;
    const aio_backend_params b = {.fd = r.f.fd, .depth = 8, .memory = r.memory,
                                  .memory_bytes = N_BLOCKS * BLOCK, .piece_bytes = 3 * BLOCK};
    smoe_status status = aio_uring_open(&b, &backend, &err);
    if (status == SMOE_UNSUPPORTED) {
        print_message("%s\n", err.text);
        skip();
    }
    ASSERT_OK(status, &err);
    bool is_registered = backend->is_registered;
    aio *a = NULL;
    const aio_params p = {.file = &r.f, .depth = 8, .max_queued = N_BLOCKS, .backend = backend};
    ASSERT_OK(aio_open(&p, &a, &err), &err);
    assert_int_equal(aio_is_registered(a), is_registered);
    read_file_forget(&r);
    read_all(a, 8);
    aio_close(a);
#else
    skip();
#endif
}

static void test_bad_depth(void **state)
{
    (void)state;
    static const uint32_t depths[] = {0, AIO_MAX_DEPTH + 1};
    for (int i = 0; i < 2; i++) {
        smoe_err err = {0};
        aio *a = NULL;
        const aio_params p = {.file = &r.f, .kind = AIO_THREADS, .depth = depths[i],
                              .max_queued = 1};
        ASSERT_FAILS(aio_open(&p, &a, &err), SMOE_RANGE, &err, "1 to 256 reads");
    }
}

static void test_replaced_file(void **state)
{
    (void)state;
    smoe_err err = {0};
    aio *a = NULL;
    char other[140];
    const aio_params p = {.file = &r.f, .kind = AIO_THREADS, .depth = 1, .max_queued = 1};
    snprintf(other, sizeof other, "%s.other", r.path);
    assert_int_equal(rename(r.path, other), 0);
    ASSERT_FAILS(aio_open(&p, &a, &err), SMOE_IO, &err, "cannot be opened");
    FILE *impostor = fopen(r.path, "w");
    assert_non_null(impostor);
    fclose(impostor);
    ASSERT_FAILS(aio_open(&p, &a, &err), SMOE_IO, &err, "it was replaced");
    assert_int_equal(rename(other, r.path), 0);
}

static void test_direct_refused(void **state)
{
    (void)state;
#ifdef __linux__
    smoe_err err = {0};
    aio *a = NULL;
    file f;
    ASSERT_OK(file_open(&f, "/proc/self/status", &err), &err);
    const aio_params p = {.file = &f, .kind = AIO_THREADS, .direct = true, .depth = 1,
                          .max_queued = 1};
    ASSERT_FAILS(aio_open(&p, &a, &err), SMOE_UNSUPPORTED, &err,
                 "the file system of /proc/self/status refuses direct reads");
    file_close(&f);
#else
    skip();
#endif
}

#ifdef CAN_FORBID_URING
/* In a child that may not set up an io_uring, as in many containers. 0 when all is as it should. */
static int try_without_uring(int error)
{
    if (!forbid_uring(error)) {
        return 77; /* no seccomp here */
    }
    smoe_err err = {0};
    aio *a = NULL;
    const aio_params p = {.file = &r.f, .kind = AIO_URING, .depth = 4, .max_queued = 4};
    if (aio_open(&p, &a, &err) != SMOE_UNSUPPORTED) {
        return 1;
    }
    const char *part = error == EPERM ? "io_uring is forbidden here" : "not offered by this kernel";
    return strstr(err.text, part) ? 0 : 2;
}
#endif

static void test_uring_forbidden(void **state)
{
    (void)state;
#ifdef CAN_FORBID_URING
    static const int errors[] = {EPERM, ENOSYS};
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(try_without_uring(errors[i]));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) {
            skip();
        }
        assert_int_equal(WEXITSTATUS(status), 0);
    }
#else
    smoe_err err = {0};
    aio *a = NULL;
    const aio_params p = {.file = &r.f, .kind = AIO_URING, .depth = 4, .max_queued = 4};
    ASSERT_FAILS(aio_open(&p, &a, &err), SMOE_UNSUPPORTED, &err, "built without liburing");
#endif
}

static void test_refused_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const aio_params p = {.file = &r.f, .kind = i & 1 ? AIO_URING : AIO_THREADS,
                              .direct = i & 2, .depth = 4, .max_queued = N_BLOCKS,
                              .memory = r.memory, .memory_bytes = N_BLOCKS * BLOCK};
        smoe_err err = {0};
        aio *a = NULL;
        uint64_t before = mem_alloc_count();
        smoe_status status = aio_open(&p, &a, &err);
        uint64_t n_allocs = mem_alloc_count() - before;
        if (status == SMOE_UNSUPPORTED) {
            continue;
        }
        ASSERT_OK(status, &err);
        before = mem_alloc_count();
        read_all(a, 4);
        assert_int_equal(mem_alloc_count(), before); /* reading allocates nothing */
        aio_close(a);
        for (uint64_t nth = 1; nth <= n_allocs; nth++) {
            mem_fail_nth(nth);
            status = aio_open(&p, &a, &err);
            mem_fail_nth(0);
            assert_int_equal(status, SMOE_NOMEM);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_all),
        cmocka_unit_test(test_reap_without_wait),
        cmocka_unit_test(test_withdraw),
        cmocka_unit_test(test_close_with_reads_in_flight),
        cmocka_unit_test(test_stress),
        cmocka_unit_test(test_registered_pieces),
        cmocka_unit_test(test_bad_depth),
        cmocka_unit_test(test_replaced_file),
        cmocka_unit_test(test_direct_refused),
        cmocka_unit_test(test_uring_forbidden),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
