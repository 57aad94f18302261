/* template_format.c: "..." % args and "...".format(args), as far as templates use them: flags,
 * width and precision of % with s r d i u x X o f F e E g G c; names and positions of {} without a
 * format specification. Everything else is refused by name. */
#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

typedef struct percent {
    tr *r;
    buf *b;
    slice format;
    size_t at;
    tv args;
    size_t n_used;
} percent;

static smoe_status next_arg(percent *p, tv *out)
{
    if (p->args.kind != TV_TUPLE) {
        if (p->n_used++) {
            return tr_fail(p->r, "not enough arguments for format string");
        }
        *out = p->args;
        return SMOE_OK;
    }
    if (p->n_used == p->args.u.list->n) {
        return tr_fail(p->r, "not enough arguments for format string");
    }
    *out = p->args.u.list->items[p->n_used++];
    return SMOE_OK;
}

/* "(name)": the argument is an item of a mapping. */
static smoe_status named_arg(percent *p, tv *out)
{
    size_t close = text_find(p->format, slice_from(")"), p->at);
    if (close == SIZE_MAX || p->args.kind != TV_DICT) {
        return tr_fail(p->r, p->args.kind == TV_DICT ? "incomplete format key"
                                                     : "format requires a mapping");
    }
    slice name = {p->format.data + p->at + 1, close - p->at - 1};
    TRY(tr_dict_get(p->r, p->args.u.dict, tv_str(name), out));
    p->at = close + 1;
    return out->kind == TV_MISSING
               ? tr_fail(p->r, "the format string names a key that is not there")
               : SMOE_OK;
}

static smoe_status put_padded(percent *p, slice s, bool left, size_t width, size_t n_chars)
{
    TRY(left ? tr_put(p->r, p->b, s) : SMOE_OK);
    for (; n_chars < width; n_chars++) {
        TRY(tr_put_char(p->r, p->b, ' '));
    }
    return left ? SMOE_OK : tr_put(p->r, p->b, s);
}

static smoe_status put_number(percent *p, tv v, const char *flags, int width, int precision,
                              char type)
{
    char spec[32], text[512];
    int64_t i = 0;
    double f = 0;
    bool is_int = strchr("diuxXo", type) != NULL;
    if (!tv_as_number(v, &f)) {
        return v.kind == TV_UNDEFINED ? tr_undefined_error(p->r, v)
                                      : tr_fail(p->r, "%%%c format: a number is required, not %s",
                                                type, tv_type_name(v));
    }
    if (is_int && !tv_as_int(v, &i)) {
        if (strchr("xXo", type) || f >= 0x1p63 || f < -0x1p63 || f != f) {
            return tr_fail(p->r, "%%%c format: an integer is required, not %s", type,
                           tv_type_name(v));
        }
        i = (int64_t)f;
    }
    if (width > 256 || precision > 100) {
        return tr_unsupported(p->r, "a %%%c format this wide is not supported", type);
    }
    int len;
    if (is_int) {
        if (strchr("xXo", type) && (i < 0 || strchr(flags, '#'))) {
            return tr_unsupported(p->r, "%%%c of a negative number or with # is not supported",
                                  type);
        }
        snprintf(spec, sizeof spec, precision < 0 ? "%%%s*ll%c" : "%%%s*.*ll%c", flags,
                 type == 'u' ? 'd' : type);
        len = precision < 0 ? snprintf(text, sizeof text, spec, width, (long long)i)
                            : snprintf(text, sizeof text, spec, width, precision, (long long)i);
    } else {
        snprintf(spec, sizeof spec, "%%%s*.*%c", flags, type);
        len = snprintf(text, sizeof text, spec, width, precision < 0 ? 6 : precision, f);
    }
    if (len < 0 || (size_t)len >= sizeof text) {
        return tr_unsupported(p->r, "a number this long cannot be formatted");
    }
    return tr_put(p->r, p->b, (slice){text, (size_t)len});
}

/* One conversion; at is after the percent sign. */
static smoe_status put_conversion(percent *p)
{
    char flags[8] = "";
    size_t n_flags = 0;
    int numbers[2] = {0, -1}; /* width, precision */
    tv v = {0};
    bool is_named = p->at < p->format.len && p->format.data[p->at] == '(';
    TRY(is_named ? named_arg(p, &v) : SMOE_OK);
    while (p->at < p->format.len && strchr("-+ #0", p->format.data[p->at]) && n_flags < 7) {
        flags[n_flags++] = p->format.data[p->at++];
    }
    for (int i = 0; i < 2; i++) {
        if (i == 1) {
            if (p->at == p->format.len || p->format.data[p->at] != '.') {
                break;
            }
            p->at++;
            numbers[1] = 0;
        }
        while (p->at < p->format.len && p->format.data[p->at] >= '0' &&
               p->format.data[p->at] <= '9') {
            numbers[i] = numbers[i] > 100000 ? numbers[i]
                                             : numbers[i] * 10 + p->format.data[p->at] - '0';
            p->at++;
        }
    }
    if (p->at == p->format.len) {
        return tr_fail(p->r, "incomplete format");
    }
    char type = p->format.data[p->at++];
    if (type == '%') {
        return tr_put_char(p->r, p->b, '%');
    }
    TRY(is_named ? SMOE_OK : next_arg(p, &v));
    if (type != 's' && type != 'r') {
        return strchr("diuxXofFeEgG", type)
                   ? put_number(p, v, flags, numbers[0], numbers[1], type)
                   : tr_unsupported(p->r, "the format character '%c' is not supported", type);
    }
    slice s = {0};
    tv text = {0};
    buf b;
    tr_text_begin(&b);
    TRY(tr_text_end(p->r, &b, type == 's' ? tr_put_str(p->r, &b, v) : tr_put_repr(p->r, &b, v),
                    &text));
    s = text.u.s;
    if (numbers[1] >= 0) {
        s.len = text_offset(s, (size_t)numbers[1]);
    }
    return put_padded(p, s, strchr(flags, '-') != NULL, (size_t)numbers[0], text_n_chars(s));
}

