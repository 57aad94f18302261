/* error.c: see error.h. */
#include "http/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "tokenizer/utf8.h"

/* Cut between characters; a sentence that quotes a client may have been cut anywhere. */
static void make_valid(char *text)
{
    text[utf8_valid_prefix(slice_from(text))] = '\0';
}

bool http_refuse(http_error *e, enum http_error_kind kind, const char *param, const char *fmt, ...)
{
    va_list args;
    *e = (http_error){.kind = kind};
    snprintf(e->param, sizeof e->param, "%s", param ? param : "");
    va_start(args, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    make_valid(e->param);
    make_valid(e->text);
    return false;
}

bool http_refuse_late(http_error *e, unsigned timeout_s)
{
    return http_refuse(e, HTTP_TIMED_OUT, NULL,
                       "the request took longer than the %u seconds that it may take here",
                       timeout_s);
}

int http_error_status(const http_error *e)
{
    static const int status[] = {
        [HTTP_BAD_REQUEST] = 400,     [HTTP_CONTEXT_LENGTH] = 400, [HTTP_UNAUTHORIZED] = 401,
        [HTTP_FORBIDDEN] = 403,       [HTTP_NO_SUCH_MODEL] = 404,  [HTTP_NO_SUCH_PATH] = 404,
        [HTTP_WRONG_METHOD] = 405,    [HTTP_TOO_LARGE] = 413,      [HTTP_QUEUE_FULL] = 429,
        [HTTP_INTERNAL] = 500,        [HTTP_NOT_IMPLEMENTED] = 501,
        [HTTP_UNAVAILABLE] = 503,     [HTTP_TIMED_OUT] = 504,
    };
    return status[e->kind];
}

unsigned http_error_retry_s(const http_error *e)
{
    return e->kind == HTTP_QUEUE_FULL ? 5 : e->kind == HTTP_UNAVAILABLE ? 2 : 0;
}
