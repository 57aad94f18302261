/* unicode.h: the few character properties that the reference tokenizer relies on. Categories are
 * pinned to its Unicode version (16.0), so that ids do not depend on the age of the installed
 * libraries. */
#ifndef TOKENIZER_UNICODE_H
#define TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNICODE_N_CODES = 0x110000 };

/* Code points assigned after Unicode 13.0 (the oldest that an installed library may know) and up to
 * 16.0, by general category. Ascending; a range may cover older characters of the same category. */
typedef struct unicode_range {
    uint32_t first, last;
    char category[3];
} unicode_range;

const unicode_range *unicode_recent(size_t *n_ranges);

/* The White_Space property: 25 characters, unchanged since Unicode 6.3. The same set as the inside
 * of a PCRE2 class is UNICODE_WHITE_SPACE_CLASS. */
bool unicode_is_white_space(uint32_t code);
#define UNICODE_WHITE_SPACE_CLASS                                                                  \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"    \
    "\\x{205f}\\x{3000}"
#define UNICODE_NOT_WHITE_SPACE_CLASS                                                              \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{"     \
    "1fff}"                                                                                        \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"                 \
    "\\x{3001}-\\x{10ffff}"

/* The general category, two letters ("Lu"). */
const char *unicode_category(uint32_t code);

/* The same as a bit of a mask: 30 categories, so a set of them is one number. */
uint32_t unicode_category_bit(uint32_t code);
/* The categories of a name ("L": all letters, "Lu": one); 0 when there is none of that name. */
uint32_t unicode_category_mask(const char *name);

/* \w of Unicode Technical Standard 18: alphabetic, marks, decimal digits, connector punctuation and
 * the two join controls. */
bool unicode_is_word(uint32_t code);

/* What StripAccents removes: marks, as the reference's data of Unicode 9 has them. */
bool unicode_is_mark(uint32_t code);
/* Whether the reference does not know a compatibility decomposition that a library may know. */
bool unicode_has_no_compat(uint32_t code);
/* The lower case of every character but U+0130, to which the reference gives two characters. */
uint32_t unicode_reference_lower(uint32_t code);

/* Decomposition, combining classes and composition, as the installed library knows them.
 */
enum { UNICODE_MAX_DECOMPOSED = 32 };
unsigned unicode_combining_class(uint32_t code);
/* Writes the full decomposition (at least one code point), canonical or also of compatibility
 * characters, and returns its length. */
size_t unicode_decompose(uint32_t code, bool compat, int32_t out[UNICODE_MAX_DECOMPOSED]);
/* Composes n decomposed code points in canonical order, in place; returns how many are left. */
size_t unicode_compose(int32_t *codes, size_t n);

/* Simple case mappings, one character to one, as the installed library knows them. */
uint32_t unicode_to_upper(uint32_t code);
uint32_t unicode_to_title(uint32_t code);
uint32_t unicode_to_lower(uint32_t code);

/* Columns on a terminal: 0 (marks, controls), 1 or 2. */
unsigned unicode_width(uint32_t code);

#endif
