/* test_quantize.c: quantize_row of every kernel table that this CPU runs makes the very bytes of
 * quantize_row_ref, whatever the weights: rows of 1 .. 9 blocks at odd addresses, each block of its
 * own kind, and the golden rows (tests/golden/quants, unpacked into the folder that is the first
 * argument). What lies behind a row must stay untouched. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "quant/blocks.h"
#include "quant/kernels.h"
#include "quant/quant.h"

enum { MAX_BLOCKS = 9, N_MAX = MAX_BLOCKS * QK_K, GUARD = 16, GUARD_BYTE = 0xa5 };

static const char *golden_dir;
static const char *const NAMES[] = {"scalar", "avx2", "avx512", "neon"};
static const dtype TYPES[] = {DTYPE_F32,  DTYPE_F16,  DTYPE_BF16, DTYPE_Q8_0,
                              DTYPE_Q2_K, DTYPE_Q4_K, DTYPE_Q6_K};
enum { N_NAMES = 4, N_TYPES = 7 };

typedef enum kind {
    KIND_NORMAL,
    KIND_HEAVY_TAILED,
    KIND_CONSTANT,
    KIND_ZERO, /* with either sign */
    KIND_OUTLIER,
    KIND_DENORMAL,
    KIND_HUGE,
    KIND_WIDE, /* every magnitude in one block */
    KIND_TIES, /* small multiples of a half: rounding decides */
    KIND_POSITIVE,
    KIND_TINY,      /* groups around the bound below which they are stored as zero */
    KIND_PATCHWORK, /* every group of another magnitude, some constant or zero */
    KIND_NOT_FINITE,
    N_KINDS
} kind;

static float normal(rng *r)
{
    const double u = 1 - rng_uniform(r); /* not 0 */
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * rng_uniform(r)));
}

static float weight(rng *r, kind k, int e, float level)
{
    switch (k) {
    case KIND_HEAVY_TAILED: {
        const float v = normal(r);
        return 0.01f * v * v * v * v * v;
    }
    case KIND_CONSTANT: return level;
    case KIND_ZERO: return rng_next(r) % 2 ? 0.0f : -0.0f;
    case KIND_OUTLIER: return e == 77 ? 1000 * level : 0.001f * normal(r);
    case KIND_DENORMAL: return ldexpf(normal(r), -140 + e % 16);
    case KIND_HUGE: return (rng_next(r) % 2 ? 1 : -1) * FLT_MAX * (float)rng_uniform(r);
    case KIND_WIDE: return ldexpf((float)(rng_uniform(r) - 0.5), (int)(rng_next(r) % 277) - 149);
    case KIND_TIES: return 0.5f * (float)((int)(rng_next(r) % 255) - 127);
    case KIND_POSITIVE: return 1 + 0.01f * normal(r);
    case KIND_TINY: return ldexpf(4e-16f * normal(r), e / 16 % 7);
    case KIND_PATCHWORK: {
        const int g = e / 16;
        return g % 5 == 0 ? 0 : g % 5 == 1 ? level : ldexpf(normal(r), 3 * g - 40);
    }
    case KIND_NOT_FINITE: {
        static const float values[] = {NAN, -NAN, INFINITY, -INFINITY};
        return e % 97 == 11 ? values[rng_next(r) % 4] : normal(r);
    }
    default: return 0.02f * normal(r);
    }
}

static void fill_block(rng *r, kind k, float x[QK_K])
{
    const float level = normal(r);

    for (int e = 0; e < QK_K; e++) {
        x[e] = weight(r, k, e, level);
    }
}

