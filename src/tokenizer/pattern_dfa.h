/* pattern_dfa.h: a pattern as a table that is followed one character at a time.
 *
 * The patterns that are published need neither back references nor lookbehind, and look ahead by
 * one character at most. Such a pattern is a finite automaton even with the priorities of a
 * backtracking engine (the first alternative that matches wins, not the longest): a state is the
 * list of places in the pattern where that engine would go on, in the order in which it would try
 * them. So a text is cut with one look at a table per character, and no text costs more. */
#ifndef TOKENIZER_PATTERN_DFA_H
#define TOKENIZER_PATTERN_DFA_H

#include "base/err.h"
#include "base/slice.h"

typedef struct pattern_dfa pattern_dfa;

/* pattern: what pattern_translate wrote, without the characters of recent Unicode versions (this
 * engine has the categories from unicode.h). *out is NULL, and that is no error, when the pattern
 * has lookbehind, possessive or atomic groups, a longer lookahead, may match the empty string, or
 * needs a table beyond the limits. */
smoe_status pattern_dfa_new(slice pattern, pattern_dfa **out, smoe_err *err);
void pattern_dfa_free(pattern_dfa *d);

/* The length of the match that starts at byte `at` < text.len of valid UTF-8, 0 when none does.
 * Adds to *n_steps the characters it looked at. */
size_t pattern_dfa_match(const pattern_dfa *d, slice text, size_t at, size_t *n_steps);

#endif
