/* markdown.h: which characters of a streaming answer are code, bold, emphasised or a heading. The
 * markup itself stays visible; only its look changes. */
#ifndef CHAT_MARKDOWN_H
#define CHAT_MARKDOWN_H

#include <stdbool.h>

#include "base/slice.h"

enum look { LOOK_PLAIN, LOOK_CODE, LOOK_BOLD, LOOK_EMPHASIS, LOOK_REASONING };

typedef void markdown_sink(void *ctx, slice character, enum look look);

typedef struct markdown {
    markdown_sink *sink;
    void *ctx;
    bool in_block, in_code, bold, emphasis, heading;
    bool after_space;  /* what came before the held stars was white space or nothing */
    unsigned n_stars;  /* held back until it is known what they begin or end */
    unsigned n_ticks;  /* of a run of back-ticks */
    unsigned column;   /* characters of this line that were not white space; stops at 2 */
} markdown;

void markdown_init(markdown *m, markdown_sink *sink, void *ctx);
/* One character (all bytes of it). Stars are held back until the next one. */
void markdown_push(markdown *m, slice character);
void markdown_finish(markdown *m);
/* Inside a fenced block lines are kept as they are. */
bool markdown_in_block(const markdown *m);

#endif
