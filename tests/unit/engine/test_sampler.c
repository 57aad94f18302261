/* test_sampler.c: design A3, step by step. */
#include "../../support/test.h"

#include <math.h>

#include "engine/sampler.h"

enum { N_VOCAB = 1500 };

static float logits[N_VOCAB];

static sampler new_sampler(const int32_t *exempt, size_t n_exempt)
{
    sampler s;
    smoe_err err;
    ASSERT_OK(sampler_init(&s, kernels_get(NULL), N_VOCAB, exempt, n_exempt, &err), &err);
    return s;
}

static void flat(float value)
{
    for (int i = 0; i < N_VOCAB; i++) {
        logits[i] = value;
    }
}

static smoe_sampling greedy(float penalty)
{
    return (smoe_sampling){.temperature = 0, .top_p = 1, .top_k = 1, .rep_penalty = penalty};
}

static void test_greedy_ties_go_to_the_lowest_id(void **state)
{
    (void)state;
    sampler s = new_sampler(NULL, 0);
    rng r = {1};
    smoe_sampling how = greedy(1);
    flat(-5);
    assert_int_equal(sampler_next(&s, &how, logits, NULL, 0, 0, &r), 0);
    flat(-5);
    logits[700] = logits[900] = 3;
    assert_int_equal(sampler_next(&s, &how, logits, NULL, 0, 0, &r), 700);
    assert_true(r.state == 1); /* greedy draws nothing */
    how.temperature = 0.99e-4f;
    assert_int_equal(sampler_next(&s, &how, logits, NULL, 0, 0, &r), 700);
    assert_true(r.state == 1);
    sampler_fini(&s);
}

static void test_penalty(void **state)
{
    (void)state;
    static const int32_t exempt[] = {5, -1, 1000000};
    const int32_t stream[] = {3, 3, 4, 5, 3};
    sampler s = new_sampler(exempt, 3);
    rng r = {1};
    smoe_sampling how = greedy(2);
    flat(1);
    logits[3] = 8;
    logits[4] = -8;
    logits[5] = 3;
    logits[6] = 3.5f;
    sampler_next(&s, &how, logits, stream, 5, 0, &r);
    assert_true(logits[3] == 4);   /* positive: divided, and once although it came three times */
    assert_true(logits[4] == -16); /* negative: multiplied */
    assert_true(logits[5] == 3);   /* exempt */
    assert_true(logits[6] == 3.5f);
    how.rep_penalty = 1;
    sampler_next(&s, &how, logits, stream, 5, 0, &r);
    assert_true(logits[3] == 4);
    sampler_fini(&s);
}

static void test_penalty_window(void **state)
{
    (void)state;
    int32_t stream[SAMPLER_WINDOW + 1];
    sampler s = new_sampler(NULL, 0);
    rng r = {1};
    smoe_sampling how = greedy(2);
    for (int i = 0; i <= SAMPLER_WINDOW; i++) {
        stream[i] = 10 + i;
    }
    flat(4);
    sampler_next(&s, &how, logits, stream, SAMPLER_WINDOW + 1, 0, &r);
    assert_true(logits[10] == 4); /* just left the window */
    assert_true(logits[11] == 2 && logits[10 + SAMPLER_WINDOW] == 2);
    s.round = UINT32_MAX; /* the round counter wraps: marks of earlier rounds must not count */
    flat(4);
    sampler_next(&s, &how, logits, stream, SAMPLER_WINDOW, 0, &r);
    assert_true(logits[10] == 2 && logits[10 + SAMPLER_WINDOW] == 4);
    sampler_fini(&s);
}

/* Of what this reply generated, by count; the prompt before it does not count. */
static void test_presence_and_frequency(void **state)
{
    (void)state;
    static const int32_t exempt[] = {4};
    const int32_t stream[] = {3, 6, 3, 4, 4, 3};
    sampler s = new_sampler(exempt, 1);
    rng r = {1};
    smoe_sampling how = greedy(1);
    how.presence_penalty = 0.5f;
    how.frequency_penalty = 0.25f;
    flat(2);
    assert_int_equal(sampler_next(&s, &how, logits, stream, 6, 4, &r), 0);
    assert_true(logits[3] == 2 - 2 * 0.25f - 0.5f);
    assert_true(logits[4] == 2 - 2 * 0.25f - 0.5f); /* only the repetition penalty exempts */
    assert_true(logits[6] == 2 && logits[5] == 2);
    how.presence_penalty = -2;
    how.frequency_penalty = 0;
    flat(2);
    assert_int_equal(sampler_next(&s, &how, logits, stream, 6, 1, &r), 3);
    assert_true(logits[3] == 4 && logits[4] == 2);
    how = greedy(2); /* the repetition penalty comes first */
    how.frequency_penalty = 1;
    flat(2);
    sampler_next(&s, &how, logits, stream, 6, 6, &r);
    assert_true(logits[3] == 1 - 3 && logits[4] == 2 - 2 && logits[6] == 1 - 1);
    s.round = UINT32_MAX; /* the round counter wraps */
    flat(2);
    sampler_next(&s, &how, logits, stream, 6, 6, &r);
    assert_true(logits[3] == 1 - 3);
    sampler_fini(&s);
}

