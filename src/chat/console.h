/* console.h: the state that the session (console.c), its commands (actions.c) and one turn (turn.c,
 * answer.c, report.c) share. */
#ifndef CHAT_CONSOLE_H
#define CHAT_CONSOLE_H

#include "chat/chat.h"
#include "chat/commands.h"
#include "chat/compose.h"
#include "chat/engine_log.h"
#include "chat/line_edit.h"
#include "chat/render.h"
#include "chat/saved.h"
#include "chat/settings.h"
#include "chat/transcript.h"
#include "reply/reply_parser.h"
#include "smoe/protocol.h"

enum { WAIT_SLICE_MS = 100 };

/* Of the whole session, for /stats. */
typedef struct session_figures {
    uint64_t n_answers, n_generated, n_prompt, n_cached;
    double prefill_s, decode_s;
} session_figures;

typedef struct console {
    const chat_options *options;
    smoe_client *client;
    bool engine_down;        /* must be restarted before the next request */
    engine_log log;
    transcript transcript;
    saved saved;
    settings settings;
    session_figures figures;
    render render;
    line_edit *input;
    compose compose;
    bool terminal;
    bool show_reasoning;     /* else it is folded into one line */
    bool has_think_tags;     /* the tokenizer knows </think> */
    smoe_ids ids;            /* of the request being asked */
    buf attached;            /* files that go before the next message */
    buf offered;             /* a message to be edited, or empty */
    buf answer, reasoning;   /* of the attempt that runs */
    unsigned interrupts_seen;
    uint64_t interrupt_ns;   /* of the last Ctrl-C; 0 = none */
    size_t n_turns, n_failed;
} console;

/* What Ctrl-C asks for since the last look. */
enum ctrl_c { CTRL_C_NONE, CTRL_C_STOP, CTRL_C_LEAVE };
enum ctrl_c console_interrupts(console *c);

/* The engine ended or hung: says so, with its last words. restarting: what happens next. */
void console_engine_died(console *c, const char *how, bool restarting);

/* Reads a text file into out, quoted with its name; "-" is the input. */
smoe_status console_attach(console *c, const char *path, smoe_err *err);
/* The conversation is written to its file; a failure is said once. */
void console_save(console *c, bool rewrite);

/* ---- actions.c ---- */

enum next { NEXT_LINE, NEXT_QUIT, NEXT_INTERRUPTED };

/* Does what a command says. */
enum next action_run(console *c, enum command command, slice argument);

/* ---- turn.c ---- */

/* The ids of the conversation as a request would send them, into c->ids. */
smoe_status turn_encode(console *c, smoe_err *err);
/* One message: asks, shows the answer, keeps both in the transcript or drops both.
 * False: the user wants to leave. */
bool turn_run(console *c, slice text);
/* Asks again what stands last in the transcript. */
bool turn_again(console *c);

/* ---- answer.c: tokens into text, reasoning and answer told apart ---- */

typedef struct ask {
    uint64_t start_ns, first_ns;          /* of the request, of its first token; 0 = none yet */
    uint64_t heard_ns;                    /* the engine's last sign of life */
    uint64_t cancel_ns;                   /* when CANCEL was sent; 0 = not */
    uint64_t reasoning_ns;                /* spent on reasoning, while it runs: when it began */
    uint64_t n_tokens, n_reasoning;
    bool silence_said, folding;
    smoe_detok detok;
    reply_parser parser; /* holds nothing that must be freed: no tools, no stop strings */
    console *console;
} ask;

void answer_begin(ask *a, console *c);
void answer_token(ask *a, int32_t id);
void answer_finish(ask *a);

/* ---- report.c: what a person or a program is told about a turn ---- */

void report_figures(console *c, const ask *a, const smoe_reply *done);
void report_refusal(console *c, const smoe_reply *reply);
void report_waiting(console *c, const ask *a, const smoe_reply *progress);
void report_silence(console *c, ask *a);
void report_json(console *c, const ask *a, const smoe_reply *done);
void report_json_error(console *c, const char *error);

#endif
