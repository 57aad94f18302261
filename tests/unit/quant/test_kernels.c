/* test_kernels.c: every kernel table that this CPU runs equals the scalar one, bit for bit.
 *
 * Two NaNs count as equal whatever their payload. Every case runs for all lengths 0..70 and some
 * long ones, at addresses that are aligned to nothing but the element, over three kinds of input.
 * What lies behind a result must stay untouched. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "quant/kernels.h"
#include "quant/quant.h"

enum { N_MAX = 1100, N_BATCH = 9, GUARD = 24 };

static const char *const NAMES[] = {"avx2", "avx512", "neon"};
static const int64_t LONG_ROWS[] = {127, 128, 256, 257, 511, 768, 1024, 1031};
enum { N_SHORT = 71, N_LENGTHS = N_SHORT + 8 };

typedef enum input { INPUT_ORDINARY, INPUT_ANY_FINITE, INPUT_HOSTILE, N_INPUTS } input;

static int64_t length(int i)
{
    return i < N_SHORT ? i : LONG_ROWS[i - N_SHORT];
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static float random_float(rng *r, input kind)
{
    static const float special[] = {
        0.0f,   -0.0f,   1.0f,     -1.0f,  FLT_MAX, -FLT_MAX,  FLT_MIN,     -FLT_MIN,  0x1p-149f,
        INFINITY, -INFINITY, NAN, 88.7f, -87.4f,  -103.97f,  65504.0f,    65520.0f,  0x1p-25f,
        -0x1p-24f, 0.5f, 3e-39f, -3e-39f, 1e20f, -1e20f, 0x1.ffep-15f, 2049.0f, 2051.0f};
    float f;

    if (kind == INPUT_HOSTILE && rng_next(r) % 3 == 0) {
        return special[rng_next(r) % (sizeof(special) / sizeof(special[0]))];
    }
    if (kind == INPUT_ORDINARY || kind == INPUT_HOSTILE) {
        return (float)(8 * rng_uniform(r) - 4);
    }
    do {
        const uint32_t bits = (uint32_t)rng_next(r);
        memcpy(&f, &bits, sizeof(f));
    } while (!isfinite(f));
    return f;
}

static void fill(rng *r, input kind, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = random_float(r, kind);
    }
}

static void fill_halves(rng *r, input kind, uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = kind == INPUT_HOSTILE ? (uint16_t)rng_next(r) : f16_from_f32(random_float(r, kind));
    }
}

static bool same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

static void check_floats(const char *what, const kernels *k, int64_t n, const float *want,
                         const float *got, int64_t n_compare)
{
    for (int64_t i = 0; i < n_compare; i++) {
        if (!same(want[i], got[i])) {
            fail_msg("%s %s, n = %d, element %d: %a, scalar %a", what, k->name, (int)n, (int)i,
                     (double)got[i], (double)want[i]);
        }
    }
}

typedef void check_fn(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n);

static void for_all(check_fn *check)
{
    const kernels *ref = kernels_get("scalar");

    assert_non_null(ref);
    for (size_t t = 0; t < sizeof(NAMES) / sizeof(NAMES[0]); t++) {
        const kernels *k = kernels_get(NAMES[t]);
        rng r = {t + 1};
        if (k == NULL) {
            print_message("[  NOTE    ] this machine does not run %s\n", NAMES[t]);
            continue;
        }
        for (int kind = 0; kind < N_INPUTS; kind++) {
            for (int i = 0; i < N_LENGTHS; i++) {
                for (int round = 0; round < (i < N_SHORT ? 8 : 3); round++) {
                    check(k, ref, &r, (input)kind, length(i));
                }
            }
        }
    }
}

static float X[N_MAX * N_BATCH], Y[9 * N_MAX], W[N_MAX], WANT[N_MAX], GOT[N_MAX];
static uint16_t H_WANT[N_MAX], H_GOT[N_MAX];

static void check_dots(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n)
{
    const float *x = X + rng_next(r) % 5, *y = Y + rng_next(r) % 5;

    fill(r, kind, X, n + 8);
    fill(r, kind, Y, n + 8);
    WANT[0] = ref->vec_dot_f32(x, y, n);
    GOT[0] = k->vec_dot_f32(x, y, n);
    check_floats("dots", k, n, WANT, GOT, 1);
    if (n > 0) {
        const float want = ref->vec_max(x, n), got = k->vec_max(x, n);
        assert_true(want == got || (isnan(want) && isnan(got)));
    }
}

/* Queries of n dimensions over some blocks of 16 positions; keys and values in all their types. */
static void check_attention(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n)
{
    enum { MAX_D = 288, MAX_ROWS = 21, BLOCKS = 5, POSITIONS = 16 * BLOCKS, STRIDE = 85 };
    static float q[MAX_ROWS * MAX_D], kv[POSITIONS * MAX_D], p[MAX_ROWS * STRIDE];
    static float want[MAX_ROWS * MAX_D + GUARD], got[MAX_ROWS * MAX_D + GUARD];
    static uint16_t kv_f16[POSITIONS * MAX_D];
    static const dtype types[] = {DTYPE_F32, DTYPE_F16};
    const void *const from[] = {kv, kv_f16};
    const int64_t n_rows = 1 + (int64_t)(rng_next(r) % MAX_ROWS);
    const int64_t n_blocks = 1 + (int64_t)(rng_next(r) % BLOCKS);
    const int64_t n_values = (int64_t)(rng_next(r) % (POSITIONS + 1));

    if (n == 0 || n > MAX_D) {
        return;
    }
    fill(r, kind, q, n_rows * n);
    fill(r, kind, kv, POSITIONS * n);
    fill_halves(r, kind, kv_f16, POSITIONS * n);
    fill(r, kind, p, n_rows * STRIDE);
    for (int t = 0; t < 2; t++) {
        memset(want, 0, sizeof(want));
        memset(got, 0, sizeof(got));
        ref->attn_scores(types[t], from[t], q, n_rows, n, n_blocks, want, STRIDE);
        k->attn_scores(types[t], from[t], q, n_rows, n, n_blocks, got, STRIDE);
        check_floats("attn_scores", k, n, want, got, n_rows * STRIDE);
        fill(r, kind, want, n_rows * n + GUARD);
        memcpy(got, want, sizeof(want));
        ref->attn_values(types[t], from[t], p, STRIDE, n_rows, n, n_values, want);
        k->attn_values(types[t], from[t], p, STRIDE, n_rows, n, n_values, got);
        check_floats("attn_values", k, n, want, got, n_rows * n + GUARD);
    }
}

