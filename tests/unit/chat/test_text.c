/* What may be sent and what may be shown; commands; the transcript. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "chat/commands.h"
#include "chat/text.h"
#include "chat/transcript.h"

#define BAD "\xef\xbf\xbd"

static void sequences(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {
        {"a", 1}, {"\xc3\xa9", 2}, {"\xe4\xb8\xad", 3}, {"\xf0\x9f\x98\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4}, {"\xc0\x80", 0}, {"\xc1\xbf", 0}, {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0}, {"\xf0\x8f\xbf\xbf", 0}, {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0}, {"\x80", 0}, {"\xff", 0}, {"\xc3", 0}, {"\xe4\xb8", 0},
        {"\xc3\x28", 0}, {"\xf0\x9f\x98", 0}, {"\xf0\x9f\x98\x28", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(text_sequence(slice_from(cases[i].bytes)), cases[i].n);
    }
    assert_int_equal(text_sequence(slice_of("", 0)), 0);
}

static void scrubbing(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(text_scrub(slice_of("a\xff"
                                         "b\0\033[2J\xe4\xb8\xad\xc3",
                                         12),
                                &out, NULL),
                     SMOE_OK);
    assert_string_equal(out.data, "a" BAD "b" BAD "\033[2J\xe4\xb8\xad" BAD);
    buf_clear(&out);
    assert_int_equal(text_for_terminal(slice_from("a\033[2J\tb\n\x7f\xc2\x9b"
                                                  "31m\xc2\xa0\r\x07z"),
                                       &out, NULL),
                     SMOE_OK);
    assert_string_equal(out.data, "a\u241b[2J\tb\n\u2421\ufffd"
                                  "31m\xc2\xa0\u240d\u2407z");
    rng random = {5};
    for (int i = 0; i < 20000; i++) {
        char noise[32];
        size_t n = rng_next(&random) % sizeof noise;
        for (size_t j = 0; j < n; j++) {
            noise[j] = (char)rng_next(&random);
        }
        buf_clear(&out);
        assert_int_equal(text_scrub(slice_of(noise, n), &out, NULL), SMOE_OK);
        for (slice rest = buf_slice(&out); rest.len > 0;) {
            size_t step = text_sequence(rest);
            assert_true(step > 0);
            rest = slice_of(rest.data + step, rest.len - step);
        }
    }
    buf_fini(&out);
}

static void expect_command(const char *line, enum command command, const char *argument)
{
    slice text;
    smoe_err err = {0};
    assert_int_equal(command_parse(slice_from(line), &text, &err), command);
    if (command == COMMAND_WRONG) {
        assert_non_null(strstr(err.text, argument));
    } else {
        assert_true(slice_is(text, argument));
    }
}

static void commands(void **state)
{
    (void)state;
    expect_command("hello", COMMAND_NONE, "hello");
    expect_command("", COMMAND_NONE, "");
    expect_command("//quit", COMMAND_NONE, "/quit");
    expect_command("/quit", COMMAND_QUIT, "");
    expect_command("/quit \t", COMMAND_QUIT, "");
    expect_command("/reset", COMMAND_RESET, "");
    expect_command("/help", COMMAND_HELP, "");
    expect_command("/system", COMMAND_SYSTEM, "");
    expect_command("/system \t be brief ", COMMAND_SYSTEM, "be brief");
    expect_command("/save a b.jsonl", COMMAND_SAVE, "a b.jsonl");
    expect_command("/save", COMMAND_WRONG, "/save needs a path");
    expect_command("/", COMMAND_WRONG, "no such command");
    expect_command("/sys", COMMAND_WRONG, "no such command");
    expect_command("/quit now", COMMAND_WRONG, "/quit takes nothing after it");
}

static void transcripts(void **state)
{
    (void)state;
    transcript t;
    buf json;
    transcript_init(&t);
    buf_init(&json, 1 << 16);
    assert_int_equal(transcript_json(&t, &json, NULL), SMOE_OK);
    assert_string_equal(json.data, "[]");
    transcript_drop_last(&t);
    assert_int_equal(transcript_add(&t, "system", slice_from("be\"brief"), NULL), SMOE_OK);
    assert_int_equal(transcript_add(&t, "user", slice_of("h\xffi\n", 4), NULL), SMOE_OK);
    assert_int_equal(
        transcript_add_answer(&t, slice_of(NULL, 0), slice_from("why"), true, NULL), SMOE_OK);
    buf_clear(&json);
    assert_int_equal(transcript_json(&t, &json, NULL), SMOE_OK);
    assert_string_equal(json.data, "[{\"role\":\"system\",\"content\":\"be\\\"brief\"},"
                                   "{\"role\":\"user\",\"content\":\"h" BAD "i\\n\"},"
                                   "{\"role\":\"assistant\",\"content\":\"\","
                                   "\"reasoning_content\":\"why\"}]");
    transcript_clear(&t);
    assert_int_equal(t.n_messages, 1);
    transcript_drop_last(&t);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(transcript_add(&t, "user", slice_from("x"), NULL), SMOE_OK);
    }
    transcript_clear(&t);
    assert_int_equal(t.n_messages, 0);
    transcript_fini(&t);

    for (uint64_t nth = 1; nth <= 2; nth++) {
        mem_fail_nth(nth);
        assert_int_equal(transcript_add(&t, "user", slice_from("x"), NULL), SMOE_NOMEM);
        mem_fail_nth(0);
        assert_int_equal(t.n_messages, 0);
        transcript_fini(&t);
    }
    buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences),
        cmocka_unit_test(scrubbing),
        cmocka_unit_test(commands),
        cmocka_unit_test(transcripts),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
