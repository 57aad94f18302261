/* pretokenize.h: cuts text into the words that byte-pair encoding then works on. */
#ifndef TOKENIZER_PRETOKENIZE_H
#define TOKENIZER_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

enum { PRETOKENIZE_MAX_SPLITS = 8 };

struct pcre2_real_code_8; /* PCRE2's compiled pattern, opaque to everyone else */

/* Splits one after the other; every piece of one is cut by the next. What a pattern matches and
 * what lies between matches both become pieces ("Isolated"). */
typedef struct pretokenizer {
    struct pcre2_real_code_8 *splits[PRETOKENIZE_MAX_SPLITS];
    size_t n_splits;
    bool add_prefix_space; /* a piece that does not start with a space gets one ... */
    size_t prefix_before;  /* ... before this split (n_splits: after all) */
} pretokenizer;

/* Receives the words in order; word is valid during the call only. */
typedef smoe_status pretokenize_sink(void *context, slice word, smoe_err *err);

/* The pattern of GPT-2, which a byte-level pre-tokenizer with use_regex means. */
extern const char pretokenize_gpt2_pattern[];

void pretokenize_init(pretokenizer *p);
void pretokenize_fini(pretokenizer *p);
/* Compiles one more split from the pattern as published. */
smoe_status pretokenize_add(pretokenizer *p, slice pattern, smoe_err *err);
/* What one thread needs to run a pretokenizer, kept from text to text. p must outlive it. */
typedef struct pretokenize_work pretokenize_work;
smoe_status pretokenize_work_new(const pretokenizer *p, pretokenize_work **out, smoe_err *err);
void pretokenize_work_free(pretokenize_work *w);
/* text must be valid UTF-8. */
smoe_status pretokenize_run(pretokenize_work *w, slice text, pretokenize_sink *sink, void *context,
                            smoe_err *err);

#endif
