/* test_tokenizer_golden.c: every committed sample of the reference, both ways.
 *
 * usage: test_tokenizer_golden DIR, which holds tokenizer.json, encode.jsonl and decode.jsonl
 * unpacked. */
#include "base/file.h"
#include "json/json_read.h"
#include "smoe/tokenizer.h"
#include "support/test.h"

static const char *golden_dir;
static smoe_tokenizer *tok;

static void read_golden(const char *name, buf *out)
{
    char path[1024];
    smoe_err err;
    snprintf(path, sizeof path, "%s/%s", golden_dir, name);
    buf_init(out, 1 << 28);
    ASSERT_OK(file_slurp(path, 1 << 28, out, &err), &err);
}

static int setup(void **state)
{
    (void)state;
    buf json;
    smoe_err err;
    read_golden("tokenizer.json", &json);
    ASSERT_OK(smoe_tokenizer_new(json.data, json.len, &tok, &err), &err);
    buf_fini(&json);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    smoe_tokenizer_free(tok);
    return 0;
}

/* The strict reader refuses NUL, which the samples need: it travels as U+10FFFE, which they do not
 * use. */
#define NUL_ESCAPE "\\u0000"
#define NUL_STAND_IN_ESCAPE "\\udbff\\udffe"
#define NUL_STAND_IN "\xF4\x8F\xBF\xBE"

static void hide_nul(slice line, buf *out)
{
    smoe_err err;
    buf_clear(out);
    for (size_t i = 0; i < line.len;) {
        slice rest = slice_of(line.data + i, line.len - i);
        bool is_nul = slice_starts(rest, slice_from(NUL_ESCAPE));
        size_t n = is_nul ? strlen(NUL_ESCAPE) : rest.data[0] == '\\' && rest.len > 1 ? 2 : 1;
        assert_false(slice_starts(rest, slice_from(NUL_STAND_IN_ESCAPE)));
        ASSERT_OK(is_nul ? buf_puts(out, NUL_STAND_IN_ESCAPE, &err)
                         : buf_append(out, rest.data, n, &err),
                  &err);
        i += n;
    }
}

static void read_text(const json_value *row, const char *key, buf *out)
{
    slice text;
    smoe_err err;
    assert_true(jr_string(jr_get(row, key), &text));
    buf_init(out, 1 << 20);
    for (size_t i = 0; i < text.len;) {
        bool is_nul = slice_starts(slice_of(text.data + i, text.len - i), slice_from(NUL_STAND_IN));
        ASSERT_OK(buf_putc(out, is_nul ? '\0' : text.data[i], &err), &err);
        i += is_nul ? strlen(NUL_STAND_IN) : 1;
    }
}

static void each_line(const char *name, void (*check)(const json_value *row, size_t line))
{
    buf text, visible;
    size_t n_rows = 0;
    read_golden(name, &text);
    buf_init(&visible, 1 << 20);
    for (const char *at = text.data, *end = text.data + text.len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = newline ? (size_t)(newline - at) : (size_t)(end - at);
        json_value *row;
        smoe_err err;
        hide_nul(slice_of(at, len), &visible);
        ASSERT_OK(jr_parse(buf_slice(&visible), name, &row, &err), &err);
        check(row, ++n_rows);
        jr_free(row);
        at += len + 1;
    }
    assert_true(n_rows > 100);
    buf_fini(&visible);
    buf_fini(&text);
}

static int32_t id_at(const json_value *ids, size_t i)
{
    int64_t id;
    assert_true(jr_int(jr_at(ids, i), &id));
    return (int32_t)id;
}

static void check_encode(const json_value *row, size_t line)
{
    buf text;
    smoe_ids found = {0};
    smoe_err err;
    const json_value *ids = jr_get(row, "ids");
    read_text(row, "text", &text);
    ASSERT_OK(smoe_tokenizer_encode(tok, text.data, text.len, &found, &err), &err);
    for (size_t i = 0; i < found.len && i < jr_len(ids); i++) {
        if (found.data[i] != id_at(ids, i)) {
            fail_msg("line %zu: id %zu is %d, expected %d", line, i, found.data[i], id_at(ids, i));
        }
    }
    if (found.len != jr_len(ids)) {
        fail_msg("line %zu: %zu ids, expected %zu", line, found.len, jr_len(ids));
    }
    smoe_ids_free(&found);
    buf_fini(&text);
}

static void check_decode(const json_value *row, size_t line)
{
    buf text;
    const json_value *ids = jr_get(row, "ids");
    smoe_detok d;
    char out[1 << 16];
    size_t len = 0;
    read_text(row, "text_skip_special", &text);
    smoe_detok_init(&d, tok);
    for (size_t i = 0; i < jr_len(ids); i++) {
        len += smoe_detok_push(&d, id_at(ids, i), out + len, sizeof out - len);
    }
    len += smoe_detok_finish(&d, out + len, sizeof out - len);
    if (!slice_eq(buf_slice(&text), slice_of(out, len))) {
        fail_msg("line %zu: \"%.*s\", expected \"%s\"", line, (int)len, out, text.data);
    }
    buf_fini(&text);
}

static void test_encode(void **state)
{
    (void)state;
    each_line("encode.jsonl", check_encode);
}

static void test_decode(void **state)
{
    (void)state;
    each_line("decode.jsonl", check_decode);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: test_tokenizer_golden DIR\n");
        return 2;
    }
    golden_dir = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