static void draw(const smoe_sampling *how, const float *from, uint32_t *counts, int n)
{
    sampler s = new_sampler(NULL, 0);
    rng r = {1337};
    for (int i = 0; i < n; i++) {
        memcpy(logits, from, sizeof logits);
        counts[sampler_next(&s, how, logits, NULL, 0, 0, &r)]++;
    }
    sampler_fini(&s);
}

static void test_top_k_and_top_p(void **state)
{
    (void)state;
    static float from[N_VOCAB];
    static uint32_t counts[N_VOCAB];
    for (int i = 0; i < N_VOCAB; i++) {
        from[i] = -50;
    }
    from[100] = logf(0.5f);
    from[200] = logf(0.3f);
    from[300] = logf(0.15f);
    from[400] = logf(0.05f);
    smoe_sampling how = {.temperature = 1, .top_p = 1, .top_k = 1024, .rep_penalty = 1};
    draw(&how, from, counts, 20000);
    assert_in_range(counts[100], 9700, 10300);
    assert_in_range(counts[200], 5700, 6300);
    assert_in_range(counts[300], 2800, 3200);
    assert_in_range(counts[400], 850, 1150);

    memset(counts, 0, sizeof counts);
    how.top_k = 2; /* 0.5 : 0.3 among themselves */
    draw(&how, from, counts, 20000);
    assert_int_equal(counts[100] + counts[200], 20000);
    assert_in_range(counts[100], 12200, 12800);

    memset(counts, 0, sizeof counts);
    how.top_k = 1024;
    how.top_p = 0.79f; /* 0.5 + 0.3 reaches it */
    draw(&how, from, counts, 5000);
    assert_int_equal(counts[100] + counts[200], 5000);

    memset(counts, 0, sizeof counts);
    how.top_p = 0.81f; /* it takes the third */
    draw(&how, from, counts, 5000);
    assert_int_equal(counts[100] + counts[200] + counts[300], 5000);
    assert_true(counts[300] > 0);

    memset(counts, 0, sizeof counts);
    how.top_p = 1e-6f; /* always at least one */
    draw(&how, from, counts, 100);
    assert_int_equal(counts[100], 100);
}

static void test_min_p(void **state)
{
    (void)state;
    static float from[N_VOCAB];
    static uint32_t counts[N_VOCAB];
    for (int i = 0; i < N_VOCAB; i++) {
        from[i] = -50;
    }
    from[100] = logf(0.5f);
    from[200] = logf(0.3f);
    from[300] = logf(0.2f);
    smoe_sampling how = {.temperature = 1, .top_p = 1, .top_k = 50, .rep_penalty = 1};
    how.min_p = 0.59f; /* 0.3 of 0.5 is 0.6 */
    draw(&how, from, counts, 5000);
    assert_int_equal(counts[100] + counts[200], 5000);
    assert_in_range(counts[200], 1700, 2050);
    memset(counts, 0, sizeof counts);
    how.min_p = 0.61f;
    draw(&how, from, counts, 100);
    assert_int_equal(counts[100], 100);
    memset(counts, 0, sizeof counts);
    how.min_p = 0.39f;
    how.top_k = 2; /* the shorter head counts */
    draw(&how, from, counts, 2000);
    assert_int_equal(counts[100] + counts[200], 2000);
    memset(counts, 0, sizeof counts);
    how.min_p = 1; /* ties with the likeliest stay */
    from[200] = from[100];
    draw(&how, from, counts, 2000);
    assert_int_equal(counts[100] + counts[200], 2000);
    assert_in_range(counts[200], 900, 1100);
}

