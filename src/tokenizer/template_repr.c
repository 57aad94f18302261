/* template_repr.c: str() and repr() as Python writes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

static smoe_status put_cstr(tr *r, buf *b, const char *s)
{
    return tr_put(r, b, slice_from(s));
}

/* The shortest digits that read back as f, laid out as Python does: an exponent below 1e-4 and from
 * 1e16 on. Digits are picked out one by one, so the locale's decimal point does not matter. */
size_t tr_float_repr(double f, char out[32])
{
    if (isnan(f) || isinf(f)) {
        return (size_t)snprintf(out, 32, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    }
    char text[40], digits[24];
    size_t n_digits = 0, len = 0;
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, f);
        if (strtod(text, NULL) == f) {
            break;
        }
    }
    char *e = strchr(text, 'e');
    int exponent = (int)strtol(e + 1, NULL, 10);
    for (char *p = text; p < e; p++) {
        if (*p >= '0' && *p <= '9') {
            digits[n_digits++] = *p;
        }
    }
    while (n_digits > 1 && digits[n_digits - 1] == '0') {
        n_digits--;
    }
    if (signbit(f)) {
        out[len++] = '-';
    }
    bool scientific = exponent < -4 || exponent >= 16;
    int point = scientific ? 1 : exponent + 1; /* digits before the point */
    if (point <= 0) {
        out[len++] = '0';
    }
    for (int i = 0; i < point; i++) {
        out[len++] = i < (int)n_digits ? digits[i] : '0';
    }
    if (!scientific || n_digits > 1) {
        out[len++] = '.';
        for (int i = point; i < 0; i++) {
            out[len++] = '0';
        }
        size_t first = point > 0 ? (size_t)point : 0;
        if (first >= n_digits) {
            out[len++] = '0';
        }
        for (size_t i = first; i < n_digits; i++) {
            out[len++] = digits[i];
        }
    }
    if (scientific) {
        len += (size_t)snprintf(out + len, 32 - len, "e%c%02d", exponent < 0 ? '-' : '+',
                                abs(exponent));
    }
    return len;
}

static smoe_status put_str_repr(tr *r, buf *b, slice s)
{
    bool has_single = memchr(s.data ? s.data : "", '\'', s.len) != NULL;
    bool has_double = memchr(s.data ? s.data : "", '"', s.len) != NULL;
    char quote = has_single && !has_double ? '"' : '\'';
    TRY(tr_put_char(r, b, (uint32_t)quote));
    size_t n;
    for (size_t at = 0; at < s.len; at += n) {
        uint32_t c = text_decode(s, at, &n);
        char escape[12];
        if (c == (uint32_t)quote || c == '\\') {
            snprintf(escape, sizeof escape, "\\%c", (char)c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        } else if (!text_is_printable(c)) {
            snprintf(escape, sizeof escape,
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     c);
        } else {
            TRY(tr_put(r, b, (slice){s.data + at, n}));
            continue;
        }
        TRY(put_cstr(r, b, escape));
    }
    return tr_put_char(r, b, (uint32_t)quote);
}

static smoe_status put_repr(tr *r, buf *b, tv v);

static smoe_status put_items(tr *r, buf *b, const tv *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        TRY(put_cstr(r, b, i ? ", " : ""));
        TRY(put_repr(r, b, items[i]));
    }
    return SMOE_OK;
}

static smoe_status put_dict(tr *r, buf *b, const tv_dict *d)
{
    TRY(put_cstr(r, b, "{"));
    for (size_t i = 0; i < d->n; i++) {
        TRY(put_cstr(r, b, i ? ", " : ""));
        TRY(put_repr(r, b, d->items[i].key));
        TRY(put_cstr(r, b, ": "));
        TRY(put_repr(r, b, d->items[i].value));
    }
    return put_cstr(r, b, "}");
}

static smoe_status put_container(tr *r, buf *b, tv v)
{
    tv_iter *it = NULL;
    char text[80];
    switch (v.kind) {
    case TV_LIST:
        TRY(put_cstr(r, b, "["));
        TRY(put_items(r, b, v.u.list->items, v.u.list->n));
        return put_cstr(r, b, "]");
    case TV_TUPLE:
        TRY(put_cstr(r, b, "("));
        TRY(put_items(r, b, v.u.list->items, v.u.list->n));
        return put_cstr(r, b, v.u.list->n == 1 ? ",)" : ")");
    case TV_DICT:
        return put_dict(r, b, v.u.dict);
    case TV_NAMESPACE:
        TRY(put_cstr(r, b, "<Namespace "));
        TRY(put_dict(r, b, v.u.dict));
        return put_cstr(r, b, ">");
    case TV_VIEW:
        TRY(tr_iter(r, v, &it));
        TRY(put_cstr(r, b, tv_type_name(v)));
        TRY(put_cstr(r, b, "(["));
        TRY(put_items(r, b, it->items, it->n));
        return put_cstr(r, b, "])");
    case TV_RANGE:
        snprintf(text, sizeof text,
                 v.u.range->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
                 (long long)v.u.range->start, (long long)v.u.range->stop,
                 (long long)v.u.range->step);
        return put_cstr(r, b, text);
    default:
        return tr_unsupported(
            r,
            "a value of type '%s' has no text form that means anything; a filter such "
            "as |list or a call may be missing",
            tv_type_name(v));
    }
}

static smoe_status put_repr(tr *r, buf *b, tv v)
{
    char text[32];
    TRY(tr_spend(r, 1));
    switch (v.kind) {
    case TV_UNDEFINED:
        return put_cstr(r, b, "Undefined");
    case TV_NONE:
        return put_cstr(r, b, "None");
    case TV_BOOL:
        return put_cstr(r, b, v.u.b ? "True" : "False");
    case TV_INT:
        snprintf(text, sizeof text, "%lld", (long long)v.u.i);
        return put_cstr(r, b, text);
    case TV_FLOAT:
        return tr_put(r, b, (slice){text, tr_float_repr(v.u.f, text)});
    case TV_STR:
        return v.is_markup
                   ? tr_unsupported(r, "printing a list that holds a text from safe or escape "
                                       "is not supported")
                   : put_str_repr(r, b, v.u.s);
    default:
        break;
    }
    if (r->value_depth++ == TR_MAX_VALUE_DEPTH) {
        return tr_fail(r, "a value is nested more than %d levels deep", TR_MAX_VALUE_DEPTH);
    }
    TRY(put_container(r, b, v));
    r->value_depth--;
    return SMOE_OK;
}

smoe_status tr_put_str(tr *r, buf *b, tv v)
{
    if (tv_is_str(v)) {
        return tr_put(r, b, v.u.s);
    }
    return v.kind == TV_UNDEFINED ? SMOE_OK : put_repr(r, b, v);
}

smoe_status tr_put_repr(tr *r, buf *b, tv v)
{
    return put_repr(r, b, v);
}

smoe_status tr_str(tr *r, tv v, slice *out)
{
    if (tv_is_str(v)) {
        *out = v.u.s;
        return SMOE_OK;
    }
    buf b;
    tv text = {0};
    tr_text_begin(&b);
    TRY(tr_text_end(r, &b, tr_put_str(r, &b, v), &text));
    *out = text.u.s;
    return SMOE_OK;
}
