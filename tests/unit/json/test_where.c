/* The place of a byte in a text that is not, or not yet, JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "json/json_where.h"

/* '^' stands before the byte that is meant. */
static void check(const char *marked, const char *wanted)
{
    char text[4096], path[64];
    size_t n = 0, offset = 0;
    for (const char *p = marked; *p; p++) {
        if (*p == '^') {
            offset = n;
        } else {
            text[n++] = *p;
        }
    }
    json_where(slice_of(text, n), offset, path, sizeof path);
    assert_string_equal(path, wanted);
}

static void test_places(void **state)
{
    (void)state;
    check("^{}", "");
    check("{\"a\":^1}", "a");
    check("{\"a\":\"x^y\"}", "a");
    check("{\"a\":\"xy\"^,\"b\":1}", "a");
    check("{\"a\":1,\"b\":^2}", "b");
    check("{\"a\":1,\"b^\":2}", "");
    check("{\"messages\":[{\"role\":\"user\"},{\"content\":\"q\\\"{[,:^\"}]}",
          "messages[1].content");
    check("[[1,2],[3,^4]]", "[1][1]");
    check("{\"a\":{\"b\":[]},\"c\":[0,^", "c[1]");
    check("{\"a\\u0001\":^1}", "?");
    check("}}}]]^", "");
    check("\"abc\\^", "");
    check("{{{:::,,,^", "");
    check("{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[^", "a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]");
}

static void test_any_bytes(void **state)
{
    (void)state;
    char text[64], path[16];
    uint32_t x = 1;
    for (int i = 0; i < 20000; i++) {
        for (size_t k = 0; k < sizeof text; k++) {
            x = x * 1664525 + 1013904223;
            text[k] = "{}[]\",:\\a1\xff\0"[(x >> 16) % 12];
        }
        json_where(slice_of(text, sizeof text), (x >> 8) % 80, path, 1 + (x >> 4) % sizeof path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
