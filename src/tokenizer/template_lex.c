/* template_lex.c: see template_lex.h.
 *
 * The rules are those of Jinja 3.1 with trim_blocks and lstrip_blocks on: a newline right after a
 * block or comment is dropped, white space between a line's start and a block or comment is
 * dropped,
 * "-" strips everything on its side, "+" keeps everything. Refuses what Jinja refuses (unbalanced
 * brackets, unfinished tags) and, beyond it, identifiers outside ASCII. */
#include "tokenizer/template_lex.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tokenizer/template_text.h"
#include "tokenizer/utf8.h"

enum { MAX_BRACKETS = 256 };

typedef struct lexer {
    slice src;
    size_t pos;
    bool line_starting; /* the last thing consumed ended a line */
    char brackets[MAX_BRACKETS];
    size_t n_brackets;
    arena *a;
    template_tokens *out;
    smoe_err *err;
} lexer;

static bool looking_at(const lexer *l, size_t at, const char *text)
{
    size_t n = strlen(text);
    return at <= l->src.len && n <= l->src.len - at && memcmp(l->src.data + at, text, n) == 0;
}

static char char_at(const lexer *l, size_t at)
{
    return at < l->src.len ? l->src.data[at] : '\0';
}

static size_t skip_space(const lexer *l, size_t at)
{
    slice rest = {l->src.data + at, l->src.len - at};
    return l->src.len - text_lstrip(rest).len;
}

static smoe_status push(lexer *l, enum tt_kind kind, size_t at, slice text)
{
    template_tokens *o = l->out;
    if (o->n == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 256;
        template_token *items = mem_realloc(o->items, cap * sizeof *items);
        if (!items) {
            return err_nomem(l->err, "the tokens of the chat template", cap * sizeof *items);
        }
        o->items = items;
        o->cap = cap;
    }
    o->items[o->n++] = (template_token){.kind = (uint8_t)kind, .at = (uint32_t)at, .text = text};
    return SMOE_OK;
}

/* The end of a tag at `at`: "%}" and its variants. Returns its length, 0 when it is none. */
static size_t tag_end(const lexer *l, size_t at, const char *close, bool trims_newline)
{
    size_t sign = char_at(l, at) == '-' || char_at(l, at) == '+';
    if (!looking_at(l, at + sign, close)) {
        return 0;
    }
    size_t end = at + sign + strlen(close);
    if (sign && char_at(l, at) == '-') {
        end = skip_space(l, end);
    } else if (!sign && trims_newline && char_at(l, end) == '\n') {
        end++;
    }
    return end - at;
}

static void advance(lexer *l, size_t to)
{
    l->line_starting = to > 0 && l->src.data[to - 1] == '\n';
    l->pos = to;
}

/* Text before a tag, with what the tag strips from it. */
static smoe_status push_data(lexer *l, size_t begin, size_t end, char sign, bool is_variable)
{
    slice text = {l->src.data + begin, end - begin};
    if (sign == '-') {
        text = text_rstrip(text);
    } else if (sign != '+' && !is_variable) {
        size_t line = text.len;
        while (line > 0 && text.data[line - 1] != '\n') {
            line--;
        }
        slice indent = {text.data + line, text.len - line};
        if ((line > 0 || l->line_starting) && text_lstrip(indent).len == 0) {
            text.len = line;
        }
    }
    return text.len ? push(l, TT_DATA, begin, text) : SMOE_OK;
}

/* "{%- raw %}" or "{% endraw %}" at `at`: its length, 0 when it is none. */
static size_t raw_tag(const lexer *l, size_t at, const char *word, bool is_end)
{
    size_t sign = char_at(l, at + 2) == '-' || char_at(l, at + 2) == '+';
    size_t p = skip_space(l, at + 2 + sign);
    if (!looking_at(l, p, word)) {
        return 0;
    }
    p = skip_space(l, p + strlen(word));
    if (!is_end && char_at(l, p) == '+') {
        return 0;
    }
    size_t n = tag_end(l, p, "%}", is_end);
    return n ? p + n - at : 0;
}

static char sign_after(const lexer *l, size_t at)
{
    char c = char_at(l, at);
    return c == '-' || c == '+' ? c : '\0';
}

