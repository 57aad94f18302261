/* test_compiled.c: the compiled form gives the same ids, and a damaged one an error. */
#include "base/map.h"
#include "base/mem.h"
#include "tiny.h"

enum { HEADER_BYTES = 48 };

static char *compile(uint64_t json_id, size_t *len)
{
    buf json;
    char *data = NULL;
    smoe_err err;
    tiny_json(&(tiny_spec){.vocab_extra = ",\"\\u4e2d\":266,\"xy\":270",
                           .pre_tokenizer = "{\"type\":\"ByteLevel\",\"use_regex\":false,"
                                            "\"add_prefix_space\":false}",
                           .added = "[{\"id\":256,\"content\":\"he\",\"special\":true}]"},
              &json);
    ASSERT_OK(smoe_tokenizer_compile(json.data, json.len, json_id, &data, len, &err), &err);
    buf_fini(&json);
    return data;
}

static void test_same_ids(void **state)
{
    (void)state;
    size_t len;
    smoe_err err;
    smoe_tokenizer *tok = NULL;
    char *data = compile(7, &len);
    ASSERT_OK(smoe_tokenizer_open_compiled(data, len, 7, &tok, &err), &err);
    smoe_text_free(data);
    assert_int_equal(smoe_tokenizer_n_vocab(tok), 271);
    CHECK_IDS(tok, "hello world", 256, 257, 'o', 260, 261, 'l', 'd');
    CHECK_IDS(tok, "aaaaa\xFF", 264, 'a', 0xEF, 0xBF, 0xBD);
    assert_int_equal(smoe_tokenizer_find(tok, "xy", 2), 270);
    smoe_tokenizer_free(tok);
}

static void test_other_versions(void **state)
{
    (void)state;
    size_t len;
    smoe_err err;
    smoe_tokenizer *tok = NULL;
    char *data = compile(7, &len);
    ASSERT_FAILS(smoe_tokenizer_open_compiled(data, len, 8, &tok, &err), SMOE_MISMATCH, &err,
                 "made from 0000000000000007");
    data[8]++;
    ASSERT_FAILS(smoe_tokenizer_open_compiled(data, len, 7, &tok, &err), SMOE_MISMATCH, &err,
                 "version 2");
    smoe_text_free(data);
}

/* Every prefix and every damaged byte is noticed. */
static void test_damaged(void **state)
{
    (void)state;
    size_t len;
    smoe_err err;
    smoe_tokenizer *tok = NULL;
    char *data = compile(7, &len);
    for (size_t i = 0; i < len; i++) {
        char *copy = malloc(i + 1); /* exactly as long, for a sanitizer */
        assert_non_null(copy);
        memcpy(copy, data, i);
        assert_int_not_equal(smoe_tokenizer_open_compiled(copy, i, 7, &tok, &err), SMOE_OK);
        free(copy);
        data[i] ^= 0x40;
        assert_int_not_equal(smoe_tokenizer_open_compiled(data, len, 7, &tok, &err), SMOE_OK);
        data[i] ^= 0x40;
    }
    assert_null(tok);
    smoe_text_free(data);
}

/* Built on purpose, with a checksum that fits: any status, no crash, and what loads works. */
static void test_hostile(void **state)
{
    (void)state;
    size_t len;
    smoe_err err;
    char *data = compile(7, &len);
    for (size_t i = HEADER_BYTES; i < len; i++) {
        for (int k = 0; k < 2; k++) {
            smoe_tokenizer *tok = NULL;
            smoe_ids ids = {0};
            char kept = data[i];
            data[i] = k ? (char)0xFF : (char)(kept + 1);
            uint64_t sum = hash_bytes(data + HEADER_BYTES, len - HEADER_BYTES);
            for (int b = 0; b < 8; b++) {
                data[40 + b] = (char)(sum >> 8 * b);
            }
            if (smoe_tokenizer_open_compiled(data, len, 7, &tok, &err) == SMOE_OK) {
                smoe_status status = smoe_tokenizer_encode(tok, "hello aaaa", 10, &ids, &err);
                assert_true(status == SMOE_OK || status == SMOE_RANGE);
                for (size_t n = 0; n < ids.len; n++) {
                    assert_in_range(ids.data[n], 0, smoe_tokenizer_n_vocab(tok) - 1);
                }
                smoe_ids_free(&ids);
                smoe_tokenizer_free(tok);
            }
            data[i] = kept;
        }
    }
    smoe_text_free(data);
}

static void test_refused_memory(void **state)
{
    (void)state;
    size_t len;
    smoe_err err;
    smoe_status status = SMOE_NOMEM;
    char *data = compile(7, &len);
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        smoe_tokenizer *tok = NULL;
        mem_fail_nth(nth);
        status = smoe_tokenizer_open_compiled(data, len, 7, &tok, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || tok == NULL);
        smoe_tokenizer_free(tok);
        assert_true(nth < 5000);
    }
    smoe_text_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_ids), cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_damaged),  cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
