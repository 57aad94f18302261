/* test_regex.c: the table and PCRE2 cut every text alike. */
#include "base/rng.h"
#include "support/test.h"
#include "tokenizer/regex.h"
#include "tokenizer/utf8.h"

#define WORD_END "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char *const patterns[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    WORD_END "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST,
    WORD_END "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST,
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" WORD_END
    "?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    WORD_END "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST,
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*" REST,
    "[\\p{Han}]+|[\\p{L}&&[^\\p{Han}a-c]]+|[[a-c]\\d]{2,4}",
    "\\s+$|a+?b|(?:ab|a)(?:c|bcd)?|x{2}x+?(?=[yz])|[^a-z ]{1,3}",
};

static size_t random_text(rng *r, char *text, size_t n_chars)
{
    static const uint32_t often[] = {' ', ' ', '\n', '\r', '\'', 's', 'S', 't', 'L', 'l', 'a', 'b',
                                     'c', 'd', 'x', 'y', '1', '2', '.', '/', 0x17F, 0x212A, 0x4E2D,
                                     0x301, 0xE9, 0x1E5D0, 0x1F600, 0xA0, 0x2028, 0x1C5, 0x2B0};
    size_t len = 0;
    for (size_t i = 0; i < n_chars; i++) {
        uint32_t code = often[rng_next(r) % (sizeof often / sizeof often[0])];
        if (rng_next(r) % 8 == 0) {
            code = (uint32_t)(rng_next(r) % 0x32000);
            code = code >= 0xD800 && code < 0xE000 ? 'q' : code;
        }
        len += utf8_put(code, text + len);
    }
    return len;
}

static void test_same_matches(void **state)
{
    (void)state;
    smoe_err err;
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        regex *table = NULL, *reference = NULL;
        ASSERT_OK(regex_new(slice_from(patterns[p]), REGEX_TABLE_OR_PCRE2, &table, &err), &err);
        ASSERT_OK(regex_new(slice_from(patterns[p]), REGEX_PCRE2, &reference, &err), &err);
        assert_true(regex_is_table(table));
        assert_false(regex_is_table(reference));
        for (uint64_t seed = 0; seed < 4000; seed++) {
            rng r = {seed};
            char data[256];
            slice text = slice_of(data, random_text(&r, data, 1 + seed % 60));
            regex_work *w;
            ASSERT_OK(regex_work_new(text.len, &w, &err), &err);
            for (size_t done = 0; done < text.len;) {
                size_t start[2], end[2];
                ASSERT_OK(regex_find(table, w, text, done, &start[0], &end[0], &err), &err);
                ASSERT_OK(regex_find(reference, w, text, done, &start[1], &end[1], &err), &err);
                if (start[0] != start[1] || end[0] != end[1]) {
                    fail_msg("pattern %zu, seed %u, byte %zu: %zu-%zu, expected %zu-%zu", p,
                             (unsigned)seed, done, start[0], end[0], start[1], end[1]);
                }
                done = end[0];
            }
            regex_work_free(w);
        }
        regex_free(table);
        regex_free(reference);
    }
}

/* What the table does not hold goes to PCRE2, and a table cannot be made to work without end. */
static void test_limits(void **state)
{
    (void)state;
    static const char *const others[] = {"(?<=a)b", "a++b", "(?>a)b", "a(?=bc)", "(?:a?)+b"};
    smoe_err err;
    regex *r;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ASSERT_OK(regex_new(slice_from(others[i]), REGEX_TABLE_OR_PCRE2, &r, &err), &err);
        assert_false(regex_is_table(r));
        regex_free(r);
    }
    enum { N = 1 << 16 };
    char *text = malloc(N);
    regex_work *w;
    size_t start, end;
    assert_non_null(text);
    memset(text, 'a', N);
    ASSERT_OK(regex_new(slice_from("a+b"), REGEX_TABLE_OR_PCRE2, &r, &err), &err);
    ASSERT_OK(regex_work_new(N, &w, &err), &err);
    ASSERT_FAILS(regex_find(r, w, slice_of(text, N), 0, &start, &end, &err), SMOE_RANGE, &err,
                 "too far too often");
    regex_work_free(w);
    regex_free(r);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_matches),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
