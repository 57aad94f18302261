/* test_half.c: f16 and bf16 over all 65,536 values, and rounding at every midpoint between two. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "quant/quant.h"

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* The value of an f16 by its definition. */
static double f16_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double magnitude =
        exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void test_f16_every_value(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = f16_to_f32(h);
        if ((h & 0x7fff) > 0x7c00) { /* a NaN comes back quiet, with its payload */
            assert_true(isnan(f));
            assert_int_equal(f16_from_f32(f), h | 0x200);
            continue;
        }
        if ((h & 0x7fff) == 0x7c00) {
            assert_true(isinf(f));
        } else {
            assert_true((double)f == f16_value(h));
        }
        assert_int_equal(signbit(f) != 0, h >> 15);
        assert_int_equal(f16_from_f32(f), h);
    }
}

static void test_bf16_every_value(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = bf16_to_f32(h);
        assert_int_equal(bits_of(f), i << 16);
        if (isnan(f)) {
            assert_int_equal(bf16_from_f32(f), h | 0x40);
        } else {
            assert_int_equal(bf16_from_f32(f), h);
        }
    }
}

/* Between each value and the next: the midpoint goes to the even one, its neighbours to the nearer
 * one. */
static void check_midpoints(uint32_t last, float (*to)(uint16_t), uint16_t (*from)(float))
{
    for (uint32_t h = 0; h < last; h++) {
        const uint16_t low = (uint16_t)h, high = (uint16_t)(h + 1);
        const uint16_t even = h & 1 ? high : low;
        const float middle = (float)(((double)to(low) + (double)to(high)) / 2);
        assert_int_equal(from(middle), even);
        assert_int_equal(from(nextafterf(middle, 0)), low);
        assert_int_equal(from(nextafterf(middle, INFINITY)), high);
        assert_int_equal(from(-middle), even | 0x8000);
    }
}

static void test_halfway_rounding(void **state)
{
    (void)state;
    check_midpoints(0x7bff, f16_to_f32, f16_from_f32);
    check_midpoints(0x7f7f, bf16_to_f32, bf16_from_f32);
}

static void test_overflow_and_nan(void **state)
{
    (void)state;
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(f16_from_f32(-1e30f), 0xfc00);
    assert_int_equal(f16_from_f32(0x1p-25f), 0);
    assert_int_equal(f16_from_f32(0x1.000002p-25f), 1);
    assert_int_equal(bf16_from_f32(float_of(0x7f7fffff)), 0x7f80);
    /* Payloads only in the bits that are cut off must not turn into infinity. */
    assert_true(isnan(bf16_to_f32(bf16_from_f32(float_of(0x7f800001)))));
    assert_true(isnan(f16_to_f32(f16_from_f32(float_of(0xff800001)))));
    assert_true(isnan(bf16_to_f32(bf16_from_f32(float_of(0x7fffffff)))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_every_value),
        cmocka_unit_test(test_bf16_every_value),
        cmocka_unit_test(test_halfway_rounding),
        cmocka_unit_test(test_overflow_and_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
