/* test_engine_faults.c: a drive that misbehaves while an engine answers (design A6). Slow and short
 * reads and a passing EIO change no token; a lasting EIO, wrong bytes and a file cut short end that
 * request with one sentence. Nothing hangs, and the next request gets what a healthy drive gives.
 *
 *   test_engine_faults STEM   a golden checkpoint of 288 tokens, shattered */
#include "../support/fault_aio.h"
#include "../support/test.h"

#include <errno.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/engine_internal.h"

enum { N_VOCAB = 288, N_IDS = 24, N_OUT = 12, N_CTX = 64, DEPTH = 4, WATCHDOG_S = 120 };

static const char *stem;

struct fixture {
    char dir[64], vault_path[128], scout_path[512];
    smoe_engine *engine;
    smoe_session *session;
    aio_backend *backend; /* of the engine's ring, NULL = a real one */
    uint32_t n_least;
    int32_t ids[N_IDS], out[N_OUT], want[N_OUT];
    uint32_t n_out, n_want;
};

/* The whole vault, anew, into the file that the engine has open. */
static void write_vault(const struct fixture *f)
{
    char command[1024];
    snprintf(command, sizeof command, "cat '%s.smoe' > '%s'", stem, f->vault_path);
    assert_int_equal(system(command), 0);
}

static bool on_token(void *ctx, int32_t id)
{
    struct fixture *f = ctx;
    assert_true(f->n_out < N_OUT);
    f->out[f->n_out++] = id;
    return true;
}

static smoe_status ask(struct fixture *f, smoe_err *err)
{
    const smoe_events events = {.ctx = f, .token = on_token};
    const smoe_request r = {.ids = f->ids, .n_ids = N_IDS, .max_tokens = N_OUT,
                            .sampling = {.temperature = 0, .top_p = 1, .top_k = 1,
                                         .rep_penalty = 1}};
    smoe_result result;
    *err = (smoe_err){0};
    f->n_out = 0;
    smoe_session_reset(f->session); /* so that every request reads */
    return smoe_session_generate(f->session, &r, &events, &result, err);
}

static void open_engine(struct fixture *f, uint32_t n_ring, const char *io, smoe_status *status,
                        smoe_err *err)
{
    static const int32_t eos = 0;
    const smoe_engine_params p = {.vault_path = f->vault_path, .scout_path = f->scout_path,
                                  .n_ctx = N_CTX, .n_threads = 2, .n_ring = n_ring, .io = io};
    const smoe_session_params session = {.eos_ids = &eos, .n_eos_ids = 1, .n_spec = 2};
    *status = smoe_engine_open(&p, &f->engine, err);
    if (*status == SMOE_OK) {
        ASSERT_OK(smoe_session_new(f->engine, &session, &f->session, err), err);
    }
}

static void close_engine(struct fixture *f)
{
    smoe_session_free(f->session);
    smoe_engine_close(f->engine);
    f->session = NULL;
    f->engine = NULL;
    f->backend = NULL;
}

/* A ring at its floor over reads that can be made to fail. */
static void open_faulty(struct fixture *f)
{
    smoe_err err = {0};
    smoe_status status;
    open_engine(f, f->n_least, NULL, &status, &err);
    ASSERT_OK(status, &err);
    expert_cache *cache = &f->engine->experts.cache;
    assert_ptr_equal(f->engine->experts.source, &cache->source);
    f->backend = fault_aio_new(f->engine->vault.st.file.fd, DEPTH);
    assert_non_null(f->backend);
    expert_cache_fini(cache);
    const expert_cache_params p = {.vault = &f->engine->vault, .n_slots = f->n_least,
                                   .depth = DEPTH, .backend = f->backend};
    ASSERT_OK(expert_cache_init(cache, &p, &err), &err);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    smoe_err err = {0};
    smoe_status status;
    rng r = {1};
    assert_non_null(f);
    alarm(WATCHDOG_S); /* an engine that hangs ends the test */
    test_dir_make(f->dir);
    snprintf(f->vault_path, sizeof f->vault_path, "%s/v.smoe", f->dir);
    snprintf(f->scout_path, sizeof f->scout_path, "%s.scout.safetensors", stem);
    write_vault(f);
    for (int i = 0; i < N_IDS; i++) {
        f->ids[i] = 1 + (int32_t)(rng_next(&r) % (N_VOCAB - 1));
    }
    open_engine(f, 0, NULL, &status, &err); /* in memory: what is right */
    ASSERT_OK(status, &err);
    ASSERT_OK(ask(f, &err), &err);
    assert_in_range(f->n_out, 3, N_OUT);
    memcpy(f->want, f->out, sizeof f->want);
    f->n_want = f->n_out;
    const smoe_engine_info *info = smoe_engine_get_info(f->engine);
    f->n_least = info->n_layer * info->n_expert_used;
    assert_true(f->n_least < info->n_records);
    close_engine(f);
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    close_engine(f);
    test_dir_remove(f->dir);
    free(f);
    alarm(0);
    return 0;
}

static void expect_right(struct fixture *f)
{
    smoe_err err;
    ASSERT_OK(ask(f, &err), &err);
    assert_int_equal(f->n_out, f->n_want);
    assert_memory_equal(f->out, f->want, f->n_want * sizeof *f->want);
}

