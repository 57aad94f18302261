/* test_load.c: what tokenizer.json may ask for, and the sentence for everything else. */
#include "tiny.h"

typedef struct refusal {
    tiny_spec spec;
    smoe_status status;
    const char *message; /* part of it */
} refusal;

#define SPLIT(pattern, behavior, invert)                                                           \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":" invert \
    "}"
#define SEQUENCE(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "]}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define REGEX(r) SEQUENCE(SPLIT("{\"Regex\":\"" r "\"}", "Isolated", "false") "," BYTE_LEVEL)

static void check(const refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        smoe_tokenizer *tok;
        smoe_err err = {0};
        ASSERT_FAILS(tiny_load(&cases[i].spec, &tok, &err), cases[i].status, &err,
                     cases[i].message);
        assert_null(tok);
    }
}
#define CHECK_ALL(cases) check(cases, sizeof cases / sizeof cases[0])

static void test_model(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{.model_extra = "\"dropout\":0.1,"}, SMOE_UNSUPPORTED, "model.dropout is a number"},
        {{.model_extra = "\"unk_token\":\"<unk>\","},
         SMOE_FORMAT,
         "model.unk_token \"<unk>\" is not in model.vocab"},
        {{.model_extra = "\"unk_token\":7,"}, SMOE_UNSUPPORTED, "model.unk_token is 7"},
        {{.model_extra = "\"fuse_unk\":7,"}, SMOE_FORMAT, "model.fuse_unk is an integer"},
        {{.model_extra = "\"byte_fallback\":3,"}, SMOE_FORMAT, "model.byte_fallback is an integer"},
        {{.model_extra = "\"continuing_subword_prefix\":\"##\","},
         SMOE_UNSUPPORTED,
         "model.continuing_subword_prefix is \"##\""},
        {{.model_extra = "\"end_of_word_suffix\":\"</w>\","},
         SMOE_UNSUPPORTED,
         "end_of_word_suffix"},
        {{.model_extra = "\"max_input_chars_per_word\":1,"},
         SMOE_UNSUPPORTED,
         "the key \"max_input_chars_per_word\""},
        {{.vocab_extra = ",\"x y\":-1"}, SMOE_FORMAT, "model.vocab[\"x y\"] is not an id"},
        {{.vocab_extra = ",\"xy\":4194304"}, SMOE_FORMAT, "from 0 to 4194303"},
        {{.vocab_extra = ",\"xy\":1.5"}, SMOE_FORMAT, "is not an id"},
        {{.vocab_extra = ",\"xy\":260"}, SMOE_FORMAT, "gives id 260 to two tokens"},
        {{.vocab_extra = ",\"aa\":266"}, SMOE_FORMAT, "not valid JSON"}, /* a duplicate key */
        {{.vocab_extra = ",\"\\u0000\":266"}, SMOE_FORMAT, "not valid JSON"},
        {{.vocab_extra = ",\"\\ud800\":266"}, SMOE_FORMAT, "not valid JSON"},
        {{.merges = "{}"}, SMOE_FORMAT, "model.merges is an object"},
        {{.merges = "[[\"h\",\"e\"],[\"h\",\"x\"]]"},
         SMOE_FORMAT,
         "model.merges[1] needs the token \"hx\""},
        {{.merges = "[\"zz h\"]"}, SMOE_FORMAT, "model.merges[0] needs the token \"zz\""},
        {{.merges = "[[\"h\"]]"}, SMOE_FORMAT, "model.merges[0] is an array; expected two tokens"},
        {{.merges = "[[\"h\",3]]"}, SMOE_FORMAT, "model.merges[0]"},
        {{.merges = "[\"he\"]"}, SMOE_FORMAT, "model.merges[0] is a string"},
        {{.merges = "[\"h e l\"]"}, SMOE_FORMAT, "model.merges[0] is a string"},
        {{.merges = "[7]"}, SMOE_FORMAT, "model.merges[0] is an integer"},
    };
    CHECK_ALL(cases);
}

