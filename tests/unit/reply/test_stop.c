/* test_stop.c: a reply ends at the same byte however it is cut into pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "reply/stop.h"

static void hear(void *ctx, slice text)
{
    assert_true(text.len > 0);
    assert_int_equal(buf_append_slice(ctx, text, NULL), SMOE_OK);
}

static void check_pieces(const char *reply, size_t first, size_t second, const slice *strings,
                         size_t n_strings, const char *shown, size_t i_string)
{
    buf heard;
    stop s;
    size_t n = strlen(reply);
    buf_init(&heard, 1000);
    stop_init(&s, strings, n_strings, hear, &heard);
    assert_int_equal(stop_push(&s, slice_of(reply, first), NULL), SMOE_OK);
    assert_int_equal(stop_push(&s, slice_of(reply + first, second - first), NULL), SMOE_OK);
    for (size_t i = second; i < n; i++) { /* the rest one by one */
        assert_int_equal(stop_push(&s, slice_of(reply + i, 1), NULL), SMOE_OK);
    }
    stop_finish(&s);
    assert_true(slice_is(buf_slice(&heard), shown));
    assert_int_equal(s.i_string, i_string);
    assert_int_equal(stop_found(&s), i_string < n_strings);
    stop_fini(&s);
    buf_fini(&heard);
}

static void check(const char *reply, const char *a, const char *b, const char *shown,
                  size_t i_string)
{
    const slice strings[] = {slice_from(a), slice_from(b)};
    size_t n = strlen(reply);
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = i; j <= n; j++) {
            check_pieces(reply, i, j, strings, 2, shown, i_string);
        }
    }
}

static void test_every_cut(void **state)
{
    (void)state;
    check("one END two", "END", "\n\n", "one ", 0);
    check("one\n\ntwo END", "END", "\n\n", "one", 1);
    check("one EN two", "END", "\n\n", "one EN two", 2);
    check("one EN", "END", "\n\n", "one EN", 2);
    check("aaab", "aab", "zz", "a", 0);
    check("ababac", "abac", "zz", "ab", 0);
    check("xabcd", "bc", "abcde", "xa", 0);    /* complete first */
    check("xabc", "bc", "abc", "x", 1);        /* the longest at one end */
    check("END", "END", "zz", "", 0);
    check("x", "", "zz", "x", 2);
    check("", "END", "zz", "", 2);
    check("caf\xC3\xA9 \xE2\x82\xAC!", "\xE2\x82\xAC", "zz", "caf\xC3\xA9 ", 0);
    check("\xC3\xA0\xC3\xA9", "\xC3\xA9", "zz", "\xC3\xA0", 0);
}

/* A first byte in common with a stop string does not split a character. */
static void test_whole_characters(void **state)
{
    (void)state;
    buf heard;
    stop s;
    const slice strings[] = {slice_from("\xC3\xA9")};
    buf_init(&heard, 100);
    stop_init(&s, strings, 1, hear, &heard);
    assert_int_equal(stop_push(&s, slice_from("\xC3\xA0"), NULL), SMOE_OK);
    assert_true(slice_is(buf_slice(&heard), "\xC3\xA0"));
    stop_fini(&s);
    buf_fini(&heard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cut),
                                       cmocka_unit_test(test_whole_characters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
