/* compose.c: see compose.h. */
#include "chat/compose.h"

enum { COMPOSE_MAX_BYTES = 16 << 20, N_QUOTES = 3 };

static const char quotes[] = "\"\"\"";

void compose_init(compose *c)
{
    *c = (compose){.state = COMPOSE_EMPTY};
    buf_init(&c->text, COMPOSE_MAX_BYTES);
}

void compose_fini(compose *c)
{
    buf_fini(&c->text);
}

void compose_clear(compose *c)
{
    buf_clear(&c->text);
    c->state = COMPOSE_EMPTY;
    c->single = false;
}

static bool ends_with_quotes(slice line)
{
    return line.len >= N_QUOTES &&
           memcmp(line.data + line.len - N_QUOTES, quotes, N_QUOTES) == 0;
}

static smoe_status push_quoted(compose *c, slice line, bool *done, smoe_err *err)
{
    *done = ends_with_quotes(line);
    line.len -= *done ? N_QUOTES : 0;
    TRY(buf_append_slice(&c->text, line, err));
    if (!*done) {
        return buf_putc(&c->text, '\n', err);
    }
    if (line.len == 0 && c->text.len > 0) { /* the closing quotes had a line of their own */
        c->text.data[--c->text.len] = '\0';
    }
    return SMOE_OK;
}

smoe_status compose_push(compose *c, slice line, bool *done, smoe_err *err)
{
    *done = false;
    if (c->state == COMPOSE_QUOTED) {
        return push_quoted(c, line, done, err);
    }
    if (c->state == COMPOSE_EMPTY && line.len >= N_QUOTES &&
        memcmp(line.data, quotes, N_QUOTES) == 0) {
        c->state = COMPOSE_QUOTED;
        line = slice_of(line.data + N_QUOTES, line.len - N_QUOTES);
        return line.len > 0 ? push_quoted(c, line, done, err) : SMOE_OK;
    }
    if (line.len > 0 && line.data[line.len - 1] == '\\') {
        c->state = COMPOSE_JOINED;
        TRY(buf_append(&c->text, line.data, line.len - 1, err));
        return buf_putc(&c->text, '\n', err);
    }
    c->single = c->state == COMPOSE_EMPTY && (line.len == 0 || !memchr(line.data, '\n', line.len));
    *done = true;
    return buf_append_slice(&c->text, line, err);
}

bool compose_finish(compose *c)
{
    return c->state != COMPOSE_EMPTY && c->text.len > 0;
}
