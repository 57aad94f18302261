/* tool_call.h: tells a model's tool calls from its text while both stream in.
 *
 * A call stands between <tool_call> and </tool_call>, anywhere in an answer. This part only finds
 * it: text before and after is passed on as it comes, the body of a call when it is complete.
 *
 * A closing tag inside a value is part of the value: inside a string of the JSON form; in the other
 * form between <parameter=...> and </parameter>, unless </function> stands right before it (the
 * parameter was not closed) or <tool_call> right after it (the call was not).
 *
 * What begins as neither form, has a line break inside a JSON string, is never closed, or grows
 * past TOOL_CALL_MAX_BYTES, is text like any other. */
#ifndef REPLY_TOOL_CALL_H
#define REPLY_TOOL_CALL_H

#include <stdbool.h>

#include "base/buf.h"

enum { TOOL_CALL_MAX_BYTES = 1 << 20 };

typedef struct tool_call_sink {
    void (*text)(void *ctx, slice text);
    /* What stands between the tags. *taken false: it is no call, and comes back as text, with its
     * tags. */
    smoe_status (*call)(void *ctx, slice body, bool *taken, smoe_err *err);
    void *ctx;
} tool_call_sink;

typedef struct tool_call {
    const tool_call_sink *sink; /* borrowed */
    int state;      /* of tool_call.c */
    bool escaped;   /* in a JSON string: after a backslash */
    size_t i_tag;   /* where the last '<' of the other form stands */
    buf held;       /* outside: what may become the opening tag; inside: from that tag on */
} tool_call;

void tool_call_init(tool_call *t, const tool_call_sink *sink);
void tool_call_fini(tool_call *t);
/* SMOE_NOMEM, and what the sink returns. */
smoe_status tool_call_push(tool_call *t, slice text, smoe_err *err);
void tool_call_finish(tool_call *t); /* passes on what was held back, as text */

#endif
