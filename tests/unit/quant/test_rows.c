/* test_rows.c: the quantisers against ggml's own blocks (tests/golden/quants, unpacked into the
 * folder that is the first argument), and what they promise beyond those: error bounds, layout, odd
 * input. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "quant/blocks.h"
#include "quant/kernels.h"
#include "quant/quant.h"

static const char *golden_dir;

static const dtype BLOCK_TYPES[] = {DTYPE_Q8_0, DTYPE_Q2_K, DTYPE_Q4_K, DTYPE_Q6_K,
                                    DTYPE_Q4_0, DTYPE_Q3_K, DTYPE_Q5_K};
enum { N_BLOCK_TYPES = 7 };

static void *read_golden(const char *prefix, const char *type, const char *suffix, size_t *n_bytes)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s%s%s", golden_dir, prefix, type, suffix);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fail_msg("cannot open %s", path);
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long size = ftell(f);
    assert_true(size > 0);
    rewind(f);
    void *data = malloc((size_t)size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), (size_t)size);
    fclose(f);
    *n_bytes = (size_t)size;
    return data;
}

static void check_same(const char *what, const char *type, const void *ours, const void *golden,
                       size_t n_bytes, size_t unit_bytes)
{
    for (size_t i = 0; i < n_bytes; i += unit_bytes) {
        if (memcmp((const char *)ours + i, (const char *)golden + i, unit_bytes) != 0) {
            fail_msg("%s %s: item %zu differs from ggml", what, type, i / unit_bytes);
        }
    }
}

static void test_golden_quantize(void **state)
{
    (void)state;
    size_t n_row_bytes, n_bytes;
    float *rows = read_golden("rows.", "f32", "", &n_row_bytes);
    const uint64_t n = n_row_bytes / sizeof(float);

    for (int t = 0; t < N_BLOCK_TYPES; t++) {
        const dtype_info *info = dtype_get(BLOCK_TYPES[t]);
        void *golden = read_golden("rows.", info->name, "", &n_bytes);
        assert_int_equal(n_bytes, dtype_row_bytes(info->type, n));
        void *ours = malloc(n_bytes);
        assert_non_null(ours);
        quantize_row_ref(info->type, rows, ours, (int64_t)n);
        check_same("quantising", info->name, ours, golden, n_bytes, info->block_bytes);
        free(ours);
        free(golden);
    }
    free(rows);
}

static void test_golden_dequantize(void **state)
{
    (void)state;
    for (int t = 0; t < N_BLOCK_TYPES; t++) {
        const dtype_info *info = dtype_get(BLOCK_TYPES[t]);
        size_t n_block_bytes, n_bytes;
        void *blocks = read_golden("dequant.", info->name, ".blocks", &n_block_bytes);
        float *golden = read_golden("dequant.", info->name, ".f32", &n_bytes);
        const uint64_t n = n_bytes / sizeof(float);
        assert_int_equal(n_block_bytes, dtype_row_bytes(info->type, n));
        float *ours = malloc(n_bytes);
        assert_non_null(ours);
        dequantize_row_ref(info->type, blocks, ours, (int64_t)n);
        check_same("dequantising", info->name, ours, golden, n_bytes, sizeof(float));
        kernels_get(NULL)->dequantize_row(info->type, blocks, ours, (int64_t)n);
        check_same("fast dequantising", info->name, ours, golden, n_bytes, sizeof(float));
        free(ours);
        free(golden);
        free(blocks);
    }
}

static void test_golden_scalars(void **state)
{
    (void)state;
    static const dtype types[] = {DTYPE_F16, DTYPE_BF16};
    size_t n_scalar_bytes, n_bytes;
    float *scalars = read_golden("scalars.", "f32", "", &n_scalar_bytes);

    for (int t = 0; t < 2; t++) {
        const dtype_info *info = dtype_get(types[t]);
        void *golden = read_golden("scalars.", info->name, "", &n_bytes);
        assert_int_equal(n_bytes, n_scalar_bytes / 2);
        void *ours = malloc(n_bytes);
        assert_non_null(ours);
        quantize_row_ref(info->type, scalars, ours, (int64_t)(n_bytes / 2));
        check_same("rounding to", info->name, ours, golden, n_bytes, 2);
        free(ours);
        free(golden);
    }
    free(scalars);
}

static float uniform(rng *r)
{
    return (float)(2 * rng_uniform(r) - 1);
}

/* As a share of the largest weight. Half a step of the grid would be 0.004, 0.33, 0.07, 0.016,
 * 0.07, 0.14, 0.03; the fits trade a larger error of few weights for a smaller one of many. */
static void test_error_bounds(void **state)
{
    (void)state;
    static const float bounds[] = {0.0045f, 0.5f, 0.14f, 0.03f, 0.14f, 0.3f, 0.07f};
    rng r = {7};
    float x[QK_K], y[QK_K];
    uint8_t blocks[sizeof(float) * QK_K];

    for (int round = 0; round < 200; round++) {
        const float scale = ldexpf(1, (int)(rng_next(&r) % 14) - 4); /* f16 scales: no subnormals */
        for (int e = 0; e < QK_K; e++) {
            x[e] = scale * uniform(&r);
        }
        for (int t = 0; t < N_BLOCK_TYPES; t++) {
            quantize_row_ref(BLOCK_TYPES[t], x, blocks, QK_K);
            dequantize_row_ref(BLOCK_TYPES[t], blocks, y, QK_K);
            for (int e = 0; e < QK_K; e++) {
                if (!(fabsf(x[e] - y[e]) <= bounds[t] * scale)) {
                    fail_msg("%s: %a came back as %a (scale %a)", dtype_get(BLOCK_TYPES[t])->name,
                             (double)x[e], (double)y[e], (double)scale);
                }
            }
        }
    }
}

