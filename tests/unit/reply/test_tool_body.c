/* test_tool_body.c: both forms of a tool call, and what is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "reply/tool_body.h"


static const json_value *tools; /* of the request, or NULL */

static void check(const char *body, const char *name, const char *arguments)
{
    buf n, a;
    smoe_err err;
    buf_init(&n, 1000);
    buf_init(&a, 1000);
    smoe_status status = tool_body_parse(slice_from(body), tools, &n, &a, &err);
    assert_int_equal(status, name ? SMOE_OK : SMOE_FORMAT);
    if (name) {
        assert_true(slice_is(buf_slice(&n), name));
        assert_true(slice_is(buf_slice(&a), arguments));
    }
    buf_fini(&n);
    buf_fini(&a);
}

static void test_forms(void **state)
{
    (void)state;
    check("\n{\"name\":\"f\",\"arguments\":{}}\n", "f", "{}");
    check("\n<function=f>\n<parameter=k>\na\n\"b\"\n</parameter>\n</function>\n", "f",
          "{\"k\":\"a\\n\\\"b\\\"\"}");
    check("<function=f></function>", "f", "{}");
    check("", NULL, NULL);
    check("{\"name\":\"f\"}", NULL, NULL);
    check("{\"name\":\"\",\"arguments\":{}}", NULL, NULL);
    check("{\"name\":\"f\",\"arguments\":{}", NULL, NULL);
    check("<function=f>", NULL, NULL);
    check("<function=></function>", NULL, NULL);
    check("<function=f><parameter=k>v</function>", NULL, NULL);
    check("<function=f><parameter=k>v</parameter><parameter=k>w</parameter></function>", NULL,
          NULL);
    check("<function=f></function> more", NULL, NULL);
}

/* What the model wrote comes out byte for byte; only what cannot is written anew. */
static void test_arguments_as_written(void **state)
{
    (void)state;
    check("{\"arguments\": {\"a\": [1, {\"arguments\": 2}], \"b\" : 1.50} , \"name\": \"f\"}", "f",
          "{\"a\": [1, {\"arguments\": 2}], \"b\" : 1.50}");
    check("{\"name\": \"arguments\", \"x\": [\"arguments\", {}], "
          "\"arguments\": {\"}\": \"\\\"}\"}}",
          "arguments", "{\"}\": \"\\\"}\"}");
    check("{\"name\": \"f\", \"arg\\u0075ments\": {\"a\": 1}}", "f", "{\"a\":1}");
}

static void test_arguments_in_a_string(void **state)
{
    (void)state;
    check("{\"name\":\"f\",\"arguments\":\" {\\\"a\\\": 1} \"}", "f", "{\"a\": 1}");
    check("{\"name\":\"f\",\"arguments\":\"[1]\"}", NULL, NULL);
    check("{\"name\":\"f\",\"arguments\":\"{\"}", NULL, NULL);
    check("{\"name\":\"f\",\"arguments\":\"\"}", NULL, NULL);
    check("{\"name\":\"f\",\"arguments\":[1]}", NULL, NULL);
}

static void check_value(const char *parameter, const char *value, const char *expected)
{
    char body[256], arguments[256];
    snprintf(body, sizeof body, "<function=f><parameter=%s>%s</parameter></function>", parameter,
             value);
    snprintf(arguments, sizeof arguments, "{\"%s\":%s}", parameter, expected);
    check(body, "f", arguments);
}

static void test_types_of_the_schema(void **state)
{
    (void)state;
    json_value *root = NULL;
    const char *text =
        "[{\"type\":\"function\",\"function\":{\"name\":\"g\"}}, 7, {\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{"
        "\"i\":{\"type\":\"integer\"},\"n\":{\"type\":\"number\"},\"b\":{\"type\":\"boolean\"},"
        "\"o\":{\"type\":\"object\"},\"a\":{\"type\":\"array\"},\"s\":{\"type\":\"string\"},"
        "\"m\":{\"type\":[\"integer\",\"null\"]},\"ms\":{\"type\":[\"string\",\"integer\"]},"
        "\"u\":{}}}}}]";
    assert_int_equal(jr_parse(slice_from(text), "the test", &root, NULL), SMOE_OK);
    tools = root;
    check_value("i", "\n42\n", "42");
    check_value("i", "-7", "-7");
    check_value("i", "1.5", "\"1.5\"");
    check_value("i", "\nmany\n", "\"many\"");
    check_value("i", "", "\"\"");
    check_value("n", "2", "2");
    check_value("n", "0.5", "0.5");
    check_value("b", "true", "true");
    check_value("b", "\nFalse\n", "false");
    check_value("b", "1", "\"1\"");
    check_value("o", "\n{\"a\": [1]}\n", "{\"a\":[1]}");
    check_value("o", "[1]", "\"[1]\"");
    check_value("a", "[1, \"x\"]", "[1,\"x\"]");
    check_value("s", "42", "\"42\"");
    check_value("s", "\n 42 \n", "\" 42 \"");
    check_value("m", "None", "null");
    check_value("m", "3", "3");
    check_value("ms", "3", "\"3\"");
    check_value("u", "3", "\"3\"");
    check_value("unknown", "3", "\"3\"");
    check("<function=g><parameter=i>3</parameter></function>", "g", "{\"i\":\"3\"}");
    tools = NULL;
    jr_free(root);
}

static void test_names(void **state)
{
    (void)state;
    check("<function=a<b></function>", NULL, NULL);
    check("<function=a\n></function>", NULL, NULL);
    check("<function=f><parameter=></parameter></function>", NULL, NULL);
    check("<function=f><parameter=k\xFF>v</parameter></function>", NULL, NULL);
    check("<function=f><parameter=k>\xFF</parameter></function>", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_arguments_as_written),
        cmocka_unit_test(test_arguments_in_a_string),
        cmocka_unit_test(test_types_of_the_schema),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
