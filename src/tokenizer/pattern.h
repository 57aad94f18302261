/* pattern.h: from the regular expressions of tokenizer.json to PCRE2's. */
#ifndef TOKENIZER_PATTERN_H
#define TOKENIZER_PATTERN_H

#include "base/buf.h"
#include "base/slice.h"

enum { PATTERN_MAX_BYTES = 1 << 14, PATTERN_MAX_DEPTH = 16 };

/* What who reads the translation knows of general categories. */
enum pattern_categories {
    PATTERN_CATEGORIES_OLD,   /* maybe of an older Unicode: later characters are written out */
    PATTERN_CATEGORIES_KNOWN, /* those of unicode.h */
};

/* Published patterns are written for Oniguruma (Ruby syntax, UTF-8). Appends to *out the PCRE2
 * pattern (for PCRE2_UTF | PCRE2_UCP, newline LF) that matches the same; refuses, naming it, every
 * construct whose meaning differs or was not compared. pattern is valid UTF-8. */
smoe_status pattern_translate(slice pattern, enum pattern_categories categories, buf *out,
                              smoe_err *err);

#endif