/* Integers that fit a type's grid come back exactly: a layout error cannot hide in a tolerance. */
static void test_exact_grid(void **state)
{
    (void)state;
    static const int q_max[] = {127, 3, 15, 31, 7, 3, 31};
    float x[QK_K], y[QK_K];
    uint8_t blocks[sizeof(float) * QK_K];
    rng r = {11};

    for (int t = 0; t < N_BLOCK_TYPES; t++) {
        const bool is_affine = BLOCK_TYPES[t] == DTYPE_Q2_K || BLOCK_TYPES[t] == DTYPE_Q4_K ||
                               BLOCK_TYPES[t] == DTYPE_Q5_K;
        for (int e = 0; e < QK_K; e++) {
            x[e] = (float)(rng_next(&r) % (unsigned)(q_max[t] + 1));
            if (e % 16 < 2) { /* every group spans the whole grid */
                x[e] = e % 2 == 0 ? (float)q_max[t] : 0;
            }
            if (!is_affine && e % 3 == 0) {
                x[e] = -x[e];
            }
            if (!is_affine && BLOCK_TYPES[t] != DTYPE_Q8_0 && e % 16 == 2) {
                x[e] = (float)(-q_max[t] - 1); /* the end of the grid that sets the scale */
            }
        }
        quantize_row_ref(BLOCK_TYPES[t], x, blocks, QK_K);
        dequantize_row_ref(BLOCK_TYPES[t], blocks, y, QK_K);
        for (int e = 0; e < QK_K; e++) { /* the f16 scale may cost the last bits */
            if (!(fabsf(x[e] - y[e]) <= 0.002f * (float)q_max[t])) {
                fail_msg("%s: element %d: %g came back as %g", dtype_get(BLOCK_TYPES[t])->name, e,
                         (double)x[e], (double)y[e]);
            }
        }
    }
}

/* One weight that is not finite turns its block, and no other, into NaN. */
static void test_not_finite(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    float x[3 * QK_K], y[3 * QK_K];
    uint8_t blocks[sizeof(x)];

    for (int t = 0; t < N_BLOCK_TYPES; t++) {
        const int n_block = (int)dtype_get(BLOCK_TYPES[t])->block_elems;
        for (int v = 0; v < 3; v++) {
            for (int e = 0; e < 3 * QK_K; e++) {
                x[e] = (float)(e % 7 - 3);
            }
            x[QK_K + 5] = values[v];
            quantize_row_ref(BLOCK_TYPES[t], x, blocks, 3 * QK_K);
            dequantize_row_ref(BLOCK_TYPES[t], blocks, y, 3 * QK_K);
            for (int e = 0; e < 3 * QK_K; e++) {
                const bool hit = e / n_block == (QK_K + 5) / n_block;
                assert_int_equal(isnan(y[e]) != 0, hit);
            }
        }
    }
}

/* Any finite floats, up to the largest and down to the smallest: defined behaviour (sanitisers)
 * and, where the scale surely fits an f16, finite weights. */
static void test_extreme_input(void **state)
{
    (void)state;
    rng r = {13};
    float x[QK_K], y[QK_K];
    uint8_t blocks[sizeof(float) * QK_K];

    for (int round = 0; round < 2000; round++) {
        const int top = 127 - round % 277;
        for (int e = 0; e < QK_K; e++) {
            const int below = round % 3 == 0 ? (int)(rng_next(&r) % 277) : 0;
            x[e] = ldexpf(uniform(&r), top - below);
        }
        for (int t = 0; t < N_BLOCK_TYPES; t++) {
            quantize_row_ref(BLOCK_TYPES[t], x, blocks, QK_K);
            dequantize_row_ref(BLOCK_TYPES[t], blocks, y, QK_K);
            for (int e = 0; e < QK_K; e++) {
                assert_true(top > 14 || isfinite(y[e]));
            }
        }
    }
    for (int e = 0; e < QK_K; e++) {
        x[e] = e % 2 ? 3.4e38f : -3.4e38f;
    }
    for (int t = 0; t < N_BLOCK_TYPES; t++) {
        quantize_row_ref(BLOCK_TYPES[t], x, blocks, QK_K);
    }
}

static void test_sizes_and_support(void **state)
{
    (void)state;
    assert_int_equal(dtype_row_bytes(DTYPE_Q8_0, Q8_0_ELEMS), sizeof(block_q8_0));
    assert_int_equal(dtype_row_bytes(DTYPE_Q2_K, QK_K), sizeof(block_q2_K));
    assert_int_equal(dtype_row_bytes(DTYPE_Q4_K, QK_K), sizeof(block_q4_K));
    assert_int_equal(dtype_row_bytes(DTYPE_Q6_K, QK_K), sizeof(block_q6_K));
    assert_true(quant_supported(DTYPE_F32));
    assert_true(quant_supported(DTYPE_Q2_K));
    assert_false(quant_supported(DTYPE_I8));
    assert_false(quant_supported(DTYPE_U8));

    float y[3] = {1, 2, 3};
    dequantize_row_ref(DTYPE_U8, "abc", y, 3);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: test_rows FOLDER   (unpacked tests/golden/quants)\n");
        return 2;
    }
    golden_dir = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_support), cmocka_unit_test(test_golden_quantize),
        cmocka_unit_test(test_golden_dequantize), cmocka_unit_test(test_golden_scalars),
        cmocka_unit_test(test_error_bounds),      cmocka_unit_test(test_exact_grid),
        cmocka_unit_test(test_not_finite),        cmocka_unit_test(test_extreme_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
