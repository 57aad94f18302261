/* test_attn_q8.c: attention over 8 bits: every table that this CPU runs equals the reference, bit
 * for bit, for all row counts and lengths, and the reference is near the plain products. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "quant/blocks.h"
#include "quant/panel.h"
#include "quant/quant.h"

enum { MAX_D = 160, MAX_ROWS = 19, POSITIONS = 256, STRIDE = 261, GUARD = 16 };

static const char *const NAMES[] = {"avx2", "avx512", "neon", "neon_dot"};
static uint8_t TILES[POSITIONS / 16 * (MAX_D / 32) * ATTN_Q8_TILE_BYTES + 1];
static float ROWS[POSITIONS * MAX_D], X[MAX_ROWS * MAX_D], P[MAX_ROWS * STRIDE];
static int16_t LEVELS[MAX_ROWS * MAX_D], LEVELS_GOT[MAX_ROWS * MAX_D];
static float SCALES[MAX_ROWS], SCALES_GOT[MAX_ROWS];
static float WANT[MAX_ROWS * STRIDE + GUARD], GOT[MAX_ROWS * STRIDE + GUARD];

/* Positions as tiles of keys or of values, and the values that are really stored in ROWS. */
static uint8_t *store(int64_t d, int (*level_at)(int p, int i))
{
    uint8_t *tiles = TILES + 1;
    for (int64_t p = 0; p < POSITIONS; p++) {
        for (int64_t g = 0; g < d / 32; g++) {
            uint8_t *tile = tiles + (size_t)(p / 16 * (d / 32) + g) * ATTN_Q8_TILE_BYTES;
            block_q8_0 b;
            quantize_row_ref(DTYPE_Q8_0, ROWS + p * d + g * 32, &b, 32);
            dequantize_row_ref(DTYPE_Q8_0, &b, ROWS + p * d + g * 32, 32);
            memcpy(tile + 2 * (p % 16), b.d, 2);
            for (int i = 0; i < 32; i++) {
                tile[level_at((int)(p % 16), i)] = (uint8_t)b.qs[i];
            }
        }
    }
    return tiles;
}

static void fill(rng *r, float *x, int64_t n, float size)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = size * (float)(2 * rng_uniform(r) - 1);
    }
}

static void check(const char *what, const char *isa, const float *want, const float *got, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(want + i, got + i, sizeof *want) != 0 && !(isnan(want[i]) && isnan(got[i]))) {
            fail_msg("%s %s, element %d: %a, scalar %a", what, isa, (int)i, (double)got[i],
                     (double)want[i]);
        }
    }
}

/* A scale somewhere becomes infinite or NaN, as in bytes that were never written. */
static void damage(rng *r, uint8_t *tiles, int64_t d)
{
    uint8_t *tile = tiles + rng_next(r) % (uint64_t)(POSITIONS / 16 * (d / 32)) *
                                ATTN_Q8_TILE_BYTES;
    half_put(tile + 2 * (rng_next(r) % 16), rng_next(r) % 2 ? 0x7c00 : 0x7e00);
}

static void compare_all(const panel_kernels *ref, const panel_kernels *k, rng *r, int round)
{
    const int64_t d = 32 * (1 + (int64_t)(rng_next(r) % (MAX_D / 32)));
    const int64_t n_rows = 1 + (int64_t)(rng_next(r) % MAX_ROWS);
    const int64_t n_tiles = 1 + (int64_t)(rng_next(r) % (POSITIONS / 16));
    const int64_t n = round % 3 == 0 ? POSITIONS : 1 + (int64_t)(rng_next(r) % POSITIONS);

    fill(r, ROWS, POSITIONS * d, 3);
    fill(r, X, n_rows * d, round % 4 == 0 ? 1e-30f : 5);
    if (round % 5 == 0) {
        X[rng_next(r) % (uint64_t)(n_rows * d)] = round % 2 ? INFINITY : NAN;
    }
    for (int64_t i = 0; i < n_rows; i++) {
        ref->attn_q8_quantize(X + i * d, d, LEVELS + i * d, SCALES + i);
        k->attn_q8_quantize(X + i * d, d, LEVELS_GOT + i * d, SCALES_GOT + i);
    }
    assert_memory_equal(LEVELS, LEVELS_GOT, sizeof(int16_t) * (size_t)(n_rows * d));
    check("query scales", k->name, SCALES, SCALES_GOT, n_rows);

    const attn_q8_query q = {LEVELS, SCALES};
    uint8_t *tiles = store(d, attn_q8_key_at);
    if (round % 7 == 0) {
        damage(r, tiles, d);
    }
    memset(WANT, 0, sizeof(WANT));
    memset(GOT, 0, sizeof(GOT));
    ref->attn_q8_scores(tiles, q, n_rows, d, n_tiles, WANT, STRIDE);
    k->attn_q8_scores(tiles, q, n_rows, d, n_tiles, GOT, STRIDE);
    check("scores", k->name, WANT, GOT, n_rows * STRIDE + GUARD);

    tiles = store(d, attn_q8_value_at);
    if (round % 7 == 1) {
        damage(r, tiles, d);
    }
    for (int64_t i = 0; i < n_rows * STRIDE; i++) {
        P[i] = round % 2 ? (float)rng_uniform(r) : (float)exp(-40 * rng_uniform(r));
    }
    P[0] = 1;
    memset(WANT, 0, sizeof(WANT));
    memset(GOT, 0, sizeof(GOT));
    ref->attn_q8_values(tiles, P, STRIDE, n_rows, d, n, WANT);
    k->attn_q8_values(tiles, P, STRIDE, n_rows, d, n, GOT);
    check("values", k->name, WANT, GOT, n_rows * STRIDE + GUARD);
}

