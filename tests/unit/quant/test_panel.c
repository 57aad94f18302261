/* test_panel.c: the panel layout gives every bit back; every table of panel kernels that this CPU
 * runs equals the scalar one, bit for bit (two NaNs count as equal); a batch equals its vectors one
 * by one; and the results are right, within what 8-bit activations allow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "quant/panel.h"
#include "quant/quant.h"

static const char *const NAMES[] = {"scalar", "avx2", "avx2_vnni", "avx512", "neon",
                                    "neon_dot"};
enum { N_NAMES = sizeof(NAMES) / sizeof(NAMES[0]) };
static const dtype TYPES[] = {DTYPE_Q4_0, DTYPE_Q8_0, DTYPE_Q2_K, DTYPE_Q3_K,
                              DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_Q6_K};
enum { N_TYPES = sizeof(TYPES) / sizeof(TYPES[0]) };
enum { MAX_ROWS = 70, MAX_COLS = 1100, MAX_VECTORS = 110, GUARD = 5 };

typedef enum input { INPUT_ORDINARY, INPUT_EXTREME, INPUT_ANY_BYTES, N_INPUTS } input;

static uint8_t ROWS[MAX_ROWS * MAX_COLS * 4], BACK[sizeof(ROWS)];
static uint8_t PANELS[(MAX_ROWS + 15) * MAX_COLS * 4 + 64];
static float X[MAX_VECTORS * (MAX_COLS + 8)];
static act_block ACTS[MAX_VECTORS * 6];
static float WANT[MAX_VECTORS * (MAX_ROWS + GUARD)], GOT[MAX_VECTORS * (MAX_ROWS + GUARD)];

static float uniform(rng *r)
{
    return (float)(2 * rng_uniform(r) - 1);
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static float any_float(rng *r)
{
    static const float special[] = {0, -0.0f, FLT_MAX, -FLT_MAX, FLT_MIN, 0x1p-149f, -0x1p-140f,
                                    1e-30f, 1e30f, INFINITY, -INFINITY, NAN};
    return rng_next(r) % 64 == 0 ? special[rng_next(r) % (sizeof(special) / sizeof(special[0]))]
                                 : ldexpf(uniform(r), (int)(rng_next(r) % 12) - 6);
}

/* Where the f16 scales of a block lie. */
static unsigned scales_at(dtype type, unsigned at[2])
{
    switch (type) {
    case DTYPE_Q4_0:
    case DTYPE_Q8_0: at[0] = 0; return 1;
    case DTYPE_Q2_K: at[0] = 80; at[1] = 82; return 2;
    case DTYPE_Q3_K: at[0] = 108; return 1;
    case DTYPE_Q4_K:
    case DTYPE_Q5_K: at[0] = 0; at[1] = 2; return 2;
    case DTYPE_Q6_K: at[0] = 208; return 1;
    default: return 0;
    }
}

/* Random bytes are valid blocks of every type. Ordinary: scales near 1. Extreme: all levels and
 * scales at one end of their range, scales zero, denormal or large. */
static void fill_rows(rng *r, dtype type, input kind, uint8_t *rows, uint64_t n_rows, uint64_t cols)
{
    const dtype_info *info = dtype_get(type);
    const uint64_t n_bytes = n_rows * dtype_row_bytes(type, cols);
    static const uint16_t extreme[] = {0,      0x8000, 1,      0x8001, 0x03ff,
                                       0x7bff, 0xfbff, 0x3c00, 0x7c00};
    unsigned at[2];
    const unsigned n_at = scales_at(type, at);

    for (uint64_t i = 0; i < n_bytes; i++) {
        rows[i] = (uint8_t)rng_next(r);
    }
    if (kind == INPUT_ANY_BYTES) {
        return;
    }
    for (uint64_t b = 0; b < n_bytes; b += info->block_bytes) {
        if (kind == INPUT_EXTREME) {
            static const uint8_t ends[] = {0, 0xff, 0x7f, 0x80};
            memset(rows + b, ends[rng_next(r) % 4], info->block_bytes);
        }
        for (unsigned i = 0; i < n_at; i++) {
            const uint16_t h = kind == INPUT_EXTREME ? extreme[rng_next(r) % 9]
                                                     : f16_from_f32(uniform(r) / 16);
            memcpy(rows + b + at[i], &h, 2);
        }
    }
}

static void fill_x(rng *r, input kind, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        X[i] = kind == INPUT_ORDINARY ? uniform(r) : any_float(r);
    }
    if (kind == INPUT_EXTREME) { /* whole blocks at the ends of the levels */
        const float end = rng_next(r) % 2 ? 1.0f : -1.0f;
        for (int64_t i = 0; i < n; i++) {
            X[i] = i % 1024 < 512 ? end : X[i];
        }
    }
}

static uint64_t some_cols(rng *r, dtype type)
{
    const uint64_t block = dtype_get(type)->block_elems;
    return block * (1 + rng_next(r) % (MAX_COLS / block));
}

