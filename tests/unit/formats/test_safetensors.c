/* Reading safetensors headers, good and hostile; writing them; element types; checksums. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "formats/checksum.h"
#include "formats/safetensors_write.h"
#include "scratch.h"

static void test_dtypes(void **state)
{
    (void)state;
    assert_int_equal(dtype_from_name(slice_from("q4_K"))->type, DTYPE_Q4_K);
    assert_int_equal(dtype_from_safetensors(slice_from("BF16"))->type, DTYPE_BF16);
    assert_int_equal(dtype_from_safetensors(slice_from("U8"))->type, DTYPE_U8);
    assert_null(dtype_from_safetensors(slice_from("F64")));
    assert_null(dtype_from_name(slice_from("q4_k")));
    assert_null(dtype_get(DTYPE_OTHER));
    assert_int_equal(dtype_row_bytes(DTYPE_Q4_K, 512), 288);
    assert_int_equal(dtype_row_bytes(DTYPE_Q6_K, 256), 210);
    assert_int_equal(dtype_row_bytes(DTYPE_Q2_K, 256), 84);
    assert_int_equal(dtype_row_bytes(DTYPE_Q8_0, 64), 68);
    assert_int_equal(dtype_row_bytes(DTYPE_Q4_K, 768 - 128), 0);
    assert_int_equal(dtype_row_bytes(DTYPE_F32, UINT64_MAX), 0);
    assert_int_equal(dtype_row_bytes(DTYPE_OTHER, 1), 0);
}

/* Quantised matrices are whole panels of 16 rows. */
static void test_matrix_bytes(void **state)
{
    (void)state;
    assert_int_equal(dtype_matrix_bytes(DTYPE_BF16, 5, 7), 70);
    assert_int_equal(dtype_matrix_bytes(DTYPE_F32, 17, 1), 68);
    assert_int_equal(dtype_matrix_bytes(DTYPE_Q8_0, 1, 64), 16 * 68);
    assert_int_equal(dtype_matrix_bytes(DTYPE_Q8_0, 16, 64), 16 * 68);
    assert_int_equal(dtype_matrix_bytes(DTYPE_Q4_K, 17, 512), 32 * 288);
    assert_int_equal(dtype_matrix_bytes(DTYPE_Q4_K, 16, 500), 0);
    assert_int_equal(dtype_matrix_bytes(DTYPE_OTHER, 16, 32), 0);
    assert_int_equal(dtype_stored_rows(DTYPE_Q2_K, 151936), 151936);
    assert_int_equal(dtype_stored_rows(DTYPE_Q2_K, 33), 48);
    assert_int_equal(dtype_stored_rows(DTYPE_F16, 33), 33);
    const uint64_t many[] = {UINT64_MAX, UINT64_MAX - 14, UINT64_MAX - 15, (UINT64_C(1) << 63) + 1,
                             UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1};
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        assert_int_equal(dtype_matrix_bytes(DTYPE_Q8_0, many[i], 32), 0);
        assert_int_equal(dtype_matrix_bytes(DTYPE_BF16, many[i], 2), 0);
        assert_int_equal(dtype_matrix_bytes(DTYPE_Q4_0, 1, many[i]), 0);
    }
    assert_int_equal(dtype_matrix_bytes(DTYPE_BF16, (UINT64_C(1) << 63) - 1, 1), UINT64_MAX - 1);
    assert_int_equal(dtype_stored_rows(DTYPE_Q8_0, UINT64_MAX - 15), UINT64_MAX - 15);
    assert_int_equal(dtype_stored_rows(DTYPE_Q8_0, UINT64_MAX - 14), 0);
}

static void test_checksum_ignores_pieces(void **state)
{
    (void)state;
    enum { N = 100000 };
    uint8_t *data = malloc(N);
    uint64_t expected = 0;
    static const size_t steps[] = {N, 1, 7, 16384, 16385, 40000};
    assert_non_null(data);
    for (size_t i = 0; i < N; i++) {
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        checksum c;
        checksum_init(&c);
        for (size_t at = 0; at < N; at += steps[k]) {
            checksum_add(&c, data + at, N - at < steps[k] ? N - at : steps[k]);
        }
        uint64_t sum = checksum_end(&c);
        expected = k == 0 ? sum : expected;
        assert_true(sum == expected);
    }
    char hex[CHECKSUM_HEX];
    checksum_to_hex(expected, hex);
    assert_true(checksum_list_ok(slice_of(hex, sizeof hex), 1));
    assert_true(checksum_from_list(slice_of(hex, sizeof hex), 0) == expected);
    assert_false(checksum_list_ok(slice_of(hex, 15), 1));
    assert_false(checksum_list_ok(slice_from("0123456789abcdeF"), 1));
    free(data);
}

static void test_good(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    safetensors st;
    slice value;
    scratch_write_safetensors(
        "good",
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
        "\"odd\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[20,28]},"
        "\"new\":{\"dtype\":\"F3_X\",\"shape\":[3],\"data_offsets\":[28,30]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[30,30]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ",
        30);
    assert_int_equal(safetensors_open(&st, scratch_path("good"), &err), SMOE_OK);
    assert_int_equal(st.n_tensors, 5);
    assert_true(slice_is(st.tensors[0].name, "a"));
    const tensor_info *b = safetensors_find(&st, slice_from("b"));
    assert_non_null(b);
    assert_int_equal(b->type, DTYPE_BF16);
    assert_int_equal(b->n_dims, 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->offset, st.data_offset + 8);
    assert_int_equal(safetensors_find(&st, slice_from("odd"))->type, DTYPE_OTHER);
    assert_true(slice_is(safetensors_find(&st, slice_from("odd"))->type_name, "F64"));
    assert_null(safetensors_find(&st, slice_from("c")));
    assert_true(safetensors_meta(&st, "format", &value) && slice_is(value, "pt"));
    assert_false(safetensors_meta(&st, "x", &value));
    safetensors_close(&st);
    safetensors_close(&st);
}

