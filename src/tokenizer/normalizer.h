/* normalizer.h: what the "normalizer" of tokenizer.json does to a text, step by step. */
#ifndef TOKENIZER_NORMALIZER_H
#define TOKENIZER_NORMALIZER_H

#include "tokenizer/normalize.h"
#include "tokenizer/regex.h"

enum { NORMALIZER_MAX_STEPS = 12 };

enum normalizer_kind {
    NORMALIZER_FORM,
    NORMALIZER_PREPEND, /* text, before anything that is not empty */
    NORMALIZER_REPLACE, /* every match of pattern, by text */
    NORMALIZER_LOWERCASE,
    NORMALIZER_STRIP_ACCENTS, /* removes combining marks */
};

typedef struct normalizer_step {
    enum normalizer_kind kind;
    enum normal_form form;
    regex *pattern;
    slice text; /* owned */
} normalizer_step;

typedef struct normalizer {
    normalizer_step steps[NORMALIZER_MAX_STEPS];
    size_t n_steps;
} normalizer;

void normalizer_init(normalizer *n);
void normalizer_fini(normalizer *n);
/* Copies step->text; takes step->pattern over, also on failure. */
smoe_status normalizer_add(normalizer *n, const normalizer_step *step, smoe_err *err);

/* What one thread needs to run a normalizer. n_bytes: see regex_work_new. */
typedef struct normalizer_work {
    normalize_work form;
    buf texts[2]; /* of the step in hand, and the one before */
    regex_work *regex;
    size_t n_bytes;
} normalizer_work;

void normalizer_work_init(normalizer_work *w, size_t n_bytes);
void normalizer_work_fini(normalizer_work *w);

/* text must be valid UTF-8. *out borrows text or w, until the next call. */
smoe_status normalizer_run(const normalizer *n, normalizer_work *w, slice text, slice *out,
                           smoe_err *err);

#endif
