/* pattern.c: see pattern.h.
 *
 * What differs between the two engines, and what is done about it:
 *
 * \s \S        PCRE2 counts U+180E as a space: written out as the White_Space property.
 *
 * \p{L} ...    PCRE2's Unicode may be older than the reference's: later characters are added.
 *
 * \d           the same, as \p{Nd}.
 *
 * (?i:...)     Oniguruma also matches across lengths ("ss" and U+00DF): only ASCII is taken, and
 *              none of the pairs that fold together with one character.
 *
 * \p{Han}      the same: its ranges are written out. Other scripts are refused.
 *
 * [a[b]&&c]    PCRE2 10.42 has no set operations: alternatives, and assertions for intersections.
 *
 * ^ $          in Ruby always of lines: written as assertions.
 *
 * {n}+ {n}?    quantify again in Ruby, possessive and lazy in PCRE2: refused.
 *
 * \w \b \h, back references, [:posix:] classes, other flags: refused. */
#include "tokenizer/pattern.h"

#include <stdio.h>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

typedef struct translator {
    slice in;
    size_t at;
    enum pattern_categories categories;
    buf *out;
    smoe_err *err;
    bool caseless[PATTERN_MAX_DEPTH + 1]; /* by depth of groups */
    size_t depth;
    char last_letter;  /* the caseless literal just before, or NUL */
    bool can_quantify; /* an atom stands just before */
} translator;

static smoe_status refuse(const translator *t, size_t from, const char *why)
{
    size_t len = t->in.len - from < 12 ? t->in.len - from : 12;
    while (len > 0 && from + len < t->in.len &&
           ((unsigned char)t->in.data[from + len] & 0xC0) == 0x80) {
        len--;
    }
    return err_set(t->err, SMOE_UNSUPPORTED,
                   "tokenizer.json: the pre-tokenizer's pattern is not supported at byte %zu, "
                   "\"%.*s\": %s",
                   from, (int)len, t->in.data + from, why);
}

static char peek(const translator *t, size_t ahead)
{
    return t->at + ahead < t->in.len ? t->in.data[t->at + ahead] : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static smoe_status put_code(translator *t, uint32_t code)
{
    return buf_printf(t->out, t->err, "\\x{%x}", code);
}

/* The script Han of Unicode 16. */
static const char HAN[] =
    "\\x{2e80}-\\x{2e99}\\x{2e9b}-\\x{2ef3}\\x{2f00}-\\x{2fd5}\\x{3005}\\x{3007}"
    "\\x{3021}-\\x{3029}\\x{3038}-\\x{303b}\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}"
    "\\x{f900}-\\x{fa6d}\\x{fa70}-\\x{fad9}"
    "\\x{16fe2}-\\x{16fe3}\\x{16ff0}-\\x{16ff1}\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2b739}"
    "\\x{2b740}-\\x{2b81d}\\x{2b820}-\\x{2cea1}\\x{2ceb0}-\\x{2ebe0}\\x{2ebf0}-\\x{2ee5d}"
    "\\x{2f800}-\\x{2fa1d}\\x{30000}-\\x{3134a}\\x{31350}-\\x{323af}";

/* Writes the inside of a class for a general category ("L", "Nd") or for "Han". */
static smoe_status put_category(translator *t, const char *category)
{
    size_t n = 0;
    if (strcmp(category, "Han") == 0) {
        return buf_puts(t->out, HAN, t->err);
    }
    const unicode_range *ranges = unicode_recent(&n);
    n = t->categories == PATTERN_CATEGORIES_OLD ? n : 0;
    TRY(buf_printf(t->out, t->err, "\\p{%s}", category));
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].category[0] == category[0] &&
            (!category[1] || ranges[i].category[1] == category[1])) {
            TRY(buf_printf(t->out, t->err, "\\x{%x}-\\x{%x}", ranges[i].first, ranges[i].last));
        }
    }
    return SMOE_OK;
}

