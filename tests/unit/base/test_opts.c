/* test_opts.c: flags: every kind, every refusal, the suggestion for a misspelt one. */
#include "../../support/test.h"

#include "base/opts.h"

struct flags {
    bool on, seen;
    const char *text;
    uint32_t u32;
    uint64_t u64, size;
    float x;
};

static smoe_status parse(struct flags *f, const char **pos, size_t max_pos, size_t *n_pos,
                         smoe_err *err, int argc, char **argv)
{
    const opt table[] = {
        {"on", OPT_FLAG, &f->on, 0, 0, NULL, "a flag", NULL},
        {"text", OPT_TEXT, &f->text, 0, 0, "TEXT", "a text", NULL},
        {"count", OPT_U32, &f->u32, 1, 10, "N", "a number", &f->seen},
        {"seed", OPT_U64, &f->u64, 0, 0, "N", "any number", NULL},
        {"x", OPT_FLOAT, &f->x, 0, 2, "X", "a real", NULL},
        {"limit", OPT_SIZE, &f->size, 0, 0, "SIZE", "a size", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    *f = (struct flags){0};
    return opts_parse(table, argc, argv, 1, pos, max_pos, n_pos, err);
}

#define ARGV(...)                                                   \
    char *argv[] = {(char *)"program", __VA_ARGS__};                \
    int argc = (int)(sizeof argv / sizeof argv[0]);                 \
    struct flags f;                                                 \
    const char *pos[2] = {NULL, NULL};                              \
    size_t n_pos = 99;                                              \
    smoe_err err = {0}

#define PARSE() parse(&f, pos, 2, &n_pos, &err, argc, argv)

static void test_every_kind(void **state)
{
    (void)state;
    ARGV("one", "--on", "--text", "-", "--count=10", "--seed", "18446744073709551615", "--x", "1.5",
         "two", "--limit", "3k");
    ASSERT_OK(PARSE(), &err);
    assert_true(f.on && f.seen);
    assert_string_equal(f.text, "-");
    assert_int_equal(f.u32, 10);
    assert_true(f.u64 == UINT64_MAX);
    assert_true(f.x == 1.5f);
    assert_int_equal(f.size, 3072);
    assert_int_equal(n_pos, 2);
    assert_string_equal(pos[0], "one");
    assert_string_equal(pos[1], "two");
}

static void test_double_dash_ends_flags(void **state)
{
    (void)state;
    ARGV("--", "--on");
    ASSERT_OK(PARSE(), &err);
    assert_false(f.on);
    assert_string_equal(pos[0], "--on");
}

static void test_too_many_arguments(void **state)
{
    (void)state;
    ARGV("a", "b", "c");
    ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, "\"c\" is one argument too many");
}

static void test_unknown_flags(void **state)
{
    (void)state;
    {
        ARGV("--cuont", "3");
        ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, "no flag --cuont; did you mean --count?");
    }
    {
        ARGV("--elephant");
        ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, "no flag --elephant; --help lists");
    }
    {
        char longest[300] = "--";
        memset(longest + 2, 'z', sizeof longest - 3);
        longest[sizeof longest - 1] = '\0';
        ARGV(longest);
        ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, "there is no flag --zzz");
    }
}

static void test_bad_values(void **state)
{
    (void)state;
    static const struct {
        const char *flag, *value, *part;
    } cases[] = {
        {"--count", "0", "a whole number from 1 to 10, not \"0\""},
        {"--count", "11", "from 1 to 10"},
        {"--count", "-1", "not \"-1\""},
        {"--count", "+1", "not \"+1\""},
        {"--count", " 1", "not \" 1\""},
        {"--count", "1x", "not \"1x\""},
        {"--count", "", "not \"\""},
        {"--count", "4294967297", "from 1 to 10"},
        {"--seed", "18446744073709551616", "a whole number"},
        {"--seed", "1.5", "a whole number"},
        {"--x", "2.5", "a number from 0 to 2"},
        {"--x", "nan", "a number from 0 to 2"},
        {"--x", "inf", "a number from 0 to 2"},
        {"--x", "", "a number from 0 to 2"},
        {"--limit", "12Q", "a size such as 512M or 12G, not \"12Q\""},
        {"--limit", "-1G", "a size"},
        {"--limit", "9999999T", "a size"},
        {"--limit", "nan", "a size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ARGV((char *)cases[i].flag, (char *)cases[i].value);
        ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, cases[i].part);
    }
}

static void test_missing_or_unwanted_value(void **state)
{
    (void)state;
    {
        ARGV("--text");
        ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, "--text needs a value (TEXT)");
    }
    {
        ARGV("--on=1");
        ASSERT_FAILS(PARSE(), SMOE_USAGE, &err, "--on takes no value");
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {{"0", 0}, {"17", 17}, {"1K", 1024}, {"1kb", 1024}, {"1KiB", 1024},
                 {"1.5M", 3u << 19}, {"12G", 12ull << 30}, {"2t", 2ull << 40}};
    smoe_err err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 99;
        ASSERT_OK(opts_parse_size(cases[i].text, "limit", &bytes, &err), &err);
        assert_true(bytes == cases[i].bytes);
    }
}

static void test_help_fits_any_size(void **state)
{
    (void)state;
    const opt table[] = {{"on", OPT_FLAG, NULL, 0, 0, NULL, "a flag", NULL},
                         {"limit", OPT_SIZE, NULL, 0, 0, "SIZE", "a size", NULL},
                         {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL}};
    char text[256];
    opts_help(table, text, sizeof text);
    assert_non_null(strstr(text, "--on "));
    assert_non_null(strstr(text, "--limit SIZE"));
    for (size_t size = 1; size < 64; size++) {
        char *small = malloc(size); /* of exactly this size, so that a sanitizer sees byte `size` */
        opts_help(table, small, size);
        assert_true(strlen(small) < size);
        free(small);
    }
}

static void test_optional_value(void **state)
{
    (void)state;
    const char *form = NULL, *pos[1];
    const opt table[] = {{"form", OPT_OPTIONAL, &form, 0, 0, "[=X]", "a form", NULL},
                         {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL}};
    char *bare[] = {(char *)"p", (char *)"--form", (char *)"file"};
    char *with[] = {(char *)"p", (char *)"--form=json"};
    size_t n_pos;
    smoe_err err;
    ASSERT_OK(opts_parse(table, 3, bare, 1, pos, 1, &n_pos, &err), &err);
    assert_string_equal(form, "");
    assert_int_equal(n_pos, 1); /* what follows is no value */
    ASSERT_OK(opts_parse(table, 2, with, 1, pos, 1, &n_pos, &err), &err);
    assert_string_equal(form, "json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optional_value),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_double_dash_ends_flags),
        cmocka_unit_test(test_too_many_arguments),
        cmocka_unit_test(test_unknown_flags),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_missing_or_unwanted_value),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_help_fits_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
