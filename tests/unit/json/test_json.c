/* test_json.c: strict reading, and writing that reads back equal. */
#include "../../support/test.h"

#include <float.h>

#include "json/json_read.h"
#include "json/json_write.h"

static void refuse(const char *text, size_t len)
{
    smoe_err err;
    json_value *root = NULL;
    ASSERT_FAILS(jr_parse(slice_of(text, len), "the test", &root, &err), SMOE_FORMAT, &err,
                 "the test is not valid JSON: line ");
    assert_null(root);
}

static void test_refused_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", " ", "{", "[1,]", "{\"a\":1,\"a\":2}", "[1] x", "nul", "'a'", "01", "1.", ".5", "+1",
        "[1 2]", "{\"a\" 1}", "\"\x80\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\\ud800\"",
        "\"a\nb\"", "\"\\x\"", "NaN", "Infinity", "1e999", "99999999999999999999", "// c\n1",
        "\"\\u0000\""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        refuse(texts[i], strlen(texts[i]));
    }
    refuse("\"a\0b\"", 5);
    refuse(NULL, 0);
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    enum { DEPTH = 1 << 20 };
    char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    refuse(text, DEPTH);
    free(text);
}

static void test_values(void **state)
{
    (void)state;
    smoe_err err;
    json_value *root = NULL;
    const char *text = "{\"i\":-3,\"r\":1.0,\"t\":true,\"n\":null,\"s\":\"\\u00e9\\n\",\"a\":[1,2],"
                       "\"o\":{\"z\":1,\"y\":2}}";
    ASSERT_OK(jr_parse(slice_from(text), "the test", &root, &err), &err);
    int64_t i = 0;
    double d = 0;
    bool b = false;
    slice s;
    assert_true(jr_int(jr_get(root, "i"), &i) && i == -3);
    assert_false(jr_int(jr_get(root, "r"), &i)); /* 1.0 is no integer */
    assert_true(jr_number(jr_get(root, "r"), &d) && d == 1);
    assert_true(jr_number(jr_get(root, "i"), &d) && d == -3);
    assert_true(jr_bool(jr_get(root, "t"), &b) && b);
    assert_false(jr_bool(jr_get(root, "i"), &b));
    assert_true(jr_is_null(jr_get(root, "n")) && jr_is_null(NULL));
    assert_true(jr_string(jr_get(root, "s"), &s) && slice_is(s, "\xc3\xa9\n"));
    assert_int_equal(jr_len(jr_get(root, "a")), 2);
    assert_true(jr_int(jr_at(jr_get(root, "a"), 1), &i) && i == 2);
    assert_null(jr_at(jr_get(root, "a"), 2));
    assert_null(jr_at(root, 0));
    assert_null(jr_get(jr_get(root, "a"), "x"));
    assert_int_equal(jr_len(root), 7);
    assert_int_equal(jr_kind(jr_get(root, "o")), JSON_KIND_OBJECT);
    assert_string_equal(jr_kind_name(jr_get(root, "a")), "an array");
    assert_string_equal(jr_kind_name(NULL), "nothing");
    char order[8] = "";
    const json_value *o = jr_get(root, "o");
    for (void *it = jr_iter(o); it; it = jr_next(o, it)) {
        strncat(order, jr_iter_key(it).data, 1);
        assert_non_null(jr_iter_value(it));
    }
    assert_string_equal(order, "zy");
    jr_free(root);
    jr_free(NULL);
}

static void test_writing(void **state)
{
    (void)state;
    smoe_err err;
    json_writer w;
    buf b;
    buf_init(&b, 1000);
    jw_init(&w, &b);
    jw_begin_object(&w);
    jw_key(&w, "a");
    jw_begin_array(&w);
    jw_int(&w, INT64_MIN);
    jw_uint(&w, UINT64_MAX);
    jw_bool(&w, true);
    jw_null(&w);
    jw_number(&w, 0.1);
    jw_number(&w, 1.0 / 0.0);
    jw_begin_object(&w);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_key_slice(&w, slice_from("q\"\\\n\x01"));
    jw_cstr(&w, "\xf0\x9f\x99\x82\t\x7f/");
    jw_end_object(&w);
    ASSERT_OK(jw_finish(&w, &err), &err);
    assert_string_equal(b.data,
                        "{\"a\":[-9223372036854775808,18446744073709551615,true,null,0.1,null,"
                        "{}],\"q\\\"\\\\\\n\\u0001\":\"\xf0\x9f\x99\x82\\t\\u007f/\"}");
    buf_fini(&b);
}

static void test_numbers_read_back_equal(void **state)
{
    (void)state;
    static const double values[] = {0, -0.0, 1e-6, 0.1, 1.0 / 3, 1e6, 1e22, DBL_MAX, DBL_MIN,
                                    5e-324, 123456789.123456789, 10000000.0};
    smoe_err err;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        json_writer w;
        json_value *root = NULL;
        double found = 99;
        buf b;
        buf_init(&b, 100);
        jw_init(&w, &b);
        jw_number(&w, values[i]);
        ASSERT_OK(jw_finish(&w, &err), &err);
        ASSERT_OK(jr_parse(buf_slice(&b), "the test", &root, &err), &err);
        assert_true(jr_number(root, &found) && found == values[i]);
        jr_free(root);
        buf_fini(&b);
    }
}

static void test_the_first_error_sticks(void **state)
{
    (void)state;
    smoe_err err;
    json_writer w;
    buf b;
    buf_init(&b, 8);
    jw_init(&w, &b);
    jw_cstr(&w, "much too long for it");
    jw_int(&w, 1);
    ASSERT_FAILS(jw_finish(&w, &err), SMOE_RANGE, &err, "8");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_texts),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_numbers_read_back_equal),
        cmocka_unit_test(test_the_first_error_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
