/* wrap.c: see wrap.h. */
#include "chat/wrap.h"

#include "chat/text.h"

enum { WORD_MAX_BYTES = 4096 };

void wrap_init(wrap *w, bool color)
{
    *w = (wrap){.color = color};
    buf_init(&w->word, WORD_MAX_BYTES);
}

void wrap_fini(wrap *w)
{
    buf_fini(&w->word);
}

static void forget_word(wrap *w)
{
    buf_clear(&w->word);
    w->word_columns = 0;
    w->word_look = w->look;
}

void wrap_begin(wrap *w)
{
    w->column = 0;
    w->look = LOOK_PLAIN;
    forget_word(w);
}

static const char *escape_of(enum look look)
{
    switch (look) {
    case LOOK_PLAIN:
        break;
    case LOOK_CODE:
        return "\033[0;36m";
    case LOOK_BOLD:
        return "\033[0;1m";
    case LOOK_EMPHASIS:
        return "\033[0;3m";
    case LOOK_REASONING:
        return "\033[0;2m";
    }
    return "\033[0m";
}

static void set_look(wrap *w, enum look look, buf *out)
{
    if (w->color && look != w->look) {
        buf_puts(out, escape_of(look), NULL);
        if (w->word_columns > 0) {
            buf_puts(&w->word, escape_of(look), NULL);
        }
    }
    w->look = look;
}

static void new_line(wrap *w, buf *out)
{
    buf_putc(out, '\n', NULL);
    w->column = 0;
    forget_word(w);
}

/* Takes the word back and writes it on the next line. */
static void carry_word(wrap *w, buf *out)
{
    buf_printf(out, NULL, "\033[%uD\033[K\n", w->word_columns);
    if (w->color) {
        buf_puts(out, escape_of(w->word_look), NULL);
    }
    buf_append_slice(out, buf_slice(&w->word), NULL);
    w->column = w->word_columns;
}

void wrap_put(wrap *w, slice character, unsigned columns, enum look look, bool keep, buf *out)
{
    bool space = *character.data == ' ';
    if (*character.data == '\n') {
        set_look(w, look, out);
        new_line(w, out);
        return;
    }
    if (*character.data == '\t') {
        columns = 8 - w->column % 8;
        space = true;
    }
    if (!keep && w->width > 0 && w->column + columns > w->width) {
        if (space) {
            new_line(w, out);
            return;
        }
        if (w->word_columns > 0 && w->word_columns < w->column) {
            carry_word(w, out);
        } else {
            new_line(w, out);
        }
    }
    if (space || columns > 1) { /* scripts of wide characters have no spaces */
        forget_word(w);
    }
    set_look(w, look, out);
    if (!space && columns <= 1) {
        w->word_look = w->word_columns == 0 ? look : w->word_look;
        buf_append_slice(&w->word, character, NULL);
        w->word_columns += columns;
    }
    buf_append_slice(out, character, NULL);
    w->column += columns;
}

/* A run of spaces and the word after it. */
static slice next_word(slice line, unsigned *columns)
{
    size_t n = 0;
    *columns = 0;
    for (bool in_word = false; n < line.len && !(in_word && line.data[n] == ' ');) {
        slice rest = {line.data + n, line.len - n};
        size_t used = text_sequence(rest);
        used = used > 0 ? used : 1;
        in_word = in_word || *rest.data != ' ';
        *columns += text_columns((slice){rest.data, used});
        n += used;
    }
    return (slice){line.data, n};
}

void wrap_line(slice line, unsigned width, buf *out)
{
    unsigned column = 0, indent = 0, columns;
    while (indent < line.len && line.data[indent] == ' ') {
        indent++;
    }
    indent = indent < width / 2 ? indent : 0;
    while (line.len > 0) {
        slice word = next_word(line, &columns);
        line = (slice){line.data + word.len, line.len - word.len};
        if (width > 0 && column > indent && column + columns > width) {
            buf_printf(out, NULL, "\n%*s", (int)indent, "");
            column = indent;
            while (word.len > 0 && *word.data == ' ') {
                word = (slice){word.data + 1, word.len - 1};
                columns--;
            }
        }
        buf_append_slice(out, word, NULL);
        column += columns;
    }
}

void wrap_end(wrap *w, buf *out)
{
    set_look(w, LOOK_PLAIN, out);
    forget_word(w);
}
