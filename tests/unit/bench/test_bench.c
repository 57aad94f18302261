/* test_bench.c: synthetic models of every type run, and rows make sense. Never how fast. */
#include "../../support/test.h"

#include <math.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/forecast.h"
#include "bench/limits.h"
#include "bench/synthetic.h"

struct fixture {
    char dir[64];
    pool *threads;
};

static int make(void **state)
{
    static struct fixture f;
    smoe_err err;
    test_dir_make(f.dir);
    ASSERT_OK(pool_new(2, &f.threads, &err), &err);
    *state = &f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    pool_free(f->threads);
    test_dir_remove(f->dir);
    return 0;
}

static void plan(struct fixture *f, dtype experts, dtype dense, synthetic *s)
{
    smoe_err err;
    model_shape shape;
    ASSERT_OK(model_shape_get("smoe-tiny", 2, &shape, &err), &err);
    ASSERT_OK(synthetic_init(s, &shape, experts, dense, f->dir, &err), &err);
}

struct rows {
    bench_row rows[4];
    size_t n;
    bool cancel;
};

static void keep_row(void *ctx, const bench_row *row)
{
    struct rows *r = ctx;
    assert_true(r->n < 4);
    r->rows[r->n++] = *row;
}

static bool is_cancelled(void *ctx)
{
    return ((struct rows *)ctx)->cancel;
}

static const uint32_t N_PROMPTS[] = {20, 300}, N_DEPTHS[] = {7};

static bench_options options_of(const synthetic *s)
{
    return (bench_options){
        .engine = {.vault_path = s->vault_path, .scout_path = s->scout_path, .n_threads = 2},
        .n_prompts = N_PROMPTS, .n_n_prompts = 2, .n_depths = N_DEPTHS, .n_n_depths = 1,
        .n_gen = 5, .n_repeat = 2};
}

static void check_row(const bench_row *row)
{
    const double positive[] = {row->seconds, row->weight_bytes_s, row->ops_s, row->dram_bytes_s,
                               row->ttft_seconds, row->int_ops_s, row->float_ops_s,
                               row->bound_fraction};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++) {
        assert_true(isfinite(positive[i]) && positive[i] > 0);
    }
    assert_true(row->hit_rate == 1); /* all of it fits */
    assert_true(row->read_bytes_per_token == 0 && row->read_bytes_s == 0);
    assert_true(row->drive_bytes_s == 0);
    assert_int_equal(row->n_threads, 2);
}