static smoe_status lex_raw(lexer *l, size_t tag, size_t n_tag)
{
    advance(l, tag + n_tag);
    for (size_t p = l->pos; (p = text_find(l->src, slice_from("{%"), p)) != SIZE_MAX; p++) {
        size_t n = raw_tag(l, p, "endraw", true);
        if (n) {
            TRY(push_data(l, l->pos, p, sign_after(l, p + 2), false));
            advance(l, p + n);
            return SMOE_OK;
        }
    }
    return template_fail(l->src, tag, l->err, SMOE_FORMAT, "this raw block has no {%% endraw %%}");
}

static smoe_status lex_comment(lexer *l, size_t tag)
{
    size_t begin = tag + 2 + (sign_after(l, tag + 2) != '\0');
    size_t p = text_find(l->src, slice_from("#}"), begin);
    if (p == SIZE_MAX) {
        return template_fail(l->src, tag, l->err, SMOE_FORMAT, "this comment has no #}");
    }
    if (p > begin && (l->src.data[p - 1] == '-' || l->src.data[p - 1] == '+')) {
        p--;
    }
    advance(l, p + tag_end(l, p, "#}", true));
    return SMOE_OK;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The numeric escapes: \ooo \xhh \uhhhh \Uhhhhhhhh. *p is at the letter or first digit. */
static smoe_status numeric_escape(lexer *l, size_t *p, uint32_t *code)
{
    size_t at = *p - 1;
    char kind = l->src.data[*p];
    uint32_t c = 0;
    if (kind >= '0' && kind <= '7') {
        for (int i = 0; i < 3 && char_at(l, *p) >= '0' && char_at(l, *p) <= '7'; i++) {
            c = c * 8 + (uint32_t)(l->src.data[(*p)++] - '0');
        }
    } else {
        int n = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
        ++*p;
        for (int i = 0; i < n; i++) {
            int digit = hex_value(char_at(l, *p));
            if (digit < 0) {
                return template_fail(l->src, at, l->err, SMOE_FORMAT,
                                     "this \\%c escape needs %d hexadecimal digits", kind, n);
            }
            c = c << 4 | (uint32_t)digit;
            ++*p;
        }
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        return template_fail(l->src, at, l->err, SMOE_UNSUPPORTED,
                             "the escape of U+%04X is not a character", c);
    }
    *code = c;
    return SMOE_OK;
}

/* One escape; *p is after the backslash. Writes at most 11 bytes and never more than it reads + 8.
 */
static smoe_status lex_escape(lexer *l, size_t *p, char *out, size_t *n_out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = l->src.data[*p];
    const char *known = c ? strchr(from, c) : NULL;
    uint32_t code = 0;
    if (c == '\n') {
        ++*p;
        return SMOE_OK;
    }
    if (known) {
        out[(*n_out)++] = to[known - from];
        ++*p;
        return SMOE_OK;
    }
    if (c == 'N') {
        return template_fail(l->src, *p - 1, l->err, SMOE_UNSUPPORTED,
                             "the \\N escape is not supported");
    }
    if (c == 'x' || c == 'u' || c == 'U' || (c >= '0' && c <= '7')) {
        TRY(numeric_escape(l, p, &code));
        *n_out += utf8_put(code, out + *n_out);
        return SMOE_OK;
    }
    out[(*n_out)++] = '\\'; /* an unknown escape is kept as it stands */
    if ((unsigned char)c >= 0x80) {
        /* Jinja turns what is not ASCII into an escape first, whose backslash this one then
         * escapes. */
        size_t n;
        code = text_decode(l->src, *p, &n);
        *p += n;
        char hex[12];
        int len = snprintf(hex, sizeof hex,
                           code < 0x100     ? "x%02x"
                           : code < 0x10000 ? "u%04x"
                                            : "U%08x",
                           code);
        memcpy(out + *n_out, hex, (size_t)len);
        *n_out += (size_t)len;
    }
    return SMOE_OK;
}

static smoe_status lex_string(lexer *l)
{
    size_t begin = l->pos, p = begin + 1, n_escapes = 0;
    char quote = l->src.data[begin];
    while (p < l->src.len && l->src.data[p] != quote) {
        n_escapes += l->src.data[p] == '\\';
        p += 1 + (l->src.data[p] == '\\');
    }
    if (p >= l->src.len) {
        return template_fail(l->src, begin, l->err, SMOE_FORMAT, "this string is not closed");
    }
    size_t end = p, len = 0;
    char *text = arena_alloc(l->a, end - begin + 8 * n_escapes);
    if (!text) {
        return err_nomem(l->err, "a string of the chat template", end - begin);
    }
    for (p = begin + 1; p < end;) {
        if (l->src.data[p] != '\\') {
            text[len++] = l->src.data[p++];
        } else {
            p++;
            TRY(lex_escape(l, &p, text, &len));
        }
    }
    l->pos = end + 1;
    return push(l, TT_STR, begin, (slice){text, len});
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits_end(const lexer *l, size_t p)
{
    while (is_digit(char_at(l, p)) || (char_at(l, p) == '_' && is_digit(char_at(l, p + 1)))) {
        p++;
    }
    return p;
}

/* The end of a float at the current position, 0 when it is none. */
static size_t float_end(const lexer *l)
{
    if (l->pos > 0 && l->src.data[l->pos - 1] == '.') {
        return 0;
    }
    size_t p = digits_end(l, l->pos), end = 0;
    if (char_at(l, p) == '.' && is_digit(char_at(l, p + 1))) {
        p = end = digits_end(l, p + 1);
    }
    if (char_at(l, p) == 'e' || char_at(l, p) == 'E') {
        size_t q = p + 1 + (char_at(l, p + 1) == '+' || char_at(l, p + 1) == '-');
        if (is_digit(char_at(l, q))) {
            end = digits_end(l, q);
        }
    }
    return end;
}

static smoe_status lex_float(lexer *l, size_t end)
{
    char text[64];
    size_t n = 0;
    for (size_t p = l->pos; p < end; p++) {
        if (l->src.data[p] != '_') {
            if (n + 2 > sizeof text) {
                return template_fail(l->src, l->pos, l->err, SMOE_UNSUPPORTED,
                                     "this number has too many digits");
            }
            text[n++] = l->src.data[p] == '.' ? localeconv()->decimal_point[0] : l->src.data[p];
        }
    }
    text[n] = '\0';
    TRY(push(l, TT_FLOAT, l->pos, (slice){l->src.data + l->pos, end - l->pos}));
    l->out->items[l->out->n - 1].num.f = strtod(text, NULL);
    l->pos = end;
    return SMOE_OK;
}

static smoe_status lex_int(lexer *l)
{
    size_t begin = l->pos, p = begin;
    char kind = char_at(l, p) == '0' ? (char)(char_at(l, p + 1) | 0x20) : '\0';
    int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    bool zeros_only = base == 10 && char_at(l, p) == '0';
    int64_t value = 0;
    if (base != 10) {
        p += 2;
    }
    size_t first = p;
    for (;; p++) {
        if (char_at(l, p) == '_' && hex_value(char_at(l, p + 1)) >= 0 &&
            (p > first || base != 10)) {
            continue;
        }
        int digit = hex_value(char_at(l, p));
        if (digit < 0 || digit >= base || (zeros_only && digit)) {
            break;
        }
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return template_fail(l->src, begin, l->err, SMOE_UNSUPPORTED,
                                 "this integer does not fit 64 bits");
        }
    }
    if (p == first) {
        return template_fail(l->src, begin, l->err, SMOE_FORMAT, "this number has no digits");
    }
    TRY(push(l, TT_INT, begin, (slice){l->src.data + begin, p - begin}));
    l->out->items[l->out->n - 1].num.i = value;
    l->pos = p;
    return SMOE_OK;
}

static smoe_status balance(lexer *l, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        if (l->n_brackets == MAX_BRACKETS) {
            return template_fail(l->src, l->pos, l->err, SMOE_UNSUPPORTED,
                                 "brackets are nested more than %d deep", MAX_BRACKETS);
        }
        l->brackets[l->n_brackets++] = (char)(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
        if (l->n_brackets == 0) {
            return template_fail(l->src, l->pos, l->err, SMOE_FORMAT, "unexpected '%c'", c);
        }
        char expected = l->brackets[--l->n_brackets];
        if (expected != c) {
            return template_fail(l->src, l->pos, l->err, SMOE_FORMAT, "expected '%c', found '%c'",
                                 expected, c);
        }
    }
    return SMOE_OK;
}

static smoe_status lex_operator(lexer *l)
{
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t n = 0;
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++) {
        if (looking_at(l, l->pos, two[i])) {
            n = 2;
        }
    }
    char c = l->src.data[l->pos];
    if (n == 0 && c != '\0' && strchr("+-/*%~[](){}><=.:|,;", c)) {
        n = 1;
    }
    if (n == 0) {
        if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f) {
            return template_fail(l->src, l->pos, l->err, SMOE_UNSUPPORTED,
                                 "a character that cannot stand outside a string");
        }
        return template_fail(l->src, l->pos, l->err, SMOE_FORMAT, "unexpected character '%c'", c);
    }
    if (n == 1) {
        TRY(balance(l, c));
    }
    TRY(push(l, TT_OP, l->pos, (slice){l->src.data + l->pos, n}));
    l->pos += n;
    return SMOE_OK;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The inside of "{% %}" or "{{ }}", up to and including its end. */
