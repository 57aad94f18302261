/* editor.c: see editor.h. libedit retries an interrupted read, so a Ctrl-C would go unnoticed: it
 * gets its characters from a function of ours, which waits with poll and looks at the count.
 *
 * Pasted text arrives between two marks (bracketed paste) and goes into the line as it is, line
 * breaks included. A line to be edited is put there by a key of ours that nobody types. */
#include "chat/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

#include "base/mem.h"
#include "chat/interrupt.h"
#include "chat/text.h"
#include "protocol/pipe_io.h"

enum { HISTORY_LINES = 1000, WAIT_MS = 200, CTRL_D = 4, PASTE_MAX_BYTES = 16 << 20 };

#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define PASTE_BEGIN "\033[200~"
#define PASTE_END "\033[201~"
#define OFFER_KEY "\033[2970~"

struct editor {
    EditLine *el;
    History *history;
    FILE *in, *out;
    int in_fd, out_fd;
    const char *prompt, *offer; /* offer: the text to begin with, or NULL */
    unsigned n_interrupts;
    bool interrupted, was_empty, failed;
};

static char *give_prompt(EditLine *el)
{
    editor *e = NULL;
    el_get(el, EL_CLIENTDATA, &e);
    return (char *)e->prompt; /* libedit's type; it only reads it */
}

static bool is_empty(const editor *e)
{
    const LineInfo *typed = el_line(e->el);
    return typed->lastchar == typed->buffer;
}

/* One byte: 1; -1 on Ctrl-C, without a terminal, or on a failure. */
static int read_byte(editor *e, char *byte)
{
    while (true) {
        if (interrupt_count() != e->n_interrupts) {
            e->interrupted = true;
            e->was_empty = is_empty(e);
            return -1;
        }
        if (interrupt_take_resize()) {
            el_resize(e->el);
        }
        if (!pipe_readable(e->in_fd, WAIT_MS)) {
            continue;
        }
        ssize_t n = read(e->in_fd, byte, 1);
        if (n > 0) {
            return 1;
        }
        if (n == 0 || errno == EIO) { /* Ctrl-D is a character here */
            interrupt_hang_up();
            continue;
        }
        if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
            e->failed = true;
            return -1;
        }
    }
}

static int get_char(EditLine *el, wchar_t *wide)
{
    editor *e = NULL;
    el_get(el, EL_CLIENTDATA, &e);
    mbstate_t state = {0};
    while (true) {
        char byte;
        int n = read_byte(e, &byte);
        if (n <= 0) {
            return n;
        }
        /* A Ctrl-D typed before libedit took the terminal over has become Linux's mark for it. */
        if (byte == '\0' && is_empty(e)) {
            byte = CTRL_D;
        }
        size_t used = mbrtowc(wide, &byte, 1, &state);
        if (used == (size_t)-1) {
            state = (mbstate_t){0}; /* not a character of this locale: dropped */
        } else if (used != (size_t)-2) {
            return 1;
        }
    }
}

/* Up to the end mark, which is taken off. False: the input ended or was interrupted before it. */
static bool read_paste(editor *e, buf *text)
{
    const size_t n_mark = sizeof PASTE_END - 1;
    char byte;
    while (read_byte(e, &byte) == 1) {
        if (buf_putc(text, byte == '\r' ? '\n' : byte, NULL) != SMOE_OK) {
            continue; /* what is beyond the cap is dropped, up to the mark's own last byte */
        }
        if (byte == '~' && text->len >= n_mark &&
            memcmp(text->data + text->len - n_mark, PASTE_END, n_mark) == 0) {
            text->len -= n_mark;
            return true;
        }
    }
    return false;
}

static unsigned char paste(EditLine *el, int key)
{
    editor *e = NULL;
    buf raw, shown;
    unsigned char result = CC_ERROR;
    (void)key;
    el_get(el, EL_CLIENTDATA, &e);
    buf_init(&raw, PASTE_MAX_BYTES);
    buf_init(&shown, 2u * PASTE_MAX_BYTES);
    if (read_paste(e, &raw) && text_for_terminal(buf_slice(&raw), &shown, NULL) == SMOE_OK &&
        shown.len > 0 && el_insertstr(el, shown.data) == 0) {
        result = CC_REFRESH;
    }
    buf_fini(&raw);
    buf_fini(&shown);
    return result;
}

