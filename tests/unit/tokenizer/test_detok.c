/* test_detok.c: ids -> whole characters, however the bytes of a character are spread over tokens.
 */
#include "tiny.h"

#define FFFD "\xEF\xBF\xBD"

static smoe_tokenizer *tok;

static int setup(void **state)
{
    (void)state;
    tok = tiny_tokenizer(&(tiny_spec){
        .normalizer = "null",
        .vocab_extra = ",\"\\u4e2d\":266",
        .added = "[{\"id\":267,\"content\":\"<s>\",\"special\":true,\"normalized\":false},"
                 "{\"id\":268,\"content\":\"<think>\",\"special\":false,\"normalized\":false}]"});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    smoe_tokenizer_free(tok);
    return 0;
}

/* Pushes the ids one by one, each into a buffer of exactly the promised size, and finishes. Every
 * single output must be whole characters. */
static size_t decode(const int32_t *ids, size_t n, char *out, size_t size)
{
    smoe_detok d;
    size_t len = 0;
    smoe_detok_init(&d, tok);
    for (size_t i = 0; i <= n; i++) {
        const char *bytes;
        size_t n_bytes = 0;
        if (i < n) {
            smoe_tokenizer_bytes(tok, ids[i], &bytes, &n_bytes, NULL);
        }
        size_t room = 3 * n_bytes + 16;
        char *piece = malloc(room);
        assert_non_null(piece);
        size_t got =
            i < n ? smoe_detok_push(&d, ids[i], piece, room) : smoe_detok_finish(&d, piece, room);
        assert_true(got <= room && len + got <= size);
        assert_true(got == 0 || ((unsigned char)piece[0] & 0xC0) != 0x80);
        memcpy(out + len, piece, got);
        len += got;
        free(piece);
    }
    return len;
}

static void check_bytes(const char *bytes, size_t n, const char *expected)
{
    int32_t ids[32];
    char out[256];
    for (size_t i = 0; i < n; i++) {
        ids[i] = (unsigned char)bytes[i];
    }
    size_t len = decode(ids, n, out, sizeof out);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(out, expected, len);
}

static void test_whole_characters(void **state)
{
    (void)state;
    check_bytes("a", 1, "a");
    check_bytes("\xC3\xA9", 2, "\xC3\xA9");
    check_bytes("\xE6\xBC\xA2z", 4, "\xE6\xBC\xA2z");
    check_bytes("\xF0\x9F\x91\x8D\xF0\x9F\x91\x8D", 8, "\xF0\x9F\x91\x8D\xF0\x9F\x91\x8D");
    check_bytes("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF", 10,
                "\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF");
}

static void test_invalid(void **state)
{
    (void)state;
    check_bytes("\x80", 1, FFFD);
    check_bytes("\xE2\x82", 2, FFFD);
    check_bytes("\xE2\x82z", 3, FFFD "z");
    check_bytes("\xE2\xE2\x82\xAC", 4, FFFD "\xE2\x82\xAC");
    check_bytes("\xF0\x9F\x98\xF0\x9F\x98\x80", 7, FFFD "\xF0\x9F\x98\x80");
    check_bytes("\xED\xA0\x80", 3, FFFD FFFD FFFD);
    check_bytes("\xF4\x90\x80\x80", 4, FFFD FFFD FFFD FFFD);
    check_bytes("\xC0\xAF\xFE", 3, FFFD FFFD FFFD);
    check_bytes("\xE0\x80\xF0\x8F", 4, FFFD FFFD FFFD FFFD);
}

/* The whole result depends on the bytes alone: compare tokens of several bytes with single bytes,
 * over all texts of four bytes from an alphabet of every kind of byte. */