/* Reads {Name} after \p. Categories of unassigned characters depend on the version: not taken. */
static smoe_status read_category(translator *t, size_t from, char category[4])
{
    static const char known[] =
        " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm "
        "Sc Sk So Z Zs Zl Zp ";
    size_t n = 0;
    if (slice_starts(slice_of(t->in.data + t->at, t->in.len - t->at), slice_from("{Han}"))) {
        memcpy(category, "Han", 4);
        t->at += 5;
        return SMOE_OK;
    }
    if (peek(t, 0) == '{') {
        while (n < 2 && is_letter(peek(t, 1 + n))) {
            category[n] = peek(t, 1 + n);
            n++;
        }
    }
    category[n] = '\0';
    char word[6];
    snprintf(word, sizeof word, " %s ", category);
    if (n == 0 || peek(t, 1 + n) != '}' || !strstr(known, word)) {
        return refuse(t, from,
                      "only general categories such as \\p{L}, and \\p{Han}, are known");
    }
    t->at += n + 2;
    return SMOE_OK;
}

static smoe_status read_hex(translator *t, size_t from, size_t n_min, size_t n_max, uint32_t *code)
{
    size_t n = 0;
    *code = 0;
    for (char c; n < n_max; n++, t->at++) {
        c = peek(t, 0);
        uint32_t digit = is_digit(c)              ? (uint32_t)(c - '0')
                         : (c >= 'a' && c <= 'f') ? (uint32_t)(c - 'a') + 10
                         : (c >= 'A' && c <= 'F') ? (uint32_t)(c - 'A') + 10
                                                  : 16;
        if (digit > 15) {
            break;
        }
        *code = *code * 16 + digit;
    }
    if (n < n_min || *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF)) {
        return refuse(t, from, "this is not a character");
    }
    return SMOE_OK;
}

/* A character written as an escape (t->at is after the backslash). */
static smoe_status read_escaped_char(translator *t, uint32_t *code)
{
    static const char names[] = "rntf", values[] = "\r\n\t\f";
    size_t from = t->at - 1;
    char c = peek(t, 0);
    const char *name = c ? strchr(names, c) : NULL;
    t->at++;
    if (name) {
        *code = (unsigned char)values[name - names];
        return SMOE_OK;
    }
    if (c == 'u') {
        return read_hex(t, from, 4, 4, code);
    }
    if (c == 'x' && peek(t, 0) == '{') {
        t->at++;
        TRY(read_hex(t, from, 1, 6, code));
        if (peek(t, 0) != '}') {
            return refuse(t, from, "this is not a character");
        }
        t->at++;
        return SMOE_OK;
    }
    if (c > ' ' && c < 0x7F && !is_letter(c) && !is_digit(c)) {
        *code = (unsigned char)c;
        return SMOE_OK;
    }
    t->at = from;
    return refuse(t, from, "this escape is not known here");
}

/* A literal or escaped character. */
static smoe_status read_char(translator *t, uint32_t *code)
{
    if (peek(t, 0) == '\\') {
        t->at++;
        return read_escaped_char(t, code);
    }
    t->at += utf8_get(t->in.data + t->at, code);
    return SMOE_OK;
}

/* The inside of a class for \s \S \d \p{..}; *is_set is false when the escape is something else. */
static smoe_status put_escaped_set(translator *t, bool *is_set)
{
    char category[4];
    size_t from = t->at;
    *is_set = true;
    switch (peek(t, 1)) {
    case 's':
        t->at += 2;
        return buf_puts(t->out, UNICODE_WHITE_SPACE_CLASS, t->err);
    case 'S':
        t->at += 2;
        return buf_puts(t->out, UNICODE_NOT_WHITE_SPACE_CLASS, t->err);
    case 'd':
        t->at += 2;
        return put_category(t, "Nd");
    case 'p':
        t->at += 2;
        if (t->caseless[t->depth]) {
            return refuse(t, from, "a category inside (?i:...) is not supported");
        }
        TRY(read_category(t, from, category));
        return put_category(t, category);
    default:
        *is_set = false;
        return SMOE_OK;
    }
}