static unsigned char offer(EditLine *el, int key)
{
    editor *e = NULL;
    (void)key;
    el_get(el, EL_CLIENTDATA, &e);
    if (!e->offer || !*e->offer || el_insertstr(el, e->offer) != 0) {
        return CC_NORM;
    }
    e->offer = NULL;
    return CC_REFRESH;
}

static FILE *open_stream(int fd, const char *mode)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *f = copy >= 0 ? fdopen(copy, mode) : NULL;
    if (f == NULL && copy >= 0) {
        close(copy);
    }
    return f;
}

smoe_status editor_new(int in_fd, int out_fd, editor **out, smoe_err *err)
{
    editor *e = mem_calloc(1, sizeof *e);
    if (e == NULL) {
        return err_nomem(err, "the line editor", sizeof *e);
    }
    e->in_fd = in_fd;
    e->out_fd = out_fd;
    e->prompt = "";
    e->in = open_stream(in_fd, "r");
    e->out = open_stream(out_fd, "w");
    e->history = history_init();
    if (e->in != NULL && e->out != NULL && e->history != NULL) {
        e->el = el_init("smoe", e->in, e->out, e->out);
    }
    if (e->el == NULL) {
        editor_free(e);
        return err_set(err, SMOE_IO, "the line editor could not start on this terminal");
    }
    HistEvent event;
    history(e->history, &event, H_SETSIZE, HISTORY_LINES);
    history(e->history, &event, H_SETUNIQUE, 1);
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_PROMPT, give_prompt);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_HIST, history, e->history);
    el_set(e->el, EL_GETCFN, get_char);
    el_set(e->el, EL_SIGNAL, 0);
    /* The wide form keeps the texts where they are; the other one copies and never frees them. */
    el_wset(e->el, EL_ADDFN, L"smoe-paste", L"Insert pasted text", paste);
    el_wset(e->el, EL_ADDFN, L"smoe-offer", L"Insert the text to be edited", offer);
    el_set(e->el, EL_BIND, PASTE_BEGIN, "smoe-paste", NULL);
    el_set(e->el, EL_BIND, OFFER_KEY, "smoe-offer", NULL);
    *out = e;
    return SMOE_OK;
}

void editor_free(editor *e)
{
    if (e == NULL) {
        return;
    }
    if (e->el != NULL) {
        el_end(e->el);
    }
    if (e->history != NULL) {
        history_end(e->history);
    }
    if (e->in != NULL) {
        fclose(e->in);
    }
    if (e->out != NULL) {
        fclose(e->out);
    }
    mem_free(e);
}

enum line_event editor_read(editor *e, const char *prompt, const char *offered,
                            unsigned n_interrupts, slice *line, smoe_err *err)
{
    e->prompt = prompt;
    e->offer = offered;
    e->n_interrupts = n_interrupts;
    e->interrupted = e->failed = false;
    el_resize(e->el);
    pipe_write_all(e->out_fd, PASTE_ON, sizeof PASTE_ON - 1);
    if (offered) {
        el_push(e->el, OFFER_KEY);
    }
    int n = 0;
    const char *text = el_gets(e->el, &n);
    pipe_write_all(e->out_fd, PASTE_OFF, sizeof PASTE_OFF - 1);
    if (e->interrupted) {
        pipe_write_all(e->out_fd, "^C\n", 3);
        return e->was_empty ? LINE_INTERRUPT : LINE_INTERRUPT_TYPED;
    }
    if (e->failed) {
        err_set(err, SMOE_IO, "reading from the terminal failed");
        return LINE_FAILED;
    }
    if (text == NULL || n <= 0) {
        return LINE_END;
    }
    *line = (slice){text, (size_t)n};
    if (line->data[line->len - 1] == '\n') {
        line->len--;
    }
    if (line->len > 0) {
        HistEvent event;
        history(e->history, &event, H_ENTER, text);
    }
    return LINE_TEXT;
}
