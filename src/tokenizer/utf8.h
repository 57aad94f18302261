/* utf8.h: one step of UTF-8 decoding with the maximal-subpart rule of the Unicode standard (3.9,
 * table 3-7), which is also what Python's bytes.decode(errors="replace") does. */
#ifndef TOKENIZER_UTF8_H
#define TOKENIZER_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum utf8_kind {
    UTF8_CHAR,    /* a whole character */
    UTF8_INVALID, /* bytes that no continuation can complete: replace them by one U+FFFD */
    UTF8_PARTIAL, /* the text ends inside a sequence that was right so far */
};

#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Looks at the start of text (len > 0). *n_bytes: how much to consume (1..4); *code: the character
 * when the answer is UTF8_CHAR. */
enum utf8_kind utf8_step(slice text, size_t *n_bytes, uint32_t *code);

/* The length of the valid prefix of text. */
size_t utf8_valid_prefix(slice text);

/* The first position at or after i whose byte is not ASCII (text.len when there is none), eight
 * bytes at a time. */
size_t utf8_skip_ascii(slice text, size_t i);

/* Decodes one character of text known to be valid and returns its length. */
static inline size_t utf8_get(const char *p, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)p;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    if (s[0] < 0xE0) {
        *code = (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
        return 2;
    }
    if (s[0] < 0xF0) {
        *code = (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
        return 3;
    }
    *code = (s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
    return 4;
}

/* Writes a valid code point (1..4 bytes) and returns its length. */
size_t utf8_put(uint32_t code, char out[4]);

#endif