/* One item of a class: a set, a character or a range. */
static smoe_status class_item(translator *t, size_t class_at)
{
    size_t from = t->at;
    bool is_set = false;
    char c = peek(t, 0);
    if (c == '\\') {
        TRY(put_escaped_set(t, &is_set));
        if (is_set) {
            return peek(t, 0) == '-' && peek(t, 1) != ']'
                       ? refuse(t, from, "a range cannot start with a set")
                       : SMOE_OK;
        }
    }
    bool is_dash = c == '-';
    uint32_t first, last;
    TRY(read_char(t, &first));
    last = first;
    if (is_dash && from != class_at && peek(t, 0) != ']') {
        return refuse(t, from, "write a dash in [...] as \\-");
    }
    if (peek(t, 0) == '-' && peek(t, 1) != ']' && peek(t, 1) != '\0') {
        t->at++;
        if (peek(t, 0) == '\\' && peek(t, 1) && strchr("sSdDpPwWhH", peek(t, 1))) {
            return refuse(t, from, "a range cannot end with a set");
        }
        TRY(read_char(t, &last));
    }
    if (last < first) {
        return refuse(t, from, "the range runs backwards");
    }
    if (t->caseless[t->depth] && last >= 0x80) {
        return refuse(t, from, "only ASCII is supported inside (?i:...)");
    }
    TRY(put_code(t, first));
    if (last != first) {
        TRY(buf_putc(t->out, '-', t->err));
        TRY(put_code(t, last));
    }
    return SMOE_OK;
}

static smoe_status translate_class(translator *t, size_t depth);

/* What stands in a class up to its end or the next &&. Plain items go to *plain; each class inside
 * to *nested, as an alternative ("|[...]"). */
static smoe_status class_items(translator *t, size_t depth, buf *plain, buf *nested)
{
    buf *out = t->out;
    size_t first_item = t->at;
    smoe_status status = SMOE_OK;
    bool is_empty = true;
    for (; peek(t, 0) != ']' && !(peek(t, 0) == '&' && peek(t, 1) == '&'); is_empty = false) {
        if (t->at >= t->in.len) {
            CHECK(refuse(t, first_item, "the class has no end"));
        }
        t->out = peek(t, 0) == '[' ? nested : plain;
        if (peek(t, 0) == '[') {
            CHECK(buf_putc(t->out, '|', t->err));
            CHECK(translate_class(t, depth + 1));
        } else {
            CHECK(class_item(t, first_item));
        }
    }
    if (is_empty) {
        CHECK(refuse(t, first_item, "the class is empty or has no end"));
    }
out:
    t->out = out;
    return status;
}

/* One operand of && as an expression that matches one character. */
static smoe_status put_operand(translator *t, const buf *plain, const buf *nested)
{
    slice rest = slice_of(nested->data + 1, nested->len ? nested->len - 1 : 0); /* without the | */
    if (!nested->len) {
        return buf_printf(t->out, t->err, "[%s]", plain->data);
    }
    TRY(buf_puts(t->out, "(?:", t->err));
    if (plain->len) {
        TRY(buf_printf(t->out, t->err, "[%s]|", plain->data));
    }
    TRY(buf_append_slice(t->out, rest, t->err));
    return buf_putc(t->out, ')', t->err);
}

/* Into *whole: every operand but the last as an assertion, then the last. */
static smoe_status class_operands(translator *t, size_t depth, buf *plain, buf *nested, buf *whole)
{
    buf *out = t->out;
    smoe_status status = class_items(t, depth, plain, nested);
    t->out = whole;
    while (status == SMOE_OK && peek(t, 0) == '&') {
        CHECK(buf_puts(whole, "(?=", t->err));
        CHECK(put_operand(t, plain, nested));
        CHECK(buf_putc(whole, ')', t->err));
        buf_clear(plain);
        buf_clear(nested);
        t->at += 2;
        CHECK(class_items(t, depth, plain, nested));
    }
    if (status == SMOE_OK && (whole->len || nested->len)) {
        status = put_operand(t, plain, nested);
    }
out:
    t->out = out;
    return status;
}

