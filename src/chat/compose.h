/* compose.h: one message out of several lines: a backslash at the end of a line joins the next one,
 * and what stands between two """ is taken as it is. */
#ifndef CHAT_COMPOSE_H
#define CHAT_COMPOSE_H

#include <stdbool.h>

#include "base/buf.h"

enum compose_state { COMPOSE_EMPTY, COMPOSE_JOINED, COMPOSE_QUOTED };

typedef struct compose {
    enum compose_state state;
    bool single;  /* the finished message was one plain line: it may be a command */
    buf text;
} compose;

void compose_init(compose *c);
void compose_fini(compose *c);
/* Takes a line (or several at once, pasted). *done: c->text is the message, until compose_clear. */
smoe_status compose_push(compose *c, slice line, bool *done, smoe_err *err);
/* What there is, as a message (the input has ended); false when there is nothing. */
bool compose_finish(compose *c);
void compose_clear(compose *c);

#endif
