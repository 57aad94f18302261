/* console.h: the state that the turn loop (console.c) and one turn (turn.c) share. */
#ifndef CHAT_CONSOLE_H
#define CHAT_CONSOLE_H

#include "chat/chat.h"
#include "chat/engine_log.h"
#include "chat/line_edit.h"
#include "chat/render.h"
#include "chat/transcript.h"
#include "smoe/protocol.h"

enum { WAIT_SLICE_MS = 100 };

typedef struct console {
    const chat_options *options;
    smoe_client *client;
    bool engine_down;        /* must be restarted before the next request */
    engine_log log;
    transcript transcript;
    render render;
    line_edit *input;
    bool terminal;
    smoe_ids ids;            /* of the request being asked */
    buf answer;              /* of the attempt that runs */
    unsigned interrupts_seen;
    uint64_t interrupt_ns;   /* of the last Ctrl-C; 0 = none */
    size_t n_turns, n_failed;
} console;

/* What Ctrl-C asks for since the last look. */
enum ctrl_c { CTRL_C_NONE, CTRL_C_STOP, CTRL_C_LEAVE };
enum ctrl_c console_interrupts(console *c);

/* The engine ended or hung: says so, with its last words. restarting: what happens next. */
void console_engine_died(console *c, const char *how, bool restarting);

/* One user line: asks, shows the answer, keeps both in the transcript or drops both.
 * False: the user wants to leave. */
bool turn_run(console *c, slice text);

#endif