static void test_pipeline(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{.root_extra = "\"surprise\":1,"}, SMOE_UNSUPPORTED, "the file has the key \"surprise\""},
        {{.normalizer = "{\"type\":\"Nmt\"}"}, SMOE_UNSUPPORTED, "normalizer is \"Nmt\""},
        {{.normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Precompiled\"}]}"},
         SMOE_UNSUPPORTED,
         "normalizer is \"Precompiled\""},
        {{.normalizer = "{\"type\":\"NFC\",\"speed\":1}"}, SMOE_UNSUPPORTED, "\"speed\""},
        {{.normalizer = "{\"type\":\"Prepend\"}"}, SMOE_UNSUPPORTED, "(Prepend) prepend is absent"},
        {{.normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}"},
         SMOE_UNSUPPORTED,
         "has 0 bytes"},
        {{.normalizer = "{\"type\":\"Replace\",\"pattern\":\"a\",\"content\":\"\"}"},
         SMOE_FORMAT,
         "normalizer (Replace) pattern is a string"},
        {{.normalizer = "[]"}, SMOE_UNSUPPORTED, "normalizer is absent"},
        {{.pre_tokenizer = "null"}, SMOE_UNSUPPORTED, "pre_tokenizer does not end in ByteLevel"},
        {{.pre_tokenizer = "{\"type\":\"Metaspace\"}"},
         SMOE_UNSUPPORTED,
         "replacement of Metaspace"},
        {{.pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"ab\"}"},
         SMOE_UNSUPPORTED,
         "replacement of Metaspace"},
        {{.pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"_\","
                           "\"add_prefix_space\":false}"},
         SMOE_UNSUPPORTED,
         "prepend_scheme of Metaspace is absent"},
        {{.pre_tokenizer = "{\"type\":\"BertPreTokenizer\"}"},
         SMOE_UNSUPPORTED,
         "pre_tokenizer is \"BertPreTokenizer\""},
        {{.pre_tokenizer = SEQUENCE("")}, SMOE_UNSUPPORTED, "does not end in ByteLevel"},
        {{.pre_tokenizer = SEQUENCE(BYTE_LEVEL "," BYTE_LEVEL)},
         SMOE_UNSUPPORTED,
         "after ByteLevel"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"a\"}", "Isolated", "false")},
         SMOE_UNSUPPORTED,
         "does not end in ByteLevel"},
        {{.pre_tokenizer = SEQUENCE(SPLIT("{\"Text\":\"a\"}", "Isolated", "false"))},
         SMOE_UNSUPPORTED,
         "the key \"Text\""},
        {{.pre_tokenizer = SEQUENCE(SPLIT("{\"Regex\":\"a\"}", "Dropped", "false"))},
         SMOE_UNSUPPORTED,
         "behavior is \"Dropped\""},
        {{.pre_tokenizer = SEQUENCE(SPLIT("{\"Regex\":\"a\"}", "Isolated", "7"))},
         SMOE_FORMAT,
         "invert is an integer"},
        {{.decoder = "null"}, SMOE_UNSUPPORTED, "decoder is null"},
        {{.decoder = "{\"type\":\"Fuse\"}"}, SMOE_UNSUPPORTED, "decoder is \"Fuse\""},
        {{.decoder = "{\"type\":\"WordPiece\"}"}, SMOE_UNSUPPORTED, "decoder is \"WordPiece\""},
        {{.decoder = "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}"},
         SMOE_UNSUPPORTED,
         "after \"Fuse\""},
        {{.post_processor = "{\"type\":\"BertProcessing\"}"},
         SMOE_UNSUPPORTED,
         "post_processor is \"BertProcessing\""},
    };
    CHECK_ALL(cases);
}