static void test_all_short_texts(void **state)
{
    (void)state;
    static const unsigned char kinds[] = {'a',  0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1,
                                          0xC2, 0xE0, 0xE2, 0xED, 0xF0, 0xF3, 0xF4, 0xF5};
    enum { N = sizeof kinds };
    for (unsigned i = 0; i < N * N * N * N; i++) {
        unsigned char text[4] = {kinds[i % N], kinds[i / N % N], kinds[i / N / N % N],
                                 kinds[i / N / N / N]};
        int32_t ids[5] = {text[0], text[1], 267, text[2],
                          text[3]}; /* a special token changes nothing */
        char one[32], two[32];
        smoe_ids again = {0};
        smoe_err err;
        size_t n_one = decode(ids, 5, one, sizeof one);
        /* What encode replaces and what decode replaces must agree. */
        ASSERT_OK(smoe_tokenizer_encode(tok, (char *)text, 4, &again, &err), &err);
        size_t n_two = decode(again.data, again.len, two, sizeof two);
        smoe_ids_free(&again);
        assert_int_equal(n_one, n_two);
        assert_memory_equal(one, two, n_one);
    }
}

enum { SPLIT_BYTES = 14 };

/* A vocabulary in which every part of the text is a token. */
typedef struct parts {
    const char *text;
    int32_t id[SPLIT_BYTES][SPLIT_BYTES + 1]; /* of the part from a byte on, of a length */
} parts;

/* The same bytes at an earlier place; -1 = none. */
static int32_t find_part(const parts *p, size_t at, size_t len)
{
    for (size_t i = 0; i < at; i++) {
        if (memcmp(p->text + i, p->text + at, len) == 0) {
            return p->id[i][len];
        }
    }
    return -1;
}

static void make_parts(parts *p, buf *vocab)
{
    smoe_err err;
    int32_t next = TINY_N_VOCAB;
    for (size_t at = 0; at < SPLIT_BYTES; at++) {
        p->id[at][1] = (unsigned char)p->text[at];
        for (size_t len = 2; at + len <= SPLIT_BYTES; len++) {
            p->id[at][len] = find_part(p, at, len);
            if (p->id[at][len] >= 0) {
                continue;
            }
            p->id[at][len] = next;
            ASSERT_OK(buf_puts(vocab, ",\"", &err), &err);
            for (size_t i = at; i < at + len; i++) {
                ASSERT_OK(buf_printf(vocab, &err, "\\u%04x",
                                     tiny_code_of_byte((unsigned char)p->text[i])), &err);
            }
            ASSERT_OK(buf_printf(vocab, &err, "\":%d", next++), &err);
        }
    }
}

/* However a text is cut into tokens, the pieces together are the text decoded at once. */
static void check_every_split(const char text[SPLIT_BYTES + 1], const char *expected)
{
    static parts p;
    buf vocab;
    char out[128];
    p.text = text;
    buf_init(&vocab, 1 << 20);
    make_parts(&p, &vocab);
    smoe_tokenizer *kept = tok;
    tok = tiny_tokenizer(&(tiny_spec){.normalizer = "null", .vocab_extra = vocab.data});
    for (unsigned cuts = 0; cuts < 1u << (SPLIT_BYTES - 1); cuts++) {
        int32_t ids[SPLIT_BYTES];
        size_t n = 0;
        for (size_t at = 0, end = 1; at < SPLIT_BYTES; at = end++) {
            while (end < SPLIT_BYTES && !(cuts >> (end - 1) & 1)) {
                end++;
            }
            ids[n++] = p.id[at][end - at];
        }
        size_t len = decode(ids, n, out, sizeof out);
        assert_int_equal(len, strlen(expected));
        assert_memory_equal(out, expected, len);
    }
    smoe_tokenizer_free(tok);
    buf_fini(&vocab);
    tok = kept;
}

static void test_every_split(void **state)
{
    (void)state;
    static const char valid[] = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x91\x8D\xEF\xBF\xBDz";
    check_every_split(valid, valid);
    check_every_split("\xF0\x9F\xE2\x82\xAC\x80\xC3q\xED\xA0\xC3\xA9\xF0\x9F",
                      FFFD "\xE2\x82\xAC" FFFD FFFD "q" FFFD FFFD "\xC3\xA9" FFFD);
}