static void test_tables_agree(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof(NAMES) / sizeof(NAMES[0]); t++) {
        const panel_kernels *k = panel_kernels_get(NAMES[t]);
        rng r = {t + 1};
        for (int round = 0; k != NULL && round < 150; round++) {
            compare_all(panel_kernels_get("scalar"), k, &r, round);
        }
    }
}

static void test_near_the_plain_products(void **state)
{
    (void)state;
    enum { D = 64 };
    rng r = {9};
    attn_q8_query q = {LEVELS, SCALES};
    fill(&r, ROWS, POSITIONS * D, 3);
    fill(&r, X, D, 2);
    attn_q8_quantize_ref(X, D, LEVELS, SCALES);
    attn_q8_scores_ref(store(D, attn_q8_key_at), q, 1, D, POSITIONS / 16, WANT, POSITIONS);
    for (int p = 0; p < POSITIONS; p++) {
        double want = 0;
        for (int i = 0; i < D; i++) {
            want += (double)X[i] * ROWS[p * D + i];
        }
        assert_true(fabs(WANT[p] - want) < 2e-3);
        P[p] = (float)exp(-rng_uniform(&r));
    }
    attn_q8_values_ref(store(D, attn_q8_value_at), P, POSITIONS, 1, D, POSITIONS, WANT);
    for (int i = 0; i < D; i++) {
        double want = 0;
        for (int p = 0; p < POSITIONS; p++) {
            want += (double)P[p] * ROWS[p * D + i];
        }
        assert_true(fabs(WANT[i] - want) < 1e-2);
    }
}

/* The extremes of levels: sums that would leave 16 bits, or saturate. */
static void test_largest_levels(void **state)
{
    (void)state;
    enum { D = 128 };
    for (int64_t i = 0; i < POSITIONS * D; i++) {
        ROWS[i] = i % 3 == 0 ? -127 : 127;
    }
    for (int64_t i = 0; i < MAX_ROWS * D; i++) {
        X[i] = i % 2 == 0 ? -1 : 1;
    }
    for (int64_t i = 0; i < MAX_ROWS * STRIDE; i++) {
        P[i] = 1;
    }
    for (int64_t i = 0; i < MAX_ROWS; i++) {
        attn_q8_quantize_ref(X + i * D, D, LEVELS + i * D, SCALES + i);
    }
    for (size_t t = 0; t < sizeof(NAMES) / sizeof(NAMES[0]); t++) {
        const panel_kernels *k = panel_kernels_get(NAMES[t]);
        const attn_q8_query q = {LEVELS, SCALES};
        if (k == NULL) {
            continue;
        }
        uint8_t *tiles = store(D, attn_q8_key_at);
        attn_q8_scores_ref(tiles, q, MAX_ROWS, D, POSITIONS / 16, WANT, STRIDE);
        k->attn_q8_scores(tiles, q, MAX_ROWS, D, POSITIONS / 16, GOT, STRIDE);
        check("scores", k->name, WANT, GOT, POSITIONS);
        tiles = store(D, attn_q8_value_at);
        attn_q8_values_ref(tiles, P, STRIDE, MAX_ROWS, D, POSITIONS, WANT);
        k->attn_q8_values(tiles, P, STRIDE, MAX_ROWS, D, POSITIONS, GOT);
        check("values", k->name, WANT, GOT, MAX_ROWS * D);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_agree),
        cmocka_unit_test(test_near_the_plain_products),
        cmocka_unit_test(test_largest_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
