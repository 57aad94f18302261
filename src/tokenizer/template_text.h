/* template_text.h: what Python's str knows about characters, on UTF-8. */
#ifndef TOKENIZER_TEMPLATE_TEXT_H
#define TOKENIZER_TEMPLATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The code point at s[at] (valid UTF-8, at < len) and its length in bytes. */
uint32_t text_decode(slice s, size_t at, size_t *n_bytes);
size_t text_n_chars(slice s);
size_t text_offset(slice s,
                   size_t i_char); /* the byte offset of a character; len when past the end */

bool text_is_space(uint32_t c);
bool text_is_line_end(uint32_t c); /* for splitlines */
bool text_is_printable(uint32_t c);
bool text_is_alpha(uint32_t c);
bool text_is_decimal(uint32_t c);
bool text_is_digit(uint32_t c);
bool text_is_numeric(uint32_t c);
bool text_is_cased(uint32_t c, bool *is_upper);

/* Case mappings of one character; at most three come out. Returns how many. */
size_t text_upper(uint32_t c, uint32_t out[3]);
size_t text_title(uint32_t c, uint32_t out[3]);
size_t text_lower(uint32_t c, uint32_t out[3]);

slice text_lstrip(slice s);
slice text_rstrip(slice s);
/* The first occurrence at or after from; SIZE_MAX when none. */
size_t text_find(slice s, slice needle, size_t from);

#endif
