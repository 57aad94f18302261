/* template_methods.c: the methods of Python's str, list, tuple and dict that templates call.
 * Methods that change their object exist and are hidden, as in the immutable sandbox; methods that
 * Python has and we have not are refused by name when they are looked up. */
#include <stdio.h>

#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

typedef smoe_status method_fn(tr *r, tv self, const tr_args *args, tv *out);

static smoe_status need_str(tr *r, tv v, const char *what, slice *out)
{
    if (!tv_is_str(v)) {
        return v.kind == TV_UNDEFINED ? tr_undefined_error(r, v)
                                      : tr_fail(r, "%s must be str, not %s", what, tv_type_name(v));
    }
    *out = v.u.s;
    return SMOE_OK;
}

static smoe_status no_args(tr *r, const tr_args *args, const char *what)
{
    return tr_bind(r, args, what, NULL, 0, 0, NULL);
}

/* An optional integer argument that may also be None. */
static smoe_status opt_int(tr *r, tv v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (v.kind == TV_MISSING || v.kind == TV_NONE || tv_as_int(v, out)) {
        return SMOE_OK;
    }
    return v.kind == TV_UNDEFINED ? tr_undefined_error(r, v)
                                  : tr_fail(r, "an integer is required, not %s", tv_type_name(v));
}

static bool char_in(uint32_t c, const slice *chars)
{
    if (!chars) {
        return text_is_space(c);
    }
    size_t n;
    for (size_t at = 0; at < chars->len; at += n) {
        if (text_decode(*chars, at, &n) == c) {
            return true;
        }
    }
    return false;
}

slice tr_strip(slice s, const slice *chars, bool left, bool right)
{
    size_t n;
    while (left && s.len && char_in(text_decode(s, 0, &n), chars)) {
        s.data += n;
        s.len -= n;
    }
    while (right && s.len) {
        size_t i = s.len - 1;
        while (i && ((unsigned char)s.data[i] & 0xc0) == 0x80) {
            i--;
        }
        if (!char_in(text_decode(s, i, &n), chars)) {
            break;
        }
        s.len = i;
    }
    return s;
}

static smoe_status strip(tr *r, tv self, const tr_args *args, bool left, bool right, tv *out)
{
    tv arg = {0};
    slice chars = {0};
    TRY(tr_bind(r, args, "strip", NULL, 1, 0, &arg));
    bool has_chars = arg.kind != TV_MISSING && arg.kind != TV_NONE;
    TRY(has_chars ? need_str(r, arg, "the argument of strip", &chars) : SMOE_OK);
    TRY(tr_spend(r, self.u.s.len / 16 + chars.len));
    *out = tv_str(tr_strip(self.u.s, has_chars ? &chars : NULL, left, right));
    return SMOE_OK;
}

static smoe_status m_strip(tr *r, tv self, const tr_args *args, tv *out)
{
    return strip(r, self, args, true, true, out);
}

static smoe_status m_lstrip(tr *r, tv self, const tr_args *args, tv *out)
{
    return strip(r, self, args, true, false, out);
}

static smoe_status m_rstrip(tr *r, tv self, const tr_args *args, tv *out)
{
    return strip(r, self, args, false, true, out);
}

/* Python's s[start:end] for find, count, startswith: byte bounds; false when start is past end. */
static smoe_status window(tr *r, slice s, tv start_arg, tv end_arg, slice *out, size_t *offset,
                          bool *ok)
{
    *out = s;
    *offset = 0;
    *ok = true;
    if (start_arg.kind == TV_MISSING && end_arg.kind == TV_MISSING) {
        return SMOE_OK;
    }
    TRY(tr_spend(r, s.len / 16));
    int64_t n = (int64_t)text_n_chars(s), start = 0, end = n;
    TRY(opt_int(r, start_arg, 0, &start));
    TRY(opt_int(r, end_arg, n, &end));
    start = start < 0 ? (start < -n ? 0 : start + n) : start;
    end = end < 0 ? (end < -n ? 0 : end + n) : end > n ? n : end;
    *ok = start <= end;
    if (*ok) {
        *offset = (size_t)start;
        size_t from = text_offset(s, (size_t)start);
        *out = (slice){s.data + from, text_offset(s, (size_t)end) - from};
    }
    return SMOE_OK;
}

