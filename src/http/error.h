/* error.h: why a request gets no answer, independent of the API that will word it. */
#ifndef HTTP_ERROR_H
#define HTTP_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What went wrong. Each API has its own names for these (openai_error.c, ...). */
enum http_error_kind {
    HTTP_BAD_REQUEST,      /* 400: param names the field, where there is one */
    HTTP_CONTEXT_LENGTH,   /* 400: n_prompt and n_ctx are set */
    HTTP_UNAUTHORIZED,     /* 401 */
    HTTP_FORBIDDEN,        /* 403: host or origin */
    HTTP_NO_SUCH_MODEL,    /* 404 */
    HTTP_NO_SUCH_PATH,     /* 404 */
    HTTP_WRONG_METHOD,     /* 405 */
    HTTP_TOO_LARGE,        /* 413 */
    HTTP_QUEUE_FULL,       /* 429, with Retry-After */
    HTTP_INTERNAL,         /* 500 */
    HTTP_NOT_IMPLEMENTED,  /* 501 */
    HTTP_UNAVAILABLE,      /* 503, with Retry-After: the engine died, or the server ends */
    HTTP_TIMED_OUT,        /* 504: the request took longer than it may */
};

typedef struct http_error {
    enum http_error_kind kind;
    char param[128];         /* "messages[2].content", or "" */
    char text[768];          /* one sentence for a person, NUL-terminated, valid UTF-8 */
    uint64_t n_prompt, n_ctx;
} http_error;

/* Fills *e and returns false, so that a parser can `return http_refuse(...)`. param may be NULL.
 * The text may quote what a client sent: it is made valid UTF-8. */
bool http_refuse(http_error *e, enum http_error_kind kind, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* What took longer than --timeout. */
bool http_refuse_late(http_error *e, unsigned timeout_s);
int http_error_status(const http_error *e);
/* Seconds for Retry-After; 0 = no such header. */
unsigned http_error_retry_s(const http_error *e);

#endif
