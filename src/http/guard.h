/* guard.h: who may ask: API keys, and web pages of other origins kept out.
 *
 * A server on loopback without a key is open to every page that a browser shows, were it not for
 * two checks: the Host must be a loopback name (a page cannot forge it, also when its own name is
 * made to point here), and an Origin must be the server's own or the one that was allowed. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include "http/error.h"
#include "http/http.h"

/* Any of these may be NULL: the header is not there. */
typedef struct guard_headers {
    const char *authorization, *api_key, *host, *origin;
} guard_headers;

/* Whether a browser may show the reply to the page that asked: its Origin is the allowed one. */
bool guard_allows_origin(const http_options *options, const char *origin);
/* False: *error says why not. needs_key false: the path is open to all. */
bool guard_check(const http_options *options, const guard_headers *headers, bool needs_key,
                 http_error *error);
/* Compares in a time that depends on the lengths only. */
bool guard_key_equal(const char *given, size_t n_given, const char *key);

#endif
