/* reasoning.h: tells a model's reasoning from its answer while both stream in.
 *
 * Reasoning is what stands between <think> and </think> at the start of a reply. A tag anywhere
 * else is text like any other. The line breaks that templates put around the two are taken off. */
#ifndef REPLY_REASONING_H
#define REPLY_REASONING_H

#include <stdbool.h>

#include "base/slice.h"
#include "smoe/tokenizer.h"

/* One piece of either; borrowed for the call. */
typedef void reasoning_sink(void *ctx, bool is_reasoning, slice text);

typedef struct reasoning {
    reasoning_sink *sink;
    void *ctx;
    int state;       /* of reasoning.c */
    char held[16];   /* what may become a tag */
    size_t n_held;
    size_t n_breaks; /* line breaks seen and not yet passed on */
    bool said_something;
} reasoning;

/* has_tags false: every text is answer. starts_inside: the prompt ended with <think>. */
void reasoning_init(reasoning *r, bool has_tags, bool starts_inside, reasoning_sink *sink,
                    void *ctx);
void reasoning_push(reasoning *r, slice text);
void reasoning_finish(reasoning *r); /* passes on what was held back */
bool reasoning_is_inside(const reasoning *r);

/* Whether a prompt ends with <think>, white space after it aside: the reply starts inside. */
bool reasoning_is_open(const smoe_tokenizer *tok, const int32_t *ids, size_t n_ids);

#endif
