/* text.h: UTF-8 that is safe to send and safe to show. */
#ifndef CHAT_TEXT_H
#define CHAT_TEXT_H

#include "base/buf.h"
#include "base/slice.h"

/* Length of the well-formed UTF-8 sequence at the start of s (Unicode 15, table 3-7); 0 when none.
 */
size_t text_sequence(slice s);
/* Appends text with U+FFFD for each malformed byte and for NUL: what JSON can carry. */
smoe_status text_scrub(slice text, buf *out, smoe_err *err);
/* The same, with every control character other than tab and newline as a visible one (U+2400 and
 * on): what a model or a log prints must not steer the terminal. */
smoe_status text_for_terminal(slice text, buf *out, smoe_err *err);

/* Columns that a well-formed sequence takes on a terminal. */
unsigned text_columns(slice sequence);

#endif