static smoe_status affix(tr *r, tv self, const tr_args *args, bool is_prefix, tv *out)
{
    const char *what = is_prefix ? "startswith" : "endswith";
    tv a[3] = {{0}};
    slice s = {0};
    size_t offset;
    bool ok, found = false;
    TRY(tr_bind(r, args, what, NULL, 3, 1, a));
    TRY(window(r, self.u.s, a[1], a[2], &s, &offset, &ok));
    size_t n = a[0].kind == TV_TUPLE ? a[0].u.list->n : 1;
    const tv *items = a[0].kind == TV_TUPLE ? a[0].u.list->items : a;
    for (size_t i = 0; i < n; i++) {
        slice part = {0};
        TRY(need_str(r, items[i], is_prefix ? "the prefix" : "the suffix", &part));
        TRY(tr_spend(r, part.len / 64));
        found = found || (ok && (is_prefix ? slice_starts(s, part) : slice_ends(s, part)));
    }
    *out = tv_bool(found);
    return SMOE_OK;
}

static smoe_status m_startswith(tr *r, tv self, const tr_args *args, tv *out)
{
    return affix(r, self, args, true, out);
}

static smoe_status m_endswith(tr *r, tv self, const tr_args *args, tv *out)
{
    return affix(r, self, args, false, out);
}

static size_t find_last(slice s, slice part)
{
    size_t found = SIZE_MAX;
    for (size_t at = s.len + 1; at-- > 0 && found == SIZE_MAX;) {
        if (slice_starts((slice){s.data + at, s.len - at}, part)) {
            found = at;
        }
    }
    return found;
}

static smoe_status find(tr *r, tv self, const tr_args *args, bool from_right, int64_t *out)
{
    tv a[3] = {{0}};
    slice s = {0}, part = {0};
    size_t offset;
    bool ok;
    TRY(tr_bind(r, args, "find", NULL, 3, 1, a));
    TRY(need_str(r, a[0], "the text to find", &part));
    TRY(window(r, self.u.s, a[1], a[2], &s, &offset, &ok));
    TRY(tr_spend(r, from_right ? s.len * (1 + part.len / 64) : s.len / 16));
    size_t at = !ok ? SIZE_MAX : from_right ? find_last(s, part) : text_find(s, part, 0);
    *out = at == SIZE_MAX ? -1 : (int64_t)(offset + text_n_chars((slice){s.data, at}));
    return SMOE_OK;
}

static smoe_status m_find(tr *r, tv self, const tr_args *args, tv *out)
{
    *out = tv_int(0);
    return find(r, self, args, false, &out->u.i);
}

static smoe_status m_rfind(tr *r, tv self, const tr_args *args, tv *out)
{
    *out = tv_int(0);
    return find(r, self, args, true, &out->u.i);
}

static smoe_status m_index(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(m_find(r, self, args, out));
    return out->u.i < 0 ? tr_fail(r, "substring not found") : SMOE_OK;
}

static smoe_status m_rindex(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(m_rfind(r, self, args, out));
    return out->u.i < 0 ? tr_fail(r, "substring not found") : SMOE_OK;
}

static smoe_status m_count(tr *r, tv self, const tr_args *args, tv *out)
{
    tv a[3] = {{0}};
    slice s = {0}, part = {0};
    size_t offset;
    bool ok;
    TRY(tr_bind(r, args, "count", NULL, 3, 1, a));
    TRY(need_str(r, a[0], "the text to count", &part));
    TRY(window(r, self.u.s, a[1], a[2], &s, &offset, &ok));
    TRY(tr_spend(r, s.len / 4));
    int64_t n = 0;
    if (ok && part.len == 0) {
        n = (int64_t)text_n_chars(s) + 1;
    }
    for (size_t at = 0; ok && part.len && (at = text_find(s, part, at)) != SIZE_MAX;
         at += part.len) {
        n++;
    }
    *out = tv_int(n);
    return SMOE_OK;
}

