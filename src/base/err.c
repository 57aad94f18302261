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

smoe_status err_set(smoe_err *err, smoe_status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
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
    }
    return code;
}
