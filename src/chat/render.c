/* render.c: see render.h. Memory for showing text is best effort: refused memory loses output on
 * the screen, never the conversation. */
#include "chat/render.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "chat/text.h"
#include "protocol/pipe_io.h"

enum { SCRATCH_MAX_BYTES = 1 << 20 };

#define ERASE_LINE "\r\033[K"
#define DIM "\033[2m"
#define NORMAL "\033[0m"

void render_init(render *r, int out_fd, int err_fd, bool terminal, bool dumb, bool color)
{
    *r = (render){.out_fd = out_fd, .err_fd = err_fd, .terminal = terminal, .dumb = dumb,
                  .color = color && !dumb};
    buf_init(&r->scratch, SCRATCH_MAX_BYTES);
}

void render_fini(render *r)
{
    buf_fini(&r->scratch);
}

static void put(render *r, slice s)
{
    if (s.len == 0 || r->broken_errno != 0) {
        return;
    }
    if (!pipe_write_all(r->out_fd, s.data, s.len)) {
        r->broken_errno = errno;
    }
    r->mid_line = s.data[s.len - 1] != '\n';
}

void render_transient_end(render *r)
{
    if (r->transient) {
        r->transient = false;
        put(r, slice_from(ERASE_LINE));
        r->mid_line = false;
    }
}

void render_answer(render *r, slice text)
{
    if (text.len == 0) {
        return;
    }
    render_transient_end(r);
    r->answer_open = true;
    if (r->terminal) {
        buf_clear(&r->scratch);
        if (text_for_terminal(text, &r->scratch, NULL) == SMOE_OK) {
            put(r, buf_slice(&r->scratch));
        }
    } else {
        put(r, text);
    }
}

void render_answer_end(render *r)
{
    render_transient_end(r);
    if (r->mid_line || !r->answer_open) {
        put(r, slice_from("\n"));
    }
    r->answer_open = false;
}

/* One line of ours: to the terminal, dim, on a line of its own, or to err_fd. */
static void put_line(render *r, const char *text)
{
    buf_clear(&r->scratch);
    if (!r->terminal) {
        if (buf_printf(&r->scratch, NULL, "%s\n", text) == SMOE_OK) {
            pipe_write_all(r->err_fd, r->scratch.data, r->scratch.len);
        }
        return;
    }
    render_transient_end(r);
    smoe_status status = buf_printf(&r->scratch, NULL, "%s%s%s%s\n", r->mid_line ? "\n" : "",
                                    r->color ? DIM : "", text, r->color ? NORMAL : "");
    if (status == SMOE_OK) {
        put(r, buf_slice(&r->scratch));
    }
}

#define FORMAT_INTO(text, fmt)                          \
    do {                                                \
        va_list args_;                                  \
        va_start(args_, fmt);                           \
        vsnprintf((text), sizeof(text), (fmt), args_);  \
        va_end(args_);                                  \
    } while (0)

void render_notice(render *r, const char *fmt, ...)
{
    char text[1024];
    FORMAT_INTO(text, fmt);
    put_line(r, text);
}

void render_figures(render *r, const char *fmt, ...)
{
    char text[256];
    FORMAT_INTO(text, fmt);
    put_line(r, text);
}

void render_quote(render *r, slice text)
{
    while (text.len > 0) {
        const char *newline = memchr(text.data, '\n', text.len);
        size_t n = newline != NULL ? (size_t)(newline - text.data) : text.len;
        buf line;
        buf_init(&line, SCRATCH_MAX_BYTES);
        if (n > 0 && buf_puts(&line, "  ", NULL) == SMOE_OK &&
            text_for_terminal(slice_of(text.data, n), &line, NULL) == SMOE_OK) {
            put_line(r, line.data);
        }
        buf_fini(&line);
        size_t used = n + (newline != NULL);
        text.data += used;
        text.len -= used;
    }
}

void render_transient(render *r, const char *fmt, ...)
{
    if (!r->terminal || r->dumb || r->answer_open) {
        return;
    }
    char text[128], line[192];
    FORMAT_INTO(text, fmt);
    int n = snprintf(line, sizeof line, ERASE_LINE "%s%s%s", r->color ? DIM : "", text,
                     r->color ? NORMAL : "");
    put(r, slice_of(line, (size_t)n));
    r->transient = true;
}

void render_leave(render *r)
{
    if (r->terminal) {
        put(r, slice_from("\n"));
    }
}
