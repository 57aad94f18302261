/* markdown.c: see markdown.h. A small part of CommonMark, decided from the left: fences, code
 * spans that end with their line, ** and * around words, # headings. */
#include "chat/markdown.h"

void markdown_init(markdown *m, markdown_sink *sink, void *ctx)
{
    *m = (markdown){.sink = sink, .ctx = ctx, .after_space = true};
}

bool markdown_in_block(const markdown *m)
{
    return m->in_block;
}

static enum look look_of(const markdown *m)
{
    if (m->in_block || m->in_code) {
        return LOOK_CODE;
    }
    return m->bold || m->heading ? LOOK_BOLD : m->emphasis ? LOOK_EMPHASIS : LOOK_PLAIN;
}

static void put(markdown *m, slice character, enum look look)
{
    m->sink(m->ctx, character, look);
}

/* Stars before white space can only end something, after white space only begin it; a list's star
 * does neither. */
static void end_stars(markdown *m, bool before_space)
{
    unsigned n = m->n_stars;
    if (n == 0) {
        return;
    }
    bool *what = n == 2 ? &m->bold : &m->emphasis;
    bool begins = n <= 2 && !*what && m->after_space && !before_space;
    bool ends = n <= 2 && *what && !m->after_space;
    *what = begins ? true : *what;
    enum look look = look_of(m);
    *what = ends ? false : *what;
    for (m->n_stars = 0; n > 0; n--) {
        put(m, slice_from("*"), look);
    }
    m->after_space = false;
}

static void end_line(markdown *m)
{
    m->in_code = m->bold = m->emphasis = m->heading = false;
    m->n_ticks = m->column = 0;
    m->after_space = true;
}

static void push_tick(markdown *m, slice character)
{
    m->n_ticks++;
    bool fence = m->n_ticks == 3 && m->column == 1;
    if (fence) {
        m->in_block = !m->in_block;
        m->in_code = true; /* the rest of the fence's line */
    } else if (!m->in_block && m->n_ticks == 1 && !m->in_code) {
        m->in_code = true;
        m->after_space = false;
    } else if (!m->in_block && m->in_code && !fence && m->n_ticks <= 2 && m->column == 2) {
        put(m, character, LOOK_CODE);
        m->in_code = false;
        return;
    }
    put(m, character, LOOK_CODE);
}

void markdown_push(markdown *m, slice character)
{
    char c = *character.data;
    bool space = c == ' ' || c == '\t' || c == '\n';
    if (c == '*' && !m->in_block && !m->in_code) {
        m->n_stars++;
        m->n_ticks = 0;
        return;
    }
    bool listed = m->n_stars > 0 && m->column == 0;
    end_stars(m, space);
    if (c == '\n') {
        put(m, character, LOOK_PLAIN);
        end_line(m);
        return;
    }
    if (c == '`') {
        m->column = m->column == 0 || (m->column == 1 && m->n_ticks > 0) ? 1 : 2;
        push_tick(m, character);
        return;
    }
    m->heading = m->heading || (c == '#' && m->column == 0 && !m->in_block && !listed);
    m->n_ticks = 0;
    m->column = space && !listed ? m->column : 2;
    put(m, character, look_of(m));
    m->after_space = space || c == '(' || c == '"' || c == '\'' || c == '[';
}

void markdown_finish(markdown *m)
{
    end_stars(m, true);
    end_line(m);
}
