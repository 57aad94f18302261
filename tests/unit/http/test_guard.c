/* Who may ask. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/guard.h"

static void test_keys(void **state)
{
    (void)state;
    assert_true(guard_key_equal("abc", 3, "abc"));
    assert_false(guard_key_equal("abcabc", 6, "abc")); /* the same bytes over again */
    assert_false(guard_key_equal("ab", 2, "abc"));
    assert_false(guard_key_equal("abd", 3, "abc"));
    assert_false(guard_key_equal("", 0, "abc"));
    assert_false(guard_key_equal("a", 1, ""));
}

static bool passes(const char *host, const char *origin, const char *cors)
{
    http_error error;
    http_options options = {.host = "127.0.0.1", .cors_origin = cors};
    guard_headers headers = {.host = host, .origin = origin};
    return guard_check(&options, &headers, true, &error);
}

static void test_hosts(void **state)
{
    (void)state;
    static const char *const good[] = {"localhost", "LocalHost:8080", "127.0.0.1", "127.1.2.3:1",
                                       "[::1]", "[::1]:8080"};
    static const char *const bad[] = {"evil.example", "localhost.evil.example", "127.0.0.1.evil.x",
                                      "127.evil", "", "[::2]", "[", ":8080", "192.168.0.1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(passes(good[i], NULL, NULL));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(passes(bad[i], NULL, NULL));
    }
    assert_true(passes(NULL, NULL, NULL)); /* HTTP/1.0 */
}

static void test_origins(void **state)
{
    (void)state;
    assert_true(passes("localhost:1", "http://localhost:1", NULL));
    assert_false(passes("localhost:1", "http://localhost:2", NULL));
    assert_false(passes("localhost:1", "null", NULL));
    assert_false(passes("localhost:1", "file://", NULL));
    assert_false(passes(NULL, "http://", NULL));
    assert_true(passes("localhost:1", "https://a.example", "https://a.example"));
    assert_false(passes("localhost:1", "https://b.example", "https://a.example"));
    assert_true(passes("localhost:1", "https://b.example", "*"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
