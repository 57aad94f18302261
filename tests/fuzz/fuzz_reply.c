/* fuzz_reply.c: a model's reply, cut in two ways: the events must be the same.
 *
 * The first byte holds the options, the second the length of the stop string that follows. */
#include "fuzz.h"

#include <stdlib.h>

#include "reply/reply_parser.h"

static const char schema[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
    "\"k\":{\"type\":\"integer\"},\"o\":{\"type\":[\"object\",\"array\",\"null\"]}}}}}]";

typedef struct heard {
    buf text; /* each event's kind and text; neighbours of one kind as one */
    int last;
    bool in_call;
} heard;

static void must(bool is_so)
{
    if (!is_so) {
        abort();
    }
}

static void hear(void *ctx, const reply_event *event)
{
    heard *h = ctx;
    must(h->last != REPLY_STOPPED);
    must(h->in_call == (event->kind == REPLY_CALL_ARGUMENTS || event->kind == REPLY_CALL_END));
    if ((int)event->kind != h->last) {
        buf_printf(&h->text, NULL, "\n%d %zu ", (int)event->kind, event->i);
    }
    h->last = (int)event->kind;
    h->in_call = event->kind == REPLY_CALL || event->kind == REPLY_CALL_ARGUMENTS;
    buf_append_slice(&h->text, event->text, NULL);
    if (event->kind == REPLY_CALL_ARGUMENTS) {
        json_value *arguments = NULL;
        must(jr_parse(event->text, "arguments", &arguments, NULL) == SMOE_OK);
        must(jr_kind(arguments) == JSON_KIND_OBJECT);
        jr_free(arguments);
    }
}

static void parse(const reply_options *options, slice reply, size_t piece, heard *h)
{
    reply_parser p;
    *h = (heard){.last = -1};
    buf_init(&h->text, SIZE_MAX / 2);
    reply_parser_init(&p, options, hear, h);
    for (size_t at = 0; at < reply.len; at += piece) {
        size_t n = reply.len - at < piece ? reply.len - at : piece;
        reply_parser_push(&p, slice_of(reply.data + at, n), NULL);
    }
    reply_parser_finish(&p, NULL);
    must(!h->in_call && (h->last == REPLY_STOPPED) == reply_parser_stopped(&p));
    reply_parser_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_value *tools;
    if (!tools && jr_parse(slice_from(schema), "the schema", &tools, NULL) != SMOE_OK) {
        abort();
    }
    if (size < 2 || size - 2 < data[1]) {
        return 0;
    }
    slice stop_string = slice_of(data + 2, data[1]);
    slice reply = slice_of(data + 2 + data[1], size - 2 - data[1]);
    const reply_options options = {
        .has_think_tags = data[0] & 1,
        .starts_inside = data[0] & 2,
        .has_tools = data[0] & 4,
        .tools = data[0] & 8 ? tools : NULL,
        .stop = &stop_string,
        .n_stop = stop_string.len > 0,
    };
    heard whole, pieces;
    parse(&options, reply, reply.len ? reply.len : 1, &whole);
    parse(&options, reply, 1 + (data[0] >> 4), &pieces);
    must(slice_eq(buf_slice(&whole.text), buf_slice(&pieces.text)));
    buf_fini(&whole.text);
    buf_fini(&pieces.text);
    return 0;
}
