/* test_engine_oom.c: every allocation of opening an engine and answering a request, refused in
 * turn: each time one sentence, nothing leaked (a leak checker runs with this), and the next try
 * works.
 *
 *   test_engine_oom STEM */
#include "../support/test.h"

#include "base/mem.h"
#include "smoe/engine.h"

static char vault_path[512], scout_path[512];

static smoe_status whole_life(smoe_err *err)
{
    smoe_status status;
    smoe_engine *engine = NULL;
    smoe_session *session = NULL;
    smoe_result result;
    static const int32_t ids[] = {1, 2, 3};
    smoe_engine_params params = {.vault_path = vault_path, .scout_path = scout_path, .n_ctx = 32,
                                 .n_threads = 3};
    smoe_session_params session_params = {.seed = 1};
    smoe_request request = {.ids = ids, .n_ids = 3, .max_tokens = 2,
                            .sampling = smoe_sampling_defaults()};
    CHECK(smoe_engine_open(&params, &engine, err));
    CHECK(smoe_session_new(engine, &session_params, &session, err));
    CHECK(smoe_session_generate(session, &request, NULL, &result, err));
out:
    smoe_session_free(session);
    smoe_engine_close(engine);
    return status;
}

static void test_every_refusal(void **state)
{
    (void)state;
    smoe_err err = {0};
    ASSERT_OK(whole_life(&err), &err);
    uint64_t before = mem_alloc_count();
    ASSERT_OK(whole_life(&err), &err);
    uint64_t n_allocs = mem_alloc_count() - before;
    assert_true(n_allocs > 20);
    for (uint64_t nth = 1; nth <= n_allocs; nth++) {
        err = (smoe_err){0};
        before = mem_alloc_count();
        mem_fail_nth(nth);
        smoe_status status = whole_life(&err);
        mem_fail_nth(0);
        /* How many reads are tried at start is a matter of time: this life may be shorter. */
        if (status == SMOE_OK && mem_alloc_count() - before < nth) {
            continue;
        }
        if (status != SMOE_NOMEM) {
            fail_msg("allocation %llu of %llu refused: %s (%s)", (unsigned long long)nth,
                     (unsigned long long)n_allocs, smoe_status_name(status), err.text);
        }
        assert_int_equal(err.code, SMOE_NOMEM);
        assert_true(strlen(err.text) > 10);
    }
    ASSERT_OK(whole_life(&err), &err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_refusal)};
    if (argc != 2) {
        fprintf(stderr, "usage: %s STEM\n", argv[0]);
        return 2;
    }
    snprintf(vault_path, sizeof vault_path, "%s.smoe", argv[1]);
    snprintf(scout_path, sizeof scout_path, "%s.scout.safetensors", argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
