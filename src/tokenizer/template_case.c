/* template_case.c: upper, lower, capitalize, title and swapcase of Python's str. */
#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

static smoe_status put_chars(tr *r, buf *b, const uint32_t *chars, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        TRY(tr_put_char(r, b, chars[i]));
    }
    return SMOE_OK;
}

/* A capital sigma at the end of a word becomes the final form. */
static bool is_final_sigma(slice s, size_t at, size_t n)
{
    bool ignored, before = false, after = false;
    for (size_t i = at; i > 0 && !before;) {
        do {
            i--;
        } while (i && ((unsigned char)s.data[i] & 0xc0) == 0x80);
        size_t len;
        before = text_is_cased(text_decode(s, i, &len), &ignored);
        if (!before) {
            break;
        }
    }
    if (at + n < s.len) {
        size_t len;
        after = text_is_cased(text_decode(s, at + n, &len), &ignored);
    }
    return before && !after;
}

/* Which letters become capitals. */
enum case_rule { UPPER, LOWER, CAPITALIZE, TITLE, SWAP };

static smoe_status put_case(tr *r, buf *b, slice s, enum case_rule rule)
{
    size_t n;
    bool in_word = false; /* TITLE: after a letter; CAPITALIZE: after the first character */
    for (size_t at = 0; at < s.len; at += n) {
        uint32_t c = text_decode(s, at, &n), out[3];
        bool is_upper = false, is_cased = text_is_cased(c, &is_upper);
        size_t n_out;
        if (rule == UPPER || (rule == SWAP && !is_upper)) {
            n_out = text_upper(c, out);
        } else if ((rule == TITLE || rule == CAPITALIZE) && !in_word) {
            n_out = text_title(c, out);
        } else if (c == 0x3a3 && is_final_sigma(s, at, n)) {
            out[0] = 0x3c2;
            n_out = 1;
        } else {
            n_out = text_lower(c, out);
        }
        in_word = rule == CAPITALIZE || is_cased;
        TRY(put_chars(r, b, out, n_out));
    }
    return SMOE_OK;
}

static smoe_status change_case(tr *r, slice s, enum case_rule rule, tv *out)
{
    buf b;
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_case(r, &b, s, rule), out);
}

smoe_status tr_upper(tr *r, slice s, tv *out)
{
    return change_case(r, s, UPPER, out);
}

smoe_status tr_lower(tr *r, slice s, tv *out)
{
    return change_case(r, s, LOWER, out);
}

smoe_status tr_capitalize(tr *r, slice s, tv *out)
{
    return change_case(r, s, CAPITALIZE, out);
}

smoe_status tr_title(tr *r, slice s, tv *out)
{
    return change_case(r, s, TITLE, out);
}

smoe_status tr_swapcase(tr *r, slice s, tv *out)
{
    return change_case(r, s, SWAP, out);
}

bool tr_is_case(slice s, bool want_upper)
{
    bool any = false, is_upper;
    size_t n;
    for (size_t at = 0; at < s.len; at += n) {
        if (text_is_cased(text_decode(s, at, &n), &is_upper)) {
            if (is_upper != want_upper) {
                return false;
            }
            any = true;
        }
    }
    return any;
}
