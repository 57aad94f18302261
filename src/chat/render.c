/* render.c: see render.h. Memory for showing text is best effort: refused memory loses output on
 * the screen, never the conversation. */
#include "chat/render.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "chat/text.h"
#include "protocol/pipe_io.h"

enum { SCRATCH_MAX_BYTES = 1 << 20, NARROWEST = 20 };

#define ERASE_LINE "\r\033[K"
#define DIM "\033[2m"
#define NORMAL "\033[0m"

void render_init(render *r, int out_fd, int err_fd, bool terminal, bool dumb, bool color)
{
    *r = (render){.out_fd = out_fd, .err_fd = err_fd, .terminal = terminal, .dumb = dumb,
                  .color = color && !dumb};
    buf_init(&r->scratch, SCRATCH_MAX_BYTES);
    wrap_init(&r->wrap, r->color);
}

void render_fini(render *r)
{
    wrap_fini(&r->wrap);
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

static void put_character(void *ctx, slice character, enum look look)
{
    render *r = ctx;
    look = r->base == LOOK_REASONING ? r->base : look;
    wrap_put(&r->wrap, character, text_columns(character), look,
             markdown_in_block(&r->markdown) && r->base == LOOK_PLAIN, &r->scratch);
}

/* The last column stays free: a cursor behind it could not go back reliably. */
static unsigned usable_columns(const render *r)
{
    struct winsize size;
    bool known = ioctl(r->out_fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST;
    return known ? size.ws_col - 1u : 0;
}

static void begin(render *r, enum look base)
{
    render_transient_end(r);
    if (!r->answer_open) {
        markdown_init(&r->markdown, put_character, r);
        wrap_begin(&r->wrap);
        r->answer_open = true;
    }
    r->base = base;
}

/* Text of a model to a person: made safe, given its look, wrapped. */
static void show(render *r, slice text, enum look base)
{
    buf safe;
    buf_init(&safe, SCRATCH_MAX_BYTES);
    begin(r, base);
    buf_clear(&r->scratch);
    if (text_for_terminal(text, &safe, NULL) == SMOE_OK && r->dumb) {
        put(r, buf_slice(&safe));
    } else if (safe.len > 0) {
        r->wrap.width = usable_columns(r);
        for (slice rest = buf_slice(&safe); rest.len > 0;) {
            slice character = {rest.data, text_sequence(rest)};
            if (base == LOOK_PLAIN) {
                markdown_push(&r->markdown, character);
            } else {
                put_character(r, character, base);
            }
            rest = slice_of(rest.data + character.len, rest.len - character.len);
        }
        put(r, buf_slice(&r->scratch));
        r->mid_line = r->wrap.column > 0;
    }
    buf_fini(&safe);
}

void render_answer(render *r, slice text)
{
    if (text.len == 0 || r->silent) {
        return;
    }
    if (r->terminal) {
        show(r, text, LOOK_PLAIN);
        return;
    }
    r->answer_open = true;
    put(r, text);
}

void render_reasoning(render *r, slice text)
{
    if (text.len > 0 && r->terminal && !r->silent) {
        show(r, text, LOOK_REASONING);
    }
}

void render_reasoning_end(render *r)
{
    if (r->answer_open && r->terminal && !r->silent) {
        render_answer_end(r);
        put(r, slice_from("\n"));
    }
}

/* What the styles still hold back, and the terminal's own look again. */
static void settle(render *r)
{
    if (r->answer_open && r->terminal && !r->dumb) {
        buf_clear(&r->scratch);
        markdown_finish(&r->markdown);
        wrap_end(&r->wrap, &r->scratch);
        bool mid_line = r->wrap.column > 0;
        put(r, buf_slice(&r->scratch));
        r->mid_line = mid_line;
    }
}

void render_answer_end(render *r)
{
    render_transient_end(r);
    if (r->silent) {
        return;
    }
    settle(r);
    if (r->mid_line || !r->answer_open) {
        put(r, slice_from("\n"));
    }
    r->answer_open = false;
}

void render_record(render *r, slice line)
{
    put(r, line);
    put(r, slice_from("\n"));
}

/* One line of ours: to the terminal, dim, on a line of its own, or to err_fd. */
static void put_line(render *r, const char *text)
{
    settle(r);
    buf_clear(&r->scratch);
    if (!r->terminal) {
        if (buf_printf(&r->scratch, NULL, "%s\n", text) == SMOE_OK) {
            pipe_write_all(r->err_fd, r->scratch.data, r->scratch.len);
        }
        return;
    }
    render_transient_end(r);
    buf_printf(&r->scratch, NULL, "%s%s", r->mid_line ? "\n" : "", r->color ? DIM : "");
    wrap_line(slice_from(text), usable_columns(r), &r->scratch);
    if (buf_printf(&r->scratch, NULL, "%s\n", r->color ? NORMAL : "") == SMOE_OK) {
        put(r, buf_slice(&r->scratch));
    }
    wrap_begin(&r->wrap);
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

/* As much of the text as one row takes: only a single row can be erased again. */
static int fitting_bytes(const render *r, const char *text)
{
    unsigned left = usable_columns(r);
    slice rest = slice_from(text);
    while (rest.len > 0) {
        slice character = {rest.data, text_sequence(rest)};
        character.len = character.len > 0 ? character.len : 1;
        unsigned columns = text_columns(character);
        if (columns > left) {
            break;
        }
        left -= columns;
        rest = (slice){rest.data + character.len, rest.len - character.len};
    }
    return (int)(rest.data - text);
}

void render_transient(render *r, const char *fmt, ...)
{
    if (!r->terminal || r->dumb || r->answer_open) {
        return;
    }
    char text[160], line[224];
    FORMAT_INTO(text, fmt);
    int n_fit = usable_columns(r) > 0 ? fitting_bytes(r, text) : (int)strlen(text);
    int n = snprintf(line, sizeof line, ERASE_LINE "%s%.*s%s", r->color ? DIM : "", n_fit, text,
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
