/* render.h: what a person sees, and where.
 *
 * Answers go to out_fd. On a terminal so does everything else, dimmed; elsewhere out_fd holds
 * answers only and sentences go to err_fd. Output is written at once: a token is seen when it is
 * there. */
#ifndef CHAT_RENDER_H
#define CHAT_RENDER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "chat/markdown.h"
#include "chat/wrap.h"

typedef struct render {
    int out_fd, err_fd;
    bool terminal;    /* a person is watching out_fd and types the input */
    bool dumb, color;
    bool mid_line;    /* the cursor stands after text */
    bool answer_open; /* between the first piece of an answer and its end */
    bool transient;   /* a progress line stands on the screen */
    bool silent;      /* answers are collected elsewhere: only sentences are shown */
    int broken_errno; /* out_fd cannot be written any more; EPIPE: nobody listens */
    markdown markdown;
    wrap wrap;
    enum look base;   /* of what is being shown: LOOK_PLAIN or LOOK_REASONING */
    buf scratch;
} render;

void render_init(render *r, int out_fd, int err_fd, bool terminal, bool dumb, bool color);
void render_fini(render *r);

void render_answer(render *r, slice text); /* whole characters */
void render_answer_end(render *r);         /* ends its line, also that of an empty answer */
/* Reasoning, dimmed, before an answer; only where a person watches. */
void render_reasoning(render *r, slice text);
void render_reasoning_end(render *r); /* a blank line before the answer */
/* One line for a program. */
void render_record(render *r, slice line);
/* A line of its own, dim on a terminal; text without a line break at its end. */
void render_notice(render *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void render_figures(render *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Lines from elsewhere (the engine's messages), each indented, made safe to show. */
void render_quote(render *r, slice text);
/* A line that the next output replaces; nothing where out_fd is no terminal. */
void render_transient(render *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void render_transient_end(render *r);
/* After the end of input: leaves the shell's prompt on a line of its own. */
void render_leave(render *r);

#endif
