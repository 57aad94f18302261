/* test_session.c: one timeline over a small model on disk: prefix reuse, limits, cancelling, seeds,
 * and that decoding allocates nothing.
 *
 *   test_session STEM   a golden checkpoint of 3 layers, 8 experts and 288 tokens, shattered */
#include "../../support/test.h"

#include "base/mem.h"
#include "smoe/engine.h"

enum { N_VOCAB = 288, N_CTX = 96, NEVER = 0 };

static char vault_path[512], scout_path[512];

struct fixture {
    smoe_engine *engine;
    smoe_session *session;
    int32_t out[N_CTX + 1];
    uint32_t n_out, cancel_at, n_progress;
    uint64_t n_asked, cancel_ask;
    size_t last_done, last_total;
    smoe_logprobs logprobs[N_CTX + 1];
    uint32_t n_logprobs;
};

static smoe_status open_engine(smoe_engine_params params, smoe_engine **out, smoe_err *err)
{
    params.vault_path = vault_path;
    params.scout_path = scout_path;
    return smoe_engine_open(&params, out, err);
}

static int make(void **state)
{
    static const int32_t eos = NEVER; /* so that answers have the length asked for */
    struct fixture *f = calloc(1, sizeof *f);
    smoe_err err;
    ASSERT_OK(open_engine((smoe_engine_params){.n_ctx = N_CTX, .n_threads = 2}, &f->engine, &err),
              &err);
    smoe_session_params params = {.seed = 1337, .eos_ids = &eos, .n_eos_ids = 1};
    ASSERT_OK(smoe_session_new(f->engine, &params, &f->session, &err), &err);
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    smoe_session_free(f->session);
    smoe_engine_close(f->engine);
    free(f);
    return 0;
}

static bool on_token(void *ctx, int32_t id)
{
    struct fixture *f = ctx;
    f->out[f->n_out++] = id;
    return f->n_out != f->cancel_at;
}

static void on_progress(void *ctx, size_t done, size_t total)
{
    struct fixture *f = ctx;
    f->n_progress++;
    assert_true(done <= total);
    f->last_done = done;
    f->last_total = total;
}

static void on_logprobs(void *ctx, const smoe_logprobs *logprobs)
{
    struct fixture *f = ctx;
    assert_int_equal(logprobs->chosen.id, f->out[f->n_out - 1]); /* after its token */
    f->logprobs[f->n_out - 1] = *logprobs;
    f->n_logprobs++;
}

static bool on_cancelled(void *ctx)
{
    struct fixture *f = ctx;
    return ++f->n_asked == f->cancel_ask;
}

static smoe_request greedy(const int32_t *ids, size_t n_ids, uint32_t max_tokens)
{
    return (smoe_request){.ids = ids, .n_ids = n_ids, .max_tokens = max_tokens,
                          .sampling = {.temperature = 0, .top_p = 1, .top_k = 1, .rep_penalty = 1}};
}

static smoe_status ask(struct fixture *f, smoe_request r, smoe_result *result, smoe_err *err)
{
    const smoe_events events = {f, on_token, on_progress, on_cancelled, on_logprobs};
    f->n_out = f->n_progress = f->n_logprobs = 0;
    f->n_asked = 0;
    return smoe_session_generate(f->session, &r, &events, result, err);
}

static void prompt(int32_t *ids, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        ids[i] = (int32_t)(1 + (i * 7919 + seed * 104729) % (N_VOCAB - 1));
    }
}

static void test_info(void **state)
{
    struct fixture *f = *state;
    const smoe_engine_info *info = smoe_engine_get_info(f->engine);
    assert_string_equal(info->architecture, "qwen3_moe");
    assert_int_equal(strlen(info->lineage), 32);
    assert_int_equal(info->n_vocab, N_VOCAB);
    assert_int_equal(info->n_ctx, N_CTX);
    assert_int_equal(info->n_records, (uint64_t)info->n_layer * info->n_expert);
    assert_int_equal(info->n_ring, info->n_records); /* small: wholly resident */
    assert_true(info->n_eos_ids >= 1 && info->n_threads == 2);
}

static void test_an_answer_and_its_numbers(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[20];
    prompt(ids, 20, 1);
    ASSERT_OK(ask(f, greedy(ids, 20, 30), &r, &err), &err);
    assert_int_equal(r.fin, SMOE_FIN_LENGTH);
    assert_int_equal(r.n_prompt, 20);
    assert_int_equal(r.n_cached, 0);
    assert_int_equal(r.n_generated, 30);
    assert_int_equal(f->n_out, 30);
    assert_true(r.n_expert_acquires > 0);
    assert_int_equal(r.bytes_read, 0); /* all was loaded when the engine was opened */
    assert_int_equal(r.n_expert_hits, r.n_expert_acquires);
    smoe_session_reset(f->session);
    ASSERT_OK(ask(f, greedy(ids, 20, 30), &r, &err), &err);
    assert_int_equal(r.n_cached, 0);
}