/* A list under construction. */
typedef struct parts {
    tv *items;
    size_t n, cap;
} parts;

static smoe_status add_part(tr *r, parts *p, slice s)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 8;
        tv *items = tr_alloc(r, cap, sizeof *items);
        if (!items) {
            return tr_no_memory(r);
        }
        if (p->n) {
            memcpy(items, p->items, p->n * sizeof *items);
        }
        p->items = items;
        p->cap = cap;
    }
    p->items[p->n++] = tv_str(s);
    return tr_spend(r, 1);
}

static smoe_status split_at(tr *r, slice s, slice sep, int64_t max, bool from_right, parts *p)
{
    if (sep.len == 0) {
        return tr_fail(r, "empty separator");
    }
    for (; max != 0; max -= max > 0) {
        size_t at = from_right ? find_last(s, sep) : text_find(s, sep, 0);
        if (at == SIZE_MAX) {
            break;
        }
        slice tail = {s.data + at + sep.len, s.len - at - sep.len};
        TRY(add_part(r, p, from_right ? tail : (slice){s.data, at}));
        s = from_right ? (slice){s.data, at} : tail;
    }
    return add_part(r, p, s);
}

static slice take_word(slice *s, bool from_right)
{
    slice word = {from_right ? s->data + s->len : s->data, 0};
    while (s->len) {
        size_t n, i = from_right ? s->len - 1 : 0;
        while (from_right && i && ((unsigned char)s->data[i] & 0xc0) == 0x80) {
            i--;
        }
        if (text_is_space(text_decode(*s, i, &n))) {
            break;
        }
        word.len += n;
        word.data -= from_right ? n : 0;
        s->data += from_right ? 0 : n;
        s->len -= n;
    }
    return word;
}

static smoe_status split_words(tr *r, slice s, int64_t max, bool from_right, parts *p)
{
    for (;; max -= max > 0) {
        s = from_right ? text_rstrip(s) : text_lstrip(s);
        if (s.len == 0) {
            return SMOE_OK;
        }
        if (max == 0) {
            return add_part(r, p, from_right ? text_lstrip(s) : s);
        }
        TRY(add_part(r, p, take_word(&s, from_right)));
    }
}

static smoe_status split(tr *r, tv self, const tr_args *args, bool from_right, tv *out)
{
    static const char *const names[] = {"sep", "maxsplit"};
    tv a[2] = {{0}};
    int64_t max = -1;
    parts p = {0};
    slice sep = {0};
    TRY(tr_bind(r, args, "split", names, 2, 0, a));
    TRY(opt_int(r, a[1], -1, &max));
    TRY(tr_spend(r, self.u.s.len / 8));
    if (a[0].kind == TV_MISSING || a[0].kind == TV_NONE) {
        TRY(split_words(r, self.u.s, max, from_right, &p));
    } else {
        TRY(need_str(r, a[0], "the separator", &sep));
        TRY(tr_spend(r, from_right ? self.u.s.len * (1 + sep.len / 64) : 0));
        TRY(split_at(r, self.u.s, sep, max, from_right, &p));
    }
    for (size_t i = 0; from_right && i < p.n / 2; i++) {
        tv swap = p.items[i];
        p.items[i] = p.items[p.n - 1 - i];
        p.items[p.n - 1 - i] = swap;
    }
    return tr_list_new(r, TV_LIST, p.items, p.n, out);
}

static smoe_status m_split(tr *r, tv self, const tr_args *args, tv *out)
{
    return split(r, self, args, false, out);
}

static smoe_status m_rsplit(tr *r, tv self, const tr_args *args, tv *out)
{
    return split(r, self, args, true, out);
}