static smoe_status lex_tag(lexer *l, size_t tag, bool is_variable)
{
    const char *close = is_variable ? "}}" : "%}";
    for (;;) {
        if (l->n_brackets == 0) {
            /* "+}}" does not exist: there the plus is an operator. */
            bool plus = is_variable && char_at(l, l->pos) == '+';
            size_t n = plus ? 0 : tag_end(l, l->pos, close, !is_variable);
            if (n) {
                TRY(push(l, is_variable ? TT_VAR_END : TT_BLOCK_END, l->pos, slice_from(close)));
                advance(l, l->pos + n);
                return SMOE_OK;
            }
        }
        size_t p = skip_space(l, l->pos);
        if (p > l->pos) {
            l->pos = p;
            continue;
        }
        if (p >= l->src.len) {
            return template_fail(l->src, tag, l->err, SMOE_FORMAT, "this tag has no %s", close);
        }
        char c = l->src.data[p];
        size_t end;
        if (is_digit(c) && (end = float_end(l)) != 0) {
            TRY(lex_float(l, end));
        } else if (is_digit(c)) {
            TRY(lex_int(l));
        } else if (is_name_start(c)) {
            for (end = p; is_name_start(char_at(l, end)) || is_digit(char_at(l, end)); end++) {
            }
            TRY(push(l, TT_NAME, p, (slice){l->src.data + p, end - p}));
            l->pos = end;
        } else if (c == '\'' || c == '"') {
            TRY(lex_string(l));
        } else {
            TRY(lex_operator(l));
        }
    }
}

