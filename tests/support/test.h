/* test.h: cmocka, and what several unit tests need besides it. */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

/* The call succeeds; else its sentence is the failure's message. */
#define ASSERT_OK(call, err)                       \
    do {                                           \
        if ((call) != SMOE_OK) {                   \
            fail_msg("%s: %s", #call, (err)->text); \
        }                                          \
    } while (0)

/* The call fails with this code, and its sentence contains part. */
#define ASSERT_FAILS(call, want, err, part)                                              \
    do {                                                                                 \
        assert_int_equal((call), (want));                                                \
        assert_int_equal((err)->code, (want));                                           \
        if (strstr((err)->text, (part)) == NULL) {                                       \
            fail_msg("%s: \"%s\" does not contain \"%s\"", #call, (err)->text, (part)); \
        }                                                                                \
    } while (0)

/* A new empty directory; path has room for 64 bytes. */
static inline void test_dir_make(char path[64])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, 64, "%s/smoe-test-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
    assert_non_null(mkdtemp(path));
}

/* Removes the directory and the plain files in it. */
static inline void test_dir_remove(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

#endif