static void test_tokens(void **state)
{
    (void)state;
    char out[64];
    static const int32_t ids[] = {259, 260, 267, 266, 268, -1, 9999};
    static const char expected[] = "hello w\xE4\xB8\xAD<think>";
    assert_int_equal(decode(ids, 7, out, sizeof out), sizeof expected - 1);
    assert_memory_equal(out, expected, sizeof expected - 1);
    /* A pending start, then a token that does not continue it. */
    static const int32_t broken[] = {0xE2, 259, 0xF0, 0x9F, 268, 0xC3};
    static const char repaired[] = FFFD "hello" FFFD "<think>" FFFD;
    assert_int_equal(decode(broken, 6, out, sizeof out), sizeof repaired - 1);
    assert_memory_equal(out, repaired, sizeof repaired - 1);
}

/* Too little room: nothing is lost, the same id can be pushed again. */
static void test_too_small(void **state)
{
    (void)state;
    smoe_detok d;
    char out[16];
    smoe_detok_init(&d, tok);
    assert_int_equal(smoe_detok_push(&d, 0xE2, out, 0), 0);
    assert_int_equal(smoe_detok_push(&d, 259, out, 7), SIZE_MAX);
    assert_int_equal(smoe_detok_push(&d, 259, out, 8), 8);
    assert_memory_equal(out, FFFD "hello", 8);
    assert_int_equal(smoe_detok_push(&d, 0xF0, NULL, 0), 0);
    assert_int_equal(smoe_detok_finish(&d, out, 2), SIZE_MAX);
    assert_int_equal(smoe_detok_finish(&d, out, 3), 3);
    assert_int_equal(smoe_detok_finish(&d, out, 3), 0);
}

#define CHARACTERS(decoder)                                                                        \
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\","                      \
    "\"special\":true,\"normalized\":false}],\"normalizer\":null,\"pre_tokenizer\":null,"          \
    "\"decoder\":" decoder ",\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\","                 \
    "\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"\u2581\":1,\"a\":2,\"\u2581a\":3,"            \
    "\"<0xE4>\":4,\"<0xB8>\":5,\"<0xAD>\":6,\"<0x20>\":7,\"\u2581\u2581\":8},"                     \
    "\"merges\":[\"\u2581 a\",\"\u2581 \u2581\"]}}"

static const char sentencepiece[] = CHARACTERS(
    "{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\","
    "\"content\":\" \",\"start\":1,\"stop\":0}]}");
static const char metaspace[] =
    CHARACTERS("{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
               "\"prepend_scheme\":\"first\"}");

static void check_characters(const char *json, const int32_t *ids, size_t n, const char *expected)
{
    smoe_tokenizer *kept = tok;
    char out[64];
    smoe_err err;
    ASSERT_OK(smoe_tokenizer_new(json, strlen(json), &tok, &err), &err);
    size_t len = decode(ids, n, out, sizeof out);
    smoe_tokenizer_free(tok);
    tok = kept;
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(out, expected, len);
}
#define CHECK_CHARACTERS(json, expected, ...)                                                      \
    check_characters(json, (const int32_t[]){__VA_ARGS__},                                         \
                     sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), expected)

/* Byte tokens join across tokens, and what a decoder drops at the start is dropped once. */
static void test_decoders(void **state)
{
    (void)state;
    CHECK_CHARACTERS(sentencepiece, "a a", 3, 3);
    CHECK_CHARACTERS(sentencepiece, "a a", 0, 3, 3);
    CHECK_CHARACTERS(sentencepiece, " a", 8, 2);
    CHECK_CHARACTERS(sentencepiece, " a", 1, 1, 2);
    CHECK_CHARACTERS(sentencepiece, "a", 7, 2);
    CHECK_CHARACTERS(sentencepiece, "\xE4\xB8\xAD a", 1, 4, 5, 6, 3);
    CHECK_CHARACTERS(sentencepiece, FFFD "a", 4, 5, 2);
    CHECK_CHARACTERS(sentencepiece, "a" FFFD, 2, 4);
    CHECK_CHARACTERS(metaspace, "a a", 3, 3);
    CHECK_CHARACTERS(metaspace, " a", 8, 3);
    CHECK_CHARACTERS(metaspace, "  a", 8, 8, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_characters), cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_all_short_texts),  cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_tokens),           cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_decoders),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