/* The end of the line at `at`, and where the next one starts. */
static size_t line_end(slice s, size_t at, size_t *next)
{
    size_t n;
    for (; at < s.len; at += n) {
        if (text_is_line_end(text_decode(s, at, &n))) {
            bool is_pair = s.data[at] == '\r' && at + 1 < s.len && s.data[at + 1] == '\n';
            *next = at + n + is_pair;
            return at;
        }
    }
    *next = s.len;
    return s.len;
}

smoe_status tr_split_lines(tr *r, slice s, bool keep_ends, tv *out)
{
    parts p = {0};
    size_t next = 0;
    TRY(tr_spend(r, s.len / 8));
    for (size_t at = 0; at < s.len; at = next) {
        size_t end = line_end(s, at, &next);
        TRY(add_part(r, &p, (slice){s.data + at, (keep_ends ? next : end) - at}));
    }
    return tr_list_new(r, TV_LIST, p.items, p.n, out);
}

static smoe_status m_splitlines(tr *r, tv self, const tr_args *args, tv *out)
{
    static const char *const names[] = {"keepends"};
    tv keep = {0};
    TRY(tr_bind(r, args, "splitlines", names, 1, 0, &keep));
    return tr_split_lines(r, self.u.s, tv_truth(keep), out);
}

static smoe_status partition(tr *r, tv self, const tr_args *args, bool from_right, tv *out)
{
    tv arg = {0}, items[3];
    slice s = self.u.s, sep = {0};
    TRY(tr_bind(r, args, "partition", NULL, 1, 1, &arg));
    TRY(need_str(r, arg, "the separator", &sep));
    if (sep.len == 0) {
        return tr_fail(r, "empty separator");
    }
    TRY(tr_spend(r, s.len));
    size_t at = from_right ? find_last(s, sep) : text_find(s, sep, 0);
    if (at == SIZE_MAX) {
        items[0] = items[1] = items[2] = tv_str(slice_from(""));
        items[from_right ? 2 : 0] = self;
    } else {
        items[0] = tv_str((slice){s.data, at});
        items[1] = tv_str((slice){s.data + at, sep.len});
        items[2] = tv_str((slice){s.data + at + sep.len, s.len - at - sep.len});
    }
    return tr_list_new(r, TV_TUPLE, items, 3, out);
}

static smoe_status m_partition(tr *r, tv self, const tr_args *args, tv *out)
{
    return partition(r, self, args, false, out);
}

static smoe_status m_rpartition(tr *r, tv self, const tr_args *args, tv *out)
{
    return partition(r, self, args, true, out);
}

static smoe_status put_replaced(tr *r, buf *b, slice s, slice from, slice to, int64_t max)
{
    size_t n = 0;
    if (from.len == 0) { /* before every character, and at the end */
        for (size_t at = 0; at < s.len && max != 0; at += n, max -= max > 0) {
            text_decode(s, at, &n);
            TRY(tr_put(r, b, to));
            TRY(tr_put(r, b, (slice){s.data + at, n}));
            if (at + n == s.len && max != 1) {
                return tr_put(r, b, to);
            }
            if (max == 1) {
                return tr_put(r, b, (slice){s.data + at + n, s.len - at - n});
            }
        }
        TRY(s.len == 0 && max != 0 ? tr_put(r, b, to) : SMOE_OK);
        return max == 0 ? tr_put(r, b, s) : SMOE_OK;
    }
    for (size_t at; max != 0 && (at = text_find(s, from, 0)) != SIZE_MAX; max -= max > 0) {
        TRY(tr_put(r, b, (slice){s.data, at}));
        TRY(tr_put(r, b, to));
        s = (slice){s.data + at + from.len, s.len - at - from.len};
    }
    return tr_put(r, b, s);
}

smoe_status tr_replace(tr *r, slice s, slice from, slice to, int64_t max, tv *out)
{
    buf b;
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_replaced(r, &b, s, from, to, max), out);
}

