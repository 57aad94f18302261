/* test_io_probe.c: what the probe chooses is always something that can be opened and read with;
 * --workers and --io, a ring of one slot, a file that cannot be read, the sentence. Not which way
 * is fastest: that is the machine's affair. */
#include "../../support/no_uring.h"
#include "../../support/read_file.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cache/io_probe.h"

enum { N_BLOCKS = 64 };

static struct read_file r;
static uint64_t offsets[N_BLOCKS];

static int make(void **state)
{
    (void)state;
    read_file_make(&r, N_BLOCKS);
    for (uint64_t i = 0; i < N_BLOCKS; i++) {
        offsets[i] = i * BLOCK; /* the first one: 0 = no record */
    }
    return 0;
}

static int clean(void **state)
{
    (void)state;
    read_file_remove(&r);
    return 0;
}

static io_probe_params params_of(uint32_t n_slots, uint32_t n_workers)
{
    return (io_probe_params){.file = &r.f, .offsets = offsets, .memory = r.memory,
                             .n_records = N_BLOCKS, .n_slots = n_slots, .record_bytes = BLOCK,
                             .n_workers = n_workers, .max_ns = IO_PROBE_NS};
}

/* Opens what was chosen and reads with it. */
static void check_works(const io_probe_result *result)
{
    smoe_err err;
    aio *a = NULL;
    aio_done done;
    const aio_params p = {.file = &r.f, .kind = result->mode.kind, .direct = result->mode.direct,
                          .depth = result->mode.depth, .max_queued = 1};
    const aio_read read = read_file_read(&r, 1, 1);
    ASSERT_OK(aio_open(&p, &a, &err), &err);
    aio_submit(a, &read, 1);
    assert_int_equal(aio_reap(a, &done, 1, true), 1);
    assert_int_equal(done.error, 0);
    assert_true(read_file_is_right(&r, 1, 1));
    aio_close(a);
}

static void test_choice_works(void **state)
{
    (void)state;
    static const uint32_t n_slots[] = {1, 3, 8, N_BLOCKS};
    static const uint32_t n_workers[] = {0, 1, 5, 1024};
    for (int s = 0; s < 4; s++) {
        for (int w = 0; w < 4; w++) {
            smoe_err err;
            io_probe_result result;
            char sentence[IO_PROBE_SENTENCE_BYTES];
            const io_probe_params p = params_of(n_slots[s], n_workers[w]);
            ASSERT_OK(io_probe(&p, &result, &err), &err);
            io_probe_sentence(&result, sentence);
            print_message("%s\n", sentence);
            assert_int_equal(strncmp(sentence, "reads: ", 7), 0);
            assert_in_range(result.mode.depth, 1, AIO_MAX_DEPTH);
            if (n_workers[w] > 0) {
                uint32_t most = n_workers[w] < AIO_MAX_DEPTH ? n_workers[w] : AIO_MAX_DEPTH;
                assert_int_equal(result.mode.depth, most);
            }
            check_works(&result);
        }
    }
}

/* No time: nothing is measured, and the preferred way stands. */
static void test_no_time(void **state)
{
    (void)state;
    smoe_err err;
    io_probe_result result;
    char sentence[IO_PROBE_SENTENCE_BYTES];
    io_probe_params p = params_of(N_BLOCKS, 0);
    p.max_ns = 0;
    ASSERT_OK(io_probe(&p, &result, &err), &err);
    io_probe_sentence(&result, sentence);
    assert_string_equal(sentence, "reads: io_uring, direct, 8 at a time (not measured)");
}

/* Every read fails: the probe says nothing about it, the first real read will. */
static void test_file_cut_short(void **state)
{
    (void)state;
    smoe_err err;
    io_probe_result result;
    const io_probe_params p = params_of(N_BLOCKS, 0);
    assert_int_equal(truncate(r.path, 100), 0);
    ASSERT_OK(io_probe(&p, &result, &err), &err);
    assert_true(result.bytes_s == 0);
    assert_in_range(result.mode.depth, 1, AIO_MAX_DEPTH);
}

static void test_refused_memory(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth < 12; nth++) {
        smoe_err err = {0};
        io_probe_result result;
        const io_probe_params p = params_of(8, 0);
        mem_fail_nth(nth);
        smoe_status status = io_probe(&p, &result, &err);
        mem_fail_nth(0);
        assert_int_equal(status, SMOE_NOMEM);
        assert_int_equal(err.code, SMOE_NOMEM);
    }
}

static const char *const wishes[] = {"uring", "threads", "direct", "buffered", "threads,buffered",
                                     "buffered,uring", "direct,threads", "uring,direct"};
