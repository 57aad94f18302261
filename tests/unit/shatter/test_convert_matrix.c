/* One matrix into its stored form: every type, source and form, rows that do not fill a panel, rows
 * longer than a piece, matrices longer than a chunk; always the bytes of quantising row by row. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "quant/panel.h"
#include "quant/quant.h"
#include "scratch.h"
#include "shatter/convert_matrix.h"

enum { HEAD_BYTES = 6 }; /* before the matrix, so that it starts anywhere */

static pool *pools[2];
static float *values; /* of the matrix, row after row, as the source type keeps them */

static void must(smoe_status status, const smoe_err *err)
{
    if (status != SMOE_OK) {
        fail_msg("%s", err->text);
    }
}

/* Writes rows x cols values of m->type into "source.bin"; a transposed one lies as the columns
 * first_col and up of a slab `stride` wide. */
static void write_source(const matrix_source *m)
{
    const uint64_t width = dtype_row_bytes(m->type, 1), n_bytes = matrix_source_bytes(m);
    uint64_t seed = m->rows * 31 + m->cols;
    uint8_t *data = malloc(HEAD_BYTES + n_bytes);
    values = malloc(m->rows * m->cols * sizeof *values);
    assert_true(data != NULL && values != NULL);
    memset(data, 0x5a, HEAD_BYTES + n_bytes);
    for (uint64_t r = 0; r < m->rows; r++) {
        for (uint64_t c = 0; c < m->cols; c++) {
            uint64_t at = m->transposed ? c * m->stride + m->first_col + r : r * m->cols + c;
            float *v = &values[r * m->cols + c];
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            *v = ((float)(seed >> 40) / (float)(1 << 24) - 0.5f) * (r % 5 == 3 ? 1e-3f : 3.0f);
            quantize_row_ref(m->type, v, data + HEAD_BYTES + at * width, 1);
            dequantize_row_ref(m->type, data + HEAD_BYTES + at * width, v, 1);
        }
    }
    scratch_write("source.bin", data, HEAD_BYTES + n_bytes);
    free(data);
}

static uint8_t *expected_bytes(const matrix_source *m, dtype type)
{
    const kernels *k = kernels_get(NULL);
    const uint64_t row_bytes = dtype_row_bytes(type, m->cols);
    uint8_t *rows = calloc(m->rows, row_bytes);
    assert_non_null(rows);
    for (uint64_t r = 0; r < m->rows; r++) {
        k->quantize_row(type, values + r * m->cols, rows + r * row_bytes, (int64_t)m->cols);
    }
    if (!dtype_get(type)->is_quantized) {
        return rows;
    }
    uint8_t *panels = malloc(panel_matrix_bytes(type, m->rows, m->cols));
    assert_non_null(panels);
    panel_pack(type, rows, m->rows, m->cols, panels);
    free(rows);
    return panels;
}

/* Step by step through the converter's own buffer, or straight to the end of a block of ours. */
static void check_one(converter *c, const matrix_source *m, dtype type, bool has_dst,
                      const uint8_t *expected)
{
    smoe_err err;
    conversion v;
    const uint64_t n_bytes = dtype_matrix_bytes(type, m->rows, m->cols);
    uint64_t at = 0, n_read = 0;
    uint8_t *dst = has_dst ? malloc(n_bytes) : NULL;
    must(conversion_begin(&v, c, m, type, &err), &err);
    for (n_read = v.n_read; v.n_rows_done < m->rows; at += v.n_out, n_read += v.n_read) {
        must(conversion_next(&v, has_dst ? dst + at : NULL, &err), &err);
        assert_true(v.n_out <= n_bytes - at);
        assert_memory_equal(v.out, expected + at, v.n_out);
    }
    assert_int_equal(at, n_bytes);
    assert_int_equal(n_read, matrix_source_bytes(m));
    free(dst);
}