static smoe_status m_replace(tr *r, tv self, const tr_args *args, tv *out)
{
    tv a[3] = {{0}};
    slice from = {0}, to = {0};
    int64_t max = -1;
    TRY(tr_bind(r, args, "replace", NULL, 3, 2, a));
    TRY(need_str(r, a[0], "the text to replace", &from));
    TRY(need_str(r, a[1], "the replacement", &to));
    TRY(opt_int(r, a[2], -1, &max));
    return tr_replace(r, self.u.s, from, to, max, out);
}

static smoe_status m_removeprefix(tr *r, tv self, const tr_args *args, tv *out)
{
    tv arg = {0};
    slice part = {0}, s = self.u.s;
    TRY(tr_bind(r, args, "removeprefix", NULL, 1, 1, &arg));
    TRY(need_str(r, arg, "the prefix", &part));
    bool has = slice_starts(s, part);
    *out = has ? tv_str((slice){s.data + part.len, s.len - part.len}) : self;
    return SMOE_OK;
}

static smoe_status m_removesuffix(tr *r, tv self, const tr_args *args, tv *out)
{
    tv arg = {0};
    slice part = {0}, s = self.u.s;
    TRY(tr_bind(r, args, "removesuffix", NULL, 1, 1, &arg));
    TRY(need_str(r, arg, "the suffix", &part));
    *out = slice_ends(s, part) ? tv_str((slice){s.data, s.len - part.len}) : self;
    return SMOE_OK;
}

static smoe_status m_upper(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(no_args(r, args, "upper"));
    return tr_upper(r, self.u.s, out);
}

static smoe_status m_lower(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(no_args(r, args, "lower"));
    return tr_lower(r, self.u.s, out);
}

static smoe_status m_capitalize(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(no_args(r, args, "capitalize"));
    return tr_capitalize(r, self.u.s, out);
}

static smoe_status m_title(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(no_args(r, args, "title"));
    return tr_title(r, self.u.s, out);
}

static smoe_status m_swapcase(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(no_args(r, args, "swapcase"));
    return tr_swapcase(r, self.u.s, out);
}

static smoe_status put_joined(tr *r, buf *b, slice sep, const tv_iter *it)
{
    for (size_t i = it->at; i < it->n; i++) {
        slice s = {0};
        TRY(need_str(r, it->items[i], "every item of join", &s));
        TRY(i > it->at ? tr_put(r, b, sep) : SMOE_OK);
        TRY(tr_put(r, b, s));
    }
    return SMOE_OK;
}

static smoe_status m_join(tr *r, tv self, const tr_args *args, tv *out)
{
    tv arg = {0};
    tv_iter *it = NULL;
    buf b;
    TRY(tr_bind(r, args, "join", NULL, 1, 1, &arg));
    TRY(tr_iter(r, arg, &it));
    tr_text_begin(&b);
    TRY(tr_text_end(r, &b, put_joined(r, &b, self.u.s, it), out));
    it->at = it->n;
    return SMOE_OK;
}

static smoe_status m_format(tr *r, tv self, const tr_args *args, tv *out)
{
    return tr_brace_format(r, self.u.s, args, out);
}

static bool is_alnum(uint32_t c)
{
    return text_is_alpha(c) || text_is_decimal(c) || text_is_digit(c) || text_is_numeric(c);
}

static bool is_ascii(uint32_t c)
{
    return c < 0x80;
}

static smoe_status all_chars(tr *r, tv self, const tr_args *args, bool (*is)(uint32_t c), tv *out)
{
    slice s = self.u.s;
    bool all = s.len > 0;
    size_t n;
    TRY(no_args(r, args, "is..."));
    TRY(tr_spend(r, s.len / 16));
    for (size_t at = 0; at < s.len && all; at += n) {
        all = is(text_decode(s, at, &n));
    }
    *out = tv_bool(all);
    return SMOE_OK;
}

static smoe_status m_isdigit(tr *r, tv self, const tr_args *args, tv *out)
{
    return all_chars(r, self, args, text_is_digit, out);
}