/* [...] as one class where that can say it, else as a group. */
static smoe_status translate_class(translator *t, size_t depth)
{
    size_t from = t->at++;
    smoe_status status;
    buf plain, nested, whole;
    bool is_negated = peek(t, 0) == '^';
    if (depth == PATTERN_MAX_DEPTH || peek(t, 0) == ':') {
        return refuse(t, from, depth == PATTERN_MAX_DEPTH ? "classes are nested too deeply"
                                                          : "[:...:] is not supported");
    }
    if (is_negated && t->caseless[t->depth]) {
        return refuse(t, from, "[^...] inside (?i:...) is not supported");
    }
    t->at += is_negated;
    buf_init(&plain, t->out->max);
    buf_init(&nested, t->out->max);
    buf_init(&whole, t->out->max);
    CHECK(class_operands(t, depth, &plain, &nested, &whole));
    t->at++;
    if (!whole.len) {
        status = buf_printf(t->out, t->err, is_negated ? "[^%s]" : "[%s]", plain.data);
    } else if (t->caseless[t->depth]) {
        status = refuse(t, from, "set operations inside (?i:...) are not supported");
    } else {
        status = buf_printf(t->out, t->err,
                            is_negated ? "(?:(?!%s)[\\x{0}-\\x{10ffff}])" : "(?:%s)", whole.data);
    }
out:
    buf_fini(&plain);
    buf_fini(&nested);
    buf_fini(&whole);
    return status;
}

static smoe_status translate_escape(translator *t)
{
    size_t from = t->at;
    char c = peek(t, 1);
    uint32_t code;
    bool is_set;
    if (c == 'P' || c == 'D') {
        char category[4] = "Nd";
        t->at += 2;
        if (t->caseless[t->depth]) {
            return refuse(t, from, "a category inside (?i:...) is not supported");
        }
        if (c == 'P') {
            TRY(read_category(t, from, category));
        }
        TRY(buf_puts(t->out, "[^", t->err));
        TRY(put_category(t, category));
        return buf_putc(t->out, ']', t->err);
    }
    TRY(buf_putc(t->out, '[', t->err));
    TRY(put_escaped_set(t, &is_set));
    if (is_set) {
        return buf_putc(t->out, ']', t->err);
    }
    t->out->len--; /* not a class after all */
    TRY(read_char(t, &code));
    if (t->caseless[t->depth] && code >= 0x80) {
        return refuse(t, from, "only ASCII is supported inside (?i:...)");
    }
    return put_code(t, code);
}

static smoe_status open_group(translator *t)
{
    static const struct {
        const char *in, *out;
        bool sets_caseless;
    } forms[] = {
        {"(?i:", "(?i:", true}, {"(?:", "(?:", false},   {"(?=", "(?=", false},
        {"(?!", "(?!", false},  {"(?<=", "(?<=", false}, {"(?<!", "(?<!", false},
        {"(?>", "(?>", false},
    };
    slice rest = slice_of(t->in.data + t->at, t->in.len - t->at);
    if (t->depth == PATTERN_MAX_DEPTH) {
        return refuse(t, t->at, "groups are nested too deeply");
    }
    if (peek(t, 1) != '?') {
        t->at++;
        t->caseless[t->depth + 1] = t->caseless[t->depth];
        t->depth++;
        return buf_puts(t->out, "(?:", t->err); /* nobody asks for what a group captured */
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (slice_starts(rest, slice_from(forms[i].in))) {
            t->at += strlen(forms[i].in);
            t->caseless[t->depth + 1] = t->caseless[t->depth] || forms[i].sets_caseless;
            t->depth++;
            return buf_puts(t->out, forms[i].out, t->err);
        }
    }
    return refuse(t, t->at, "this kind of group is not supported");
}

/* {n}, {n,}, {n,m} and Ruby's {,m}. */
static smoe_status translate_interval(translator *t)
{
    size_t from = t->at++;
    unsigned bound[2] = {0, 0};
    size_t n_digits[2] = {0, 0}, part = 0;
    for (; peek(t, 0) != '}'; t->at++) {
        char c = peek(t, 0);
        if (c == ',' && part == 0) {
            part = 1;
        } else if (is_digit(c) && n_digits[part] < 4) {
            bound[part] = bound[part] * 10 + (unsigned)(c - '0');
            n_digits[part]++;
        } else {
            return refuse(t, from, "this is not a repeat count");
        }
    }
    t->at++;
    if (n_digits[0] + n_digits[1] == 0 || (n_digits[1] && bound[1] < bound[0]) || bound[0] > 1000 ||
        bound[1] > 1000) {
        return refuse(t, from, "repeat counts run from 0 to 1000");
    }
    if (n_digits[1]) {
        return buf_printf(t->out, t->err, "{%u,%u}", bound[0], bound[1]);
    }
    return buf_printf(t->out, t->err, part ? "{%u,}" : "{%u}", bound[0]);
}

