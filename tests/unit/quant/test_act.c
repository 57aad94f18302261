/* test_act.c: the quantiser of activations: its definition, the same bytes on every instruction
 * set, and odd input. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "quant/panel.h"

static const char *const NAMES[] = {"scalar", "avx2", "avx512", "neon", "neon_dot"};
enum { N_NAMES = sizeof(NAMES) / sizeof(NAMES[0]), N_MAX = 1100, N_BLOCKS = 5 };

static float X[N_MAX + 8];
static act_block WANT[N_BLOCKS + 1], GOT[N_BLOCKS + 1];

static float random_float(rng *r, int kind)
{
    uint32_t bits;
    float f;

    if (kind == 0) {
        return (float)(2 * rng_uniform(r) - 1);
    }
    do { /* any magnitude; kind 2: now and then not finite */
        bits = (uint32_t)rng_next(r);
        memcpy(&f, &bits, sizeof(f));
    } while (!isfinite(f) && (kind == 1 || rng_next(r) % 4 != 0));
    return kind == 3 ? ldexpf(f, -120) : f;
}

/* Bytes, but one NaN is as good as another. */
static void check_blocks(const char *name, act_block *want, act_block *got)
{
    for (int i = 0; i <= N_BLOCKS; i++) {
        for (int s = 0; s < 8; s++) {
            assert_int_equal(isnan(want[i].d[s]) != 0, isnan(got[i].d[s]) != 0);
            if (isnan(want[i].d[s])) {
                want[i].d[s] = got[i].d[s] = 0;
            }
        }
        if (memcmp(&want[i], &got[i], sizeof(want[i])) != 0) {
            fail_msg("%s: block %d differs", name, i);
        }
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    rng r = {1};

    for (int round = 0; round < 2000; round++) {
        const int64_t n = (int64_t)(rng_next(&r) % (N_MAX + 1));
        const float *x = X + rng_next(&r) % 8;
        for (int i = 0; i < N_MAX + 8; i++) {
            X[i] = random_float(&r, round % 4);
        }
        for (int i = 0; i < N_NAMES; i++) {
            const panel_kernels *k = panel_kernels_get(NAMES[i]);
            if (k == NULL) {
                continue;
            }
            memset(WANT, 0x11, sizeof(WANT));
            memset(GOT, 0x11, sizeof(GOT));
            const int scale_elems = rng_next(&r) % 2 ? 32 : 256;
            act_quantize_ref(x, n, scale_elems, WANT);
            k->act_quantize(x, n, scale_elems, GOT);
            check_blocks(k->name, WANT, GOT);
        }
    }
}

static void check_sums(const act_block *b)
{
    static const int order[4] = {0, 2, 1, 3};
    int32_t sums[16] = {0};

    for (int e = 0; e < 256; e++) {
        assert_true(b->qs[e] >= -127);
        sums[e / 16] += b->qs[e];
    }
    for (int i = 0; i < 16; i++) {
        assert_int_equal(b->sums16[i], sums[i / 4 * 4 + order[i % 4]]);
    }
    for (int i = 0; i < 8; i++) {
        const int g = i / 4 * 4 + order[i % 4];
        assert_int_equal(b->sums32[i], sums[2 * g] + sums[2 * g + 1]);
        assert_int_equal(b->bias32[i], -128 * (sums[2 * i] + sums[2 * i + 1]));
    }
}

/* Every value comes back within half a step; the tail is zero; the sums are those of the levels. */
static void test_definition(void **state)
{
    (void)state;
    rng r = {2};

    for (int round = 0; round < 500; round++) {
        const int64_t n = 1 + (int64_t)(rng_next(&r) % N_MAX);
        const float scale = ldexpf(1, (int)(rng_next(&r) % 200) - 95);
        for (int64_t i = 0; i < n; i++) {
            X[i] = scale * random_float(&r, 0);
        }
        const int scale_elems = round % 2 ? 32 : 256;
        act_quantize_ref(X, n, scale_elems, WANT);
        for (int64_t i = 0; i < 256 * act_n_blocks(n); i++) {
            const act_block *b = &WANT[i / 256];
            const int e = (int)(i % 256);
            const double x = i < n ? (double)X[i] : 0, d = (double)b->d[e / 32];
            assert_true(fabs(x - d * b->qs[e]) <= 0.50001 * d);
            assert_true(scale_elems == 32 || b->d[e / 32] == b->d[0]);
        }
        for (int64_t i = 0; i < act_n_blocks(n); i++) {
            check_sums(&WANT[i]);
        }
    }
}

static void test_odd_input(void **state)
{
    (void)state;
    memset(X, 0, sizeof(X));
    act_quantize_ref(X, 512, 256, WANT);
    assert_true(WANT[1].d[0] == 0 && WANT[1].qs[7] == 0);

    X[3] = 0x1p-149f; /* too small to matter */
    X[300] = -FLT_MAX;
    X[301] = FLT_MAX;
    act_quantize_ref(X, 512, 256, WANT);
    assert_true(WANT[0].d[0] == 0 && WANT[0].qs[3] == 0);
    assert_true(isfinite(WANT[1].d[0]));
    assert_int_equal(WANT[1].qs[300 - 256], -127);
    act_quantize_ref(X, 512, 32, WANT);
    assert_true(isfinite(WANT[1].d[1]) && WANT[1].d[0] == 0);
    assert_int_equal(WANT[1].qs[301 - 256], 127);

    X[20] = ACT_TINY;
    act_quantize_ref(X, 256, 256, WANT);
    assert_int_equal(WANT[0].qs[20], 127);

    static const float broken[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        X[5] = broken[i];
        act_quantize_ref(X, 512, 256, WANT);
        assert_true(isnan(WANT[0].d[0]) && isnan(WANT[0].d[7]));
        assert_int_equal(WANT[0].qs[20], 0);
        assert_true(isfinite(WANT[1].d[0]));
        act_quantize_ref(X, 512, 32, WANT);
        assert_true(isnan(WANT[0].d[0]) && isfinite(WANT[0].d[1]));
        assert_int_equal(WANT[0].qs[20], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_odd_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
