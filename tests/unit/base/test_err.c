/* test_err.c: the sentence of a failure, and what the machine says of itself. */
#include "../../support/test.h"

#include <errno.h>

#include "base/cpu.h"

static void test_set(void **state)
{
    (void)state;
    smoe_err err = {0};
    assert_int_equal(err_set(&err, SMOE_RANGE, "%d is too many", 7), SMOE_RANGE);
    assert_int_equal(err.code, SMOE_RANGE);
    assert_string_equal(err.text, "7 is too many");
    assert_int_equal(err_set(NULL, SMOE_IO, "nobody listens"), SMOE_IO);
}

/* What comes out of a file may hold anything; a sentence is one line that steers no terminal. */
static void test_no_control_characters(void **state)
{
    (void)state;
    smoe_err err;
    err_set(&err, SMOE_FORMAT, "the tensor \"%s\"", "\x1b[2J\r\n\t\x7f\xc2\x9b 1\xc3\xa9\xc2\xa0");
    assert_string_equal(err.text, "the tensor \"?[2J?  ??? 1\xc3\xa9\xc2\xa0\"");
    errno = ENOENT;
    err_errno(&err, SMOE_IO, "%s", "\x1b]0;title\a");
    assert_non_null(strstr(err.text, "?]0;title?: "));
}

static void test_long_sentences_are_cut(void **state)
{
    (void)state;
    static char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    smoe_err err;
    err_set(&err, SMOE_FORMAT, "%s", longest);
    assert_true(strlen(err.text) < sizeof err.text);
}

static void test_errno_is_told(void **state)
{
    (void)state;
    smoe_err err;
    errno = ENOENT;
    assert_int_equal(err_errno(&err, SMOE_IO, "%s cannot be opened", "x"), SMOE_IO);
    assert_non_null(strstr(err.text, "x cannot be opened"));
    assert_non_null(strstr(err.text, "No such file or directory"));
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(smoe_status_name(SMOE_OK), "ok");
    assert_string_equal(smoe_status_name(SMOE_OVERFLOW), "context overflow");
    assert_non_null(smoe_status_name((smoe_status)9999));
}

static void test_machine(void **state)
{
    (void)state;
    assert_in_range(cpu_n_cores(), 1, 100000);
    uint64_t n_bytes = mem_available_bytes();
    assert_true(n_bytes == 0 || n_bytes > 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_no_control_characters),
        cmocka_unit_test(test_long_sentences_are_cut),
        cmocka_unit_test(test_errno_is_told),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