static smoe_status m_isdecimal(tr *r, tv self, const tr_args *args, tv *out)
{
    return all_chars(r, self, args, text_is_decimal, out);
}

static smoe_status m_isnumeric(tr *r, tv self, const tr_args *args, tv *out)
{
    return all_chars(r, self, args, text_is_numeric, out);
}

static smoe_status m_isascii(tr *r, tv self, const tr_args *args, tv *out)
{
    TRY(all_chars(r, self, args, is_ascii, out));
    out->u.b = out->u.b || self.u.s.len == 0;
    return SMOE_OK;
}

static smoe_status m_isalpha(tr *r, tv self, const tr_args *args, tv *out)
{
    return all_chars(r, self, args, text_is_alpha, out);
}

static smoe_status m_isalnum(tr *r, tv self, const tr_args *args, tv *out)
{
    return all_chars(r, self, args, is_alnum, out);
}

static smoe_status m_isspace(tr *r, tv self, const tr_args *args, tv *out)
{
    return all_chars(r, self, args, text_is_space, out);
}

static smoe_status m_isupper(tr *r, tv self, const tr_args *args, tv *out)
{
    *out = tv_bool(tr_is_case(self.u.s, true));
    return no_args(r, args, "isupper");
}

static smoe_status m_islower(tr *r, tv self, const tr_args *args, tv *out)
{
    *out = tv_bool(tr_is_case(self.u.s, false));
    return no_args(r, args, "islower");
}

static smoe_status put_justified(tr *r, buf *b, slice s, int64_t left, int64_t right, slice fill)
{
    for (; left > 0; left--) {
        TRY(tr_put(r, b, fill));
    }
    TRY(tr_put(r, b, s));
    for (; right > 0; right--) {
        TRY(tr_put(r, b, fill));
    }
    return SMOE_OK;
}

/* side: -1 ljust, 1 rjust, 0 center. */
static smoe_status justify(tr *r, tv self, const tr_args *args, int side, tv *out)
{
    tv a[2] = {{0}};
    int64_t width = 0;
    slice fill = slice_from(" ");
    buf b;
    TRY(tr_bind(r, args, "justify", NULL, 2, 1, a));
    TRY(opt_int(r, a[0], 0, &width));
    TRY(a[1].kind == TV_MISSING ? SMOE_OK : need_str(r, a[1], "the fill character", &fill));
    if (text_n_chars(fill) != 1) {
        return tr_fail(r, "the fill character must be exactly one character long");
    }
    int64_t n = (int64_t)text_n_chars(self.u.s), room = width > n ? width - n : 0;
    int64_t left = side < 0 ? 0 : side > 0 ? room : room / 2 + (room & width & 1);
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_justified(r, &b, self.u.s, left, room - left, fill), out);
}

static smoe_status m_zfill(tr *r, tv self, const tr_args *args, tv *out)
{
    tv arg = {0};
    int64_t width = 0, n = (int64_t)text_n_chars(self.u.s);
    slice s = self.u.s, sign = {s.data, s.len && (s.data[0] == '-' || s.data[0] == '+')};
    buf b;
    TRY(tr_bind(r, args, "zfill", NULL, 1, 1, &arg));
    TRY(opt_int(r, arg, 0, &width));
    tr_text_begin(&b);
    smoe_status status = tr_put(r, &b, sign);
    for (; n < width && status == SMOE_OK; n++) {
        status = tr_put_char(r, &b, '0');
    }
    status = status ? status : tr_put(r, &b, (slice){s.data + sign.len, s.len - sign.len});
    return tr_text_end(r, &b, status, out);
}

static smoe_status m_ljust(tr *r, tv self, const tr_args *args, tv *out)
{
    return justify(r, self, args, -1, out);
}

static smoe_status m_rjust(tr *r, tv self, const tr_args *args, tv *out)
{
    return justify(r, self, args, 1, out);
}

static smoe_status m_center(tr *r, tv self, const tr_args *args, tv *out)
{
    return justify(r, self, args, 0, out);
}

