/* test_view.c: looks and line breaks of streaming answers, compared with what a simple model of a
 * terminal shows at the end; several lines as one message; settings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "chat/compose.h"
#include "chat/settings.h"
#include "chat/text.h"
#include "chat/wrap.h"

/* ---- looks ---- */

static char looks[256];
static size_t n_looks;

static void note_look(void *ctx, slice character, enum look look)
{
    static const char letters[] = {[LOOK_PLAIN] = '.', [LOOK_CODE] = 'c', [LOOK_BOLD] = 'b',
                                   [LOOK_EMPHASIS] = 'e'};
    (void)ctx;
    looks[n_looks++] = *character.data == '\n' ? '\n' : letters[look];
    looks[n_looks] = '\0';
}

static void expect_looks(const char *text, const char *wanted)
{
    markdown m;
    n_looks = 0;
    markdown_init(&m, note_look, NULL);
    for (; *text; text++) {
        markdown_push(&m, slice_of(text, 1));
    }
    markdown_finish(&m);
    assert_string_equal(looks, wanted);
}

static void test_looks(void **state)
{
    (void)state;
    expect_looks("plain text", "..........");
    expect_looks("a **b c** d", "..bbbbbbb..");
    expect_looks("a *b* c", "..eee..");
    expect_looks("a * b * c", ".........");
    expect_looks("* item *x*", ".......eee");
    expect_looks("2*3*4", ".....");
    expect_looks("`a*b*` x", "cccccc..");
    expect_looks("`open\nx", "ccccc\n.");
    expect_looks("# head\nx", "bbbbbb\n.");
    expect_looks("C# x", "....");
    expect_looks("**open\nx", "bbbbbb\n.");
    expect_looks("```c\n*a* `b\n```\nx", "cccc\ncccccc\nccc\n.");
    expect_looks("  ```\nx\n  ```\ny", "..ccc\nc\nccccc\n.");
    expect_looks("say ``` x", "....ccc..");
    expect_looks("**", "..");
    expect_looks("a **b", "..bbb");
}

/* ---- wrapping ---- */

enum { ROWS = 64, COLUMNS = 128 };

/* A terminal that knows line feed, cursor left and erase to the end of the line. */
static void replay(slice out, char screen[ROWS][COLUMNS])
{
    int row = 0, column = 0;
    memset(screen, 0, ROWS * sizeof screen[0]);
    for (size_t i = 0; i < out.len; i++) {
        char c = out.data[i];
        if (c == '\n') {
            row++;
            column = 0;
        } else if (c == '\033') {
            int n = atoi(out.data + i + 2);
            i += strcspn(out.data + i, "DKm");
            column -= out.data[i] == 'D' ? n : 0;
            assert_true(column >= 0);
            if (out.data[i] == 'K') {
                memset(screen[row] + column, 0, (size_t)(COLUMNS - column));
            }
        } else {
            assert_true(row < ROWS && column < COLUMNS - 1);
            screen[row][column++] = c;
        }
    }
}

static void expect_line(const char *line, unsigned width, const char *wanted)
{
    buf out;
    buf_init(&out, 1024);
    wrap_line(slice_from(line), width, &out);
    assert_int_equal(out.len, strlen(wanted));
    assert_memory_equal(out.data, wanted, out.len);
    buf_fini(&out);
}

static void test_whole_lines(void **state)
{
    (void)state;
    expect_line("[one two three]", 0, "[one two three]");
    expect_line("[one two three]", 15, "[one two three]");
    expect_line("[one two three]", 14, "[one two\nthree]");
    expect_line("  one two   three", 9, "  one two\n  three");
    expect_line("  overlong words", 8, "  overlong\n  words");
    expect_line("a overlongword b", 8, "a\noverlongword\nb");
    expect_line("      ab cd", 8, "      ab\ncd");
    expect_line("\u4e2d\u4e2d \u4e2d\u4e2d", 8, "\u4e2d\u4e2d\n\u4e2d\u4e2d");
    expect_line("a ", 1, "a\n");
    expect_line("", 8, "");
}

/* The same words, broken greedily when all of them are known. */
static void fold(const char *text, unsigned width, char screen[ROWS][COLUMNS])
{
    int row = 0;
    size_t column = 0;
    memset(screen, 0, ROWS * sizeof screen[0]);
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (column > 0 && column + n > width) {
            row++;
            column = 0;
        }
        for (size_t i = 0; i < n; i++) {
            if (column == width) {
                row++;
                column = 0;
            }
            screen[row][column++] = text[i];
        }
        text += n;
        if (*text == '\n' || (*text == ' ' && column == width)) {
            row++;
            column = 0;
        } else if (*text == ' ') {
            screen[row][column++] = ' ';
        }
        text += *text != '\0';
    }
}

/* A space left at the end of a line cannot be seen. */
static void trim(char screen[ROWS][COLUMNS])
{
    for (int row = 0; row < ROWS; row++) {
        for (size_t n = strlen(screen[row]); n > 0 && screen[row][n - 1] == ' '; n--) {
            screen[row][n - 1] = '\0';
        }
    }
}

static void expect_folded(const char *text, unsigned width, bool color)
{
    static char got[ROWS][COLUMNS], wanted[ROWS][COLUMNS];
    wrap w;
    buf out;
    rng random = {width};
    buf_init(&out, 1 << 16);
    wrap_init(&w, color);
    wrap_begin(&w);
    w.width = width;
    for (const char *c = text; *c; c++) {
        enum look look = rng_next(&random) % 4 ? LOOK_PLAIN : LOOK_CODE;
        wrap_put(&w, slice_of(c, 1), 1, look, false, &out);
    }
    wrap_end(&w, &out);
    replay(buf_slice(&out), got);
    fold(text, width, wanted);
    trim(got);
    trim(wanted);
    for (int row = 0; row < ROWS; row++) {
        assert_string_equal(got[row], wanted[row]);
    }
    wrap_fini(&w);
    buf_fini(&out);
}