static void test_logprobs(void **state)
{
    (void)state;
    sampler s = new_sampler(NULL, 0);
    rng r = {1};
    smoe_sampling how = {.temperature = 0.1f, .top_p = 1, .top_k = 50, .rep_penalty = 2};
    const int32_t stream[] = {7};
    double sum = 0;
    for (int v = 0; v < N_VOCAB; v++) {
        logits[v] = (float)(v * 7919 % 1000) / 100;
        sum += exp((double)logits[v]);
    }
    logits[9] = -1e30f;
    sum -= exp(9 * 7919 % 1000 / 100.0);
    float was = logits[7];
    sampler_observe(&s, logits, 3);
    sampler_next(&s, &how, logits, stream, 1, 0, &r);
    const smoe_logprobs *l = sampler_logprobs(&s, 7);
    assert_int_equal(l->chosen.id, 7);
    assert_true(fabs(l->chosen.logprob - ((double)was - log(sum))) < 1e-5);
    assert_int_equal(l->n_top, 3);
    assert_true(l->top[0].id == 321 && l->top[1].id == 1321); /* 9.99 twice: the lower id first */
    assert_true(fabs(l->top[0].logprob - (9.99 - log(sum))) < 1e-5);
    assert_true(l->top[0].logprob == l->top[1].logprob && l->top[2].logprob < l->top[1].logprob);
    assert_true(sampler_logprobs(&s, 9)->chosen.logprob == -9999);
    flat(0);
    sampler_observe(&s, logits, 0);
    assert_int_equal(sampler_logprobs(&s, 1)->n_top, 0);
    assert_true(fabs(sampler_logprobs(&s, 1)->chosen.logprob + log(N_VOCAB)) < 1e-6);
    sampler_fini(&s);
}

/* top-p counts probability of the whole vocabulary, not of the top-k that is left. */
static void test_top_p_is_of_the_whole(void **state)
{
    (void)state;
    static float from[N_VOCAB];
    static uint32_t counts[N_VOCAB];
    memset(from, 0, sizeof from);
    smoe_sampling how = {.temperature = 1, .top_p = 0.5f, .top_k = 10, .rep_penalty = 1};
    draw(&how, from, counts, 5000); /* ten of 1500 never reach half: all ten stay */
    for (int i = 0; i < 10; i++) {
        assert_true(counts[i] > 350);
    }
    assert_int_equal(counts[10], 0); /* ties go to the lowest ids */
}

static void test_temperature(void **state)
{
    (void)state;
    static float from[N_VOCAB];
    static uint32_t counts[N_VOCAB];
    for (int i = 0; i < N_VOCAB; i++) {
        from[i] = -1e30f;
    }
    from[1] = 2;
    from[2] = 0;
    smoe_sampling how = {.temperature = 2, .top_p = 1, .top_k = 2, .rep_penalty = 1};
    draw(&how, from, counts, 20000); /* e : 1 */
    assert_in_range(counts[1], 14300, 14950);
    how.temperature = 1e-4f; /* hot enough to be sampling, too cold for anything but the first */
    memset(counts, 0, sizeof counts);
    draw(&how, from, counts, 100);
    assert_int_equal(counts[1], 100);
}

static void test_a_seed_is_reproducible(void **state)
{
    (void)state;
    sampler s = new_sampler(NULL, 0);
    smoe_sampling how = smoe_sampling_defaults();
    assert_true(how.temperature == 0.6f && how.top_p == 0.95f && how.top_k == 50 &&
                how.rep_penalty == 1.1f);
    int32_t first[50];
    bool differs = false;
    for (uint64_t round = 0; round < 3; round++) {
        rng r = {round < 2 ? 42 : 43};
        for (int i = 0; i < 50; i++) {
            for (int v = 0; v < N_VOCAB; v++) {
                logits[v] = (float)(v * 7919 % 1000) / 500;
            }
            int32_t id = sampler_next(&s, &how, logits, first, 0, 0, &r);
            if (round == 0) {
                first[i] = id;
            } else if (round == 1) {
                assert_int_equal(id, first[i]);
            } else {
                differs = differs || id != first[i];
            }
        }
    }
    assert_true(differs);
    sampler_fini(&s);
}

static void test_top_k_beyond_the_vocabulary(void **state)
{
    (void)state;
    sampler s;
    smoe_err err;
    rng r = {5};
    float three[3] = {0, 0, 0};
    smoe_sampling how = {.temperature = 1, .top_p = 1, .top_k = 1024, .rep_penalty = 1};
    ASSERT_OK(sampler_init(&s, kernels_get(NULL), 3, NULL, 0, &err), &err);
    for (int i = 0; i < 100; i++) {
        memset(three, 0, sizeof three);
        assert_in_range(sampler_next(&s, &how, three, NULL, 0, 0, &r), 0, 2);
    }
    sampler_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_ties_go_to_the_lowest_id),
        cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_penalty_window),
        cmocka_unit_test(test_top_k_and_top_p),
        cmocka_unit_test(test_presence_and_frequency),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_top_p_is_of_the_whole),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_a_seed_is_reproducible),
        cmocka_unit_test(test_top_k_beyond_the_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