/* m floats as a row of any type; or any bytes, with floats and scales that are huge, infinite or
 * NaN. */
static void fill_row(rng *r, input kind, dtype type, uint8_t *row, int64_t m)
{
    const uint64_t n_bytes = dtype_row_bytes(type, (uint64_t)m);

    if (kind == INPUT_ORDINARY) {
        fill(r, kind, Y, m);
        quantize_row_ref(type, Y, row, m);
        return;
    }
    for (uint64_t i = 0; i < n_bytes; i++) {
        row[i] = (uint8_t)rng_next(r);
    }
}

/* Every number of rows and vectors that a tile may leave over. */
static void check_matmul_plain(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n)
{
    enum { MAX_ROWS = 9, MAX_OUT = (MAX_ROWS + 2) * N_BATCH };
    static const dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    static uint8_t rows[MAX_ROWS * N_MAX * 4 + 1];
    const dtype type = types[rng_next(r) % 3];
    const int64_t row_bytes = (int64_t)dtype_row_bytes(type, (uint64_t)n);
    const int64_t n_rows = (int64_t)(rng_next(r) % (MAX_ROWS + 1));
    const int64_t n_x = (int64_t)(rng_next(r) % (N_BATCH + 1));
    const int64_t stride = n + (int64_t)(rng_next(r) % 7);
    const int64_t out_stride = n_rows + (int64_t)(rng_next(r) % 3);

    fill(r, kind, X, stride * N_BATCH);
    fill_row(r, kind, type, rows + 1, n_rows * n);
    for (int64_t i = 0; i < MAX_OUT; i++) {
        WANT[i] = GOT[i] = 7;
    }
    for (int64_t row = 0; row < n_rows; row++) {
        ref->dequantize_row(type, rows + 1 + row * row_bytes, W, n);
        for (int64_t j = 0; j < n_x; j++) {
            WANT[j * out_stride + row] = ref->vec_dot_f32(W, X + j * stride, n);
        }
    }
    k->matmul_plain(type, rows + 1, n_rows, n, X, stride, n_x, GOT, out_stride);
    check_floats("matmul_plain", k, n, WANT, GOT, MAX_OUT);
    for (int64_t i = 0; i < MAX_OUT; i++) {
        GOT[i] = 7;
    }
    ref->matmul_plain(type, rows + 1, n_rows, n, X, stride, n_x, GOT, out_stride);
    check_floats("matmul_plain of scalar", ref, n, WANT, GOT, MAX_OUT);
}