static void set(struct fixture *f, fault_kind kind, uint32_t n_times, uint32_t amount)
{
    const fault_rule rule = {kind, 0, UINT64_MAX, n_times, amount};
    fault_aio_set(f->backend, &rule, n_times ? 1 : 0);
}

static void test_what_changes_nothing(void **state)
{
    struct fixture *f = *state;
    open_faulty(f);
    expect_right(f);
    set(f, FAULT_SHORT, FAULT_FOR_EVER, 5000);
    expect_right(f);
    set(f, FAULT_ERROR, 3, EIO);
    expect_right(f);
    set(f, FAULT_ERROR, 1000, EINTR);
    expect_right(f);
}

/* Reads that take a second, one and then several: late, and the same tokens. */
static void test_slow_reads(void **state)
{
    struct fixture *f = *state;
    open_faulty(f);
    for (uint32_t n = 1; n <= 6; n += 5) {
        uint64_t start_ns = clock_ns();
        set(f, FAULT_SLOW, n, 1000);
        expect_right(f);
        assert_true(clock_ns() - start_ns >= 1000000000u);
    }
}

/* Every attempt at every record fails, request after request, until the drive recovers. */
static void test_eio_for_ever(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    open_faulty(f);
    for (int i = 0; i < 20; i++) {
        set(f, FAULT_ERROR, FAULT_FOR_EVER, i % 4 ? EIO : ENXIO);
        ASSERT_FAILS(ask(f, &err), SMOE_IO, &err, strerror(i % 4 ? EIO : ENXIO));
        assert_non_null(strstr(err.text, f->vault_path));
        assert_non_null(strstr(err.text, "record blk."));
        assert_non_null(strstr(err.text, "at offset "));
        if (i % 5 == 0) {
            set(f, FAULT_ERROR, 0, 0);
            expect_right(f);
        }
    }
    set(f, FAULT_ERROR, 0, 0);
    expect_right(f);
}

/* A drive that delivers wrong bytes is found at a record's first read: of a new ring. */
static void test_wrong_bytes(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    open_faulty(f);
    set(f, FAULT_WRONG, FAULT_FOR_EVER, 0);
    for (int i = 0; i < 3; i++) {
        ASSERT_FAILS(ask(f, &err), SMOE_FORMAT, &err, "checksum");
        assert_non_null(strstr(err.text, f->vault_path));
    }
    set(f, FAULT_WRONG, 0, 0);
    expect_right(f);
}

/* Faults of every kind that is noticed, at random records, request after request. */
static void test_random_faults(void **state)
{
    struct fixture *f = *state;
    rng r = {21};
    uint32_t n_failed = 0;
    open_faulty(f);
    const vault *v = &f->engine->vault;
    for (int i = 0; i < 60; i++) {
        fault_rule rules[4];
        for (int k = 0; k < 4; k++) {
            static const fault_kind kinds[] = {FAULT_SHORT, FAULT_ERROR, FAULT_SLOW};
            static const uint32_t amounts[] = {7777, EIO, 3};
            uint64_t record = rng_next(&r) % ((uint64_t)v->n_layer * v->n_expert);
            uint32_t kind = rng_next(&r) % 3;
            uint32_t n_times = rng_next(&r) % 3 ? FAULT_FOR_EVER : 1 + rng_next(&r) % 4;
            uint64_t begin = v->record_offset[record];
            rules[k] = (fault_rule){kinds[kind], begin, begin + v->record_bytes, n_times,
                                    amounts[kind]};
        }
        fault_aio_set(f->backend, rules, 4);
        smoe_err err;
        smoe_status status = ask(f, &err);
        if (status != SMOE_OK) {
            assert_int_equal(status, SMOE_IO);
            assert_non_null(strstr(err.text, strerror(EIO)));
            n_failed++;
        } else {
            assert_int_equal(f->n_out, f->n_want);
            assert_memory_equal(f->out, f->want, f->n_want * sizeof *f->want);
        }
        set(f, FAULT_ERROR, 0, 0);
        if (i % 3 == 0) {
            expect_right(f);
        }
    }
    assert_in_range(n_failed, 1, 59);
}

/* Somebody cuts the file while the engine runs, and puts it back; in every way of reading. */
static void test_cut_short_while_running(void **state)
{
    struct fixture *f = *state;
    static const char *const ways[] = {"uring,direct", "uring,buffered", "threads,direct",
                                       "threads,buffered"};
    for (int i = 0; i < 4; i++) {
        smoe_err err = {0};
        smoe_status status;
        open_engine(f, f->n_least, ways[i], &status, &err);
        if (status == SMOE_UNSUPPORTED) {
            print_message("not here: --io %s\n", ways[i]);
            continue;
        }
        ASSERT_OK(status, &err);
        expect_right(f);
        for (int round = 0; round < 3; round++) {
            assert_int_equal(truncate(f->vault_path, round * 20000), 0);
            for (int k = 0; k < 3; k++) {
                ASSERT_FAILS(ask(f, &err), SMOE_IO, &err, "cut short after it was opened");
                assert_non_null(strstr(err.text, f->vault_path));
            }
            write_vault(f);
            expect_right(f);
        }
        close_engine(f);
    }
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        TEST(test_what_changes_nothing),
        TEST(test_slow_reads),
        TEST(test_eio_for_ever),
        TEST(test_wrong_bytes),
        TEST(test_random_faults),
        TEST(test_cut_short_while_running),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s STEM\n", argv[0]);
        return 2;
    }
    stem = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
