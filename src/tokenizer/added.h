/* added.h: finds added tokens ("<|im_start|>") inside text, before anything else looks at it. */
#ifndef TOKENIZER_ADDED_H
#define TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

enum {
    ADDED_MAX_BYTES = 1024, /* of one token */
    ADDED_MAX_TOKENS = 1 << 20,
};

typedef struct added_token {
    slice text;   /* not empty */
    size_t order; /* of tokens with the same text the lowest counts */
    int32_t id;
    bool lstrip, rstrip; /* swallows the white space before, after it */
    bool single_word;    /* only between characters that are not part of words */
} added_token;

typedef struct added_set {
    added_token *tokens; /* sorted by their bytes once sealed */
    size_t n, cap;
    bool starts[256]; /* the first bytes of the tokens */
    arena texts;
} added_set;

void added_init(added_set *s);
void added_fini(added_set *s);
/* Copies the text. */
smoe_status added_add(added_set *s, const added_token *token, smoe_err *err);
/* After the last added_add. Returns a token whose text another one has too, or NULL. */
const added_token *added_seal(added_set *s);

/* Receives the pieces of the text in order: id -1 for ordinary text (never empty). */
typedef smoe_status added_sink(void *context, slice piece, int32_t id, smoe_err *err);

/* Finds the leftmost token, the longest of those, then goes on behind it. text is valid UTF-8. */
smoe_status added_split(const added_set *s, slice text, added_sink *sink, void *context,
                        smoe_err *err);

#endif