static void test_added(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{.added = "{}"}, SMOE_FORMAT, "added_tokens is an object"},
        {{.added = "[3]"}, SMOE_FORMAT, "added_tokens[0] is an integer"},
        {{.added = "[{\"id\":266,\"content\":\"\"}]"}, SMOE_FORMAT, "added_tokens[0].content"},
        {{.added = "[{\"id\":266}]"}, SMOE_FORMAT, "added_tokens[0].content"},
        {{.added = "[{\"content\":\"x\"}]"}, SMOE_FORMAT, "added_tokens[0].id"},
        {{.added = "[{\"id\":266,\"content\":\"<x>\",\"lstrip\":1}]"},
         SMOE_FORMAT,
         "added_tokens[0].lstrip is an integer"},
        {{.added = "[{\"id\":266,\"content\":\"<x>\",\"color\":1}]"},
         SMOE_UNSUPPORTED,
         "\"color\""},
        {{.added = "[{\"id\":270,\"content\":\"<x>\"}]"},
         SMOE_UNSUPPORTED,
         "\"<x>\" says id 270, but Hugging Face tokenizers gives it 266 (the next free one)"},
        {{.added = "[{\"id\":266,\"content\":\"he\"}]"}, SMOE_UNSUPPORTED, "its id in model.vocab"},
        {{.added = "[{\"id\":266,\"content\":\"<x>\"},"
                   "{\"id\":267,\"content\":\"<x>\",\"normalized\":false}]"},
         SMOE_FORMAT,
         "\"<x>\" is listed twice"},
        {{.added = "[{\"id\":256,\"content\":\"he\"},{\"id\":256,\"content\":\"he\"}]"},
         SMOE_FORMAT,
         "\"he\" is listed twice"},
        /* A vocabulary with a hole: the next free id counts tokens, and meets one. */
        {{.vocab_extra = ",\"xy\":267", .added = "[{\"id\":267,\"content\":\"<x>\"}]"},
         SMOE_FORMAT,
         "the id 267 of another token"},
    };
    CHECK_ALL(cases);
}

