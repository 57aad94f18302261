/* err.h: making and passing on errors. The text is written once, where the facts are known. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "smoe/status.h"

/* Returns the status of a failing call from the current function. */
#define TRY(call)                                   \
    do {                                            \
        smoe_status try_status_ = (call);           \
        if (try_status_ != SMOE_OK) {               \
            return try_status_;                     \
        }                                           \
    } while (0)

/* In a function with a local `smoe_status status` and one `out:` label that releases everything. */
#define CHECK(call)               \
    do {                          \
        status = (call);          \
        if (status != SMOE_OK) {  \
            goto out;             \
        }                         \
    } while (0)

/* Writes the sentence into err (which may be NULL) and returns code, so that a caller can write
 * `return err_set(err, SMOE_FORMAT, "...", ...)`. */
smoe_status err_set(smoe_err *err, smoe_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The one sentence for a refused allocation. */
smoe_status err_nomem(smoe_err *err, const char *what, unsigned long long n_bytes);

/* A sentence that ends in strerror(errno). errno is read before anything else. */
smoe_status err_errno(smoe_err *err, smoe_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
