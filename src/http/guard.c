/* guard.c: see guard.h. */
#include "http/guard.h"

#include <string.h>
#include <strings.h>

#include "base/slice.h"

bool guard_key_equal(const char *given, size_t n_given, const char *key)
{
    size_t n_key = strlen(key);
    volatile unsigned char difference = n_given != n_key;
    for (size_t i = 0; i < n_given; i++) {
        unsigned char k = n_key > 0 ? (unsigned char)key[i % n_key] : 0;
        difference = (unsigned char)(difference | ((unsigned char)given[i] ^ k));
    }
    return difference == 0;
}

/* All keys are compared, whichever fits. */
static bool knows_key(const http_options *options, const char *given)
{
    bool found = false;
    for (const char *const *key = options->keys; *key != NULL; key++) {
        found |= guard_key_equal(given, strlen(given), *key);
    }
    return found;
}

static bool has_key(const http_options *options, const guard_headers *h)
{
    if (h->authorization != NULL && strncasecmp(h->authorization, "Bearer ", 7) == 0) {
        const char *given = h->authorization + 7;
        return knows_key(options, given + strspn(given, " "));
    }
    return h->api_key != NULL && knows_key(options, h->api_key);
}

/* The name in a Host header, without its port. */
static slice host_name(const char *host)
{
    size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    size_t len = strlen(host);
    return slice_of(host, n < len ? n : len);
}

static bool equal_names(slice a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.data, b, a.len) == 0;
}

static bool is_own_host(const http_options *options, const char *host)
{
    slice name = host_name(host);
    return equal_names(name, "localhost") || equal_names(name, "[::1]") ||
           equal_names(name, options->host) ||
           (slice_starts(name, slice_from("127.")) &&
            strspn(name.data, "0123456789.") >= name.len);
}

bool guard_allows_origin(const http_options *options, const char *origin)
{
    return origin != NULL && options->cors_origin != NULL &&
           (strcmp(options->cors_origin, "*") == 0 || strcmp(options->cors_origin, origin) == 0);
}

static bool is_same_origin(const char *origin, const char *host)
{
    const char *rest = strncmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncmp(origin, "https://", 8) == 0 ? origin + 8
                                                             : NULL;
    return rest != NULL && host != NULL && strcasecmp(rest, host) == 0;
}

bool guard_check(const http_options *options, const guard_headers *h, bool needs_key,
                 http_error *error)
{
    if (options->keys == NULL && h->host != NULL && !is_own_host(options, h->host)) {
        return http_refuse(error, HTTP_FORBIDDEN, NULL,
                           "this server has no API key, so it answers to loopback names only, not "
                           "to Host: %.100s", h->host);
    }
    if (h->origin != NULL && !guard_allows_origin(options, h->origin) &&
        !is_same_origin(h->origin, h->host)) {
        return http_refuse(error, HTTP_FORBIDDEN, NULL,
                           "pages from %.100s may not use this server; --cors-origin allows one",
                           h->origin);
    }
    if (needs_key && options->keys != NULL && !has_key(options, h)) {
        return http_refuse(error, HTTP_UNAUTHORIZED, NULL,
                           "this server needs one of its API keys, as Authorization: Bearer KEY");
    }
    return true;
}
