/* test_chat.c: conversations as ids, with the tiny tokenizer. Argument: the folder of its files. */
#include "cases.h"

static buf tokenizer_json, config_json;

static smoe_chat_files files_with(const char *config, const char *chat_template)
{
    return (smoe_chat_files){
        .tokenizer_json = tokenizer_json.data,
        .tokenizer_json_len = tokenizer_json.len,
        .tokenizer_config_json = config ? config : config_json.data,
        .tokenizer_config_json_len = config ? strlen(config) : config_json.len,
        .chat_template = chat_template,
        .chat_template_len = chat_template ? strlen(chat_template) : 0,
    };
}

/* The ids of the conversation are those of the text. */
static void expect_text(const smoe_chat_files *files, const char *messages, const char *extra,
                        const char *text)
{
    smoe_chat_format *f = NULL;
    smoe_ids got = {0}, want = {0};
    smoe_err err = {0};
    ASSERT_OK(smoe_chat_format_new(files, &f, &err), &err);
    ASSERT_OK(smoe_chat_format_encode(f, messages, strlen(messages), extra, &got, &err), &err);
    ASSERT_OK(smoe_tokenizer_encode(smoe_chat_format_tokenizer(f), text, strlen(text), &want, &err),
              &err);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, got.len * sizeof *got.data);
    assert_non_null(smoe_chat_format_template(f));
    smoe_ids_free(&got);
    smoe_ids_free(&want);
    smoe_chat_format_free(f);
}

static void test_conversation(void **state)
{
    smoe_chat_files files = files_with(NULL, NULL);
    (void)state;
    expect_text(&files, "[{\"role\":\"user\",\"content\":\"Hi \\u00e9\"}]", NULL,
                "<|im_start|>user\nHi \xc3\xa9<|im_end|>\n<|im_start|>assistant\n");
    expect_text(&files, " [] ", "{\"add_generation_prompt\": false}", "");
}

static void test_variables(void **state)
{
    smoe_chat_files files = files_with(
        "{\"bos_token\":null,\"eos_token\":{\"content\":\"E\"},\"pad_token\":\"P\",\"chat_"
        "template\":"
        "[{\"name\":\"other\",\"template\":\"no\"},{\"name\":\"default\",\"template\":"
        "\"{{ bos_token is defined }}{{ eos_token }}{{ pad_token }}{{ tools }}{{ documents }}{{ x "
        "}}\"}]}",
        NULL);
    (void)state;
    expect_text(&files, "[]", " { \"x\" : 1, \"tools\" : [2] } ", "FalseEP[2]None1");
    expect_text(&files, "[]", "{ }", "FalseEPNoneNone");
    files = files_with("{}", "{{ messages[0].role }}");
    expect_text(&files, "[{\"role\":\"r\"}]", NULL, "r");
}

/* As transformers' _normalize_chat_messages and _alias_reasoning_fields. */
static void test_messages(void **state)
{
    smoe_chat_files files = files_with("{}", "{{ messages | tojson }}");
    (void)state;
    expect_text(&files,
                "[{\"role\":\"user\",\"content\":null,\"n\":1.0,"
                "\"deep\":[{\"x\":null,\"y\":[true,-2,1e300]}]}]",
                NULL,
                "[{\"role\": \"user\", \"n\": 1.0, "
                "\"deep\": [{\"x\": null, \"y\": [true, -2, 1e+300]}]}]");
    expect_text(&files, "[{\"role\":\"a\",\"reasoning\":\"r\"}]", NULL,
                "[{\"thinking\": \"r\", \"role\": \"a\", \"reasoning\": \"r\", "
                "\"reasoning_content\": \"r\"}]");
    expect_text(&files, "[{\"reasoning_content\":\"c\",\"thinking\":\"t\",\"x\":1}]", NULL,
                "[{\"thinking\": \"t\", \"reasoning_content\": \"c\", \"x\": 1}]");
    expect_text(&files, "[{\"thinking\":\"t\",\"reasoning_content\":null}]", NULL,
                "[{\"thinking\": \"t\", \"reasoning_content\": \"t\"}]");
}

static void test_tool_template(void **state)
{
    smoe_chat_files files = files_with(
        "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"with\"},"
        "{\"name\":\"default\",\"template\":\"without\"}]}", NULL);
    (void)state;
    expect_text(&files, "[]", NULL, "without");
    expect_text(&files, "[]", "{\"tools\":null}", "without");
    expect_text(&files, "[]", "{\"tools\":[]}", "with");
}

static void expect_refused(const char *config, const char *part)
{
    smoe_chat_files files = files_with(config, NULL);
    smoe_chat_format *f = NULL;
    smoe_err err = {0};
    ASSERT_FAILS(smoe_chat_format_new(&files, &f, &err), SMOE_FORMAT, &err, part);
}

static void test_refused(void **state)
{
    smoe_chat_files files = files_with("{}", "{{ messages }}");
    smoe_chat_format *f = NULL;
    smoe_ids ids = {0};
    smoe_err err = {0};
    (void)state;
    expect_refused("{}", "has no chat_template");
    expect_refused("{\"chat_template\":1}", "must be a string or an array, found an integer");
    expect_refused("{\"chat_template\":[{\"name\":\"a\",\"template\":\"\"}]}",
                   "none of them is named");
    expect_refused("{\"chat_template\":\"\",\"eos_token\":[]}", "eos_token");
    expect_refused("{\"chat_template\":\"{{\"}", "chat template line 1, column 1");
    expect_refused("{", "not valid JSON");
    ASSERT_OK(smoe_chat_format_new(&files, &f, &err), &err);
    ASSERT_FAILS(smoe_chat_format_encode(f, "{}", 2, NULL, &ids, &err), SMOE_FORMAT, &err,
                 "the messages must be a JSON array, found an object");
    ASSERT_FAILS(smoe_chat_format_encode(f, "[{},7]", 6, NULL, &ids, &err), SMOE_FORMAT, &err,
                 "message 1 must be a JSON object with a role and a content, found an integer");
    ASSERT_FAILS(smoe_chat_format_encode(f, "[],\"a\":[]", 9, NULL, &ids, &err), SMOE_FORMAT, &err,
                 "not valid JSON");
    ASSERT_FAILS(smoe_chat_format_encode(f, "[]", 2, "[]", &ids, &err), SMOE_FORMAT, &err,
                 "the extra template variables must be a JSON object");
    ASSERT_FAILS(smoe_chat_format_encode(f, "[]", 2, "{\"messages\":[]}", &ids, &err), SMOE_FORMAT,
                 &err, "duplicate");
    smoe_ids_free(&ids);
    smoe_chat_format_free(f);
}

static void test_no_memory(void **state)
{
    smoe_chat_files files = files_with(NULL, NULL);
    smoe_chat_format *f = NULL;
    smoe_err err = {0};
    smoe_status status = SMOE_NOMEM;
    const char *messages = "[{\"role\":\"user\",\"content\":\"Hi\"}]";
    (void)state;
    ASSERT_OK(smoe_chat_format_new(&files, &f, &err), &err);
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        smoe_ids ids = {0};
        mem_fail_nth(nth);
        status = smoe_chat_format_encode(f, messages, strlen(messages), NULL, &ids, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        smoe_ids_free(&ids);
        assert_true(nth < 10000);
    }
    smoe_chat_format_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_tool_template),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };
    char path[4096];
    if (argc < 2) {
        return 2;
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", argv[1]);
    slurp(path, &tokenizer_json);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", argv[1]);
    slurp(path, &config_json);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buf_fini(&tokenizer_json);
    buf_fini(&config_json);
    return failed;
}