static void check_row(const kernels *k, dtype type, const float *x, int64_t n)
{
    static uint8_t want[N_MAX * sizeof(float)], got[N_MAX * sizeof(float) + 1 + GUARD];
    const dtype_info *info = dtype_get(type);
    const size_t n_bytes = dtype_row_bytes(type, (uint64_t)n);

    quantize_row_ref(type, x, want, n);
    memset(got, GUARD_BYTE, sizeof(got));
    k->quantize_row(type, x, got + 1, n);
    for (size_t i = 0; i < n_bytes; i += info->block_bytes) {
        if (memcmp(want + i, got + 1 + i, info->block_bytes) != 0) {
            const size_t block = i / info->block_bytes;
            fail_msg("%s %s: block %zu of %lld weights differs; its first weight is %a", k->name,
                     info->name, block, (long long)n, (double)x[block * info->block_elems]);
        }
    }
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(got[1 + n_bytes + (size_t)i], GUARD_BYTE);
    }
    assert_int_equal(got[0], GUARD_BYTE);
}

/* Rows of one kind, then rows of mixed kinds. */
static void check_table(const kernels *k)
{
    static float x[N_MAX];
    rng r = {17};

    for (int round = 0; round < 6 * N_KINDS; round++) {
        for (int b = 0; b < MAX_BLOCKS; b++) {
            const bool mixed = round >= 3 * N_KINDS;
            fill_block(&r, mixed ? (kind)(rng_next(&r) % N_KINDS) : (kind)(round % N_KINDS),
                       x + b * QK_K);
        }
        const int64_t n_blocks = 1 + round % MAX_BLOCKS;
        for (int t = 0; t < N_TYPES; t++) {
            check_row(k, TYPES[t], x, n_blocks * dtype_get(TYPES[t])->block_elems);
            check_row(k, TYPES[t], x, n_blocks * QK_K);
            check_row(k, TYPES[t], x, 0);
        }
    }
    for (int64_t n = 0; n < 70; n++) { /* types without blocks: any length */
        for (int t = 0; t < 3; t++) {
            check_row(k, TYPES[t], x, n);
        }
    }
}

static void test_same_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < N_NAMES; i++) {
        const kernels *k = kernels_get(NAMES[i]);
        if (k != NULL) {
            check_table(k);
        }
    }
}

/* Any bits at all, as f32 or as what they mean when their exponents are close to each other. */
static void test_any_bits(void **state)
{
    (void)state;
    static float x[2 * QK_K];
    rng r = {23};

    for (int round = 0; round < 150; round++) {
        for (int e = 0; e < 2 * QK_K; e++) {
            uint32_t bits = (uint32_t)rng_next(&r);
            if (round % 2) {
                bits = (bits & 0x807fffff) | (uint32_t)(round + (int)(bits >> 23 & 3)) << 23;
            }
            memcpy(&x[e], &bits, sizeof(bits));
        }
        for (int i = 1; i < N_NAMES; i++) {
            const kernels *k = kernels_get(NAMES[i]);
            for (int t = 0; k != NULL && t < N_TYPES; t++) {
                check_row(k, TYPES[t], x, 2 * QK_K);
            }
        }
    }
}

static void test_golden_rows(void **state)
{
    (void)state;
    char path[4096];
    static float x[N_MAX];

    snprintf(path, sizeof(path), "%s/rows.f32", golden_dir);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fail_msg("cannot open %s", path);
    }
    size_t n, n_rows = 0;
    while ((n = fread(x, QK_K * sizeof(float), MAX_BLOCKS, f)) > 0) {
        for (int i = 0; i < N_NAMES; i++) {
            const kernels *k = kernels_get(NAMES[i]);
            for (int t = 0; k != NULL && t < N_TYPES; t++) {
                check_row(k, TYPES[t], x, (int64_t)n * QK_K);
            }
        }
        n_rows += n;
    }
    fclose(f);
    assert_true(n_rows > 100);
}

/* A type without a quantiser: nothing is written, as by the reference. */
static void test_unsupported(void **state)
{
    (void)state;
    const float x[4] = {1, 2, 3, 4};
    uint8_t y[4] = {9, 9, 9, 9};

    kernels_get(NULL)->quantize_row(DTYPE_U8, x, y, 4);
    assert_memory_equal(y, "\x09\x09\x09\x09", 4);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: test_quantize FOLDER   (unpacked tests/golden/quants)\n");
        return 2;
    }
    golden_dir = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_any_bits),
        cmocka_unit_test(test_golden_rows),
        cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
