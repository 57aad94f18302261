/* fuzz_http.c: the body of a request to each API of smoe http. The first byte chooses the API. */
#include "fuzz.h"

#include <stdlib.h>

#include "http/format.h"
#include "json/json_read.h"

static const http_format *const formats[] = {
    &openai_chat_format, &openai_completion_format, &openai_responses_format, &anthropic_format};

/* What was accepted is what the template is given: it must be JSON of the right kind. */
static void must_be(const buf *text, enum json_kind kind)
{
    json_value *v = NULL;
    if (jr_parse(buf_slice(text), "a part of the request", &v, NULL) != SMOE_OK ||
        jr_kind(v) != kind) {
        abort();
    }
    jr_free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const http_format *format = formats[data[0] % (sizeof formats / sizeof *formats)];
    http_request request;
    http_error error = {.kind = HTTP_BAD_REQUEST};
    void *state = NULL;
    http_request_init(&request);
    if (!format->parse(slice_of(data + 1, size - 1), &request, &state, &error)) {
        if (error.text[0] == '\0' || http_error_status(&error) != 400) {
            abort();
        }
    } else if (request.is_chat) {
        must_be(&request.messages, JSON_KIND_ARRAY);
        if (request.variables.len > 0) {
            must_be(&request.variables, JSON_KIND_OBJECT);
        }
        for (size_t i = 0; i < request.n_stops; i++) {
            if (request.stops[i].len == 0) {
                abort();
            }
        }
    }
    http_request_fini(&request);
    if (format->free_state != NULL) {
        format->free_state(state);
    }
    return 0;
}