static void check(matrix_source m, const dtype *types, size_t n_types)
{
    smoe_err err;
    safetensors shard = {.file = FILE_CLOSED};
    const source src = {.shards = &shard, .n_shards = 1};
    m.offset = HEAD_BYTES;
    write_source(&m);
    must(file_open(&shard.file, scratch_path("source.bin"), &err), &err);
    for (size_t i = 0; i < n_types; i++) {
        if (dtype_row_bytes(types[i], m.cols) == 0) {
            continue;
        }
        uint8_t *expected = expected_bytes(&m, types[i]);
        for (int how = 0; how < 4; how++) {
            converter c = {.source = &src, .kernels = kernels_get(NULL), .pool = pools[how % 2]};
            check_one(&c, &m, types[i], how >= 2, expected);
            converter_fini(&c);
        }
        free(expected);
    }
    file_close(&shard.file);
    free(values);
}

static const dtype ALL[] = {DTYPE_F32,  DTYPE_F16,  DTYPE_BF16, DTYPE_Q4_0, DTYPE_Q8_0,
                            DTYPE_Q2_K, DTYPE_Q3_K, DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_Q6_K};
enum { N_ALL = sizeof ALL / sizeof ALL[0] };

static void test_shapes(void **state)
{
    (void)state;
    static const uint64_t shapes[][2] = {{1, 256},  {15, 512}, {16, 256},  {17, 32},  {33, 768},
                                         {40, 64},  {3, 5},    {50, 1024}, {2, 1280}, {19, 2816},
                                         {100, 96}, {1, 1},    {7, 1025}};
    static const dtype sources[] = {DTYPE_BF16, DTYPE_F32, DTYPE_F16};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        matrix_source m = {.type = sources[i % 3], .rows = shapes[i][0], .cols = shapes[i][1]};
        check(m, ALL, N_ALL);
        m.transposed = true;
        m.stride = m.rows * 2 + 1;
        m.first_col = m.rows;
        check(m, ALL, N_ALL);
    }
}

/* Several chunks, the last one and its last panel not full; and one row of 2^20 columns. */
static void test_large(void **state)
{
    (void)state;
    static const dtype types[] = {DTYPE_Q8_0, DTYPE_BF16};
    check((matrix_source){.type = DTYPE_BF16, .rows = 1500, .cols = 3072}, types, 2);
    check((matrix_source){.type = DTYPE_BF16, .rows = 35, .cols = 1 << 17}, types, 2);
    check((matrix_source){.type = DTYPE_BF16, .rows = 2, .cols = 1 << 20}, types, 2);
}

static void test_bad_values(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 2e6f, 65505.0f};
    smoe_err err;
    safetensors shard = {.file = FILE_CLOSED};
    const source src = {.shards = &shard, .n_shards = 1};
    const matrix_source m = {.name = "w", .type = DTYPE_F32, .rows = 21, .cols = 1280};
    for (int i = 0; i < 5; i++) {
        float *data = calloc(21 * 1280, sizeof *data);
        conversion v;
        data[20 * 1280 + 1279] = bad[i]; /* the very last */
        scratch_write("source.bin", data, 21 * 1280 * sizeof *data);
        free(data);
        must(file_open(&shard.file, scratch_path("source.bin"), &err), &err);
        converter c = {.source = &src, .kernels = kernels_get(NULL), .pool = pools[1]};
        must(conversion_begin(&v, &c, &m, i < 4 ? DTYPE_Q4_K : DTYPE_F16, &err), &err);
        assert_int_equal(conversion_next(&v, NULL, &err), SMOE_NUMERIC);
        assert_non_null(strstr(err.text, "\"w\""));
        must(conversion_begin(&v, &c, &m, DTYPE_F32, &err), &err);
        assert_int_equal(conversion_next(&v, NULL, &err), i < 3 ? SMOE_NUMERIC : SMOE_OK);
        converter_fini(&c);
        file_close(&shard.file);
    }
}

static int setup(void **state)
{
    smoe_err err;
    return pool_new(1, &pools[0], &err) != SMOE_OK || pool_new(3, &pools[1], &err) != SMOE_OK
               ? -1
               : scratch_setup(state);
}

static int teardown(void **state)
{
    pool_free(pools[0]);
    pool_free(pools[1]);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_bad_values),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