static void test_rows(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    synthetic s;
    struct rows r = {0};
    const bench_events events = {&r, keep_row, is_cancelled};
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    assert_false(s.is_written);
    ASSERT_OK(synthetic_write(&s, f->threads, NULL, &err), &err);
    bench_options o = options_of(&s);
    ASSERT_OK(bench_run(&o, &events, &err), &err);
    assert_int_equal(r.n, 3);
    for (size_t i = 0; i < 3; i++) {
        check_row(&r.rows[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(r.rows[i].n_prompt, N_PROMPTS[i]);
        assert_int_equal(r.rows[i].n_gen, 0);
        assert_true(r.rows[i].prefill_tok_s > 0 && r.rows[i].decode_tok_s == 0);
        assert_string_equal(r.rows[i].bound, "compute");
    }
    assert_int_equal(r.rows[2].n_ctx, 7);
    assert_int_equal(r.rows[2].n_gen, 5);
    assert_true(r.rows[2].decode_tok_s > 0 && r.rows[2].prefill_tok_s == 0);
    assert_true(r.rows[2].kv_bytes_s > 0);
    assert_string_equal(r.rows[2].bound, "memory");
    r.cancel = true;
    ASSERT_FAILS(bench_run(&o, &events, &err), SMOE_CANCELLED, &err, "interrupted");
    synthetic_fini(&s);
}

/* A ring of half the experts: a law or a trace chooses, records are read, and what was read is
 * told. What a run records is what it replays. */
static void test_streamed_rows(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    synthetic s;
    trace recorded[2];
    const routing_law *const laws[] = {NULL, &ROUTING_UNIFORM, &ROUTING_STICKY};
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    ASSERT_OK(synthetic_write(&s, f->threads, NULL, &err), &err);
    for (int i = 0; i < 3; i++) {
        struct rows r = {0};
        const bench_events events = {&r, keep_row, NULL};
        bench_options o = options_of(&s);
        o.ring_fraction = 0.5;
        o.law = laws[i];
        o.record = &recorded[0];
        o.n_n_prompts = 1;
        ASSERT_OK(bench_run(&o, &events, &err), &err);
        assert_int_equal(r.n, 2);
        for (size_t k = 0; k < 2; k++) {
            const bench_row *row = &r.rows[k];
            assert_int_equal(row->n_ring, 12);
            assert_int_equal(row->n_records, 24);
            assert_true(row->hit_rate >= 0 && row->hit_rate <= 1);
            if (o.law) { /* greedy random weights may repeat the same experts for ever */
                assert_true(row->read_bytes_per_token > 0 && row->read_bytes_s > 0);
            }
            assert_true(row->bound_fraction > 0);
        }
        /* the prompt, then the depth's last id and the generated ones but the last */
        assert_int_equal(recorded[0].n_tokens, 20 + 1 + 5);
        assert_int_equal(recorded[0].n_passes, 1 + 1 + 5);
        o.law = NULL;
        o.replay = &recorded[0];
        o.record = &recorded[1];
        o.n_repeat = 1;
        ASSERT_OK(bench_run(&o, &events, &err), &err);
        /* Tokens 0 .. 19 went to the run that is not counted, 20 .. 25 and 0 .. 13 to this one. */
        size_t n_token = 2 * 3 * sizeof(uint16_t);
        assert_memory_equal(trace_at(&recorded[1], 0, 0), trace_at(&recorded[0], 20, 0),
                            6 * n_token);
        assert_memory_equal(trace_at(&recorded[1], 6, 0), trace_at(&recorded[0], 0, 0),
                            14 * n_token);
        trace_fini(&recorded[0]);
        trace_fini(&recorded[1]);
    }
    synthetic_fini(&s);
}

static void test_a_trace_of_another_shape(void **state)
{
    struct fixture *f = *state;
    const trace_shape other = {2, 12, 4};
    struct rows r = {0};
    const bench_events events = {&r, keep_row, NULL};
    smoe_err err;
    synthetic s;
    trace t;
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    ASSERT_OK(synthetic_write(&s, f->threads, NULL, &err), &err);
    bench_options o = options_of(&s);
    trace_init(&t, &other, NULL);
    ASSERT_OK(trace_add_pass(&t, 1, &err), &err);
    o.replay = &t;
    ASSERT_FAILS(bench_run(&o, &events, &err), SMOE_MISMATCH, &err, "4 of 12");
    trace_fini(&t);
    synthetic_fini(&s);
}

/* Counted by hand: per layer q, o 512 x 256, k, v 256 x 256, a router 12 x 256 of bf16, 3 experts;
 * the head is the embedding. */
static void test_work(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    synthetic s;
    model_work w;
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    ASSERT_OK(synthetic_write(&s, f->threads, NULL, &err), &err);
    ASSERT_OK(model_work_of(s.vault_path, s.scout_path, &w, &err), &err);
    uint64_t dense = 2 * 512 * 256 + 2 * 256 * 256, router = 12 * 256;
    assert_int_equal(w.layers_weights, 2 * (dense + router));
    assert_int_equal(w.layers_bytes, 2 * (dense / 32 * 34 + router * 2));
    assert_int_equal(w.head_weights, 2048 * 256);
    assert_int_equal(w.head_bytes, 2048 * 256 / 32 * 34);
    assert_int_equal(w.expert_weights, 3 * 256 * 256);
    assert_int_equal(w.expert_bytes, 3 * 256 * 144);
    assert_int_equal(w.n_experts_per_token, 2 * 3);
    assert_int_equal(w.kv_elems, 2 * 2 * 4 * 64);
    model_work planned = model_sizes_work(&s.config, &s.sizes); /* known before the files are */
    assert_int_equal(planned.layers_bytes, w.layers_bytes);
    assert_int_equal(planned.layers_weights, w.layers_weights);
    assert_int_equal(planned.head_bytes, w.head_bytes);
    assert_int_equal(planned.expert_bytes, w.expert_bytes);
    assert_int_equal(planned.record_bytes, w.record_bytes);
    assert_int_equal(planned.n_experts_per_token, w.n_experts_per_token);
    synthetic_fini(&s);
}

/* A forecast from given rates, by hand. */
static void test_forecast(void **state)
{
    struct fixture *f = *state;
    const machine m = {.dram_bytes_s = 1e9, .ops_s = 1e9, .drive_bytes_s = 1e6, .n_threads = 1,
                       .available_bytes = UINT64_C(1) << 33};
    smoe_err err;
    synthetic s;
    forecast all, part;
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    model_work w = model_sizes_work(&s.config, &s.sizes);
    forecast_question q = {.config = &s.config, .work = &w, .scout_bytes = s.sizes.scout_bytes,
                           .n_ctx = 64, .n_prompt = 64, .n_depth = 10};
    ASSERT_OK(forecast_make(&q, &m, &all, &err), &err);
    assert_true(all.fits && all.hit_rate == 1 && all.read_bytes_per_token == 0);
    double bytes = (double)(model_work_token_bytes(&w) + w.head_bytes + 2 * w.kv_elems * 10);
    assert_float_equal(all.decode_tok_s * bytes, 1e9 * FORECAST_OF_DRAM, 1e3);
    assert_string_equal(all.decode_bound, "memory");
    assert_string_equal(all.prompt_bound, "compute");
    q.mem_limit_bytes = all.needed_bytes + 4 * w.record_bytes;
    ASSERT_OK(forecast_make(&q, &m, &part, &err), &err);
    assert_in_range(part.memory.budget.n_ring, 6, 6 + 4); /* a longer pass may take some */
    assert_true(part.fits && part.hit_rate < 1 && part.decode_tok_s < all.decode_tok_s);
    assert_string_equal(part.decode_bound, "disk");
    assert_string_equal(part.prompt_bound, "disk");
    double all_records = 24 * (double)w.record_bytes / (1e6 * FORECAST_OF_DRIVE);
    assert_true(part.ttft_seconds > all_records / 2 && part.ttft_seconds < 2 * all_records);
    q.mem_limit_bytes = all.needed_bytes;
    ASSERT_OK(forecast_make(&q, &m, &part, &err), &err);
    assert_true(part.fits);
    q.mem_limit_bytes--;
    ASSERT_OK(forecast_make(&q, &m, &part, &err), &err);
    assert_false(part.fits);
    assert_int_equal(part.needed_bytes, all.needed_bytes);
    q.n_ctx = 1025;
    ASSERT_FAILS(forecast_make(&q, &m, &part, &err), SMOE_RANGE, &err, "1025");
    synthetic_fini(&s);
}

/* What is there is used; what is something else is neither used nor touched. */
static void test_files_are_used_again(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    synthetic s, other;
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    ASSERT_OK(synthetic_write(&s, f->threads, NULL, &err), &err);
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &other);
    assert_true(other.is_written);
    synthetic_fini(&other);
    plan(f, DTYPE_Q4_K, DTYPE_Q6_K, &other);
    assert_false(other.is_written);
    assert_int_equal(rename(s.vault_path, other.vault_path), 0);
    assert_int_equal(rename(s.scout_path, other.scout_path), 0);
    synthetic_fini(&other);
    ASSERT_FAILS(synthetic_init(&other, &s.shape, DTYPE_Q4_K, DTYPE_Q6_K, f->dir, &err),
                 SMOE_MISMATCH, &err, "--dir");
    synthetic_fini(&s);
}

/* The engine takes the files, checksums and all, and logits are finite. */
static void answer(const synthetic *s)
{
    smoe_err err;
    smoe_engine *e;
    smoe_session *session;
    smoe_result result;
    static const int32_t ids[] = {1, 20, 300, 1000, 2047};
    const smoe_engine_params params = {.vault_path = s->vault_path, .scout_path = s->scout_path,
                                       .n_threads = 2};
    const smoe_session_params session_params = {.seed = 1};
    const smoe_request request = {.ids = ids, .n_ids = 5, .max_tokens = 4,
                                  .sampling = {.top_p = 1, .top_k = 1, .rep_penalty = 1}};
    ASSERT_OK(smoe_engine_open(&params, &e, &err), &err);
    ASSERT_OK(smoe_session_new(e, &session_params, &session, &err), &err);
    ASSERT_OK(smoe_session_generate(session, &request, NULL, &result, &err), &err);
    assert_int_equal(result.n_generated, 4);
    smoe_session_free(session);
    smoe_engine_close(e);
}

static void test_every_type(void **state)
{
    struct fixture *f = *state;
    static const dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0, DTYPE_Q6_K,
                                  DTYPE_Q5_K, DTYPE_Q4_K, DTYPE_Q4_0, DTYPE_Q3_K, DTYPE_Q2_K};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        smoe_err err;
        synthetic s;
        plan(f, types[i], types[i], &s);
        ASSERT_OK(synthetic_write(&s, f->threads, NULL, &err), &err);
        answer(&s);
        synthetic_fini(&s);
    }
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void test_interrupted_writing_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    const synthetic_events events = {NULL, NULL, always};
    smoe_err err;
    synthetic s;
    plan(f, DTYPE_Q4_K, DTYPE_Q8_0, &s);
    ASSERT_FAILS(synthetic_write(&s, f->threads, &events, &err), SMOE_CANCELLED, &err,
                 "interrupted");
    assert_false(file_exists(s.vault_path) || file_exists(s.scout_path));
    synthetic_fini(&s);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    model_shape shape;
    synthetic s;
    limits *l;
    ASSERT_FAILS(model_shape_get("gpt", 0, &shape, &err), SMOE_USAGE, &err, "qwen3-30b-a3b");
    ASSERT_OK(model_shape_get("qwen3-30b-a3b", 0, &shape, &err), &err);
    assert_int_equal(shape.n_layer, 48);
    shape.n_ff_exp = 96; /* whole panels, but no whole blocks of 256 */
    ASSERT_FAILS(synthetic_init(&s, &shape, DTYPE_Q4_K, DTYPE_Q8_0, f->dir, &err), SMOE_USAGE, &err,
                 "multiple of 256");
    ASSERT_FAILS(limits_new("mmx", 1, &l, &err), SMOE_USAGE, &err, "mmx");
    bench_options o = options_of(&(synthetic){0});
    ASSERT_FAILS(bench_check(&o, 299, &err), SMOE_USAGE, &err, "300 tokens");
    ASSERT_OK(bench_check(&o, 300, &err), &err);
    o.engine.isa = "mmx";
    ASSERT_FAILS(bench_check(&o, 300, &err), SMOE_USAGE, &err, "mmx");
}

