/* test_dmath.c: our exp, log, pow, sin and cos beside libm's, which is right to the last bit or
 * two. */
#include "../../support/test.h"

#include <math.h>

#include "base/dmath.h"
#include "base/rng.h"

static const double BOUND = 1e-14;

static double relative(double found, double want)
{
    return fabs(found - want) / fabs(want);
}

static double between(rng *r, double low, double high)
{
    return low + (high - low) * rng_uniform(r);
}

static void test_log(void **state)
{
    (void)state;
    rng r = {1};
    assert_true(dmath_log(1) == 0);
    for (int i = 0; i < 200000; i++) {
        double x = exp(between(&r, -700, 700));
        if (fabs(log(x)) > 0.01) { /* near 1 the logarithm is small: an absolute bound there */
            assert_true(relative(dmath_log(x), log(x)) < BOUND);
        }
        x = between(&r, 0.99, 1.01);
        assert_true(fabs(dmath_log(x) - log(x)) < 1e-16);
    }
}

static void test_exp(void **state)
{
    (void)state;
    rng r = {2};
    assert_true(dmath_exp(0) == 1);
    for (int i = 0; i < 200000; i++) {
        double x = between(&r, -699, 699);
        assert_true(relative(dmath_exp(x), exp(x)) < BOUND);
    }
}

static void test_pow_of_rotary_bases(void **state)
{
    (void)state;
    static const double bases[] = {1e4, 1e6, 5e6, 500000, 1e7};
    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++) {
        for (int i = 0; i < 128; i += 2) {
            double e = -i / 128.0;
            assert_true(relative(dmath_pow(bases[b], e), pow(bases[b], e)) < BOUND);
        }
    }
}

static void check_sincos(double x)
{
    double s, c;
    dmath_sincos(x, &s, &c);
    /* Absolute: beside a root the argument's own rounding is larger than the value. */
    assert_true(fabs(s - sin(x)) < BOUND);
    assert_true(fabs(c - cos(x)) < BOUND);
}

static void test_sincos(void **state)
{
    (void)state;
    rng r = {3};
    for (int i = 0; i < 200000; i++) {
        check_sincos(between(&r, -7, 7));
        check_sincos(between(&r, 0, 262144));
    }
    for (int i = -100; i <= 100; i++) {
        check_sincos(i);
        check_sincos(i * 0.78539816339744831);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_pow_of_rotary_bases),
        cmocka_unit_test(test_sincos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
