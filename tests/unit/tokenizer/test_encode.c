/* test_encode.c: text -> ids with a tokenizer small enough to work out by hand. */
#include "base/mem.h"
#include "tiny.h"

#define ADDED(content, id, flags)                                                                  \
    "{\"id\":" #id ",\"content\":\"" content "\",\"special\":false,\"normalized\":false" flags "}"

static void test_merges(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){0});
    assert_int_equal(smoe_tokenizer_n_vocab(tok), TINY_N_VOCAB);
    CHECK_IDS(tok, "hello", 259);
    CHECK_IDS(tok, "hello world", 259, 260, 261, 'l', 'd'); /* "_w" has a lower rank than "w or" */
    CHECK_IDS(tok, "world", 262, 'l', 'd');
    CHECK_IDS(tok, "aaaaa", 264, 'a'); /* the leftmost of equal pairs first */
    CHECK_IDS(tok, "aaa", 263, 'a');
    CHECK_IDS(tok, "haa", 'h', 263); /* the lowest rank first: "a a" beats "h a" */
    CHECK_IDS(tok, "a1b2", 'a', '1', 'b', '2');
    CHECK_IDS(tok, "\0\x01", 0, 1);
    tiny_check(tok, "", 0, NULL, 0);
    tiny_check(tok, NULL, 0, NULL, 0);
    smoe_tokenizer_free(tok);
    smoe_tokenizer_free(NULL);
}

/* Words on both sides of the border between the two algorithms, against counting. */
static void test_long_words(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){0});
    static const size_t lengths[] = {46, 47, 48, 49, 50, 51, 97, 1000, 1000003};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        size_t n = lengths[k];
        char *text = malloc(n);
        smoe_ids ids = {0};
        smoe_err err;
        assert_non_null(text);
        memset(text, 'a', n);
        ASSERT_OK(smoe_tokenizer_encode(tok, text, n, &ids, &err), &err);
        static const int32_t tails[4][2] = {{0, 0}, {'a', 0}, {263, 0}, {263, 'a'}};
        size_t n_tail = n % 4 == 3 ? 2 : n % 4 ? 1 : 0;
        assert_int_equal(ids.len, n / 4 + n_tail);
        for (size_t i = 0; i < ids.len; i++) {
            assert_int_equal(ids.data[i], i < n / 4 ? 264 : tails[n % 4][i - n / 4]);
        }
        smoe_ids_free(&ids);
        free(text);
    }
    smoe_tokenizer_free(tok);
}

/* A megabyte of one thing: no limit reached, nothing quadratic. */
static void test_huge_runs(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(
        &(tiny_spec){.added = "[" ADDED(" ", 266, ",\"rstrip\":true,\"lstrip\":true") "]"});
    smoe_tokenizer *plain = tiny_tokenizer(&(tiny_spec){0});
    static const char *const units[] = {
        "a",    " ",  "\n",           "7",       "'", "\xCC\x81", "\xCC\x81\xCC\x96",
        "\xFF", " x", "\xE6\xBC\xA2", "\xC2\xA0"};
    enum { N_BYTES = 1000000 };
    char *text = malloc(N_BYTES);
    assert_non_null(text);
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++) {
        size_t unit = strlen(units[k]), len = N_BYTES / unit * unit;
        smoe_ids ids = {0};
        smoe_err err;
        for (size_t i = 0; i < len; i++) {
            text[i] = units[k][i % unit];
        }
        ASSERT_OK(smoe_tokenizer_encode(plain, text, len, &ids, &err), &err);
        assert_true(ids.len >= len / 4);
        ids.len = 0;
        ASSERT_OK(smoe_tokenizer_encode(tok, text, len, &ids, &err), &err);
        smoe_ids_free(&ids);
    }
    free(text);
    smoe_tokenizer_free(tok);
    smoe_tokenizer_free(plain);
}

static void test_words(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){
        .merges = "[\"#version: 0.2\",\"h e\",\"' s\",\"S \\u0120\",\"\\u0120 \\u0120\"]",
        .vocab_extra = ",\"'s\":266,\"S\\u0120\":267,\"\\u0120\\u0120\":268"});
    CHECK_IDS(tok, "he's", 256, 266);
    CHECK_IDS(tok, "HE'S S", 'H', 'E', '\'', 'S', ' ', 'S'); /* never across words */
    CHECK_IDS(tok, "a   b", 'a', 268, ' ', 'b');             /* the last space goes with the word */
    CHECK_IDS(tok, "a  \xC2\xA0 ", 'a', 268, 0xC2, 0xA0, ' ');
    smoe_tokenizer_free(tok);
}

