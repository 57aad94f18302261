/* line_edit.h: the next line that somebody typed or a program wrote. */
#ifndef CHAT_LINE_EDIT_H
#define CHAT_LINE_EDIT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

typedef struct line_edit line_edit;

enum line_event {
    LINE_TEXT,
    LINE_INTERRUPT,       /* Ctrl-C on an empty line (or where that cannot be known) */
    LINE_INTERRUPT_TYPED, /* Ctrl-C that threw away what was typed */
    LINE_TOO_LONG,
    LINE_END,
    LINE_FAILED,          /* err says why */
};

enum { LINE_MAX_BYTES = 16 << 20 };

/* terminal: a person types, so there is a prompt; edit: with libedit, where it was built in. */
smoe_status line_edit_new(int in_fd, int out_fd, bool terminal, bool edit, line_edit **out,
                          smoe_err *err);
void line_edit_free(line_edit *e);
/* Whether lines can be edited, so that one can be offered. */
bool line_edit_can_offer(const line_edit *e);
/* The line without its end; borrowed until the next call. Pasted text may hold line breaks.
 * offered: text that stands in the line already, or NULL. An interrupt_count() other than
 * n_interrupts is a Ctrl-C, also one that came just before the call. */
enum line_event line_edit_read(line_edit *e, const char *prompt, const char *offered,
                               unsigned n_interrupts, slice *line, smoe_err *err);

#endif
