/* tool_call.c: see tool_call.h. */
#include "reply/tool_call.h"

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";
enum { N_OPEN = sizeof open_tag - 1, N_CLOSE = sizeof close_tag - 1 };

void tool_call_init(tool_call *t, const tool_call_sink *sink)
{
    *t = (tool_call){.sink = sink};
    buf_init(&t->held, TOOL_CALL_MAX_BYTES);
}

void tool_call_fini(tool_call *t)
{
    buf_fini(&t->held);
}

static void pass(tool_call *t, slice text)
{
    if (text.len > 0) {
        t->sink->text(t->sink->ctx, text);
    }
}

static void give_up(tool_call *t)
{
    pass(t, buf_slice(&t->held));
    buf_clear(&t->held);
    t->inside = false;
}

/* Outside: up to the next '<' there is nothing to decide. The tag holds no second '<', so a broken
 * beginning of it can be followed only by a new one. */
static smoe_status push_outside(tool_call *t, slice *text, smoe_err *err)
{
    if (t->held.len == 0) {
        const char *tag = memchr(text->data, '<', text->len);
        slice plain = {text->data, tag ? (size_t)(tag - text->data) : text->len};
        pass(t, plain);
        *text = (slice){text->data + plain.len, text->len - plain.len};
    }
    while (text->len > 0 && t->held.len < N_OPEN) {
        if (*text->data != open_tag[t->held.len]) {
            give_up(t);
            return SMOE_OK;
        }
        TRY(buf_putc(&t->held, *text->data, err));
        text->data++;
        text->len--;
    }
    t->inside = t->held.len == N_OPEN;
    return SMOE_OK;
}

static smoe_status push_inside(tool_call *t, slice *text, smoe_err *err)
{
    if (t->held.len == TOOL_CALL_MAX_BYTES) {
        give_up(t);
        return SMOE_OK;
    }
    TRY(buf_putc(&t->held, *text->data, err));
    text->data++;
    text->len--;
    slice held = buf_slice(&t->held);
    if (slice_ends(held, slice_of(close_tag, N_CLOSE))) {
        slice body = {held.data + N_OPEN, held.len - N_OPEN - N_CLOSE};
        if (t->sink->call(t->sink->ctx, body)) {
            buf_clear(&t->held);
        }
        give_up(t);
    }
    return SMOE_OK;
}

smoe_status tool_call_push(tool_call *t, slice text, smoe_err *err)
{
    while (text.len > 0) {
        TRY(t->inside ? push_inside(t, &text, err) : push_outside(t, &text, err));
    }
    return SMOE_OK;
}

void tool_call_finish(tool_call *t)
{
    give_up(t);
}
