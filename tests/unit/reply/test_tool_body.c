/* test_tool_body.c: both forms of a tool call, and what is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "reply/tool_body.h"

static void check(const char *body, const char *name, const char *arguments)
{
    buf n, a;
    smoe_err err;
    buf_init(&n, 1000);
    buf_init(&a, 1000);
    smoe_status status = tool_body_parse(slice_from(body), &n, &a, &err);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
