/* test_parts.c: the parts of the forward pass that have a closed form: rotary tables, the router, a
 * matrix product. The whole of it is compared with the reference by tests/e2e/test_golden.py. */
#include "../../support/test.h"

#include <math.h>

#include "base/rng.h"
#include "model/matmul.h"
#include "model/rope.h"
#include "model/router.h"
#include "quant/quant.h"

static void test_default_frequencies(void **state)
{
    (void)state;
    const rope_config rope = {.kind = ROPE_DEFAULT, .theta = 1e6, .attention_factor = 1};
    float f[64], c[64], s[64];
    rope_frequencies(&rope, 128, f);
    assert_true(f[0] == 1);
    for (int i = 0; i < 64; i++) {
        double want = pow(1e6, -2.0 * i / 128);
        assert_true(fabs(f[i] - want) <= 1e-6 * want);
    }
    rope_cos_sin(&rope, f, 128, 0, c, s);
    for (int i = 0; i < 64; i++) {
        assert_true(c[i] == 1 && s[i] == 0);
    }
    rope_cos_sin(&rope, f, 128, 40000, c, s);
    for (int i = 0; i < 64; i++) {
        assert_true(fabs(c[i] - cos((float)40000 * f[i])) < 1e-6);
        assert_true(fabs(s[i] - sin((float)40000 * f[i])) < 1e-6);
    }
}

static void test_linear_is_default_divided(void **state)
{
    (void)state;
    rope_config rope = {.kind = ROPE_DEFAULT, .theta = 1e4, .factor = 4, .attention_factor = 1};
    float plain[16], scaled[16];
    rope_frequencies(&rope, 32, plain);
    rope.kind = ROPE_LINEAR;
    rope_frequencies(&rope, 32, scaled);
    for (int i = 0; i < 16; i++) {
        assert_true(scaled[i] == plain[i] / 4);
    }
}

static void test_rotation_keeps_length_and_order(void **state)
{
    (void)state;
    const float c[2] = {0.6f, 0}, s[2] = {0.8f, 1};
    float head[4] = {1, 2, 3, 4};
    rope_rotate(head, c, s, 4); /* pairs (0, 2) and (1, 3) */
    assert_true(fabsf(head[0] - (1 * 0.6f - 3 * 0.8f)) < 1e-6f);
    assert_true(fabsf(head[2] - (3 * 0.6f + 1 * 0.8f)) < 1e-6f);
    assert_true(head[1] == -4 && head[3] == 2);
}

static void test_router(void **state)
{
    (void)state;
    const kernels *k = kernels_get(NULL);
    uint32_t experts[4];
    float shares[4];
    float logits[6] = {0, 3, 1, 3, -2, 2};
    assert_true(router_select(k, logits, 6, 3, true, experts, shares));
    assert_int_equal(experts[0], 1); /* of equals the lower index first */
    assert_int_equal(experts[1], 3);
    assert_int_equal(experts[2], 5);
    assert_true(shares[0] == shares[1] && shares[1] > shares[2]);
    assert_true(fabsf(shares[0] + shares[1] + shares[2] - 1) < 1e-6f);

    float again[6] = {0, 3, 1, 3, -2, 2};
    assert_true(router_select(k, again, 6, 3, false, experts, shares));
    double sum = 1 + 2 * exp(3) + exp(1) + exp(-2) + exp(2);
    assert_true(fabs(shares[0] - exp(3) / sum) < 1e-6);
    assert_true(fabs(shares[2] - exp(2) / sum) < 1e-6);

    float all[4] = {-1e30f, 5, -1e30f, -1e30f}; /* zeros are still in order */
    assert_true(router_select(k, all, 4, 4, true, experts, shares));
    assert_int_equal(experts[0], 1);
    assert_int_equal(experts[1], 0);
    assert_int_equal(experts[3], 3);
}

static void test_router_refuses_what_is_not_finite(void **state)
{
    (void)state;
    const kernels *k = kernels_get(NULL);
    uint32_t experts[2];
    float shares[2];
    float nan[3] = {0, NAN, 1}, inf[3] = {0, INFINITY, 1}, minus[2] = {-INFINITY, -INFINITY};
    assert_false(router_select(k, nan, 3, 2, true, experts, shares));
    assert_false(router_select(k, inf, 3, 2, true, experts, shares));
    assert_false(router_select(k, minus, 2, 1, true, experts, shares));
}

/* A batch equals single calls, whatever the threads, and both equal the plain sum to rounding. */
static void test_matmul(void **state)
{
    (void)state;
    enum { ROWS = 37, COLS = 512, N = 5 };
    static const dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8_0, DTYPE_Q4_K};
    static float w[ROWS * COLS], plain[ROWS * COLS], x[N * COLS], bias[ROWS], batch[N * ROWS],
        single[ROWS], scratch[3 * COLS];
    static uint8_t data[sizeof w];
    rng r = {3};
    for (size_t i = 0; i < ROWS * COLS; i++) {
        w[i] = (float)rng_uniform(&r) - 0.5f;
    }
    for (size_t i = 0; i < N * COLS; i++) {
        x[i] = (float)rng_uniform(&r) - 0.5f;
    }
    for (size_t i = 0; i < ROWS; i++) {
        bias[i] = (float)rng_uniform(&r);
    }
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        matrix m = {.type = types[t], .rows = ROWS, .cols = COLS, .data = data,
                    .row_bytes = dtype_row_bytes(types[t], COLS)};
        for (size_t row = 0; row < ROWS; row++) {
            quantize_row_ref(types[t], w + row * COLS, data + row * m.row_bytes, COLS);
            dequantize_row_ref(types[t], data + row * m.row_bytes, plain + row * COLS, COLS);
        }
        for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
            smoe_err err;
            compute c = {.k = kernels_get(NULL), .row_scratch = scratch, .row_scratch_len = COLS};
            ASSERT_OK(pool_new(n_threads, &c.pool, &err), &err);
            matmul(&c, &m, bias, x, N, batch);
            for (size_t i = 0; i < N; i++) {
                matmul(&c, &m, bias, x + i * COLS, 1, single);
                assert_memory_equal(single, batch + i * ROWS, sizeof single);
                for (size_t row = 0; row < ROWS; row++) {
                    double want = bias[row];
                    for (size_t k = 0; k < COLS; k++) {
                        want += (double)plain[row * COLS + k] * x[i * COLS + k];
                    }
                    assert_true(fabs(single[row] - want) < 1e-4);
                }
            }
            pool_free(c.pool);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_frequencies),
        cmocka_unit_test(test_linear_is_default_divided),
        cmocka_unit_test(test_rotation_keeps_length_and_order),
        cmocka_unit_test(test_router),
        cmocka_unit_test(test_router_refuses_what_is_not_finite),
        cmocka_unit_test(test_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
