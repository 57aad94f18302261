/* request.c: see request.h. */
#include "http/request.h"

enum { TEXT_MAX_BYTES = 256 << 20, NAME_MAX_BYTES = 1024, STOP_MAX_BYTES = 4096 };

void http_request_init(http_request *r)
{
    *r = (http_request){.is_chat = false};
    buf_init(&r->model, NAME_MAX_BYTES);
    buf_init(&r->messages, TEXT_MAX_BYTES);
    buf_init(&r->variables, TEXT_MAX_BYTES);
    buf_init(&r->prompt, TEXT_MAX_BYTES);
    for (size_t i = 0; i < HTTP_MAX_STOPS; i++) {
        buf_init(&r->stops[i], STOP_MAX_BYTES);
    }
}

void http_request_fini(http_request *r)
{
    buf_fini(&r->model);
    buf_fini(&r->messages);
    buf_fini(&r->variables);
    buf_fini(&r->prompt);
    smoe_ids_free(&r->ids);
    for (size_t i = 0; i < HTTP_MAX_STOPS; i++) {
        buf_fini(&r->stops[i]);
    }
}
