/* wrap.h: lines that break between words although the words arrive in pieces.
 *
 * Nothing is held back: a word is shown as it comes, and when it turns out too long for the line,
 * the part already shown is erased and written again on the next one. */
#ifndef CHAT_WRAP_H
#define CHAT_WRAP_H

#include "base/buf.h"
#include "chat/markdown.h"

typedef struct wrap {
    unsigned width;        /* columns to use; 0 = never break */
    bool color;
    unsigned column;
    unsigned word_columns; /* of the word that the cursor stands after */
    enum look look, word_look;
    buf word;              /* its bytes, looks included */
} wrap;

void wrap_init(wrap *w, bool color);
void wrap_fini(wrap *w);
void wrap_begin(wrap *w); /* the cursor stands at the start of a line */
/* Appends what to send to the terminal for one character: `columns` of it, in that look. keep: the
 * line is not to be broken here. Refused memory loses what would have been shown. */
void wrap_put(wrap *w, slice character, unsigned columns, enum look look, bool keep, buf *out);
void wrap_end(wrap *w, buf *out); /* back to the terminal's own look */

/* Appends a whole line, broken before words that would pass the width (0 = never); what follows a
 * break is indented as the line is. A word longer than the width is not broken. */
void wrap_line(slice line, unsigned width, buf *out);

#endif
