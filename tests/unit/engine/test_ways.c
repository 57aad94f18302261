/* test_ways.c: whatever reads the experts, and however few of them fit, the logits are the same
 * bits (design A4): io_uring or threads, direct or buffered, any number of reads at a time, every
 * ring from the floor up to the whole vault, any number of threads. Then configurations at random;
 * the seed is printed, and SMOE_SEED repeats a run.
 *
 *   test_ways STEM   a golden checkpoint of 288 tokens, shattered */
#include "../../support/test.h"

#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "smoe/engine.h"

enum { N_VOCAB = 288, N_IDS = 20, N_CTX = 32, N_RANDOM = 12 };

static char vault_path[512], scout_path[512];
static int32_t ids[N_IDS];
static float want[N_IDS][N_VOCAB];
static uint32_t ring_least, n_records;

static smoe_status take_row(void *ctx, size_t position, const float *logits, smoe_err *err)
{
    float (*rows)[N_VOCAB] = ctx;
    (void)err;
    memcpy(rows[position], logits, sizeof rows[position]);
    return SMOE_OK;
}

static smoe_engine_params params_of(uint32_t n_ring, const char *io, uint32_t n_workers,
                                    uint32_t n_threads)
{
    return (smoe_engine_params){.vault_path = vault_path, .scout_path = scout_path, .n_ctx = N_CTX,
                                .n_threads = n_threads, .n_ring = n_ring, .n_workers = n_workers,
                                .io = io, .kv_type = SMOE_KV_F32};
}

/* false: this system refuses the way of reading; anything else but success fails. */
static bool logits_of(const smoe_engine_params *p, uint32_t n_spec, float rows[N_IDS][N_VOCAB],
                      smoe_engine_info *info)
{
    smoe_err err = {0};
    smoe_engine *engine = NULL;
    smoe_session *session = NULL;
    const smoe_session_params session_params = {.n_spec = n_spec};
    smoe_status status = smoe_engine_open(p, &engine, &err);
    if (status == SMOE_UNSUPPORTED && p->io) {
        assert_int_equal(strncmp(err.text, "--io ", 5), 0);
        return false;
    }
    ASSERT_OK(status, &err);
    ASSERT_OK(smoe_session_new(engine, &session_params, &session, &err), &err);
    memset(rows, 0, N_IDS * sizeof rows[0]);
    ASSERT_OK(smoe_session_logits(session, ids, N_IDS, take_row, rows, &err), &err);
    *info = *smoe_engine_get_info(engine);
    smoe_session_free(session);
    smoe_engine_close(engine);
    return true;
}

static void check(const smoe_engine_params *p, uint32_t n_spec)
{
    static float found[N_IDS][N_VOCAB];
    smoe_engine_info info;
    if (!logits_of(p, n_spec, found, &info)) {
        print_message("not here: --io %s\n", p->io);
    } else if (memcmp(found, want, sizeof want) != 0) {
        fail_msg("other logits: --io %s --ring %u --workers %u --threads %u --spec %u",
                 p->io ? p->io : "by trial", p->n_ring, p->n_workers, p->n_threads, n_spec);
    } else if (p->n_ring) {
        assert_int_equal(info.n_ring, p->n_ring);
    }
}

static int find_what_is_right(void **state)
{
    (void)state;
    rng r = {3};
    smoe_engine_info info;
    const smoe_engine_params p = params_of(0, NULL, 0, 1);
    for (int i = 0; i < N_IDS; i++) {
        ids[i] = (int32_t)(rng_next(&r) % N_VOCAB);
    }
    assert_true(logits_of(&p, 0, want, &info));
    n_records = (uint32_t)info.n_records;
    assert_int_equal(info.n_ring, n_records); /* resident */
    ring_least = info.n_layer * info.n_expert_used;
    assert_in_range(ring_least, 2, n_records - 1);
    return 0;
}

static const char *const ways[] = {"uring,direct", "uring,buffered", "threads,direct",
                                   "buffered,threads", "uring", "threads", "direct", "buffered"};
enum { N_WAYS = sizeof ways / sizeof *ways };

/* The floor, and everything in memory: both are read in the way that is forced. */
static void test_every_way(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        smoe_engine_params p = params_of(ring_least, ways[i], 0, 2);
        check(&p, 0);
        p.n_ring = n_records;
        check(&p, 0);
    }
}

static void test_every_ring(void **state)
{
    (void)state;
    for (uint32_t n_ring = ring_least; n_ring <= n_records; n_ring++) {
        const smoe_engine_params p = params_of(n_ring, NULL, 0, 2);
        check(&p, 0);
    }
}

static void test_every_number_of_workers(void **state)
{
    (void)state;
    static const uint32_t n_workers[] = {1, 2, 3, 7, 8, 31, 64, 256};
    for (size_t i = 0; i < sizeof n_workers / sizeof *n_workers; i++) {
        smoe_engine_params p = params_of(ring_least + 1, "threads", n_workers[i], 2);
        check(&p, 0);
        p.io = "uring";
        check(&p, 0);
    }
}

static void test_random_configurations(void **state)
{
    (void)state;
    const char *given = getenv("SMOE_SEED");
    rng r = {given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)};
    print_message("SMOE_SEED=%llu\n", (unsigned long long)r.state);
    for (int i = 0; i < N_RANDOM; i++) {
        uint32_t n_ring = ring_least + (uint32_t)(rng_next(&r) % (n_records - ring_least + 1));
        const char *io = ways[rng_next(&r) % N_WAYS];
        uint32_t n_workers = (uint32_t)(rng_next(&r) % 20);
        uint32_t n_threads = 1 + (uint32_t)(rng_next(&r) % 4);
        const smoe_engine_params p = params_of(n_ring, io, n_workers, n_threads);
        check(&p, (uint32_t)(rng_next(&r) % 5));
    }
}

static void test_no_way(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ",", "uring,", "uring,threads", "direct,direct", "fast",
                                      "uring,direct,threads", "Uring", "direct ,uring"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        smoe_err err = {0};
        smoe_engine *engine = NULL;
        const smoe_engine_params p = params_of(0, bad[i], 0, 1);
        ASSERT_FAILS(smoe_engine_open(&p, &engine, &err), SMOE_USAGE, &err, "--io takes");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_every_ring),
        cmocka_unit_test(test_every_number_of_workers),
        cmocka_unit_test(test_random_configurations),
        cmocka_unit_test(test_no_way),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s STEM\n", argv[0]);
        return 2;
    }
    snprintf(vault_path, sizeof vault_path, "%s.smoe", argv[1]);
    snprintf(scout_path, sizeof scout_path, "%s.scout.safetensors", argv[1]);
    return cmocka_run_group_tests(tests, find_what_is_right, NULL);
}