static smoe_status translate_quantifier(translator *t)
{
    size_t from = t->at;
    if (!t->can_quantify) {
        return refuse(t, from, "there is nothing to repeat, or it is repeated already");
    }
    if (peek(t, 0) == '{') {
        TRY(translate_interval(t));
        return SMOE_OK;
    }
    TRY(buf_putc(t->out, peek(t, 0), t->err));
    t->at++;
    if (peek(t, 0) == '?' || peek(t, 0) == '+') {
        TRY(buf_putc(t->out, peek(t, 0), t->err));
        t->at++;
    }
    return SMOE_OK;
}

/* Pairs of ASCII letters that full case folding makes out of one character (sharp s, ligatures). */
static bool folds_together(char a, char b)
{
    char pair[3] = {(char)(a | 0x20), (char)(b | 0x20), '\0'};
    return a && strstr(" ss st ff fi fl ", pair);
}

static smoe_status translate_literal(translator *t)
{
    size_t from = t->at;
    uint32_t code;
    TRY(read_char(t, &code));
    if (t->caseless[t->depth]) {
        char c = code < 0x80 ? (char)code : '\0';
        if (!c || (is_letter(c) && folds_together(t->last_letter, c))) {
            return refuse(t, from, "this may match characters of another length inside (?i:...)");
        }
        t->last_letter = is_letter(c) ? c : '\0';
    }
    return put_code(t, code);
}

/* Before a newline or at the end; at the start, or behind a newline that is not the end. */
static const char LINE_END[] = "(?![^\\x{a}])";
static const char LINE_START[] =
    "(?<![^\\x{a}])(?:(?=[\\x{0}-\\x{10ffff}])|(?<![\\x{0}-\\x{10ffff}]))";

static smoe_status translate_item(translator *t)
{
    char c = peek(t, 0);
    char last_letter = t->last_letter;
    bool is_quantifier = c == '*' || c == '+' || c == '?' || c == '{';
    t->last_letter = '\0';
    if (is_quantifier) {
        TRY(translate_quantifier(t));
    } else if (c == '(') {
        TRY(open_group(t));
    } else if (c == '|') {
        t->at++;
        TRY(buf_putc(t->out, '|', t->err));
    } else if (c == ')') {
        if (t->depth == 0) {
            return refuse(t, t->at, "this parenthesis closes nothing");
        }
        t->at++;
        t->depth--;
        TRY(buf_putc(t->out, ')', t->err));
    } else if (c == '[') {
        TRY(translate_class(t, 0));
    } else if (c == '\\') {
        TRY(translate_escape(t));
    } else if (c == '.') {
        t->at++;
        TRY(buf_putc(t->out, '.', t->err));
    } else if (c == '^' || c == '$') {
        t->at++;
        TRY(buf_puts(t->out, c == '$' ? LINE_END : LINE_START, t->err));
    } else {
        t->last_letter = last_letter;
        TRY(translate_literal(t));
    }
    t->can_quantify = !is_quantifier && !strchr("(|^$", c);
    return SMOE_OK;
}

smoe_status pattern_translate(slice pattern, enum pattern_categories categories, buf *out,
                              smoe_err *err)
{
    translator t = {.in = pattern, .categories = categories, .out = out, .err = err};
    if (pattern.len == 0 || pattern.len > PATTERN_MAX_BYTES ||
        memchr(pattern.data, 0, pattern.len)) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "tokenizer.json: the pre-tokenizer's pattern has %zu bytes; 1 to %d bytes "
                       "without NUL are supported",
                       pattern.len, PATTERN_MAX_BYTES);
    }
    while (t.at < pattern.len) {
        TRY(translate_item(&t));
    }
    if (t.depth) {
        return refuse(&t, 0, "a parenthesis is not closed");
    }
    return SMOE_OK;
}