static void test_wrapping(void **state)
{
    (void)state;
    rng random = {7};
    expect_folded("the quick brown fox jumps over the lazy dog", 10, false);
    expect_folded("incomprehensibilities of a word", 10, true);
    for (int i = 0; i < 3000; i++) {
        char text[200];
        size_t n = rng_next(&random) % (sizeof text - 1);
        for (size_t j = 0; j < n; j++) {
            text[j] = "abcdef  \n"[rng_next(&random) % 9];
        }
        text[n] = '\0';
        size_t n_lines = 0;
        for (size_t j = 0; j < n; j++) {
            n_lines += text[j] == '\n';
        }
        if (n_lines < 30) {
            expect_folded(text, 8 + (unsigned)(rng_next(&random) % 60), i % 2);
        }
    }
}

static void test_wide_characters(void **state)
{
    wrap w;
    buf out;
    (void)state;
    buf_init(&out, 4096);
    wrap_init(&w, false);
    wrap_begin(&w);
    w.width = 5;
    for (int i = 0; i < 5; i++) { /* no spaces: a line ends between any two */
        slice han = slice_from("\u4e2d");
        assert_int_equal(text_columns(han), 2);
        wrap_put(&w, han, text_columns(han), LOOK_PLAIN, false, &out);
    }
    assert_string_equal(out.data, "\u4e2d\u4e2d\n\u4e2d\u4e2d\n\u4e2d");
    assert_int_equal(text_columns(slice_from("\u0301")), 0);
    assert_int_equal(text_columns(slice_from("\U0001f600")), 2);
    wrap_fini(&w);
    buf_fini(&out);
}

/* ---- messages of several lines ---- */

static void expect_message(const char *const *lines, const char *wanted, bool single)
{
    compose c;
    bool done = false;
    compose_init(&c);
    for (; *lines; lines++) {
        assert_false(done);
        assert_int_equal(compose_push(&c, slice_from(*lines), &done, NULL), SMOE_OK);
    }
    assert_true(done);
    assert_true(slice_is(buf_slice(&c.text), wanted) || (c.text.len == 0 && !*wanted));
    assert_int_equal(c.single, single);
    compose_fini(&c);
}

#define LINES(...) (const char *const[]){__VA_ARGS__, NULL}

static void test_messages(void **state)
{
    (void)state;
    expect_message(LINES("hello"), "hello", true);
    expect_message(LINES(""), "", true);
    expect_message(LINES("a\\", "b\\", "c"), "a\nb\nc", false);
    expect_message(LINES("\"\"\"", "a", "", "b\\", "\"\"\""), "a\n\nb\\", false);
    expect_message(LINES("\"\"\"a", "b\"\"\""), "a\nb", false);
    expect_message(LINES("\"\"\"one line\"\"\""), "one line", false);
    expect_message(LINES("\"\"\"", "\"\"\""), "", false);
    expect_message(LINES("/quit\npasted"), "/quit\npasted", false);
    expect_message(LINES("say \"\"\""), "say \"\"\"", true);
}

/* ---- settings ---- */

static void expect_refused(const char *text, const char *part)
{
    settings s = {0};
    smoe_err err = {0};
    assert_int_equal(settings_set(&s, slice_from(text), &err), SMOE_USAGE);
    assert_non_null(strstr(err.text, part));
}

static void test_settings(void **state)
{
    settings s = {0};
    smoe_err err = {0};
    char overrides[512];
    (void)state;
    settings_overrides(&s, overrides, sizeof overrides);
    assert_string_equal(overrides, "");
    assert_int_equal(settings_set(&s, slice_from("temperature 0.25"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("seed 18446744073709551"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("max-tokens 20"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("top-k 7"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("top-k default"), &err), SMOE_OK);
    settings_overrides(&s, overrides, sizeof overrides);
    assert_string_equal(overrides, "t=0.25 s=18446744073709551");
    assert_int_equal(s.max_tokens, 20);
    assert_int_equal(settings_set(&s, slice_from("seed default"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("min-p 0.1"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("presence-penalty -1.5"), &err), SMOE_OK);
    assert_int_equal(settings_set(&s, slice_from("frequency-penalty 2"), &err), SMOE_OK);
    settings_overrides(&s, overrides, sizeof overrides);
    assert_string_equal(overrides,
                        "t=0.25 min_p=0.1 presence_penalty=-1.5 frequency_penalty=2");
    expect_refused("presence-penalty -2.5", "number from -2 to 2");
    expect_refused("presence-penalty -", "number from -2 to 2");
    expect_refused("min-p 1.5", "number from 0 to 1");
    expect_refused("seed -1", "whole number");
    expect_refused("temperature", "a name and a number");
    expect_refused("", "a name and a number");
    expect_refused("heat 3", "there is no setting \"heat\"");
    expect_refused("top-k 0", "whole number from 1 to 1024");
    expect_refused("top-k 2.5", "whole number");
    expect_refused("temperature nan", "number from 0 to 100");
    expect_refused("temperature 1e3", "number from 0 to 100");
    expect_refused("temperature -1", "number from 0 to 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_whole_lines),          cmocka_unit_test(test_wrapping),
        cmocka_unit_test(test_wide_characters), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