/* Whichever allocation is refused, that is what is said, and nothing is leaked. */
static void test_refused_memory(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    synthetic s;
    struct rows r = {0};
    const bench_events events = {&r, keep_row, NULL};
    model_shape shape;
    smoe_status status = SMOE_NOMEM;
    ASSERT_OK(model_shape_get("smoe-tiny", 1, &shape, &err), &err);
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        mem_fail_nth(nth);
        status = synthetic_init(&s, &shape, DTYPE_Q4_K, DTYPE_Q8_0, f->dir, &err);
        if (status == SMOE_OK) {
            status = synthetic_write(&s, f->threads, NULL, &err);
        }
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        if (status != SMOE_OK) {
            synthetic_fini(&s);
        }
    }
    bench_options o = options_of(&s);
    o.n_repeat = o.n_n_prompts = 1;
    o.law = &ROUTING_STICKY;
    trace recorded = {0};
    o.record = &recorded;
    status = SMOE_NOMEM;
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        mem_fail_nth(nth);
        r.n = 0;
        status = bench_run(&o, &events, &err);
        mem_fail_nth(0);
        trace_fini(&recorded);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
    }
    synthetic_fini(&s);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_rows),
        WITH_DIR(test_streamed_rows),
        WITH_DIR(test_a_trace_of_another_shape),
        WITH_DIR(test_work),
        WITH_DIR(test_forecast),
        WITH_DIR(test_files_are_used_again),
        WITH_DIR(test_every_type),
        WITH_DIR(test_interrupted_writing_leaves_nothing),
        WITH_DIR(test_refusals),
        WITH_DIR(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
