/* tool_call.h: tells a model's tool calls from its text while both stream in.
 *
 * A call stands between <tool_call> and </tool_call>, anywhere in an answer. This part only finds
 * it: text before and after is passed on as it comes, the body of a call when it is complete.
 * A call that is never closed, or grows past TOOL_CALL_MAX_BYTES, is text like any other. */
#ifndef REPLY_TOOL_CALL_H
#define REPLY_TOOL_CALL_H

#include <stdbool.h>

#include "base/buf.h"

enum { TOOL_CALL_MAX_BYTES = 1 << 20 };

typedef struct tool_call_sink {
    void (*text)(void *ctx, slice text);
    /* What stands between the tags. False: it is no call, and it comes back as text, with its
     * tags. */
    bool (*call)(void *ctx, slice body);
    void *ctx;
} tool_call_sink;

typedef struct tool_call {
    const tool_call_sink *sink; /* borrowed */
    bool inside;
    buf held; /* outside: what may become the opening tag; inside: from that tag on */
} tool_call;

void tool_call_init(tool_call *t, const tool_call_sink *sink);
void tool_call_fini(tool_call *t);
smoe_status tool_call_push(tool_call *t, slice text, smoe_err *err); /* SMOE_NOMEM */
void tool_call_finish(tool_call *t); /* passes on what was held back, as text */

#endif