/* Two copies of the same output array for functions that update it in place. */
static float *prepare(rng *r, input kind, int64_t n)
{
    fill(r, kind, WANT, n + GUARD);
    memcpy(GOT, WANT, (size_t)(n + GUARD) * sizeof(float));
    return GOT + 1;
}

static void check_elementwise(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n)
{
    const float a = random_float(r, kind);
    float *want = WANT + 1, *got;

    fill(r, kind, X, n + GUARD);
    fill(r, kind, W, n + GUARD);

    got = prepare(r, kind, n);
    ref->vec_mad_f32(want, X + 3, a, n);
    k->vec_mad_f32(got, X + 3, a, n);
    check_floats("vec_mad_f32", k, n, WANT, GOT, n + GUARD);

    got = prepare(r, kind, n);
    ref->vec_scale(want, a, n);
    k->vec_scale(got, a, n);
    check_floats("vec_scale", k, n, WANT, GOT, n + GUARD);

    got = prepare(r, kind, n);
    ref->vec_add(want, X + 2, n);
    k->vec_add(got, X + 2, n);
    check_floats("vec_add", k, n, WANT, GOT, n + GUARD);

    memset(H_WANT, 0x55, sizeof(H_WANT));
    memset(H_GOT, 0x55, sizeof(H_GOT));
    ref->quantize_row(DTYPE_F16, X + 1, H_WANT + 1, n);
    k->quantize_row(DTYPE_F16, X + 1, H_GOT + 1, n);
    for (int64_t i = 0; i < n + GUARD; i++) {
        assert_true(same(f16_to_f32(H_WANT[i]), f16_to_f32(H_GOT[i])));
    }
}

static void check_functions(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n)
{
    float *want = WANT + 1, *got;

    fill(r, kind, X, n + GUARD);
    fill(r, kind, W, n + GUARD);

    got = prepare(r, kind, n);
    ref->rms_norm(X + 3, W + 2, want, n, 1e-6f);
    k->rms_norm(X + 3, W + 2, got, n, 1e-6f);
    check_floats("rms_norm", k, n, WANT, GOT, n + GUARD);

    got = prepare(r, kind, n);
    ref->rms_norm(want, W + 2, want, n, 1e-5f);
    k->rms_norm(got, W + 2, got, n, 1e-5f);
    check_floats("rms_norm in place", k, n, WANT, GOT, n + GUARD);

    got = prepare(r, kind, n);
    ref->rope(want, X + 3, W + 2, n / 2);
    k->rope(got, X + 3, W + 2, n / 2);
    check_floats("rope", k, n, WANT, GOT, n + GUARD);

    got = prepare(r, kind, n);
    ref->swiglu(X + 3, W + 2, want, n);
    k->swiglu(X + 3, W + 2, got, n);
    check_floats("swiglu", k, n, WANT, GOT, n + GUARD);

    got = prepare(r, kind, n);
    const float max = kind == INPUT_ANY_FINITE || n == 0 ? random_float(r, kind)
                                                         : ref->vec_max(want, n);
    const float want_sum = ref->vec_exp_sub_max(want, n, max);
    const float got_sum = k->vec_exp_sub_max(got, n, max);
    check_floats("vec_exp_sub_max", k, n, WANT, GOT, n + GUARD);
    check_floats("sum of vec_exp_sub_max", k, n, &want_sum, &got_sum, 1);
}

static void check_types(const kernels *k, const kernels *ref, rng *r, input kind, int64_t n)
{
    static const dtype types[] = {DTYPE_F32,  DTYPE_F16,  DTYPE_BF16, DTYPE_Q4_0, DTYPE_Q8_0,
                                  DTYPE_Q2_K, DTYPE_Q3_K, DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_Q6_K};
    static uint8_t row[4 * N_MAX + 1];

    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        const dtype_info *info = dtype_get(types[t]);
        const int64_t m = n - n % info->block_elems;
        fill_row(r, kind, info->type, row + 1, m);
        prepare(r, kind, m);
        ref->dequantize_row(info->type, row + 1, WANT + 1, m);
        k->dequantize_row(info->type, row + 1, GOT + 1, m);
        check_floats(info->name, k, m, WANT, GOT, m + GUARD);
    }
}

