/* reasoning.c: see reasoning.h.
 *
 *   START --<think>--> INSIDE --</think>--> AFTER --first character--> ANSWER
 *     |                                                                  ^
 *     +------------------------- anything else --------------------------+
 *
 * In START white space and the beginning of the opening tag are held back; in INSIDE the beginning
 * of the closing tag, and line breaks until more text shows that they are not the last; in AFTER
 * the line breaks before the answer. */
#include "reply/reasoning.h"

enum { START, INSIDE, AFTER, ANSWER };

static const char open_tag[] = "<think>", close_tag[] = "</think>";

void reasoning_init(reasoning *r, bool has_tags, bool starts_inside, reasoning_sink *sink,
                    void *ctx)
{
    *r = (reasoning){.sink = sink, .ctx = ctx};
    r->state = !has_tags ? ANSWER : starts_inside ? INSIDE : START;
}

bool reasoning_is_inside(const reasoning *r)
{
    return r->state == INSIDE;
}

static void pass(reasoning *r, bool is_reasoning, slice text)
{
    if (text.len > 0) {
        r->sink(r->ctx, is_reasoning, text);
    }
}

static void pass_breaks(reasoning *r)
{
    for (; r->n_breaks > 0; r->n_breaks--) {
        pass(r, true, slice_from("\n"));
    }
}

/* Reasoning that is certain to be text. Breaks at its start and at its end belong to the tags. */
static void pass_reasoning(reasoning *r, slice text)
{
    while (text.len > 0) {
        if (text.data[0] == '\n') {
            r->n_breaks += r->said_something;
            text.data++;
            text.len--;
            continue;
        }
        const char *end = memchr(text.data, '\n', text.len);
        slice line = {text.data, end ? (size_t)(end - text.data) : text.len};
        pass_breaks(r);
        pass(r, true, line);
        r->said_something = true;
        text.data += line.len;
        text.len -= line.len;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The reply does not start with the tag: all of it is answer. */
static void give_up_start(reasoning *r)
{
    r->state = ANSWER;
    pass(r, false, slice_of(r->held, r->n_held));
    r->n_held = 0;
}

static void push_start(reasoning *r, char c)
{
    bool only_space = r->n_held == 0 || is_space(r->held[r->n_held - 1]);
    if (is_space(c) && only_space && r->n_held + sizeof open_tag < sizeof r->held) {
        r->held[r->n_held++] = c;
        return;
    }
    size_t n_tag = 0; /* characters of the tag that are held */
    while (n_tag < r->n_held && !is_space(r->held[r->n_held - 1 - n_tag])) {
        n_tag++;
    }
    r->held[r->n_held++] = c;
    if (c != open_tag[n_tag]) {
        give_up_start(r);
    } else if (n_tag + 1 == sizeof open_tag - 1) {
        r->state = INSIDE;
        r->n_held = 0;
    }
}

static void push_inside(reasoning *r, char c)
{
    if (r->n_held > 0 && c != close_tag[r->n_held]) {
        pass_reasoning(r, slice_of(r->held, r->n_held));
        r->n_held = 0;
    }
    if (c != close_tag[r->n_held]) {
        pass_reasoning(r, slice_of(&c, 1));
        return;
    }
    r->held[r->n_held++] = c;
    if (r->n_held == sizeof close_tag - 1) {
        r->state = AFTER;
        r->n_held = r->n_breaks = 0;
    }
}

/* Inside, up to the next '<' there is nothing to decide: whole pieces go on at once. */
static slice skip_plain(reasoning *r, slice text)
{
    const char *tag = memchr(text.data, '<', text.len);
    slice plain = {text.data, tag ? (size_t)(tag - text.data) : text.len};
    pass_reasoning(r, plain);
    return (slice){text.data + plain.len, text.len - plain.len};
}

void reasoning_push(reasoning *r, slice text)
{
    while (text.len > 0) {
        if (r->state == INSIDE && r->n_held == 0) {
            text = skip_plain(r, text);
            if (text.len == 0) {
                return;
            }
        }
        if (r->state == AFTER && *text.data != '\n') {
            r->state = ANSWER;
        }
        if (r->state == ANSWER) {
            pass(r, false, text);
            return;
        }
        if (r->state == START) {
            push_start(r, *text.data);
        } else if (r->state == INSIDE) {
            push_inside(r, *text.data);
        }
        text.data++;
        text.len--;
    }
}

void reasoning_finish(reasoning *r)
{
    if (r->state == START) {
        give_up_start(r);
    } else if (r->state == INSIDE) {
        pass_reasoning(r, slice_of(r->held, r->n_held));
        r->n_held = 0;
    }
}