/* They are the model's own: no setting of the sampler changes them, and they change no answer. */
static void test_logprobs(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[20], plain[30];
    smoe_logprobs first;
    prompt(ids, 20, 1);
    smoe_request request = greedy(ids, 20, 30);
    ASSERT_OK(ask(f, request, &r, &err), &err);
    assert_int_equal(f->n_logprobs, 0);
    memcpy(plain, f->out, sizeof plain);
    request.has_logprobs = true;
    request.n_top_logprobs = 5;
    ASSERT_OK(ask(f, request, &r, &err), &err);
    assert_int_equal(r.n_decode_allocs, 0);
    assert_int_equal(f->n_logprobs, 30);
    assert_memory_equal(plain, f->out, sizeof plain);
    for (size_t i = 0; i < 30; i++) {
        const smoe_logprobs *l = &f->logprobs[i];
        assert_int_equal(l->n_top, 5);
        assert_int_equal(l->top[0].id, l->chosen.id);
        assert_true(l->top[0].logprob == l->chosen.logprob && l->chosen.logprob <= 0);
    }
    first = f->logprobs[0];
    smoe_session_reset(f->session);
    request.sampling = (smoe_sampling){.temperature = 5, .top_p = 0.9f, .top_k = 40,
                                       .rep_penalty = 2, .min_p = 0.1f};
    ASSERT_OK(ask(f, request, &r, &err), &err);
    assert_memory_equal(first.top, f->logprobs[0].top, 5 * sizeof *first.top);
    request.n_top_logprobs = SMOE_MAX_TOP_LOGPROBS + 1;
    assert_int_equal(ask(f, request, &r, &err), SMOE_RANGE);
}

static void test_decode_allocates_nothing(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[20];
    prompt(ids, 20, 2);
    ASSERT_OK(ask(f, greedy(ids, 20, 60), &r, &err), &err);
    assert_int_equal(r.n_decode_allocs, 0);
    smoe_request hot = greedy(ids, 20, 60);
    hot.sampling = smoe_sampling_defaults();
    uint64_t before = mem_alloc_count();
    ASSERT_OK(ask(f, hot, &r, &err), &err);
    assert_int_equal(r.n_decode_allocs, 0);
    assert_int_equal(mem_alloc_count() - before, 0); /* nor does prefilling */
}

static void test_prefix_is_kept_and_cut(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[60], want[10];
    prompt(ids, 60, 3);
    ASSERT_OK(ask(f, greedy(ids, 30, 10), &r, &err), &err);
    memcpy(want, f->out, sizeof want);

    ASSERT_OK(ask(f, greedy(ids, 30, 10), &r, &err), &err); /* the same again */
    assert_int_equal(r.n_cached, 29);
    assert_memory_equal(f->out, want, sizeof want);

    memcpy(ids + 30, want, sizeof want); /* the answer becomes part of the conversation */
    ASSERT_OK(ask(f, greedy(ids, 50, 1), &r, &err), &err);
    assert_int_equal(r.n_cached, 39); /* the last token was emitted, not yet run */

    ids[12] = ids[12] == 5 ? 6 : 5; /* an edit: only what follows is run again */
    ASSERT_OK(ask(f, greedy(ids, 50, 10), &r, &err), &err);
    assert_int_equal(r.n_cached, 12);
    memcpy(want, f->out, sizeof want);
    smoe_session_reset(f->session);
    ASSERT_OK(ask(f, greedy(ids, 50, 10), &r, &err), &err);
    assert_int_equal(r.n_cached, 0);
    assert_memory_equal(f->out, want, sizeof want);

    ASSERT_OK(ask(f, greedy(ids, 20, 1), &r, &err), &err); /* truncated: only its last id is run */
    assert_int_equal(r.n_cached, 19);
    ASSERT_OK(ask(f, greedy(ids, 50, 10), &r, &err), &err);
    assert_int_equal(r.n_cached, 20);
    assert_memory_equal(f->out, want, sizeof want);
}