static smoe_status m_list_index(tr *r, tv self, const tr_args *args, tv *out)
{
    tv arg = {0};
    TRY(tr_bind(r, args, "index", NULL, 1, 1, &arg));
    for (size_t i = 0; i < self.u.list->n; i++) {
        bool equal = false;
        TRY(tr_equal(r, self.u.list->items[i], arg, &equal));
        if (equal) {
            *out = tv_int((int64_t)i);
            return SMOE_OK;
        }
    }
    return tr_fail(r, "the value is not in the %s", tv_type_name(self));
}

static smoe_status m_list_count(tr *r, tv self, const tr_args *args, tv *out)
{
    tv arg = {0};
    TRY(tr_bind(r, args, "count", NULL, 1, 1, &arg));
    *out = tv_int(0);
    for (size_t i = 0; i < self.u.list->n; i++) {
        bool equal = false;
        TRY(tr_equal(r, self.u.list->items[i], arg, &equal));
        out->u.i += equal;
    }
    return SMOE_OK;
}

static smoe_status m_copy(tr *r, tv self, const tr_args *args, tv *out)
{
    *out = self; /* nothing in a template can change it */
    return no_args(r, args, "copy");
}

static smoe_status m_get(tr *r, tv self, const tr_args *args, tv *out)
{
    tv a[2] = {{0}};
    TRY(tr_bind(r, args, "get", NULL, 2, 1, a));
    TRY(tr_dict_get(r, self.u.dict, a[0], out));
    if (out->kind == TV_MISSING) {
        *out = a[1].kind == TV_MISSING ? tv_none() : a[1];
    }
    return SMOE_OK;
}

static smoe_status view(tr *r, tv self, const tr_args *args, enum tv_view_kind what, tv *out)
{
    TRY(no_args(r, args, "keys, values or items"));
    tv_view *v = tr_alloc(r, 1, sizeof *v);
    if (!v) {
        return tr_no_memory(r);
    }
    *v = (tv_view){self.u.dict, what};
    *out = (tv){.kind = TV_VIEW, .u.view = v};
    return SMOE_OK;
}

static smoe_status m_keys(tr *r, tv self, const tr_args *args, tv *out)
{
    return view(r, self, args, TV_KEYS, out);
}

static smoe_status m_values(tr *r, tv self, const tr_args *args, tv *out)
{
    return view(r, self, args, TV_VALUES, out);
}

static smoe_status m_items(tr *r, tv self, const tr_args *args, tv *out)
{
    return view(r, self, args, TV_ITEMS, out);
}

static smoe_status m_cycler_next(tr *r, tv self, const tr_args *args, tv *out)
{
    tv_cycler *c = self.u.cycler;
    *out = c->items[c->at];
    c->at = (c->at + 1) % c->n;
    return no_args(r, args, "next");
}

static smoe_status m_cycler_reset(tr *r, tv self, const tr_args *args, tv *out)
{
    self.u.cycler->at = 0;
    *out = tv_none();
    return no_args(r, args, "reset");
}