static void test_ignore_merges(void **state)
{
    (void)state;
    static const char extra[] = ",\"xyz\":266,\"\\u0120xyz\":267";
    smoe_tokenizer *tok = tiny_tokenizer(
        &(tiny_spec){.vocab_extra = extra, .model_extra = "\"ignore_merges\":true,"});
    CHECK_IDS(tok, "xyz xyz xyzz", 266, 267, ' ', 'x', 'y', 'z', 'z');
    smoe_tokenizer_free(tok);
    tok = tiny_tokenizer(&(tiny_spec){.vocab_extra = extra});
    CHECK_IDS(tok, "xyz", 'x', 'y', 'z');
    smoe_tokenizer_free(tok);
}

static void test_normalization(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){0});
    CHECK_IDS(tok, "e\xCC\x81", 0xC3, 0xA9);
    CHECK_IDS(tok, "\xE2\x84\xAB", 0xC3, 0x85); /* U+212B ANGSTROM SIGN */
    smoe_tokenizer_free(tok);
    static const char *const none[] = {"null", "{\"type\":\"Sequence\",\"normalizers\":[]}"};
    for (int i = 0; i < 2; i++) {
        tok = tiny_tokenizer(&(tiny_spec){.normalizer = none[i]});
        CHECK_IDS(tok, "e\xCC\x81", 'e', 0xCC, 0x81);
        smoe_tokenizer_free(tok);
    }
    tok = tiny_tokenizer(&(tiny_spec){.normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{"
                                                    "\"type\":\"NFC\"},{\"type\":\"NFC\"}]}"});
    CHECK_IDS(tok, "e\xCC\x81", 0xC3, 0xA9);
    smoe_tokenizer_free(tok);
}

static void test_invalid_utf8(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){0});
#define REPLACED 0xEF, 0xBF, 0xBD
    CHECK_IDS(tok, "a\xFF", 'a', REPLACED);
    CHECK_IDS(tok, "\xE2\x82", REPLACED);
    CHECK_IDS(tok, "\xE2\x82z", REPLACED, 'z');
    CHECK_IDS(tok, "\xF0\x9F\x98\xF0\x9F\x98\x80", REPLACED, 0xF0, 0x9F, 0x98, 0x80);
    CHECK_IDS(tok, "\xED\xA0\x80", REPLACED, REPLACED, REPLACED); /* a surrogate */
    CHECK_IDS(tok, "\xC0\xAF\xF5", REPLACED, REPLACED, REPLACED);
    CHECK_IDS(tok, "\xE0\x80", REPLACED, REPLACED);
    CHECK_IDS(tok, "\xF4\x90\x80", REPLACED, REPLACED, REPLACED);
    smoe_tokenizer_free(tok);
}

static void test_byte_level_alone(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(
        &(tiny_spec){.pre_tokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                                      "\"trim_offsets\":true,\"use_regex\":true}",
                     .merges = "[\"\\u0120 w\",\"7 7\"]",
                     .vocab_extra = ",\"77\":266"});
    CHECK_IDS(tok, "w w", 260, 260);
    CHECK_IDS(tok, " 777", ' ', 266, '7');
    CHECK_IDS(tok, "'S", ' ', '\'', 'S');
    tiny_check(tok, "", 0, NULL, 0);
    smoe_tokenizer_free(tok);
}

static void test_added(void **state)
{
    (void)state;
    static const char added[] = "["
        ADDED("<a>", 266, ) ","
        ADDED("<a>b", 267, ) ","
        ADDED("[L]", 268, ",\"lstrip\":true") ","
        ADDED("[R]", 269, ",\"rstrip\":true") ","
        ADDED("[W]", 270, ",\"single_word\":true") ","
        ADDED("he", 256, ) "]";
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){.added = added});
    assert_int_equal(smoe_tokenizer_n_vocab(tok), 271);
    CHECK_IDS(tok, "x<a>y", 'x', 266, 'y');
    CHECK_IDS(tok, "<a>b<a>c<a", 267, 266, 'c', '<', 'a'); /* the longest wins */
    CHECK_IDS(tok, "x \t[L] y", 'x', 268, ' ', 'y');
    CHECK_IDS(tok, "x [R] \xE3\x80\x80y", 'x', ' ', 269, 'y');
    CHECK_IDS(tok, "[R] [L][R]", 269, 268, 269);
    CHECK_IDS(tok, "x[W] [W] [W].", 'x', '[', 'W', ']', ' ', 270, ' ', 270, '.');
    CHECK_IDS(tok, "hello", 256, 257, 'o'); /* also when the vocabulary has it */
    assert_int_equal(smoe_tokenizer_find(tok, "<a>b", 4), 267);
    smoe_tokenizer_free(tok);
}

static void test_added_normalized(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){
        .added = "[{\"id\":266,\"content\":\"e\\u0301!\",\"normalized\":true,\"special\":true},"
                 "{\"id\":267,\"content\":\"e\\u0301?\",\"normalized\":false}]"});
    CHECK_IDS(tok, "\xC3\xA9!e\xCC\x81!", 266, 266);
    CHECK_IDS(tok, "\xC3\xA9?e\xCC\x81?", 0xC3, 0xA9, '?', 267);
    smoe_tokenizer_free(tok);
}