/* Constructs that mean something else in PCRE2, or nothing. */
static void test_patterns_refused(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{.pre_tokenizer = REGEX("")}, SMOE_UNSUPPORTED, "has 0 bytes"},
        {{.pre_tokenizer = REGEX("a*")}, SMOE_UNSUPPORTED, "may match the empty string"},
        {{.pre_tokenizer = REGEX("(a")}, SMOE_UNSUPPORTED, "a parenthesis is not closed"},
        {{.pre_tokenizer = REGEX("a)")}, SMOE_UNSUPPORTED, "at byte 1, \")\""},
        {{.pre_tokenizer = REGEX("\\\\w+")}, SMOE_UNSUPPORTED, "this escape is not known"},
        {{.pre_tokenizer = REGEX("ab\\\\b")}, SMOE_UNSUPPORTED, "at byte 2"},
        {{.pre_tokenizer = REGEX("(a)\\\\1")}, SMOE_UNSUPPORTED, "this escape is not known"},
        {{.pre_tokenizer = REGEX("a\\\\")}, SMOE_UNSUPPORTED, "this escape is not known"},
        {{.pre_tokenizer = REGEX("^+a")}, SMOE_UNSUPPORTED, "nothing to repeat"},
        {{.pre_tokenizer = REGEX("\\\\p{Greek}")}, SMOE_UNSUPPORTED, "only general categories"},
        {{.pre_tokenizer = REGEX("\\\\p{Cn}")}, SMOE_UNSUPPORTED, "only general categories"},
        {{.pre_tokenizer = REGEX("\\\\pL")}, SMOE_UNSUPPORTED, "only general categories"},
        {{.pre_tokenizer = REGEX("[[:alpha:]]")}, SMOE_UNSUPPORTED, "[:...:] is not supported"},
        {{.pre_tokenizer = REGEX("[a&&]")}, SMOE_UNSUPPORTED, "the class is empty"},
        {{.pre_tokenizer = REGEX("(?i:[a[b]])")}, SMOE_UNSUPPORTED, "set operations inside (?i:"},
        {{.pre_tokenizer = REGEX("[b-a]")}, SMOE_UNSUPPORTED, "runs backwards"},
        {{.pre_tokenizer = REGEX("[]")}, SMOE_UNSUPPORTED, "no end"},
        {{.pre_tokenizer = REGEX("[^]")}, SMOE_UNSUPPORTED, "no end"},
        {{.pre_tokenizer = REGEX("[a")}, SMOE_UNSUPPORTED, "no end"},
        {{.pre_tokenizer = REGEX("[\\\\s-z]")}, SMOE_UNSUPPORTED, "cannot start with a set"},
        {{.pre_tokenizer = REGEX("[a-\\\\s]")}, SMOE_UNSUPPORTED, "cannot end with a set"},
        {{.pre_tokenizer = REGEX("[\\\\P{L}]")}, SMOE_UNSUPPORTED, "not known"},
        {{.pre_tokenizer = REGEX("a{2}+")}, SMOE_UNSUPPORTED, "repeated already"},
        {{.pre_tokenizer = REGEX("a{2}?")}, SMOE_UNSUPPORTED, "repeated already"},
        {{.pre_tokenizer = REGEX("a++*")}, SMOE_UNSUPPORTED, "repeated already"},
        {{.pre_tokenizer = REGEX("+a")}, SMOE_UNSUPPORTED, "nothing to repeat"},
        {{.pre_tokenizer = REGEX("a{3,2}")}, SMOE_UNSUPPORTED, "repeat counts"},
        {{.pre_tokenizer = REGEX("a{99999}")}, SMOE_UNSUPPORTED, "not a repeat count"},
        {{.pre_tokenizer = REGEX("a{,}")}, SMOE_UNSUPPORTED, "repeat counts"},
        {{.pre_tokenizer = REGEX("a{")}, SMOE_UNSUPPORTED, "not a repeat count"},
        {{.pre_tokenizer = REGEX("(?i:ss)")}, SMOE_UNSUPPORTED, "another length"},
        {{.pre_tokenizer = REGEX("(?i:\\u00e9)")}, SMOE_UNSUPPORTED, "another length"},
        {{.pre_tokenizer = REGEX("(?i:\\\\p{Lu})")}, SMOE_UNSUPPORTED, "inside (?i:...)"},
        {{.pre_tokenizer = REGEX("(?i:[^a])")}, SMOE_UNSUPPORTED, "inside (?i:...)"},
        {{.pre_tokenizer = REGEX("(?i)a")}, SMOE_UNSUPPORTED, "this kind of group"},
        {{.pre_tokenizer = REGEX("(?<n>a)")}, SMOE_UNSUPPORTED, "this kind of group"},
        {{.pre_tokenizer = REGEX("\\\\x{110000}")}, SMOE_UNSUPPORTED, "not a character"},
        {{.pre_tokenizer = REGEX("\\\\ud800")}, SMOE_UNSUPPORTED, "not a character"},
        {{.pre_tokenizer = REGEX("((((((((((((((((((((a))))))))))))))))))))")},
         SMOE_UNSUPPORTED,
         "nested too deeply"},
        {{.pre_tokenizer = REGEX("(?<=a+)b")}, SMOE_UNSUPPORTED, "does not compile"},
    };
    CHECK_ALL(cases);
}

