/* test_tool_call.c: calls and text come out the same however the reply is cut into pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "reply/tool_call.h"

/* Text as it is, a call in brackets; a body with a '!' is refused. */
static void hear_text(void *ctx, slice text)
{
    assert_true(text.len > 0);
    assert_int_equal(buf_append_slice(ctx, text, NULL), SMOE_OK);
}

static smoe_status hear_call(void *ctx, slice body, bool *taken, smoe_err *err)
{
    if (memchr(body.data, '!', body.len)) {
        return SMOE_OK;
    }
    *taken = true;
    return buf_printf(ctx, err, "[%.*s]", SLICE_ARG(body));
}

static void check_pieces(const char *reply, size_t first, size_t second, const char *expected)
{
    buf heard;
    tool_call t;
    size_t n = strlen(reply);
    const tool_call_sink sink = {hear_text, hear_call, &heard};
    buf_init(&heard, 1000);
    tool_call_init(&t, &sink);
    assert_int_equal(tool_call_push(&t, slice_of(reply, first), NULL), SMOE_OK);
    assert_int_equal(tool_call_push(&t, slice_of(reply + first, second - first), NULL), SMOE_OK);
    for (size_t i = second; i < n; i++) { /* the rest one by one */
        assert_int_equal(tool_call_push(&t, slice_of(reply + i, 1), NULL), SMOE_OK);
    }
    tool_call_finish(&t);
    assert_true(slice_is(buf_slice(&heard), expected));
    tool_call_fini(&t);
    buf_fini(&heard);
}

static void check(const char *reply, const char *expected)
{
    size_t n = strlen(reply);
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = i; j <= n; j++) {
            check_pieces(reply, i, j, expected);
        }
    }
}

static void test_every_cut(void **state)
{
    (void)state;
    check("", "");
    check("a < b <tool", "a < b <tool");
    check("x<tool_call>\n{}\n</tool_call>y", "x[\n{}\n]y");
    check("<tool_call>{a}</tool_call><tool_call>{b}</tool_call>", "[{a}][{b}]");
    check("<<tool_call>{a</tool_cal</tool_call>", "<[{a</tool_cal]");
    check("<tool_<tool_call>{a}</tool_call>", "<tool_[{a}]");
    check("<tool_call>{never closed</tool", "<tool_call>{never closed</tool");
    check("<tool_call>{!}</tool_call> then", "<tool_call>{!}</tool_call> then");
    check("<tool_call> a</tool_call>", "<tool_call> a</tool_call>"); /* neither form */
    check("<tool_call></tool_call>", "[]");
}

static void test_closing_tag_in_a_value(void **state)
{
    (void)state;
    check("<tool_call>{\"</tool_call>\"}</tool_call>.", "[{\"</tool_call>\"}].");
    check("<tool_call>{\"\\\"</tool_call>\"}</tool_call>", "[{\"\\\"</tool_call>\"}]");
    check("<tool_call>{\"\\\\\"</tool_call>\"}</tool_call>", "[{\"\\\\\"]\"}</tool_call>");
    check("<tool_call>{\"a\n</tool_call>.", "<tool_call>{\"a\n</tool_call>.");
    check("<tool_call><function=f><parameter=k>a</tool_call>b</parameter></tool_call>",
          "[<function=f><parameter=k>a</tool_call>b</parameter>]");
    check("<tool_call><function=f><parameter=k>a</function>\n</tool_call>b",
          "[<function=f><parameter=k>a</function>\n]b");
    check("<tool_call><f><parameter=k>a</tool_call>\n<tool_call>{b}</tool_call>",
          "<tool_call><f><parameter=k>a</tool_call>\n[{b}]");
    check("<tool_call><f><parameter=k><tool_call></parameter></tool_call>",
          "[<f><parameter=k><tool_call></parameter>]");
    check("<tool_call><f>a>b</tool_call>", "[<f>a>b]");
}

static void test_too_long(void **state)
{
    (void)state;
    buf heard;
    tool_call t;
    const tool_call_sink sink = {hear_text, hear_call, &heard};
    buf_init(&heard, 2 * TOOL_CALL_MAX_BYTES);
    tool_call_init(&t, &sink);
    tool_call_push(&t, slice_from("<tool_call>{"), NULL);
    for (size_t i = 0; i < TOOL_CALL_MAX_BYTES; i++) {
        assert_int_equal(tool_call_push(&t, slice_from("a"), NULL), SMOE_OK);
    }
    tool_call_finish(&t);
    assert_int_equal(heard.len, TOOL_CALL_MAX_BYTES + strlen("<tool_call>{"));
    tool_call_fini(&t);
    buf_fini(&heard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cut),
                                       cmocka_unit_test(test_closing_tag_in_a_value),
                                       cmocka_unit_test(test_too_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