/* Opens name and expects a failure whose sentence holds `part`. */
static void expect_refused(const char *name, const char *part)
{
    smoe_err err = {SMOE_OK, ""};
    safetensors st;
    assert_int_not_equal(safetensors_open(&st, scratch_path(name), &err), SMOE_OK);
    if (strstr(err.text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t n_data;
        const char *part;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "truncated"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "8..0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "damaged"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         "3 elements of F32"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12, "overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
         16, "duplicate"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}",
         0, "64 bits"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
         "elements of F32"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0,
         "JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8, "not a size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", 8, "not a size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
         "8 dim"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "not an array"},
        {"{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "pair"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "pair"},
        {"{\"a\":7}", 8, "dtype"},
        {"{\"__metadata__\":[]}", 0, "not an object"},
        {"{\"__metadata__\":{\"n\":1}}", 0, "not a string"},
        {"[]", 0, "not an object"},
        {"{\"a\":", 0, "JSON"},
        {"{} x", 0, "JSON"},
        {"", 0, "JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scratch_write_safetensors("hostile", cases[i].header, cases[i].n_data);
        expect_refused("hostile", cases[i].part);
    }
    scratch_write("short", "1234567", 7);
    expect_refused("short", "at least 8");
    scratch_write("long", "\377\377\377\377\377\377\377\377{}", 10);
    expect_refused("long", "whole file has 10");
    scratch_write("long", "\3\0\0\0\0\0\0\0{}", 10);
    expect_refused("long", "header has 3 bytes");
    expect_refused("absent", "cannot be opened");
    expect_refused(".", "regular file");
}

static smoe_status write_pair(const char *path, smoe_err *err)
{
    safetensors_writer w;
    const uint64_t shape[2] = {2, 3}, seven = 7;
    smoe_status status;
    safetensors_writer_init(&w);
    CHECK(safetensors_writer_meta(&w, "sum", slice_from("0000"), err));
    CHECK(safetensors_writer_meta(&w, "other", slice_from("\"quoted\"\n"), err));
    CHECK(safetensors_writer_add(&w, slice_from("m"), "BF16", shape, 2, 12, err));
    CHECK(safetensors_writer_add(&w, slice_from("b"), "U8", &seven, 1, 7, err));
    CHECK(safetensors_writer_begin(&w, path, 16384, err));
    CHECK(safetensors_writer_append(&w, "abcdefghijkl", 12, err));
    CHECK(safetensors_writer_append(&w, "1234567", 7, err));
    CHECK(safetensors_writer_meta(&w, "sum", slice_from("12ab"), err));
    CHECK(safetensors_writer_finish(&w, err));
out:
    safetensors_writer_fini(&w);
    return status;
}

static void test_write(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    safetensors st;
    slice value;
    char data[7];
    assert_int_equal(write_pair(scratch_path("written"), &err), SMOE_OK);
    assert_int_equal(safetensors_open(&st, scratch_path("written"), &err), SMOE_OK);
    assert_int_equal(st.data_offset, 16384);
    assert_int_equal(st.file.size_bytes, 16384 + 19);
    assert_true(safetensors_meta(&st, "sum", &value) && slice_is(value, "12ab"));
    assert_true(safetensors_meta(&st, "other", &value) && slice_is(value, "\"quoted\"\n"));
    const tensor_info *b = safetensors_find(&st, slice_from("b"));
    assert_int_equal(file_read_at(&st.file, b->offset, data, 7, &err), SMOE_OK);
    assert_memory_equal(data, "1234567", 7);
    safetensors_close(&st);
}

/* What was declared and what was written must agree, and a failed file never appears. */
static void test_write_incomplete(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    safetensors_writer w;
    const uint64_t seven = 7;
    safetensors_writer_init(&w);
    assert_int_equal(safetensors_writer_add(&w, slice_from("b"), "U8", &seven, 1, 7, &err),
                     SMOE_OK);
    assert_int_equal(safetensors_writer_begin(&w, scratch_path("never"), 64, &err), SMOE_OK);
    assert_int_equal(safetensors_writer_append(&w, "123", 3, &err), SMOE_OK);
    assert_int_equal(safetensors_writer_finish(&w, &err), SMOE_INTERNAL);
    safetensors_writer_fini(&w);
    assert_false(file_exists(scratch_path("never")));
}

/* Every allocation refused in turn: an error each time, never a crash or a leak. */
static void test_out_of_memory(void **state)
{
    (void)state;
    smoe_err err = {SMOE_OK, ""};
    safetensors st;
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        mem_fail_nth(nth);
        smoe_status status = write_pair(scratch_path("oom"), &err);
        if (status == SMOE_OK) {
            status = safetensors_open(&st, scratch_path("oom"), &err);
            if (status == SMOE_OK) {
                safetensors_close(&st);
                done = true;
            }
        }
        assert_true(done || status == SMOE_NOMEM);
        assert_true(nth < 1000);
    }
    mem_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_matrix_bytes),
        cmocka_unit_test(test_checksum_ignores_pieces),
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_incomplete),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