static void test_refusals_touch_nothing(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[N_CTX + 1], bad[3] = {1, 2, N_VOCAB}, negative[1] = {-1};
    prompt(ids, N_CTX + 1, 4);
    ASSERT_OK(ask(f, greedy(ids, 30, 1), &r, &err), &err);
    ASSERT_FAILS(ask(f, greedy(ids, 0, 1), &r, &err), SMOE_EMPTY, &err, "no ids");
    ASSERT_FAILS(ask(f, greedy(bad, 3, 1), &r, &err), SMOE_RANGE, &err, "id 288 at place 2");
    ASSERT_FAILS(ask(f, greedy(negative, 1, 1), &r, &err), SMOE_RANGE, &err, "id -1");
    ASSERT_FAILS(ask(f, greedy(ids, 5, 0), &r, &err), SMOE_RANGE, &err, "max_tokens is 0");
    ASSERT_FAILS(ask(f, greedy(ids, 5, N_CTX + 1), &r, &err), SMOE_RANGE, &err, "max_tokens is 97");
    ASSERT_FAILS(ask(f, greedy(ids, N_CTX + 1, 1), &r, &err), SMOE_OVERFLOW, &err, "97 ids");
    ASSERT_OK(ask(f, greedy(ids, 31, 1), &r, &err), &err);
    assert_int_equal(r.n_cached, 30);
}

static void test_the_context_ends_an_answer(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[N_CTX];
    prompt(ids, N_CTX, 5);
    ASSERT_OK(ask(f, greedy(ids, N_CTX, 5), &r, &err), &err);
    assert_int_equal(r.fin, SMOE_FIN_LENGTH);
    assert_int_equal(r.n_generated, 1);
    ASSERT_OK(ask(f, greedy(ids, N_CTX - 2, N_CTX), &r, &err), &err);
    assert_int_equal(r.n_generated, 3);
}

static void test_cancel_by_token(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[40], want[10];
    prompt(ids, 40, 6);
    ASSERT_OK(ask(f, greedy(ids, 40, 10), &r, &err), &err);
    memcpy(want, f->out, sizeof want);
    f->cancel_at = 4;
    ASSERT_OK(ask(f, greedy(ids, 40, 10), &r, &err), &err);
    assert_int_equal(r.fin, SMOE_FIN_CANCEL);
    assert_int_equal(r.n_generated, 4);
    f->cancel_at = 0;
    ASSERT_OK(ask(f, greedy(ids, 40, 10), &r, &err), &err);
    assert_memory_equal(f->out, want, sizeof want);
}

/* Wherever a cancel strikes, between whichever two layers, the next answer is right. */
static void test_cancel_at_every_layer(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[40], want[6];
    prompt(ids, 40, 7);
    ASSERT_OK(ask(f, greedy(ids, 40, 6), &r, &err), &err);
    memcpy(want, f->out, sizeof want);
    uint64_t n_asks = f->n_asked;
    assert_true(n_asks >= 3 * 6); /* once per layer and pass at least */
    for (uint64_t at = 1; at <= n_asks; at++) {
        smoe_session_reset(f->session);
        f->cancel_ask = at;
        ASSERT_OK(ask(f, greedy(ids, 40, 6), &r, &err), &err);
        assert_int_equal(r.fin, SMOE_FIN_CANCEL);
        assert_memory_equal(f->out, want, f->n_out * sizeof *want);
        f->cancel_ask = 0;
        ASSERT_OK(ask(f, greedy(ids, 40, 6), &r, &err), &err);
        assert_memory_equal(f->out, want, sizeof want);
    }
}

static void test_seeds(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    int32_t ids[8], first[20], seeded[20];
    prompt(ids, 8, 8);
    smoe_request hot = greedy(ids, 8, 20);
    hot.sampling = (smoe_sampling){.temperature = 2, .top_p = 1, .top_k = 288, .rep_penalty = 1};
    ASSERT_OK(ask(f, hot, &r, &err), &err);
    memcpy(first, f->out, sizeof first);
    ASSERT_OK(ask(f, hot, &r, &err), &err);
    assert_memory_not_equal(f->out, first, sizeof first); /* the generator runs on */
    hot.has_seed = true;
    hot.seed = 99;
    ASSERT_OK(ask(f, hot, &r, &err), &err);
    memcpy(seeded, f->out, sizeof seeded);
    ASSERT_OK(ask(f, hot, &r, &err), &err);
    assert_memory_equal(f->out, seeded, sizeof seeded);
    hot.seed = 1337; /* a request seeded as the session was gives the session's first answer */
    ASSERT_OK(ask(f, hot, &r, &err), &err);
    assert_memory_equal(f->out, first, sizeof first);
}

static void test_end_tokens(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    smoe_session *s;
    int32_t ids[10];
    prompt(ids, 10, 9);
    ASSERT_OK(ask(f, greedy(ids, 10, 20), &r, &err), &err);
    int32_t eos[2] = {NEVER, f->out[7]};
    uint32_t first = 0;
    while (f->out[first] != eos[1]) {
        first++;
    }
    smoe_session_params params = {.seed = 1, .eos_ids = eos, .n_eos_ids = 2};
    ASSERT_OK(smoe_session_new(f->engine, &params, &s, &err), &err);
    smoe_request request = greedy(ids, 10, 20);
    ASSERT_OK(smoe_session_generate(s, &request, NULL, &r, &err), &err);
    assert_int_equal(r.fin, SMOE_FIN_STOP);
    assert_int_equal(r.n_generated, first); /* the end token itself is not emitted */
    smoe_session_free(s);
    eos[0] = N_VOCAB;
    ASSERT_FAILS(smoe_session_new(f->engine, &params, &s, &err), SMOE_RANGE, &err, "288");
}

