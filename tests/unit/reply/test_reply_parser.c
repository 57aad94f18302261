/* test_reply_parser.c: the events of a reply are the same however it is cut into pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "reply/reply_parser.h"

/* Events as text: (reasoning) content [0:name arguments] !1 */
typedef struct heard {
    buf text;
    enum reply_event_kind last;
} heard;

static void put(heard *h, const char *text)
{
    assert_int_equal(buf_puts(&h->text, text, NULL), SMOE_OK);
}

static void hear(void *ctx, const reply_event *event)
{
    heard *h = ctx;
    bool is_text = event->kind == REPLY_REASONING || event->kind == REPLY_CONTENT;
    assert_true(!is_text || event->text.len > 0);
    if (h->last == REPLY_REASONING && event->kind != REPLY_REASONING) {
        put(h, ")");
    }
    if (event->kind == REPLY_REASONING && h->last != REPLY_REASONING) {
        put(h, "(");
    }
    if (event->kind == REPLY_CALL || event->kind == REPLY_STOPPED) {
        buf_printf(&h->text, NULL, event->kind == REPLY_CALL ? "[%zu:" : "!%zu", event->i);
    }
    buf_append_slice(&h->text, event->text, NULL);
    if (event->kind == REPLY_CALL) {
        put(h, " ");
    }
    if (event->kind == REPLY_CALL_END) {
        put(h, "]");
    }
    h->last = event->kind;
}

static void check_pieces(const reply_options *options, const char *reply, size_t first,
                         size_t second, const char *expected)
{
    heard h = {.last = REPLY_CONTENT};
    reply_parser p;
    size_t n = strlen(reply);
    buf_init(&h.text, 4096);
    reply_parser_init(&p, options, hear, &h);
    assert_int_equal(reply_parser_push(&p, slice_of(reply, first), NULL), SMOE_OK);
    assert_int_equal(reply_parser_push(&p, slice_of(reply + first, second - first), NULL), SMOE_OK);
    for (size_t i = second; i < n; i++) { /* the rest one by one */
        assert_int_equal(reply_parser_push(&p, slice_of(reply + i, 1), NULL), SMOE_OK);
    }
    assert_int_equal(reply_parser_finish(&p, NULL), SMOE_OK);
    if (h.last == REPLY_REASONING) {
        put(&h, ")");
    }
    assert_string_equal(h.text.data ? h.text.data : "", expected);
    assert_int_equal(reply_parser_stopped(&p), h.last == REPLY_STOPPED);
    reply_parser_fini(&p);
    buf_fini(&h.text);
}

static void check(const reply_options *options, const char *reply, const char *expected)
{
    size_t n = strlen(reply);
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = i; j <= n; j++) {
            check_pieces(options, reply, i, j, expected);
        }
    }
}

#define CALL(name, arguments) \
    "<tool_call>\n{\"name\": \"" name "\", \"arguments\": " arguments "}\n</tool_call>"

static void test_all_at_once(void **state)
{
    (void)state;
    const slice strings[] = {slice_from("END"), slice_from("\n\n")};
    const reply_options o = {
        .has_think_tags = true, .has_tools = true, .stop = strings, .n_stop = 2};
    check(&o,
          "<think>\nEND a\n\nb\n</think>\n\nText\n" CALL("f", "{}") "\n"
          CALL("g", "{\"a\": 1}"),
          "(END a\n\nb)Text[0:f {}][1:g {\"a\": 1}]");
    check(&o, "a EN" CALL("f", "{}") "D EN", "a EN[0:f {}]D EN");
    check(&o, CALL("f", "{\"a\": \"END\"}") "\n\nx END y", "[0:f {\"a\": \"END\"}]x !0");
    check(&o, "a\n\nb", "a!1");
    check(&o, "a\nEND" CALL("f", "{}"), "a\n!0");
    check(&o, "<tool_call>{END}</tool_call>b", "<tool_call>{!0"); /* no call: it is content */
    check(&o, "a\n<tool_call>{", "a\n<tool_call>{");
    check(&o, "a\n", "a\n");
    check(&o, "", "");
}

static void test_calls(void **state)
{
    (void)state;
    const reply_options tools = {.has_tools = true}, none = {.has_tools = false};
    check(&tools, "a\n\n" CALL("f", "{}") "\n\nb\n", "a[0:f {}]b\n");
    check(&tools, CALL("f", "\"{\\\"a\\\": 1}\""), "[0:f {\"a\": 1}]");
    check(&tools, CALL("f", "{\"a\": \"</tool_call>\"}") ".", "[0:f {\"a\": \"</tool_call>\"}].");
    check(&tools, CALL("f", "[]") "\n" CALL("g", "{}"), CALL("f", "[]") "[0:g {}]");
    check(&tools, CALL("f", "{\"a\": 1") " x", CALL("f", "{\"a\": 1") " x");
    check(&tools, "<tool_call>\n<function=f>\n<parameter=k>\n1\n</parameter>\n</function>\n"
                  "</tool_call>", "[0:f {\"k\":\"1\"}]");
    check(&none, "a\n" CALL("f", "{}"), "a\n" CALL("f", "{}"));
    check(&none, "<think>a</think>b", "<think>a</think>b");
}

static void test_reasoning(void **state)
{
    (void)state;
    const reply_options o = {.has_think_tags = true, .starts_inside = true, .has_tools = true};
    check(&o, "a" CALL("f", "{}") "</think>\n\n" CALL("g", "{}"),
          "(a" CALL("f", "{}") ")[0:g {}]");
    check(&o, "only thought", "(only thought)");
}

/* A stop string of several characters, cut inside one of them; whole characters come out. */
static void test_stop_across_characters(void **state)
{
    (void)state;
    const slice strings[] = {slice_from("\xC3\xA9\xE2\x82\xAC")};
    const reply_options o = {.has_tools = true, .stop = strings, .n_stop = 1};
    check(&o, "a\xC3\xA9\xE2\x82\xAD" "b\xC3\xA9\xE2\x82\xAC!", "a\xC3\xA9\xE2\x82\xAD" "b!0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_reasoning),
        cmocka_unit_test(test_stop_across_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