enum { N_WISHES = sizeof wishes / sizeof *wishes };

/* What is wished is what is chosen, with and without time to measure, whatever else is faster. */
static void test_wishes(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * N_WISHES; i++) {
        smoe_err err = {0};
        io_probe_result result;
        io_probe_params p = params_of(8, 0);
        ASSERT_OK(io_wish_parse(wishes[i / 2], &p.wish, &err), &err);
        p.max_ns = i % 2 ? IO_PROBE_NS : 0;
        smoe_status status = io_probe(&p, &result, &err);
        if (status == SMOE_UNSUPPORTED) {
            assert_non_null(strstr(err.text, "cannot be had"));
            continue;
        }
        ASSERT_OK(status, &err);
        assert_true(io_wish_allows(&p.wish, result.mode));
        check_works(&result);
    }
}

static void test_direct_cannot_be_had(void **state)
{
    (void)state;
#ifdef __linux__
    smoe_err err = {0};
    io_probe_result result;
    io_probe_params p = params_of(8, 0);
    file f;
    ASSERT_OK(file_open(&f, "/proc/self/status", &err), &err);
    p.file = &f;
    p.wish = (io_wish){.has_mode = true, .direct = true};
    ASSERT_FAILS(io_probe(&p, &result, &err), SMOE_UNSUPPORTED, &err,
                 "--io direct cannot be had: the file system of /proc/self/status refuses direct "
                 "reads");
    file_close(&f);
#else
    skip();
#endif
}

#ifdef CAN_FORBID_URING
/* 0 when all is as it should. */
static int wish_without_uring(void)
{
    if (!forbid_uring(EPERM)) {
        return 77;
    }
    for (int i = 0; i < 2 * N_WISHES; i++) {
        smoe_err err = {0};
        io_probe_result result;
        io_probe_params p = params_of(8, 0);
        p.max_ns = i % 2 ? IO_PROBE_NS : 0;
        if (io_wish_parse(wishes[i / 2], &p.wish, &err) != SMOE_OK) {
            return 1;
        }
        bool is_uring = p.wish.has_kind && p.wish.kind == AIO_URING;
        smoe_status status = io_probe(&p, &result, &err);
        bool is_direct_refused = status == SMOE_UNSUPPORTED && strstr(err.text, "--io direct");
        if (is_direct_refused) {
            continue;
        }
        if (status != (is_uring ? SMOE_UNSUPPORTED : SMOE_OK) ||
            (is_uring && !strstr(err.text, "--io uring cannot be had: io_uring is forbidden")) ||
            (!is_uring && !io_wish_allows(&p.wish, result.mode))) {
            return 2;
        }
    }
    return 0;
}
#endif

static void test_uring_cannot_be_had(void **state)
{
    (void)state;
#ifdef CAN_FORBID_URING
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(wish_without_uring());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
#else
    skip();
#endif
}

/* Each record once in n steps, whatever n. */
static void test_walk(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= N_BLOCKS; n++) {
        for (int in_order = 0; in_order < 2; in_order++) {
            bool seen[N_BLOCKS] = {0};
            io_records walk = io_records_of(&r.f, offsets, n, BLOCK, in_order);
            for (uint32_t i = 0; i < n; i++) {
                assert_false(seen[walk.at]);
                seen[walk.at] = true;
                walk.at = (walk.at + walk.stride) % n;
            }
        }
    }
}

static void test_sentence(void **state)
{
    (void)state;
    char sentence[IO_PROBE_SENTENCE_BYTES];
    io_probe_result result = {{AIO_URING, true, 8}, 2.4e9, 1.1e9, {0}, {0}};
    io_probe_sentence(&result, sentence);
    assert_string_equal(sentence,
                        "reads: io_uring, direct, 8 at a time (2.40 GB/s; buffered 1.10 GB/s)");
    result = (io_probe_result){{AIO_THREADS, false, 16}, 9e8, 0, {SMOE_UNSUPPORTED, "A"},
                               {SMOE_UNSUPPORTED, "B"}};
    io_probe_sentence(&result, sentence);
    assert_string_equal(sentence, "reads: threads, buffered, 16 at a time (0.90 GB/s; direct not "
                                  "measured); B; A");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        TEST(test_choice_works), TEST(test_no_time), TEST(test_file_cut_short),
        TEST(test_refused_memory), TEST(test_wishes), TEST(test_direct_cannot_be_had),
        TEST(test_uring_cannot_be_had), TEST(test_walk), TEST(test_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