/* The vectors of a product. */
static panel_x make_x(dtype type, int64_t cols, int64_t n, int64_t pad)
{
    const int64_t stride = act_n_blocks(cols) + pad % 2;
    for (int64_t j = 0; j < n; j++) {
        act_quantize_ref(X + j * (cols + pad), cols, panel_act_scale(type), ACTS + j * stride);
    }
    return (panel_x){ACTS, stride, n};
}

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(panel_bytes(DTYPE_Q4_K, 512), 2 * 2304);
    assert_int_equal(panel_matrix_bytes(DTYPE_Q8_0, 17, 96), 2 * 3 * 544);
    assert_int_equal(panel_bytes(DTYPE_Q4_K, 100), 0);
    assert_int_equal(panel_bytes(DTYPE_U8, 256), 0);
    assert_int_equal(panel_bytes(DTYPE_BF16, 256), 0);
    assert_int_equal(panel_bytes(DTYPE_Q8_0, UINT64_MAX - 31), 0);
    assert_int_equal(panel_matrix_bytes(DTYPE_Q8_0, UINT64_MAX, 32), 0);
    assert_true(panel_supported(DTYPE_Q2_K));
    assert_false(panel_supported(DTYPE_I8));
    assert_false(panel_supported(DTYPE_F32));
    assert_int_equal(panel_act_scale(DTYPE_Q2_K), 256);
    assert_int_equal(panel_act_scale(DTYPE_Q4_0), 32);
    assert_int_equal(panel_act_scale(DTYPE_BF16), 0);
}

static void test_round_trip(void **state)
{
    (void)state;
    rng r = {1};

    for (int t = 0; t < N_TYPES; t++) {
        for (uint64_t n_rows = 1; n_rows <= MAX_ROWS; n_rows++) {
            const uint64_t cols = some_cols(&r, TYPES[t]);
            const uint64_t n_bytes = n_rows * dtype_row_bytes(TYPES[t], cols);
            const uint64_t n_panels = panel_matrix_bytes(TYPES[t], n_rows, cols);
            fill_rows(&r, TYPES[t], INPUT_ANY_BYTES, ROWS, n_rows, cols);
            memset(PANELS, 0xaa, n_panels + 1);
            panel_pack(TYPES[t], ROWS, n_rows, cols, PANELS);
            assert_int_equal(PANELS[n_panels], 0xaa);
            memset(BACK, 0x55, n_bytes + 1);
            panel_unpack(TYPES[t], PANELS, n_rows, cols, BACK);
            assert_memory_equal(ROWS, BACK, n_bytes);
            assert_int_equal(BACK[n_bytes], 0x55);
        }
    }
}

/* The rule of panel.h on one type, and zero rows at the end. */
static void test_layout(void **state)
{
    (void)state;
    rng r = {2};

    fill_rows(&r, DTYPE_Q4_K, INPUT_ANY_BYTES, ROWS, 18, 512);
    panel_pack(DTYPE_Q4_K, ROWS, 18, 512, PANELS);
    const uint8_t *block = PANELS + 2304, *row_5 = ROWS + 5 * 288 + 144; /* second block */
    assert_memory_equal(block + 2 * 5, row_5, 2);
    assert_memory_equal(block + 32 + 2 * 5, row_5 + 2, 2);
    assert_memory_equal(block + 64 + 4 * 5, row_5 + 4, 4);
    assert_memory_equal(block + 256 + 64 * 31 + 4 * 5, row_5 + 140, 4);
    const uint8_t *last = PANELS + 2 * 2304;
    assert_memory_equal(last + 256 + 4, ROWS + 17 * 288 + 16, 4);
    for (int i = 2; i < 16; i++) {
        assert_int_equal(last[256 + 4 * i] | last[2 * i], 0);
    }
}

static void check_same(const panel_kernels *k, dtype type, int64_t rows, int64_t cols, int64_t n,
                       int64_t out_stride)
{
    for (int64_t i = 0; i < n * out_stride; i++) {
        if (!same(WANT[i], GOT[i])) {
            fail_msg("%s %s [%d, %d] x %d: vector %d, row %d: %a, scalar %a", dtype_get(type)->name,
                     k->name, (int)rows, (int)cols, (int)n, (int)(i / out_stride),
                     (int)(i % out_stride), (double)GOT[i], (double)WANT[i]);
        }
    }
}