static void test_dots(void **state)
{
    (void)state;
    for_all(check_dots);
}

static void test_attention(void **state)
{
    (void)state;
    for_all(check_attention);
}

static void test_matmul_plain(void **state)
{
    (void)state;
    for_all(check_matmul_plain);
}

static void test_elementwise(void **state)
{
    (void)state;
    for_all(check_elementwise);
}

static void test_functions(void **state)
{
    (void)state;
    for_all(check_functions);
}

static void test_types(void **state)
{
    (void)state;
    for_all(check_types);
}

/* The vector exp is kernel_expf, for a sample of all floats: exp(x - 0). */
static void test_exp_everywhere(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof(NAMES) / sizeof(NAMES[0]); t++) {
        const kernels *k = kernels_get(NAMES[t]);
        if (k == NULL) {
            continue;
        }
        for (uint64_t base = 0; base <= UINT32_MAX; base += 16 * 20011) {
            float x[16], y[16];
            for (uint32_t l = 0; l < 16; l++) {
                const uint32_t bits = (uint32_t)base + l * 20011;
                memcpy(&x[l], &bits, sizeof(bits));
            }
            memcpy(y, x, sizeof(y));
            k->vec_exp_sub_max(y, 16, 0);
            for (int l = 0; l < 16; l++) {
                const float want = kernel_expf(x[l]);
                check_floats("exp", k, l, &want, &y[l], 1);
            }
        }
    }
}

/* Every f16 through the hardware conversions. */
static void test_f16_everywhere(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof(NAMES) / sizeof(NAMES[0]); t++) {
        const kernels *k = kernels_get(NAMES[t]);
        if (k == NULL) {
            continue;
        }
        for (uint32_t base = 0; base < 65536; base += 16) {
            uint16_t h[16], back[16];
            float f[16];
            for (uint32_t l = 0; l < 16; l++) {
                h[l] = (uint16_t)(base + l);
            }
            k->dequantize_row(DTYPE_F16, h, f, 16);
            k->quantize_row(DTYPE_F16, f, back, 16);
            for (int l = 0; l < 16; l++) {
                assert_int_equal(bits_of(f[l]), bits_of(f16_to_f32(h[l])));
                assert_int_equal(back[l], f16_from_f32(f[l]));
            }
        }
    }
}

/* The definition itself, on numbers whose rounding shows the order of additions. */
static void test_order_of_additions(void **state)
{
    (void)state;
    const kernels *k = kernels_get(NULL);
    float x[40], y[40], s[16] = {0};

    for (int i = 0; i < 40; i++) {
        x[i] = 1 + ldexpf(1, -(i % 23));
        y[i] = i % 2 ? 1e6f + (float)i : -1e-3f * (float)i;
        s[i % 16] = fmaf(x[i], y[i], s[i % 16]);
    }
    for (int l = 0; l < 8; l++) {
        s[l] += s[l + 8];
    }
    for (int l = 0; l < 4; l++) {
        s[l] += s[l + 4];
    }
    const float want = (s[0] + s[2]) + (s[1] + s[3]);
    assert_int_equal(bits_of(k->vec_dot_f32(x, y, 40)), bits_of(want));
}

static void test_dispatch(void **state)
{
    (void)state;
    const kernels *best = kernels_get(NULL);

    assert_non_null(best);
    assert_ptr_equal(kernels_get(best->name), best);
    assert_string_equal(kernels_get("scalar")->name, "scalar");
    assert_null(kernels_get("mmx"));
    assert_null(kernels_get(""));
    best->dequantize_row(DTYPE_U8, "abcd", GOT, 4);
    assert_true(isnan(GOT[3]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch),       cmocka_unit_test(test_order_of_additions),
        cmocka_unit_test(test_dots),           cmocka_unit_test(test_matmul_plain),
        cmocka_unit_test(test_elementwise),    cmocka_unit_test(test_functions),
        cmocka_unit_test(test_types),          cmocka_unit_test(test_exp_everywhere),
        cmocka_unit_test(test_f16_everywhere), cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