static void test_max_suffix(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    smoe_session *s;
    int32_t ids[20];
    prompt(ids, 20, 10);
    smoe_session_params params = {.seed = 1, .max_suffix = 8};
    ASSERT_OK(smoe_session_new(f->engine, &params, &s, &err), &err);
    smoe_request request = greedy(ids, 9, 1);
    ASSERT_FAILS(smoe_session_generate(s, &request, NULL, &r, &err), SMOE_SUFFIX, &err,
                 "9 new ids");
    request.n_ids = 8;
    ASSERT_OK(smoe_session_generate(s, &request, NULL, &r, &err), &err);
    request.n_ids = 16;
    ASSERT_OK(smoe_session_generate(s, &request, NULL, &r, &err), &err);
    smoe_session_free(s);
}

struct rows {
    size_t n;
    int32_t best;
};

static smoe_status count_row(void *ctx, size_t position, const float *logits, smoe_err *err)
{
    struct rows *rows = ctx;
    (void)err;
    assert_int_equal(position, rows->n++);
    rows->best = 0;
    for (int32_t v = 1; v < N_VOCAB; v++) {
        rows->best = logits[v] > logits[rows->best] ? v : rows->best;
    }
    return SMOE_OK;
}

static smoe_status refuse_row(void *ctx, size_t position, const float *logits, smoe_err *err)
{
    (void)ctx, (void)logits;
    return position < 2 ? SMOE_OK : err_set(err, SMOE_IO, "the disk is full");
}

static void test_logits(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    smoe_result r;
    struct rows rows = {0};
    int32_t ids[25];
    prompt(ids, 25, 11);
    ASSERT_OK(smoe_session_logits(f->session, ids, 25, count_row, &rows, &err), &err);
    assert_int_equal(rows.n, 25);
    ASSERT_OK(ask(f, greedy(ids, 25, 1), &r, &err), &err);
    assert_int_equal(f->out[0], rows.best);
    ASSERT_FAILS(smoe_session_logits(f->session, ids, 25, refuse_row, NULL, &err), SMOE_IO, &err,
                 "the disk is full");
    ASSERT_FAILS(smoe_session_logits(f->session, ids, 0, count_row, &rows, &err), SMOE_EMPTY, &err,
                 "no ids");
}

static void test_engine_refusals(void **state)
{
    (void)state;
    smoe_engine *e = NULL;
    smoe_err err;
    ASSERT_FAILS(open_engine((smoe_engine_params){.n_ctx = 100000}, &e, &err), SMOE_RANGE, &err,
                 "max_position_embeddings");
    ASSERT_FAILS(open_engine((smoe_engine_params){.isa = "mmx"}, &e, &err), SMOE_USAGE, &err,
                 "mmx");
    ASSERT_FAILS(open_engine((smoe_engine_params){.n_ring = 1}, &e, &err), SMOE_RANGE, &err,
                 "give at least");
    ASSERT_FAILS(open_engine((smoe_engine_params){.mem_limit_bytes = 1 << 20}, &e, &err),
                 SMOE_RANGE, &err, "--mem-limit");
    assert_null(e);
    smoe_engine_close(NULL);
}

#define WITH_ENGINE(f) cmocka_unit_test_setup_teardown(f, make, clean)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_ENGINE(test_info),
        WITH_ENGINE(test_an_answer_and_its_numbers),
        WITH_ENGINE(test_logprobs),
        WITH_ENGINE(test_decode_allocates_nothing),
        WITH_ENGINE(test_prefix_is_kept_and_cut),
        WITH_ENGINE(test_refusals_touch_nothing),
        WITH_ENGINE(test_the_context_ends_an_answer),
        WITH_ENGINE(test_cancel_by_token),
        WITH_ENGINE(test_cancel_at_every_layer),
        WITH_ENGINE(test_seeds),
        WITH_ENGINE(test_end_tokens),
        WITH_ENGINE(test_max_suffix),
        WITH_ENGINE(test_logits),
        cmocka_unit_test(test_engine_refusals),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s STEM\n", argv[0]);
        return 2;
    }
    snprintf(vault_path, sizeof vault_path, "%s.smoe", argv[1]);
    snprintf(scout_path, sizeof scout_path, "%s.scout.safetensors", argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
