/* cmocka.h: a stand-in for cmocka, so that the tests of src/quant can be cross-compiled without a
 * cmocka of the other processor. It has only what those tests use, and reports the way cmocka does.
 * One header, for programs of one source file. */
#pragma once

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

static jmp_buf cm_end_of_test;

__attribute__((noreturn, format(printf, 3, 4))) static inline void
cm_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("%s:%d: ", file, line);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    longjmp(cm_end_of_test, 1);
}

static inline void cm_equal(const char *file, int line, const char *what, intmax_t a, intmax_t b)
{
    if (a != b) {
        cm_fail(file, line, "%s: %" PRIdMAX " is not %" PRIdMAX, what, a, b);
    }
}

#define CM_CHECK(holds, what)                                                                      \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            cm_fail(__FILE__, __LINE__, "not so: %s", what);                                       \
        }                                                                                          \
    } while (0)

#define print_message(...) ((void)printf(__VA_ARGS__))
#define fail_msg(...) cm_fail(__FILE__, __LINE__, __VA_ARGS__)
#define assert_true(c) CM_CHECK(c, #c)
#define assert_false(c) CM_CHECK(!(c), "!(" #c ")")
#define assert_null(p) CM_CHECK((p) == NULL, #p " is NULL")
#define assert_non_null(p) CM_CHECK((p) != NULL, #p " is not NULL")
#define assert_ptr_equal(a, b) CM_CHECK((const void *)(a) == (const void *)(b), #a " is " #b)
#define assert_int_equal(a, b)                                                                     \
    cm_equal(__FILE__, __LINE__, #a " and " #b, (intmax_t)(a), (intmax_t)(b))
#define assert_string_equal(a, b) CM_CHECK(strcmp(a, b) == 0, #a " reads " #b)
#define assert_memory_equal(a, b, n) CM_CHECK(memcmp(a, b, n) == 0, #a " holds " #b)

#define cmocka_unit_test(f) {#f, f}
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    cm_run(tests, sizeof(tests) / sizeof((tests)[0]))

static inline int cm_run(const struct CMUnitTest *tests, size_t n)
{
    volatile int n_failed = 0;

    printf("[==========] Running %zu test(s).\n", n);
    for (volatile size_t i = 0; i < n; i++) {
        void *state = NULL;
        printf("[ RUN      ] %s\n", tests[i].name);
        fflush(stdout); /* a test may die */
        if (setjmp(cm_end_of_test) == 0) {
            tests[i].run(&state);
            printf("[       OK ] %s\n", tests[i].name);
        } else {
            printf("[  FAILED  ] %s\n", tests[i].name);
            n_failed++;
        }
    }
    return n_failed;
}
