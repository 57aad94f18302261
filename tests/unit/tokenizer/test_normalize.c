/* test_normalize.c: form C, with the data of the reference and in linear time. */
#include "tiny.h"
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

static void check(const char *text, const char *expected)
{
    normalize_work w;
    slice out;
    smoe_err err;
    normalize_init(&w);
    ASSERT_OK(normalize_text(&w, NORMAL_NFC, slice_from(text), &out, &err), &err);
    if (!slice_is(out, expected)) {
        fail_msg("\"%s\" became \"%.*s\", expected \"%s\"", text, SLICE_ARG(out), expected);
    }
    normalize_fini(&w);
}

static void test_known(void **state)
{
    (void)state;
    check("", "");
    check("plain ASCII", "plain ASCII");
    check("e\u0301", "\u00e9");
    check("xe\u0301y", "x\u00e9y");
    check("\u00e9\u0323", "\u1eb9\u0301");   /* decomposed, reordered, composed again */
    check("q\u0307\u0323", "q\u0323\u0307"); /* only reordered */
    check("\u0301e", "\u0301e");             /* a mark without a base */
    check("\u212b\u2126\u212a", "\u00c5\u03a9K");
    check("\uac00\u11a8", "\uac01"); /* Hangul: LV + T */
    check("\u1100\u1161\u11a8", "\uac01");
    check("\uacc4\u11a7", "\uacc4\u11a7"); /* not a trailing consonant */
    check("\u304b\u3099", "\u304c");
    check("\u0f71\u0f72", "\u0f71\u0f72"); /* excluded from composition */
    check("\u0f73", "\u0f71\u0f72");
    check("\U0001d15e", "\U0001d157\U0001d165");
    check("\U0002f800", "\u4e3d");
    check("a\u0300\u0301\u4e2de\u0301", "\u00e0\u0301\u4e2d\u00e9");
}

static void check_form(enum normal_form form, const char *text, const char *expected)
{
    normalize_work w;
    slice out;
    smoe_err err;
    normalize_init(&w);
    ASSERT_OK(normalize_text(&w, form, slice_from(text), &out, &err), &err);
    if (!slice_is(out, expected)) {
        fail_msg("\"%s\" became \"%.*s\", expected \"%s\"", text, SLICE_ARG(out), expected);
    }
    normalize_fini(&w);
}

static void test_other_forms(void **state)
{
    (void)state;
    check_form(NORMAL_NFD, "x\u00e9\uac01", "xe\u0301\u1100\u1161\u11a8");
    check_form(NORMAL_NFD, "\ufb01", "\ufb01");
    check_form(NORMAL_NFKD, "\ufb01\u00e9\u2460", "fie\u03011");
    check_form(NORMAL_NFKC, "\ufb01e\u0301\uff21\u00a0", "fi\u00e9A ");
    check_form(NORMAL_NFKC, "\ufdfa", "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 "
                                     "\u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645");
    check_form(NORMAL_NFKD, "plain", "plain");
}

/* To the reference these are starters: nothing moves across them and nothing composes with them. */
static void test_plain_starters(void **state)
{
    (void)state;
    check("a\u08ca\u0323", "a\u08ca\u0323");
    check("e\u07fd\u0301", "e\u07fd\u0301");
    check("\U00011935\U00011930", "\U00011935\U00011930");
    check("\U00011938", "\U00011938");
    check("e\u0301\u1abfe\u0301", "\u00e9\u1abf\u00e9");
}

/* No shortcut changes what a character alone becomes. */
static void test_every_character(void **state)
{
    (void)state;
    normalize_work w;
    smoe_err err;
    normalize_init(&w);
    for (uint32_t code = 1; code < 0x110000; code += code == 0xD7FF ? 0x801 : 1) {
        char text[4], expected[4 * UNICODE_MAX_DECOMPOSED];
        int32_t parts[UNICODE_MAX_DECOMPOSED];
        slice out;
        size_t n_parts = unicode_compose(parts, unicode_decompose(code, false, parts)), len = 0;
        for (size_t i = 0; i < n_parts; i++) {
            len += utf8_put((uint32_t)parts[i], expected + len);
        }
        slice in = slice_of(text, utf8_put(code, text));
        ASSERT_OK(normalize_text(&w, NORMAL_NFC, in, &out, &err), &err);
        if (!slice_eq(out, slice_of(expected, len))) {
            fail_msg("U+%04X", code);
        }
    }
    normalize_fini(&w);
}

static void test_long_runs_of_marks(void **state)
{
    (void)state;
    enum { N = 500000 };
    char *text = malloc(4 * N);
    normalize_work w;
    slice out;
    smoe_err err;
    assert_non_null(text);
    for (size_t i = 0; i < N; i++) {
        memcpy(text + 4 * i, i % 2 ? "\u0323\u0301" : "\u0301\u0323", 4);
    }
    normalize_init(&w);
    ASSERT_OK(normalize_text(&w, NORMAL_NFC, slice_of(text, 4 * N), &out, &err), &err);
    assert_int_equal(out.len, 4 * N);
    for (size_t i = 0; i < 2 * N; i++) {
        assert_memory_equal(out.data + 2 * i, i < N ? "\u0323" : "\u0301", 2);
    }
    normalize_fini(&w);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_other_forms),
        cmocka_unit_test(test_plain_starters),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_long_runs_of_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