/* The next "{%", "{{" or "{#" at or after the position; SIZE_MAX when none. */
static size_t next_tag(const lexer *l)
{
    for (size_t p = l->pos; p + 1 < l->src.len; p++) {
        char c = l->src.data[p + 1];
        if (l->src.data[p] == '{' && (c == '%' || c == '{' || c == '#')) {
            return p;
        }
    }
    return SIZE_MAX;
}

smoe_status template_lex(slice source, arena *a, template_tokens *out, smoe_err *err)
{
    lexer l = {.src = source, .line_starting = true, .a = a, .out = out, .err = err};
    size_t tag;
    while ((tag = next_tag(&l)) != SIZE_MAX) {
        char kind = source.data[tag + 1], sign = sign_after(&l, tag + 2);
        TRY(push_data(&l, l.pos, tag, sign, kind == '{'));
        size_t n_raw = kind == '%' ? raw_tag(&l, tag, "raw", false) : 0;
        if (n_raw) {
            TRY(lex_raw(&l, tag, n_raw));
        } else if (kind == '#') {
            TRY(lex_comment(&l, tag));
        } else {
            TRY(push(&l, kind == '{' ? TT_VAR_BEGIN : TT_BLOCK_BEGIN, tag,
                     (slice){source.data + tag, 2}));
            l.pos = tag + 2 + (sign != '\0');
            TRY(lex_tag(&l, tag, kind == '{'));
        }
    }
    if (l.pos < source.len) {
        TRY(push(&l, TT_DATA, l.pos, (slice){source.data + l.pos, source.len - l.pos}));
    }
    return push(&l, TT_EOF, source.len, slice_from("the end of the template"));
}