static void test_patterns_taken(void **state)
{
    (void)state;
    smoe_tokenizer *tok =
        tiny_tokenizer(&(tiny_spec){.pre_tokenizer = REGEX("a{,2}b|[\\\\-x-z.]+|\\\\x{31}\\\\u0032|"
                                                           "(?>l)(?=l)|.(?<![q])"),
                                    .merges = "[\"a a\",\"aa aa\",\"l l\"]"});
    CHECK_IDS(tok, "aab", 263, 'b'); /* Ruby's {,2} */
    CHECK_IDS(tok, "aaab", 'a', 263, 'b');
    CHECK_IDS(tok, "ll", 'l', 'l');
    CHECK_IDS(tok, "qaab", 'q', 263, 'b');
    smoe_tokenizer_free(tok);
    /* White space and letters are those of the reference, not those of the installed PCRE2. */
    tok = tiny_tokenizer(&(tiny_spec){.pre_tokenizer = REGEX("\\\\s+|\\\\p{L}+"),
                                      .vocab_extra = ",\"a\\u00f0\":266,\"\\u0120\\u00e1\":267",
                                      .merges = "[\"a \\u00f0\",\"\\u0120 \\u00e1\"]"});
    CHECK_IDS(tok, "a\U0001E5D0", 266, 0x9E, 0x97, 0x90);       /* a letter since Unicode 16 */
    CHECK_IDS(tok, "a\U0001F600", 'a', 0xF0, 0x9F, 0x98, 0x80); /* none */
    CHECK_IDS(tok, " \u180E", ' ', 0xE1, 0xA0, 0x8E); /* no white space since Unicode 6.3 */
    CHECK_IDS(tok, " \u1680", 267, 0x9A, 0x80);
    smoe_tokenizer_free(tok);
}

/* A pattern that backtracks without end is an error, not a hang. */
static void test_catastrophic_pattern(void **state)
{
    (void)state;
    smoe_tokenizer *tok = tiny_tokenizer(&(tiny_spec){.pre_tokenizer = REGEX("(?<!x)(?:a+)+[bc]")});
    char text[4096];
    memset(text, 'a', sizeof text);
    smoe_ids ids = {0};
    smoe_err err = {0};
    ASSERT_FAILS(smoe_tokenizer_encode(tok, text, sizeof text, &ids, &err), SMOE_RANGE, &err,
                 "the text cannot be cut into words");
    assert_int_equal(ids.len, 0);
    smoe_ids_free(&ids);
    smoe_tokenizer_free(tok);
}

static void test_not_json(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "null",
                                        "{}",
                                        "{\"model\":{}}",
                                        "\"x\"",
                                        "{\"version\":\"2.0\"}",
                                        "{\"truncation\":{}}",
                                        "\xFF",
                                        "{\"model\":{\"type\":\"BPE\"},\"decoder\":{\"type\":"
                                        "\"ByteLevel\"},"
                                        "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        smoe_tokenizer *tok = NULL;
        smoe_err err = {0};
        assert_int_not_equal(smoe_tokenizer_new(texts[i], strlen(texts[i]), &tok, &err), SMOE_OK);
        assert_non_null(strstr(err.text, "tokenizer.json"));
        assert_null(tok);
    }
}

/* Every prefix of a good file, and the file with every byte replaced in turn: an error or a
 * tokenizer that works, never a crash. */
static void test_damaged(void **state)
{
    (void)state;
    buf json;
    tiny_json(&(tiny_spec){.added = "[{\"id\":266,\"content\":\"<x>\"}]"}, &json);
    static const char bytes[] = {'"', '0', ',', '}', '\0', '\xFF'};
    for (size_t i = 0; i < json.len; i++) {
        smoe_tokenizer *tok = NULL;
        smoe_err err;
        assert_int_not_equal(smoe_tokenizer_new(json.data, i, &tok, &err), SMOE_OK);
        char kept = json.data[i];
        json.data[i] = bytes[i % sizeof bytes];
        if (smoe_tokenizer_new(json.data, json.len, &tok, &err) == SMOE_OK) {
            smoe_ids ids = {0};
            smoe_status status = smoe_tokenizer_encode(tok, "he's <x> 12\n", 12, &ids, &err);
            assert_true(status == SMOE_OK || status == SMOE_RANGE);
            smoe_ids_free(&ids);
            smoe_tokenizer_free(tok);
        }
        json.data[i] = kept;
    }
    buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),          cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_added),          cmocka_unit_test(test_patterns_refused),
        cmocka_unit_test(test_patterns_taken), cmocka_unit_test(test_catastrophic_pattern),
        cmocka_unit_test(test_not_json),       cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