static smoe_status put_percent(percent *p)
{
    while (p->at < p->format.len) {
        size_t next = text_find(p->format, slice_from("%"), p->at);
        next = next == SIZE_MAX ? p->format.len : next;
        TRY(tr_put(p->r, p->b, (slice){p->format.data + p->at, next - p->at}));
        p->at = next;
        if (next < p->format.len) {
            p->at++;
            TRY(put_conversion(p));
        }
    }
    /* What can be subscripted may hold values that are not asked for. */
    bool is_mapping = p->args.kind == TV_DICT || p->args.kind == TV_LIST ||
                      p->args.kind == TV_RANGE || p->args.kind == TV_UNDEFINED;
    bool all_used = p->args.kind == TV_TUPLE ? p->n_used == p->args.u.list->n
                                             : p->n_used > 0 || is_mapping;
    return all_used ? SMOE_OK
                    : tr_fail(p->r, "not all arguments converted during string formatting");
}

smoe_status tr_percent_format(tr *r, slice format, tv args, tv *out)
{
    buf b;
    tr_text_begin(&b);
    percent p = {.r = r, .b = &b, .format = format, .args = args};
    return tr_text_end(r, &b, put_percent(&p), out);
}

/* The field between braces: "", "0", "name", "name.attribute", "name[key]". */
static smoe_status brace_field(tr *r, slice field, const tr_args *args, size_t n_used[2], tv *out)
{
    size_t end = 0;
    while (end < field.len && field.data[end] != '.' && field.data[end] != '[') {
        if (field.data[end] == ':' || field.data[end] == '!') {
            return tr_unsupported(r, "format specifications in {} are not supported");
        }
        end++;
    }
    slice first = {field.data, end};
    bool is_number = true;
    for (size_t k = 0; k < first.len; k++) {
        is_number = is_number && first.data[k] >= '0' && first.data[k] <= '9';
    }
    *out = (tv){0};
    if (is_number) {
        size_t i = first.len ? 0 : n_used[0];
        for (size_t k = 0; k < first.len && i <= args->n_pos; k++) {
            i = i * 10 + (size_t)(first.data[k] - '0');
        }
        n_used[first.len != 0]++;
        if (n_used[0] && n_used[1]) {
            return tr_fail(r, "a format string cannot mix automatic and manual numbering");
        }
        if (i < args->n_pos) {
            *out = args->pos[i];
        }
    }
    for (size_t i = 0; i < args->n_kw && !is_number; i++) {
        if (slice_eq(args->kw[i].key.u.s, first)) {
            *out = args->kw[i].value;
        }
    }
    if (out->kind == TV_MISSING) {
        return tr_fail(r, "the format string names an argument that was not given");
    }
    while (end < field.len && field.data[end] == '.') {
        size_t begin = ++end;
        while (end < field.len && !strchr(".[:!", field.data[end])) {
            end++;
        }
        TRY(tr_attribute(r, *out, (slice){field.data + begin, end - begin}, out));
    }
    return end == field.len ? SMOE_OK
                            : tr_unsupported(r, "this field of a format string is not supported");
}

static smoe_status put_brace(tr *r, buf *b, slice format, const tr_args *args)
{
    size_t n_used[2] = {0, 0}; /* fields without and with a number */
    for (size_t at = 0; at < format.len; at++) {
        char c = format.data[at];
        if (c != '{' && c != '}') {
            TRY(tr_put(r, b, (slice){format.data + at, 1}));
        } else if (at + 1 < format.len && format.data[at + 1] == c) {
            TRY(tr_put_char(r, b, (uint32_t)c));
            at++;
        } else {
            size_t close = c == '{' ? text_find(format, slice_from("}"), at) : SIZE_MAX;
            if (close == SIZE_MAX) {
                return tr_fail(r, "single '%c' in a format string", c);
            }
            tv v = {0};
            TRY(brace_field(r, (slice){format.data + at + 1, close - at - 1}, args, n_used, &v));
            TRY(tr_put_str(r, b, v));
            at = close;
        }
    }
    return SMOE_OK;
}

smoe_status tr_brace_format(tr *r, slice format, const tr_args *args, tv *out)
{
    buf b;
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_brace(r, &b, format, args), out);
}
