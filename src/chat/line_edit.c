/* line_edit.c: see line_edit.h. Without an editor (a pipe, a dumb terminal, no libedit) lines come
 * as the system delivers them. */
#include "chat/line_edit.h"

#include <errno.h>

#include "base/mem.h"
#include "chat/editor.h"
#include "chat/interrupt.h"
#include "protocol/lines.h"
#include "protocol/pipe_io.h"

struct line_edit {
    lines in;
    int out_fd;
    bool terminal;
    editor *editor; /* NULL = none */
};

smoe_status line_edit_new(int in_fd, int out_fd, bool terminal, bool edit, line_edit **out,
                          smoe_err *err)
{
    line_edit *e = mem_calloc(1, sizeof *e);
    if (e == NULL) {
        return err_nomem(err, "the input", sizeof *e);
    }
    lines_init(&e->in, in_fd, LINE_MAX_BYTES);
    e->out_fd = out_fd;
    e->terminal = terminal;
#ifdef HAVE_LIBEDIT
    if (terminal && edit) {
        smoe_status status = editor_new(in_fd, out_fd, &e->editor, err);
        if (status != SMOE_OK) {
            line_edit_free(e);
            return status;
        }
    }
#else
    (void)edit;
#endif
    *out = e;
    return SMOE_OK;
}

void line_edit_free(line_edit *e)
{
    if (e == NULL) {
        return;
    }
#ifdef HAVE_LIBEDIT
    editor_free(e->editor);
#endif
    lines_fini(&e->in);
    mem_free(e);
}

static enum line_event read_plain(line_edit *e, const char *prompt, unsigned n_interrupts,
                                  slice *line, smoe_err *err)
{
    if (e->terminal) {
        pipe_write_all(e->out_fd, prompt, strlen(prompt));
    }
    while (true) {
        switch (lines_next(&e->in, line)) {
        case LINES_LINE:
        case LINES_CUT:
            if (line->len > 0 && line->data[line->len - 1] == '\r') {
                line->len--;
            }
            return LINE_TEXT;
        case LINES_TOO_LONG:
            return LINE_TOO_LONG;
        case LINES_END:
            return LINE_END;
        case LINES_NONE:
            break;
        }
        bool progress;
        if (interrupt_count() != n_interrupts) {
            pipe_write_all(e->out_fd, "\n", 1); /* the terminal itself has echoed ^C */
            return LINE_INTERRUPT;
        }
        if (pipe_readable(e->in.fd, 200) && lines_fill(&e->in, &progress, err) != SMOE_OK) {
            return LINE_FAILED;
        }
    }
}

bool line_edit_can_offer(const line_edit *e)
{
    return e->editor != NULL;
}

enum line_event line_edit_read(line_edit *e, const char *prompt, const char *offered,
                               unsigned n_interrupts, slice *line, smoe_err *err)
{
#ifdef HAVE_LIBEDIT
    if (e->editor != NULL) {
        return editor_read(e->editor, prompt, offered, n_interrupts, line, err);
    }
#endif
    (void)offered;
    return read_plain(e, prompt, n_interrupts, line, err);
}
