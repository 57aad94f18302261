/* tool_call.c: see tool_call.h.
 *
 *   OUTSIDE --<tool_call>--> BEGUN --{--> JSON <--"--> STRING
 *                              +----<--> XML <--parameter's tags--> VALUE
 *
 * The closing tag leads back to OUTSIDE from everywhere but STRING and (mostly) VALUE. Inside a
 * call each byte is looked at once. */
#include "reply/tool_call.h"

enum { OUTSIDE, BEGUN, JSON, STRING, XML, VALUE };

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";
enum { N_OPEN = sizeof open_tag - 1, N_CLOSE = sizeof close_tag - 1 };

void tool_call_init(tool_call *t, const tool_call_sink *sink)
{
    *t = (tool_call){.sink = sink, .state = OUTSIDE};
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

/* What is held is text. */
static void give_up(tool_call *t)
{
    pass(t, buf_slice(&t->held));
    buf_clear(&t->held);
    t->state = OUTSIDE;
}

/* Up to the next '<' there is nothing to decide. The tag holds no second '<', so a broken beginning
 * of it can be followed only by a new one. */
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
    t->state = t->held.len == N_OPEN ? BEGUN : OUTSIDE;
    return SMOE_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What is held without tag at its end and white space before that; tag must stand there. */
static slice before_tag(const tool_call *t, size_t n_tag)
{
    slice s = {t->held.data, t->held.len - n_tag};
    while (s.len > 0 && is_space(s.data[s.len - 1])) {
        s.len--;
    }
    return s;
}

static bool ends(const tool_call *t, const char *tag)
{
    return slice_ends(buf_slice(&t->held), slice_from(tag));
}

static smoe_status close_call(tool_call *t, smoe_err *err)
{
    slice body = {t->held.data + N_OPEN, t->held.len - N_OPEN - N_CLOSE};
    bool taken = false;
    TRY(t->sink->call(t->sink->ctx, body, &taken, err));
    if (taken) {
        buf_clear(&t->held);
    }
    give_up(t);
    return SMOE_OK;
}

/* The call that is held was not closed before another began: it is text up to there. */
static smoe_status begin_again(tool_call *t, smoe_err *err)
{
    t->held.len -= N_OPEN;
    give_up(t);
    t->state = BEGUN;
    return buf_append(&t->held, open_tag, N_OPEN, err);
}

static void step_string(tool_call *t, char c)
{
    if ((unsigned char)c < 0x20) {
        give_up(t);
    } else if (t->escaped) {
        t->escaped = false;
    } else if (c == '\\') {
        t->escaped = true;
    } else if (c == '"') {
        t->state = JSON;
    }
}

/* A '>' inside a parameter. */
static smoe_status end_tag_in_value(tool_call *t, smoe_err *err)
{
    if (ends(t, "</parameter>")) {
        t->state = XML;
    } else if (ends(t, close_tag)) {
        slice before = before_tag(t, N_CLOSE);
        return slice_ends(before, slice_from("</function>")) ? close_call(t, err) : SMOE_OK;
    } else if (ends(t, open_tag)) {
        slice before = before_tag(t, N_OPEN);
        return slice_ends(before, slice_from(close_tag)) ? begin_again(t, err) : SMOE_OK;
    }
    return SMOE_OK;
}

/* One byte of a call, already held. */
static smoe_status step(tool_call *t, char c, smoe_err *err)
{
    switch (t->state) {
    case BEGUN:
        if (c == '{' || c == '<') {
            t->state = c == '{' ? JSON : XML;
            t->i_tag = t->held.len - 1;
        } else if (!is_space(c)) {
            give_up(t);
        }
        break;
    case JSON:
        if (c == '"') {
            t->state = STRING;
        } else if (c == '>' && ends(t, close_tag)) {
            return close_call(t, err);
        }
        break;
    case STRING:
        step_string(t, c);
        break;
    case XML:
        if (c == '<') {
            t->i_tag = t->held.len - 1;
        } else if (c == '>' && ends(t, close_tag)) {
            return close_call(t, err);
        } else if (c == '>') {
            slice tag = {t->held.data + t->i_tag, t->held.len - t->i_tag};
            bool opens = slice_starts(tag, slice_from("<parameter="));
            t->state = opens ? VALUE : XML;
        }
        break;
    case VALUE:
        return c == '>' ? end_tag_in_value(t, err) : SMOE_OK;
    }
    return SMOE_OK;
}

smoe_status tool_call_push(tool_call *t, slice text, smoe_err *err)
{
    while (text.len > 0) {
        if (t->state == OUTSIDE) {
            TRY(push_outside(t, &text, err));
            continue;
        }
        if (t->held.len == TOOL_CALL_MAX_BYTES) {
            give_up(t);
            continue;
        }
        TRY(buf_putc(&t->held, *text.data, err));
        char c = *text.data++;
        text.len--;
        TRY(step(t, c, err));
    }
    return SMOE_OK;
}

void tool_call_finish(tool_call *t)
{
    give_up(t);
}
