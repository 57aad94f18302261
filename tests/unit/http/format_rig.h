/* format_rig.h: one request at a time through `f`, the format that the including test names
 * before. */
#ifndef FORMAT_RIG_H
#define FORMAT_RIG_H

#include <stdbool.h>

#include "http/format.h"

static http_request request;
static http_error error;
static void *state;

static bool parse(const char *body)
{
    http_request_fini(&request);
    http_request_init(&request);
    f->free_state(state);
    state = NULL;
    return f->parse(slice_from(body), &request, &state, &error);
}

static int end(void **unused)
{
    (void)unused;
    http_request_fini(&request);
    f->free_state(state);
    state = NULL;
    return 0;
}

#define MESSAGES(content) "{\"messages\":[" content "]}"

#endif
