/* regex.h: runs the patterns of tokenizer.json. Two engines that match the same: a table
 * (pattern_dfa.h) for the patterns it can hold, which are all that are published by the families in
 * docs/tokenizers.md but one, and PCRE2 for the rest. */
#ifndef TOKENIZER_REGEX_H
#define TOKENIZER_REGEX_H

#include "base/err.h"
#include "base/slice.h"

typedef struct regex regex;           /* never changes once made: threads may share it */
typedef struct regex_work regex_work; /* what one thread needs to run any regex */

enum regex_engine {
    REGEX_TABLE_OR_PCRE2,
    REGEX_PCRE2, /* for tests: they compare the two */
};

/* pattern: as published, see pattern.h for what is refused. */
smoe_status regex_new(slice pattern, enum regex_engine engine, regex **out, smoe_err *err);
void regex_free(regex *r);
bool regex_is_table(const regex *r);

/* n_bytes: of the texts that will be searched, together. The steps that searching may take grow
 * with it, so that a hostile pattern ends in an error and not in a hang. */
smoe_status regex_work_new(size_t n_bytes, regex_work **out, smoe_err *err);
void regex_work_free(regex_work *w);

/* The leftmost match in text (valid UTF-8) that starts at or after `from`: never empty.
 * *start == text.len when there is none. */
smoe_status regex_find(const regex *r, regex_work *w, slice text, size_t from, size_t *start,
                       size_t *end, smoe_err *err);

#endif