static void check_case(rng *r, dtype type, input kind, int64_t n)
{
    const int64_t rows = 1 + (int64_t)(rng_next(r) % MAX_ROWS);
    const int64_t cols = (int64_t)some_cols(r, type);
    const int64_t out_stride = rows + (int64_t)(rng_next(r) % GUARD);
    uint8_t *panels = PANELS + rng_next(r) % 64;
    const panel_kernels *ref = panel_kernels_get("scalar");

    fill_rows(r, type, kind, ROWS, (uint64_t)rows, (uint64_t)cols);
    panel_pack(type, ROWS, (uint64_t)rows, (uint64_t)cols, panels);
    const int64_t pad = (int64_t)(rng_next(r) % 8);
    fill_x(r, kind, n * (cols + pad));
    const panel_x x = make_x(type, cols, n, pad);
    memset(WANT, 0x3f, sizeof(WANT)); /* what lies between the rows must stay */
    for (int64_t j = 0; j < n; j++) {  /* singles: the batch of scalar is checked too */
        const panel_x one = {x.data + j * x.stride, 0, 1};
        ref->matmul(type, panels, rows, cols, one, WANT + j * out_stride, 0);
    }
    for (int i = 0; i < N_NAMES; i++) {
        const panel_kernels *k = panel_kernels_get(NAMES[i]);
        if (k != NULL) {
            memset(GOT, 0x3f, sizeof(GOT));
            k->matmul(type, panels, rows, cols, x, GOT, out_stride);
            check_same(k, type, rows, cols, n, out_stride);
        }
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    rng r = {3};

    for (int t = 0; t < N_TYPES; t++) {
        for (int kind = 0; kind < N_INPUTS; kind++) {
            for (int64_t n = 1; n <= 33; n++) {
                check_case(&r, TYPES[t], (input)kind, n);
            }
            for (int round = 0; round < 40; round++) {
                check_case(&r, TYPES[t], (input)kind, 1);
            }
            check_case(&r, TYPES[t], (input)kind, 97);
            check_case(&r, TYPES[t], (input)kind, 110);
        }
    }
}

/* Against a dot in double precision: of the activations as quantised (nearly exact), and of the
 * activations themselves (half a level per activation). Types with a scale per 32 take both kinds
 * of activations. */
static void test_accuracy(void **state)
{
    (void)state;
    enum { ROWS_HERE = 19, COLS = 768 };
    static float w[COLS], got[ROWS_HERE];
    static act_block acts[3];
    const panel_kernels *k = panel_kernels_get(NULL);
    rng r = {4};

    for (int t = 0; t < 2 * N_TYPES; t++) {
        const dtype type = TYPES[t / 2];
        const int scale_elems = t % 2 == 0 ? panel_act_scale(type) : 256;
        fill_rows(&r, type, INPUT_ORDINARY, ROWS, ROWS_HERE, COLS);
        panel_pack(type, ROWS, ROWS_HERE, COLS, PANELS);
        fill_x(&r, INPUT_ORDINARY, COLS);
        k->act_quantize(X, COLS, scale_elems, acts);
        k->matmul(type, PANELS, ROWS_HERE, COLS, (panel_x){acts, 0, 1}, got, 0);
        for (int row = 0; row < ROWS_HERE; row++) {
            double exact = 0, levels = 0, size = 0;
            dequantize_row_ref(type, ROWS + row * (int)dtype_row_bytes(type, COLS), w, COLS);
            for (int i = 0; i < COLS; i++) {
                const act_block *b = &acts[i / 256];
                exact += (double)w[i] * (double)X[i];
                levels += (double)w[i] * b->qs[i % 256] * (double)b->d[i % 256 / 32];
                size += fabs((double)w[i]);
            }
            assert_true(fabs((double)got[row] - levels) <= 1e-5 * size);
            assert_true(fabs((double)got[row] - exact) <= 0.51 / 127 * size);
        }
    }
}

/* A broken activation reaches every row that uses it; a zero one gives zero. */
static void test_not_finite(void **state)
{
    (void)state;
    enum { ROWS_HERE = 16, COLS = 512 };
    rng r = {5};

    for (int t = 0; t < N_TYPES; t++) {
        const dtype type = TYPES[t];
        fill_rows(&r, type, INPUT_ORDINARY, ROWS, ROWS_HERE, COLS);
        panel_pack(type, ROWS, ROWS_HERE, COLS, PANELS);
        for (int i = 0; i < N_NAMES; i++) {
            const panel_kernels *k = panel_kernels_get(NAMES[i]);
            if (k == NULL) {
                continue;
            }
            static const float broken[] = {0, NAN, INFINITY, -INFINITY};
            for (int v = 0; v < 4; v++) {
                memset(X, 0, COLS * sizeof(float));
                X[300] = broken[v];
                k->matmul(type, PANELS, ROWS_HERE, COLS, make_x(type, COLS, 1, 0), GOT, 0);
                for (int row = 0; row < ROWS_HERE; row++) {
                    assert_true(v == 0 ? GOT[row] == 0 : !isfinite(GOT[row]));
                }
            }
        }
    }
}

static void test_dispatch(void **state)
{
    (void)state;
    const panel_kernels *best = panel_kernels_get(NULL);

    assert_non_null(best);
    assert_ptr_equal(panel_kernels_get(best->name), best);
    assert_string_equal(panel_kernels_get("scalar")->name, "scalar");
    assert_null(panel_kernels_get("mmx"));
    assert_null(panel_kernels_get(""));
    print_message("[  NOTE    ] the best table here is %s\n", best->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_layout),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
