/* reply_parser.c: see reply_parser.h. The chain:
 *   push -> reasoning -> hear_split -> tool_call -> hear_text -> stop -> hear_content -> sink
 *                                          +------> hear_call -> sink */
#include "reply/reply_parser.h"

#include "reply/tool_body.h"

static void emit(reply_parser *p, enum reply_event_kind kind, slice text, size_t i)
{
    reply_event event = {kind, text, i};
    p->sink(p->ctx, &event);
}

static void pass_breaks(reply_parser *p)
{
    for (; p->n_breaks > 0; p->n_breaks--) {
        emit(p, REPLY_CONTENT, slice_from("\n"), 0);
    }
}

/* Content that is certain to be content; its last line breaks wait for what follows. */
static void hear_content(void *ctx, slice text)
{
    reply_parser *p = ctx;
    size_t n_breaks = 0;
    while (p->options.has_tools && text.len > 0 && text.data[text.len - 1] == '\n') {
        n_breaks++;
        text.len--;
    }
    if (text.len > 0) {
        pass_breaks(p);
        emit(p, REPLY_CONTENT, text, 0);
    }
    p->n_breaks += n_breaks;
}

static void hear_text(void *ctx, slice text)
{
    reply_parser *p = ctx;
    while (p->after_call && text.len > 0 && *text.data == '\n') {
        text = slice_of(text.data + 1, text.len - 1);
    }
    if (text.len == 0 || stop_found(&p->stop)) {
        return;
    }
    p->after_call = false;
    if (p->options.n_stop == 0) {
        hear_content(p, text);
        return;
    }
    if (p->err.code == SMOE_OK) {
        stop_push(&p->stop, text, &p->err);
    }
    if (stop_found(&p->stop)) {
        pass_breaks(p);
        emit(p, REPLY_STOPPED, (slice){0}, p->stop.i_string);
    }
}

static smoe_status hear_call(void *ctx, slice body, bool *taken, smoe_err *err)
{
    reply_parser *p = ctx;
    if (stop_found(&p->stop)) {
        *taken = true;
        return SMOE_OK;
    }
    buf_clear(&p->name);
    buf_clear(&p->arguments);
    smoe_status status = tool_body_parse(body, p->options.tools, &p->name, &p->arguments, err);
    if (status != SMOE_OK) {
        return status == SMOE_NOMEM ? status : SMOE_OK;
    }
    *taken = true;
    stop_finish(&p->stop);
    p->n_breaks = 0;
    p->after_call = true;
    emit(p, REPLY_CALL, buf_slice(&p->name), p->n_calls);
    emit(p, REPLY_CALL_ARGUMENTS, buf_slice(&p->arguments), p->n_calls);
    emit(p, REPLY_CALL_END, (slice){0}, p->n_calls);
    p->n_calls++;
    return SMOE_OK;
}

static void hear_split(void *ctx, bool is_reasoning, slice text)
{
    reply_parser *p = ctx;
    if (is_reasoning) {
        emit(p, REPLY_REASONING, text, 0);
    } else if (!p->options.has_tools) {
        hear_text(p, text);
    } else if (p->err.code == SMOE_OK) {
        smoe_err err;
        if (tool_call_push(&p->tool_call, text, &err) != SMOE_OK) {
            p->err = err;
        }
    }
}

void reply_parser_init(reply_parser *p, const reply_options *options, reply_sink *sink, void *ctx)
{
    *p = (reply_parser){.options = *options, .sink = sink, .ctx = ctx};
    p->tool_sink = (tool_call_sink){hear_text, hear_call, p};
    reasoning_init(&p->reasoning, options->has_think_tags, options->starts_inside, hear_split, p);
    tool_call_init(&p->tool_call, &p->tool_sink);
    stop_init(&p->stop, options->stop, options->n_stop, hear_content, p);
    buf_init(&p->name, TOOL_CALL_MAX_BYTES);
    buf_init(&p->arguments, 8 * TOOL_CALL_MAX_BYTES); /* escapes take up to six bytes for one */
}

void reply_parser_fini(reply_parser *p)
{
    tool_call_fini(&p->tool_call);
    stop_fini(&p->stop);
    buf_fini(&p->name);
    buf_fini(&p->arguments);
}

static smoe_status state_of(const reply_parser *p, smoe_err *err)
{
    return p->err.code == SMOE_OK ? SMOE_OK : err_set(err, p->err.code, "%s", p->err.text);
}

smoe_status reply_parser_push(reply_parser *p, slice text, smoe_err *err)
{
    if (p->err.code == SMOE_OK && !stop_found(&p->stop)) {
        reasoning_push(&p->reasoning, text);
    }
    return state_of(p, err);
}

smoe_status reply_parser_finish(reply_parser *p, smoe_err *err)
{
    if (p->err.code == SMOE_OK && !stop_found(&p->stop)) {
        reasoning_finish(&p->reasoning);
        tool_call_finish(&p->tool_call);
        stop_finish(&p->stop);
        pass_breaks(p);
    }
    return state_of(p, err);
}

bool reply_parser_is_reasoning(const reply_parser *p)
{
    return reasoning_is_inside(&p->reasoning);
}

bool reply_parser_stopped(const reply_parser *p)
{
    return stop_found(&p->stop);
}
