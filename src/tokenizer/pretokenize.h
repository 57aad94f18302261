/* pretokenize.h: cuts text into the words that byte-pair encoding then works on. */
#ifndef TOKENIZER_PRETOKENIZE_H
#define TOKENIZER_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "tokenizer/regex.h"

enum { PRETOKENIZE_MAX_STAGES = 12, PRETOKENIZE_MAX_MARK_BYTES = 4 };

/* What becomes of the matches of a pattern and of the text between them. */
enum split_behavior {
    SPLIT_ISOLATED,             /* both become pieces */
    SPLIT_REMOVED,              /* matches disappear */
    SPLIT_CONTIGUOUS,           /* neighbouring matches are one piece */
    SPLIT_MERGED_WITH_PREVIOUS, /* a match belongs to the text before it, */
    SPLIT_MERGED_WITH_NEXT,     /* ... after it */
};

enum stage_kind {
    STAGE_SPLIT,
    STAGE_SPACE,     /* a piece that does not start with a space gets one */
    STAGE_METASPACE, /* spaces become marks, the piece may get one in front, and is cut before each
                      */
};

enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };

typedef struct pretokenize_stage {
    enum stage_kind kind;
    /* STAGE_SPLIT, and STAGE_METASPACE where it cuts */
    regex *pattern;
    enum split_behavior behavior;
    bool invert; /* what the pattern does not match counts as matched */
    /* STAGE_METASPACE */
    char mark[PRETOKENIZE_MAX_MARK_BYTES]; /* one character */
    size_t mark_len;
    enum prepend_scheme prepend;
} pretokenize_stage;

/* Stages one after the other; every piece of one goes through the next. */
typedef struct pretokenizer {
    pretokenize_stage stages[PRETOKENIZE_MAX_STAGES];
    size_t n_stages;
} pretokenizer;

/* Receives the words in order; word is valid during the call only and never empty. */
typedef smoe_status pretokenize_sink(void *context, slice word, smoe_err *err);

/* The pattern of GPT-2, which a byte-level pre-tokenizer with use_regex means. */
extern const char pretokenize_gpt2_pattern[];

void pretokenize_init(pretokenizer *p);
void pretokenize_fini(pretokenizer *p);
/* Adds a stage and takes its pattern over, also on failure. */
smoe_status pretokenize_add(pretokenizer *p, const pretokenize_stage *stage, smoe_err *err);
/* What one thread needs to run a pretokenizer. p must outlive it. n_bytes: see regex_work_new. */
typedef struct pretokenize_work pretokenize_work;
smoe_status pretokenize_work_new(const pretokenizer *p, size_t n_bytes, pretokenize_work **out,
                                 smoe_err *err);
void pretokenize_work_free(pretokenize_work *w);
/* text must be valid UTF-8. is_first: it is the start of what a person wrote. */
smoe_status pretokenize_run(pretokenize_work *w, slice text, bool is_first, pretokenize_sink *sink,
                            void *context, smoe_err *err);

#endif
