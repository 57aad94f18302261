/* template_json.c: json.dumps as transformers calls it for the filter tojson. */
#include <stdio.h>

#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

static smoe_status put_cstr(tr *r, buf *b, const char *s)
{
    return tr_put(r, b, slice_from(s));
}

static smoe_status put_json_char(tr *r, buf *b, uint32_t c, slice as_is, bool ascii)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    char text[16];
    const char *known = c && c < 0x80 ? strchr(from, (int)c) : NULL;
    if (known) {
        snprintf(text, sizeof text, "\\%c", to[known - from]);
    } else if (c < 0x20 || (ascii && c > 0x7e && c < 0x10000)) {
        snprintf(text, sizeof text, "\\u%04x", c);
    } else if (ascii && c >= 0x10000) {
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
    } else {
        return tr_put(r, b, as_is);
    }
    return put_cstr(r, b, text);
}

static smoe_status put_json_str(tr *r, buf *b, slice s, bool ascii)
{
    TRY(put_cstr(r, b, "\""));
    size_t n;
    for (size_t at = 0; at < s.len; at += n) {
        size_t plain = at; /* a run that stands for itself */
        while (plain < s.len && (unsigned char)s.data[plain] >= 0x20 && s.data[plain] != '"' &&
               s.data[plain] != '\\' && (!ascii || (unsigned char)s.data[plain] < 0x7f)) {
            plain++;
        }
        if (plain > at) {
            n = plain - at;
            TRY(tr_put(r, b, (slice){s.data + at, n}));
            continue;
        }
        uint32_t c = text_decode(s, at, &n);
        TRY(put_json_char(r, b, c, (slice){s.data + at, n}, ascii));
    }
    return put_cstr(r, b, "\"");
}

static smoe_status put_json_float(tr *r, buf *b, double f)
{
    char text[32];
    size_t n = tr_float_repr(f, text);
    slice s = {text, n};
    s = slice_is(s, "nan")    ? slice_from("NaN")
        : slice_is(s, "inf")  ? slice_from("Infinity")
        : slice_is(s, "-inf") ? slice_from("-Infinity")
                              : s;
    return tr_put(r, b, s);
}

/* None, booleans and numbers, the same as values and as keys. */
static smoe_status put_json_scalar(tr *r, buf *b, tv v)
{
    char text[32];
    switch (v.kind) {
    case TV_NONE:
        return put_cstr(r, b, "null");
    case TV_BOOL:
        return put_cstr(r, b, v.u.b ? "true" : "false");
    case TV_INT:
        snprintf(text, sizeof text, "%lld", (long long)v.u.i);
        return put_cstr(r, b, text);
    default:
        return put_json_float(r, b, v.u.f);
    }
}

static smoe_status put_json(tr *r, buf *b, tv v, const tr_json_style *style, size_t level);

static smoe_status put_line(tr *r, buf *b, const tr_json_style *style, size_t level)
{
    if (style->indent) {
        TRY(put_cstr(r, b, "\n"));
        for (size_t i = 0; i < level; i++) {
            TRY(tr_put(r, b, *style->indent));
        }
    }
    return SMOE_OK;
}

static smoe_status put_json_key(tr *r, buf *b, tv key, const tr_json_style *style)
{
    if (tv_is_str(key)) {
        return put_json_str(r, b, key.u.s, style->ascii);
    }
    if (key.kind < TV_NONE || key.kind > TV_FLOAT) {
        return tr_fail(r, "keys of JSON must be str, int, float, bool or None, not %s",
                       tv_type_name(key));
    }
    TRY(put_cstr(r, b, "\""));
    TRY(put_json_scalar(r, b, key));
    return put_cstr(r, b, "\"");
}

static smoe_status put_json_dict(tr *r, buf *b, const tv_dict *d, const tr_json_style *style,
                                 size_t level)
{
    tv *keys = tr_alloc(r, d->n, sizeof *keys), *values = tr_alloc(r, d->n, sizeof *values);
    if (!keys || !values) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < d->n; i++) {
        keys[i] = d->items[i].key;
        values[i] = d->items[i].value;
    }
    if (style->sort_keys) {
        TRY(tr_sort(r, keys, values, d->n, false));
    }
    TRY(put_cstr(r, b, "{"));
    for (size_t i = 0; i < d->n; i++) {
        TRY(i ? tr_put(r, b, style->item_separator) : SMOE_OK);
        TRY(put_line(r, b, style, level + 1));
        TRY(put_json_key(r, b, keys[i], style));
        TRY(tr_put(r, b, style->key_separator));
        TRY(put_json(r, b, values[i], style, level + 1));
    }
    TRY(d->n ? put_line(r, b, style, level) : SMOE_OK);
    return put_cstr(r, b, "}");
}

static smoe_status put_json_list(tr *r, buf *b, const tv_list *l, const tr_json_style *style,
                                 size_t level)
{
    TRY(put_cstr(r, b, "["));
    for (size_t i = 0; i < l->n; i++) {
        TRY(i ? tr_put(r, b, style->item_separator) : SMOE_OK);
        TRY(put_line(r, b, style, level + 1));
        TRY(put_json(r, b, l->items[i], style, level + 1));
    }
    TRY(l->n ? put_line(r, b, style, level) : SMOE_OK);
    return put_cstr(r, b, "]");
}

static smoe_status put_json(tr *r, buf *b, tv v, const tr_json_style *style, size_t level)
{
    TRY(tr_spend(r, 1));
    if (level > TR_MAX_VALUE_DEPTH) {
        return tr_fail(r, "a value is nested more than %d levels deep", TR_MAX_VALUE_DEPTH);
    }
    switch (v.kind) {
    case TV_NONE:
    case TV_BOOL:
    case TV_INT:
    case TV_FLOAT:
        return put_json_scalar(r, b, v);
    case TV_STR:
        return put_json_str(r, b, v.u.s, style->ascii);
    case TV_LIST:
    case TV_TUPLE:
        return put_json_list(r, b, v.u.list, style, level);
    case TV_DICT:
        return put_json_dict(r, b, v.u.dict, style, level);
    default:
        return tr_fail(r, "an object of type %s is not JSON serializable", tv_type_name(v));
    }
}

smoe_status tr_put_json(tr *r, buf *b, tv v, const tr_json_style *style)
{
    return put_json(r, b, v, style, 0);
}