/* In Python and refused here (fn NULL), or hidden by the sandbox (is_mutator), or run. */
static const struct {
    uint8_t kind;
    bool is_mutator;
    const char *name;
    method_fn *fn;
} methods[] = {
#define STR(name)                                                                                  \
    {                                                                                              \
        TV_STR, false, #name, m_##name                                                             \
    }
    STR(strip),
    STR(lstrip),
    STR(rstrip),
    STR(startswith),
    STR(endswith),
    STR(find),
    STR(rfind),
    STR(index),
    STR(rindex),
    STR(count),
    STR(split),
    STR(rsplit),
    STR(splitlines),
    STR(partition),
    STR(rpartition),
    STR(replace),
    STR(removeprefix),
    STR(removesuffix),
    STR(upper),
    STR(lower),
    STR(capitalize),
    STR(title),
    STR(swapcase),
    STR(join),
    STR(format),
    STR(isdigit),
    STR(isalpha),
    STR(isalnum),
    STR(isspace),
    STR(isupper),
    STR(islower),
    STR(ljust),
    STR(rjust),
    STR(center),
    STR(isdecimal),
    STR(isnumeric),
    STR(isascii),
    STR(zfill),
#undef STR
#define NOT(name)                                                                                  \
    {                                                                                              \
        TV_STR, false, #name, NULL                                                                 \
    }
    NOT(casefold),
    NOT(encode),
    NOT(expandtabs),
    NOT(format_map),
    NOT(isidentifier),
    NOT(isprintable),
    NOT(istitle),
    NOT(maketrans),
    NOT(translate),
#undef NOT
    {TV_LIST, false, "index", m_list_index},
    {TV_LIST, false, "count", m_list_count},
    {TV_LIST, false, "copy", m_copy},
    {TV_LIST, true, "append", NULL},
    {TV_LIST, true, "clear", NULL},
    {TV_LIST, true, "pop", NULL},
    {TV_LIST, true, "reverse", NULL},
    {TV_LIST, true, "insert", NULL},
    {TV_LIST, true, "sort", NULL},
    {TV_LIST, true, "extend", NULL},
    {TV_LIST, true, "remove", NULL},
    {TV_TUPLE, false, "index", m_list_index},
    {TV_TUPLE, false, "count", m_list_count},
    {TV_DICT, false, "get", m_get},
    {TV_DICT, false, "keys", m_keys},
    {TV_DICT, false, "values", m_values},
    {TV_DICT, false, "items", m_items},
    {TV_DICT, false, "copy", m_copy},
    {TV_DICT, false, "fromkeys", NULL},
    {TV_DICT, true, "clear", NULL},
    {TV_DICT, true, "pop", NULL},
    {TV_DICT, true, "popitem", NULL},
    {TV_DICT, true, "setdefault", NULL},
    {TV_DICT, true, "update", NULL},
    {TV_LOOP, false, "cycle", tr_loop_cycle},
    {TV_LOOP, false, "changed", tr_loop_changed},
    {TV_CYCLER, false, "next", m_cycler_next},
    {TV_CYCLER, false, "reset", m_cycler_reset},
    {TV_INT, false, "real", NULL},
    {TV_INT, false, "imag", NULL},
    {TV_INT, false, "numerator", NULL},
    {TV_INT, false, "denominator", NULL},
    {TV_INT, false, "bit_length", NULL},
    {TV_INT, false, "bit_count", NULL},
    {TV_INT, false, "conjugate", NULL},
    {TV_INT, false, "to_bytes", NULL},
    {TV_FLOAT, false, "real", NULL},
    {TV_FLOAT, false, "imag", NULL},
    {TV_FLOAT, false, "is_integer", NULL},
    {TV_FLOAT, false, "hex", NULL},
    {TV_FLOAT, false, "as_integer_ratio", NULL},
    {TV_RANGE, false, "start", NULL},
    {TV_RANGE, false, "stop", NULL},
    {TV_RANGE, false, "step", NULL},
    {TV_RANGE, false, "index", NULL},
    {TV_RANGE, false, "count", NULL},
    {TV_VIEW, false, "isdisjoint", NULL},
    {TV_VIEW, false, "mapping", NULL},
};

int template_method_find(tv self, slice name, bool *is_mutator)
{
    uint8_t kind = self.kind == TV_BOOL ? TV_INT : self.kind;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (methods[i].kind == kind && slice_is(name, methods[i].name)) {
            *is_mutator = methods[i].is_mutator;
            return (int)i;
        }
    }
    return -1;
}

smoe_status tr_call_method(tr *r, const tv_method *m, const tr_args *args, tv *out)
{
    if (!methods[m->id].fn) {
        return tr_unsupported(r, "the method \"%s\" of %s is not supported", methods[m->id].name,
                              tv_type_name(m->self));
    }
    return methods[m->id].fn(r, m->self, args, out);
}
