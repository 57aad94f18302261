/* err.c: see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *smoe_status_name(smoe_status status)
{
    static const char *const names[] = {
#define X(name, text) text,
        SMOE_STATUS_LIST(X)
#undef X
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof names[0] ? names[i] : "unknown status";
}

/* Names and messages out of files go into sentences: none of them steers a terminal, and a sentence
 * is one line. C1 controls are C2 80 .. C2 9F in UTF-8. */
static void make_plain(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\t') {
            *c = ' ';
        } else if (*c < 0x20 || *c == 0x7f) {
            *c = '?';
        } else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
            c[0] = c[1] = '?';
        }
    }
}

smoe_status err_set(smoe_err *err, smoe_status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        make_plain(err->text);
    }
    return code;
}

smoe_status err_nomem(smoe_err *err, const char *what, unsigned long long n_bytes)
{
    return err_set(err, SMOE_NOMEM, "the system refused %llu bytes of memory for %s", n_bytes,
                   what);
}

smoe_status err_errno(smoe_err *err, smoe_status code, const char *fmt, ...)
{
    int saved = errno;
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        int n = vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof err->text) {
            snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(saved));
        }
        make_plain(err->text);
    }
    return code;
}