static void test_lookup(void **state)
{
    (void)state;
    smoe_tokenizer *tok =
        tiny_tokenizer(&(tiny_spec){.vocab_extra = ",\"\\u4e2d\":266,\" \":300",
                                    .added = "[{\"id\":268,\"content\":\"<e>\",\"special\":true,"
                                             "\"normalized\":false}]"});
    const char *bytes;
    size_t len;
    bool special;
    assert_int_equal(smoe_tokenizer_n_vocab(tok), 301);
    assert_true(smoe_tokenizer_bytes(tok, 260, &bytes, &len, &special));
    assert_int_equal(len, 2);
    assert_memory_equal(bytes, " w", 2);
    assert_false(special);
    assert_true(smoe_tokenizer_bytes(tok, 0, &bytes, &len, NULL));
    assert_int_equal(len, 1);
    assert_int_equal(bytes[0], 0);
    assert_true(smoe_tokenizer_bytes(tok, 266, &bytes, &len, &special)); /* not in the alphabet */
    assert_int_equal(len, 3);
    assert_true(smoe_tokenizer_bytes(tok, 268, &bytes, &len, &special));
    assert_true(special);
    static const int32_t unknown[] = {-1, INT32_MIN, 267, 299, 301, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_false(smoe_tokenizer_bytes(tok, unknown[i], &bytes, &len, &special));
        assert_int_equal(len, 0);
        assert_false(special);
    }
    assert_int_equal(smoe_tokenizer_find(tok, " w", 2), 260);
    assert_int_equal(smoe_tokenizer_find(tok, "\n", 1), '\n');
    assert_int_equal(smoe_tokenizer_find(tok, " ", 1), ' ');
    assert_int_equal(smoe_tokenizer_find(tok, "<e>", 3), 268);
    assert_int_equal(smoe_tokenizer_find(tok, "xyz", 3), -1);
    assert_int_equal(smoe_tokenizer_find(tok, "", 0), -1);
    smoe_tokenizer_free(tok);
}

/* A byte without a token gives nothing, as the reference has it. */
static void test_missing_bytes(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":"
        "\"BPE\","
        "\"vocab\":{\"a\":0,\"c\":1,\"ac\":2},\"merges\":[\"a c\"]}}";
    smoe_tokenizer *tok;
    smoe_err err;
    ASSERT_OK(smoe_tokenizer_new(json, sizeof json - 1, &tok, &err), &err);
    CHECK_IDS(tok, "abc", 2);
    tiny_check(tok, "zzz", 3, NULL, 0);
    char word[200];
    memset(word, 'z', sizeof word);
    tiny_check(tok, word, sizeof word, NULL, 0);
    smoe_tokenizer_free(tok);
}

/* Every refused allocation of a load and of an encode: an error, no leak, and ids as they were. */
static void test_out_of_memory(void **state)
{
    (void)state;
    tiny_spec spec = {.added = "[" ADDED("<a>", 266, ) ",{\"id\":267,\"content\":\"e\\u0301!\"}]"};
    buf json;
    smoe_tokenizer *tok = NULL;
    smoe_err err;
    tiny_json(&spec, &json);
    smoe_status status = SMOE_NOMEM;
    for (uint64_t n = 1; status != SMOE_OK; n++) {
        assert_true(n < 10000);
        mem_fail_nth(n);
        status = smoe_tokenizer_new(json.data, json.len, &tok, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
    }
    static const char text[] =
        "\xFF"
        "e\xCC\x81<a>e\xCC\x81! hello "
        "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww";
    smoe_ids ids = {0};
    ASSERT_OK(smoe_ids_push(&ids, 7, &err), &err);
    status = SMOE_NOMEM;
    for (uint64_t n = 1; status != SMOE_OK; n++) {
        assert_true(n < 10000);
        mem_fail_nth(n);
        status = smoe_tokenizer_encode(tok, text, sizeof text - 1, &ids, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        assert_true(status == SMOE_OK || ids.len == 1);
        assert_int_equal(ids.data[0], 7);
    }
    smoe_ids_free(&ids);
    smoe_tokenizer_free(tok);
    buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_huge_runs),     cmocka_unit_test(test_words),
        cmocka_unit_test(test_ignore_merges), cmocka_unit_test(test_normalization),
        cmocka_unit_test(test_invalid_utf8),  cmocka_unit_test(test_byte_level_alone),
        cmocka_unit_test(test_added),         cmocka_unit_test(test_added_normalized),
        cmocka_unit_test(test_lookup),        cmocka_unit_test(test_missing_bytes),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
