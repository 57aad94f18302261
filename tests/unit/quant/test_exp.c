/* test_exp.c: the kernels' exp against libm's in double precision. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "quant/kernels.h"

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static void check(float x)
{
    const float got = kernel_expf(x);
    const double want = exp((double)x);

    if (want > (double)FLT_MAX * (1 + 0x1p-25)) {
        assert_true(isinf(got) && got > 0);
    } else if (want >= (double)FLT_MIN) {
        const double error = fabs((double)got - want) / want;
        if (!(error < 2e-7)) {
            fail_msg("exp(%a) = %a, error %g", (double)x, (double)got, error);
        }
    } else if (!(fabs((double)got - want) <= 0x1p-150 + 2e-7 * want)) { /* half its grid */
        fail_msg("exp(%a) = %a, wanted %a", (double)x, (double)got, want);
    }
}

static void test_accuracy(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0x42d20000; bits += 409) { /* 0 .. 105 */
        check(float_of(bits));
        check(-float_of(bits));
    }
}

/* Where the result overflows, turns subnormal, vanishes: every float nearby. */
static void test_edges(void **state)
{
    (void)state;
    static const float edges[] = {88.722839f, 89.0f, -87.336545f, -103.27893f, -103.97208f, -104.0f,
                                  0.34657359f, -0.34657359f};

    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        float x = edges[i];
        for (int step = 0; step < 1000; step++) {
            x = nextafterf(x, -INFINITY);
        }
        for (int step = 0; step < 2000; step++) {
            check(x);
            x = nextafterf(x, INFINITY);
        }
    }
}

static void test_special_values(void **state)
{
    (void)state;
    assert_true(kernel_expf(0.0f) == 1.0f);
    assert_true(kernel_expf(-0.0f) == 1.0f);
    assert_true(kernel_expf(float_of(1)) == 1.0f);
    assert_true(kernel_expf(-INFINITY) == 0.0f);
    assert_true(kernel_expf(-FLT_MAX) == 0.0f);
    assert_true(isinf(kernel_expf(INFINITY)));
    assert_true(isinf(kernel_expf(FLT_MAX)));
    assert_true(isnan(kernel_expf(NAN)));
    assert_true(isnan(kernel_expf(-NAN)));
    assert_true(isnan(kernel_expf(float_of(0x7f800001))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
