/* template_filters.c: Jinja's filters. Arguments have Jinja's names and defaults. Filters that are
 * generators in Jinja (map, select, unique, items, batch ...) give an iterator here too: always
 * true, without a length, used up by the first loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/template_builtins.h"
#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

typedef smoe_status filter_fn(tr *r, tv in, const tr_args *args, tv *out);

#define BIND(what, n_required, ...)                                                                \
    static const char *const names[] = {__VA_ARGS__};                                              \
    tv a[sizeof names / sizeof names[0]] = {{0}};                                                  \
    TRY(tr_bind(r, args, what, names, sizeof names / sizeof names[0], n_required, a))

static smoe_status no_args(tr *r, const tr_args *args, const char *what)
{
    return tr_bind(r, args, what, NULL, 0, 0, NULL);
}

static bool given(tv v)
{
    return v.kind != TV_MISSING && v.kind != TV_NONE;
}

static smoe_status int_arg(tr *r, tv v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (v.kind == TV_MISSING || tv_as_int(v, out)) {
        return SMOE_OK;
    }
    return v.kind == TV_UNDEFINED ? tr_undefined_error(r, v)
                                  : tr_fail(r, "an integer is required, not %s", tv_type_name(v));
}

/* The items of v as an array; consumes an iterator. */
static smoe_status all_items(tr *r, tv v, const tv **items, size_t *n)
{
    tv_iter *it = NULL;
    TRY(tr_iter(r, v, &it));
    *items = it->n ? it->items + it->at : it->items; /* no items may be no array */
    *n = it->n - it->at;
    it->at = it->n;
    return tr_spend(r, *n);
}

/* Jinja's attribute paths: "a.b.0"; an int is one step; none gives the item itself. */
static smoe_status get_path(tr *r, tv item, tv path, tv fallback, tv *out)
{
    *out = item;
    if (!given(path)) {
        return SMOE_OK;
    }
    if (!tv_is_str(path)) {
        TRY(tr_item(r, item, path, out));
        *out = fallback.kind != TV_MISSING && out->kind == TV_UNDEFINED ? fallback : *out;
        return SMOE_OK;
    }
    slice rest = path.u.s;
    for (bool last = false; !last;) {
        size_t dot = text_find(rest, slice_from("."), 0);
        last = dot == SIZE_MAX;
        slice part = {rest.data, last ? rest.len : dot};
        rest = last ? rest : (slice){rest.data + dot + 1, rest.len - dot - 1};
        bool is_number = part.len > 0 && part.len < 10;
        int64_t number = 0;
        for (size_t i = 0; i < part.len && is_number; i++) {
            is_number = part.data[i] >= '0' && part.data[i] <= '9';
            number = number * 10 + (part.data[i] - '0');
        }
        TRY(tr_item(r, *out, is_number ? tv_int(number) : tv_str(part), out));
        *out = fallback.kind != TV_MISSING && out->kind == TV_UNDEFINED ? fallback : *out;
    }
    return SMOE_OK;
}

static smoe_status fold_case(tr *r, bool case_sensitive, tv *v)
{
    return !case_sensitive && tv_is_str(*v) ? tr_lower(r, v->u.s, v) : SMOE_OK;
}

static smoe_status f_abs(tr *r, tv in, const tr_args *args, tv *out)
{
    int64_t i = 0;
    TRY(no_args(r, args, "abs"));
    if (in.kind == TV_FLOAT) {
        *out = tv_float(fabs(in.u.f));
        return SMOE_OK;
    }
    if (!tv_as_int(in, &i)) {
        return in.kind == TV_UNDEFINED
                   ? tr_undefined_error(r, in)
                   : tr_fail(r, "bad operand type for abs(): '%s'", tv_type_name(in));
    }
    return i < 0 ? tr_negate(r, in, true, out) : (*out = tv_int(i), SMOE_OK);
}

static smoe_status f_batch(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("batch", 1, "linecount", "fill_with");
    int64_t size = 0;
    const tv *items;
    size_t n, n_rows;
    TRY(int_arg(r, a[0], 0, &size));
    TRY(all_items(r, in, &items, &n));
    if (size < 1) {
        return tr_unsupported(r, "batch needs at least one item per row");
    }
    size_t row = (size_t)size > n && !given(a[1]) ? (n ? n : 1) : (size_t)size;
    n_rows = n / row + (n % row != 0);
    tv *rows = tr_alloc(r, n_rows, sizeof *rows);
    if (!rows) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n_rows; i++) {
        size_t n_real = n - i * row < row ? n - i * row : row;
        TRY(tr_list_new(r, TV_LIST, NULL, given(a[1]) ? row : n_real, &rows[i]));
        for (size_t j = 0; j < rows[i].u.list->n; j++) {
            rows[i].u.list->items[j] = j < n_real ? items[i * row + j] : a[1];
        }
    }
    return tr_iter_new(r, "generator", rows, n_rows, out);
}

static smoe_status f_capitalize(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    TRY(no_args(r, args, "capitalize"));
    TRY(tr_str(r, in, &s));
    return tr_capitalize(r, s, out);
}

static smoe_status f_length(tr *r, tv in, const tr_args *args, tv *out)
{
    size_t n = 0;
    TRY(no_args(r, args, "length"));
    TRY(tr_length(r, in, &n));
    *out = tv_int((int64_t)n);
    return SMOE_OK;
}

static smoe_status f_default(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("default", 0, "default_value", "boolean");
    bool use = in.kind == TV_UNDEFINED || (tv_truth(a[1]) && !tv_truth(in));
    *out = !use ? in : a[0].kind == TV_MISSING ? tv_str(slice_from("")) : a[0];
    return SMOE_OK;
}

static smoe_status f_dictsort(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("dictsort", 0, "case_sensitive", "by", "reverse");
    bool by_value = tv_is_str(a[1]) && slice_is(a[1].u.s, "value");
    if (a[1].kind != TV_MISSING && !by_value && !(tv_is_str(a[1]) && slice_is(a[1].u.s, "key"))) {
        return tr_fail(r, "dictsort can only sort by either \"key\" or \"value\"");
    }
    if (in.kind != TV_DICT) {
        return in.kind == TV_UNDEFINED
                   ? tr_undefined_error(r, in)
                   : tr_fail(r, "dictsort needs a dict, not %s", tv_type_name(in));
    }
    const tv_dict *d = in.u.dict;
    TRY(tr_list_new(r, TV_LIST, NULL, d->n, out));
    tv *keys = tr_alloc(r, d->n, sizeof *keys);
    if (!keys) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < d->n; i++) {
        tv pair[2] = {d->items[i].key, d->items[i].value};
        TRY(tr_list_new(r, TV_TUPLE, pair, 2, &out->u.list->items[i]));
        keys[i] = pair[by_value];
        TRY(fold_case(r, tv_truth(a[0]), &keys[i]));
    }
    return tr_sort(r, keys, out->u.list->items, d->n, tv_truth(a[2]));
}

static smoe_status f_escape(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    buf b;
    TRY(no_args(r, args, "escape"));
    *out = in;
    if (in.is_markup) {
        return SMOE_OK;
    }
    TRY(tr_str(r, in, &s));
    tr_text_begin(&b);
    TRY(tr_text_end(r, &b, tr_put_escaped(r, &b, s), out));
    out->is_markup = true;
    return SMOE_OK;
}

static smoe_status f_first(tr *r, tv in, const tr_args *args, tv *out)
{
    tv_iter *it = NULL;
    TRY(no_args(r, args, "first"));
    TRY(tr_iter(r, in, &it));
    if (it->at < it->n) {
        *out = it->items[it->at++];
        return SMOE_OK;
    }
    return tr_undefined_hint(r, "No first item, sequence was empty.", out);
}

static smoe_status f_last(tr *r, tv in, const tr_args *args, tv *out)
{
    const tv *items;
    size_t n;
    TRY(no_args(r, args, "last"));
    if (in.kind == TV_ITER) {
        return tr_fail(r, "'%s' object is not reversible", tv_type_name(in));
    }
    TRY(all_items(r, in, &items, &n));
    return n ? (*out = items[n - 1], SMOE_OK)
             : tr_undefined_hint(r, "No last item, sequence was empty.", out);
}

static smoe_status f_format(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    tv values = {0};
    TRY(tr_str(r, in, &s));
    if (args->n_pos && args->n_kw) {
        return tr_fail(r, "format cannot take positional and named arguments at the same time");
    }
    if (args->n_kw == 0) {
        TRY(tr_list_new(r, TV_TUPLE, args->pos, args->n_pos, &values));
        return tr_percent_format(r, s, values, out);
    }
    tv_dict *d = NULL;
    TRY(tr_dict_new(r, args->n_kw, &d));
    for (size_t i = 0; i < args->n_kw; i++) {
        TRY(tr_dict_put(r, d, args->kw[i].key, args->kw[i].value));
    }
    return tr_percent_format(r, s, (tv){.kind = TV_DICT, .u.dict = d}, out);
}

static smoe_status put_indented(tr *r, buf *b, const tv_list *lines, slice indent, bool first,
                                bool blank)
{
    for (size_t i = 0; i < lines->n; i++) {
        slice line = lines->items[i].u.s;
        TRY(i ? tr_put(r, b, slice_from("\n")) : SMOE_OK);
        TRY((i ? blank || line.len : first) ? tr_put(r, b, indent) : SMOE_OK);
        TRY(tr_put(r, b, line));
    }
    return SMOE_OK;
}

static smoe_status f_indent(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("indent", 0, "width", "first", "blank");
    tv indent = a[0], text = {0};
    if (!tv_is_str(in)) {
        return in.kind == TV_UNDEFINED ? tr_undefined_error(r, in)
                                       : tr_fail(r, "indent needs a str, not %s", tv_type_name(in));
    }
    if (!tv_is_str(indent)) {
        int64_t width = 4;
        TRY(int_arg(r, a[0], 4, &width));
        TRY(tr_arith(r, OP_MUL, tv_str(slice_from(" ")), tv_int(width), &indent));
    }
    tv lines = {0};
    TRY(tr_arith(r, OP_ADD, tv_str(in.u.s), tv_str(slice_from("\n")), &text));
    TRY(tr_split_lines(r, text.u.s, false, &lines));
    buf b;
    tr_text_begin(&b);
    return tr_text_end(
        r, &b, put_indented(r, &b, lines.u.list, indent.u.s, tv_truth(a[1]), tv_truth(a[2])), out);
}

static smoe_status f_int(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("int", 0, "default", "base");
    int64_t base = 10, i = 0;
    double f = 0;
    bool ok = false;
    tv fallback = a[0].kind == TV_MISSING ? tv_int(0) : a[0];
    TRY(int_arg(r, a[1], 10, &base));
    if (base < 2 || base > 36) {
        return tr_unsupported(r, "int with base %lld is not supported", (long long)base);
    }
    if (in.kind == TV_UNDEFINED) {
        return tr_undefined_error(r, in);
    }
    if (tv_as_int(in, &i)) {
        *out = tv_int(i);
        return SMOE_OK;
    }
    if (in.kind == TV_FLOAT) {
        if (isinf(in.u.f)) {
            return tr_fail(r, "cannot convert float infinity to integer");
        }
        return isnan(in.u.f) ? (*out = fallback, SMOE_OK) : tr_float_to_int(r, in.u.f, out);
    }
    if (tv_is_str(in)) {
        TRY(tr_parse_int(r, in.u.s, (int)base, &ok, out));
        if (!ok && tr_parse_float(in.u.s, &f) && isfinite(f)) {
            return tr_float_to_int(r, f, out);
        }
    }
    *out = ok ? *out : fallback;
    return SMOE_OK;
}

static smoe_status f_float(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("float", 0, "default");
    double f = 0;
    if (in.kind == TV_UNDEFINED) {
        return tr_undefined_error(r, in);
    }
    bool ok = tv_as_number(in, &f) || (tv_is_str(in) && tr_parse_float(in.u.s, &f));
    *out = ok ? tv_float(f) : a[0].kind == TV_MISSING ? tv_float(0) : a[0];
    return SMOE_OK;
}

static smoe_status put_joined(tr *r, buf *b, const tv *items, size_t n, slice sep, tv attribute)
{
    for (size_t i = 0; i < n; i++) {
        tv item = items[i];
        TRY(get_path(r, items[i], attribute, (tv){0}, &item));
        TRY(i ? tr_put(r, b, sep) : SMOE_OK);
        TRY(tr_put_str(r, b, item));
    }
    return SMOE_OK;
}

static smoe_status f_join(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("join", 0, "d", "attribute");
    const tv *items;
    size_t n;
    slice sep = slice_from("");
    buf b;
    TRY(a[0].kind == TV_MISSING ? SMOE_OK : tr_str(r, a[0], &sep));
    TRY(all_items(r, in, &items, &n));
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_joined(r, &b, items, n, sep, a[1]), out);
}

static smoe_status f_list(tr *r, tv in, const tr_args *args, tv *out)
{
    const tv *items;
    size_t n;
    TRY(no_args(r, args, "list"));
    TRY(all_items(r, in, &items, &n));
    return tr_list_new(r, TV_LIST, items, n, out);
}

static smoe_status f_lower(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    TRY(no_args(r, args, "lower"));
    TRY(tr_str(r, in, &s));
    return tr_lower(r, s, out);
}

static smoe_status f_upper(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    TRY(no_args(r, args, "upper"));
    TRY(tr_str(r, in, &s));
    return tr_upper(r, s, out);
}

static smoe_status f_items(tr *r, tv in, const tr_args *args, tv *out)
{
    tv_view view = {in.u.dict, TV_ITEMS};
    tv_iter *it = NULL;
    TRY(no_args(r, args, "items"));
    if (in.kind == TV_UNDEFINED) {
        return tr_iter_new(r, "generator", NULL, 0, out);
    }
    if (in.kind != TV_DICT) {
        return tr_fail(r, "Can only get item pairs from a mapping.");
    }
    TRY(tr_iter(r, (tv){.kind = TV_VIEW, .u.view = &view}, &it));
    return tr_iter_new(r, "generator", it->items, it->n, out);
}

static const tr_args no_more = {0};

/* A filter or test whose name came as a value. */
static smoe_status inner_id(tr *r, tv name, bool is_filter, uint32_t *id)
{
    int found = !tv_is_str(name) ? -1
                : is_filter      ? template_filter_find(name.u.s)
                                 : template_test_find(name.u.s);
    if (found < 0) {
        slice s = slice_from("?");
        TRY(tv_is_str(name) ? tr_str(r, name, &s) : SMOE_OK);
        return tr_unsupported(r, "the %s \"%.*s\" is not supported", is_filter ? "filter" : "test",
                              s.len < 100 ? (int)s.len : 100, s.data);
    }
    *id = (uint32_t)found;
    return SMOE_OK;
}

static smoe_status f_map(tr *r, tv in, const tr_args *args, tv *out)
{
    tv a[2] = {{0}};
    uint32_t id = 0;
    bool by_attribute = args->n_pos == 0;
    if (!tv_truth(in)) { /* whatever it is, as in Jinja */
        return tr_iter_new(r, "generator", NULL, 0, out);
    }
    if (by_attribute) {
        static const char *const names[] = {"attribute", "default"};
        TRY(tr_bind(r, args, "map", names, 2, 1, a));
    } else {
        TRY(inner_id(r, args->pos[0], true, &id));
    }
    tr_args rest = no_more;
    if (!by_attribute) {
        rest = (tr_args){args->pos + 1, args->n_pos - 1, args->kw, args->n_kw};
    }
    const tv *items;
    size_t n;
    TRY(all_items(r, in, &items, &n));
    tv *mapped = tr_alloc(r, n, sizeof *mapped);
    if (!mapped) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        TRY(by_attribute ? get_path(r, items[i], a[0], given(a[1]) ? a[1] : (tv){0}, &mapped[i])
                         : tr_call_filter(r, id, items[i], &rest, &mapped[i]));
    }
    return tr_iter_new(r, "generator", mapped, n, out);
}

static smoe_status choose(tr *r, tv in, const tr_args *args, bool by_attribute, bool keep, tv *out)
{
    size_t skip = by_attribute;
    uint32_t id = 0;
    if (!tv_truth(in)) {
        return tr_iter_new(r, "generator", NULL, 0, out);
    }
    if (args->n_pos < skip) {
        return tr_fail(r, "the name of the attribute is missing");
    }
    bool has_test = args->n_pos > skip;
    TRY(has_test ? inner_id(r, args->pos[skip], false, &id) : SMOE_OK);
    size_t n_own = skip + has_test; /* with none there may be no array */
    tr_args rest = {n_own ? args->pos + n_own : args->pos, args->n_pos - n_own, args->kw,
                    args->n_kw};
    const tv *items;
    size_t n, n_chosen = 0;
    TRY(all_items(r, in, &items, &n));
    tv *chosen = tr_alloc(r, n, sizeof *chosen);
    if (!chosen) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        tv v = items[i];
        TRY(get_path(r, items[i], by_attribute ? args->pos[0] : (tv){0}, (tv){0}, &v));
        bool yes = tv_truth(v);
        TRY(has_test ? tr_call_test(r, id, v, &rest, &yes) : SMOE_OK);
        if (yes == keep) {
            chosen[n_chosen++] = items[i];
        }
    }
    return tr_iter_new(r, "generator", chosen, n_chosen, out);
}

static smoe_status f_select(tr *r, tv in, const tr_args *args, tv *out)
{
    return choose(r, in, args, false, true, out);
}

static smoe_status f_reject(tr *r, tv in, const tr_args *args, tv *out)
{
    return choose(r, in, args, false, false, out);
}

static smoe_status f_selectattr(tr *r, tv in, const tr_args *args, tv *out)
{
    return choose(r, in, args, true, true, out);
}

static smoe_status f_rejectattr(tr *r, tv in, const tr_args *args, tv *out)
{
    return choose(r, in, args, true, false, out);
}

static smoe_status extreme(tr *r, tv in, const tr_args *args, enum tn_op op, tv *out)
{
    BIND("min or max", 0, "case_sensitive", "attribute");
    const tv *items;
    size_t n;
    tv best = {0};
    TRY(all_items(r, in, &items, &n));
    if (n == 0) {
        return tr_undefined_hint(r, "No aggregated item, sequence was empty.", out);
    }
    for (size_t i = 0; i < n; i++) {
        tv key = {0};
        bool better = i == 0;
        TRY(get_path(r, items[i], a[1], (tv){0}, &key));
        TRY(fold_case(r, tv_truth(a[0]), &key));
        TRY(i ? tr_compare(r, op, key, best, &better) : SMOE_OK);
        if (better) {
            best = key;
            *out = items[i];
        }
    }
    return SMOE_OK;
}

static smoe_status f_min(tr *r, tv in, const tr_args *args, tv *out)
{
    return extreme(r, in, args, OP_LT, out);
}

static smoe_status f_max(tr *r, tv in, const tr_args *args, tv *out)
{
    return extreme(r, in, args, OP_GT, out);
}

static smoe_status f_replace(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("replace", 2, "old", "new", "count");
    slice s = {0}, from = {0}, to = {0};
    int64_t max = -1;
    TRY(tr_str(r, in, &s));
    TRY(tr_str(r, a[0], &from));
    TRY(tr_str(r, a[1], &to));
    TRY(given(a[2]) ? int_arg(r, a[2], -1, &max) : SMOE_OK);
    return tr_replace(r, s, from, to, max, out);
}

static smoe_status f_reverse(tr *r, tv in, const tr_args *args, tv *out)
{
    const tv *items;
    size_t n;
    TRY(no_args(r, args, "reverse"));
    if (tv_is_str(in)) {
        const tv bounds[3] = {tv_none(), tv_none(), tv_int(-1)};
        return tr_slice(r, in, bounds, out);
    }
    TRY(all_items(r, in, &items, &n));
    tv *reversed = tr_alloc(r, n, sizeof *reversed);
    if (!reversed) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        reversed[i] = items[n - 1 - i];
    }
    return tr_iter_new(r, "list_reverseiterator", reversed, n, out);
}

static smoe_status f_round(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("round", 0, "precision", "method");
    int64_t precision = 0, i = 0;
    double f = 0;
    char text[512];
    slice how = slice_from("common");
    TRY(int_arg(r, a[0], 0, &precision));
    TRY(a[1].kind == TV_MISSING ? SMOE_OK : tr_str(r, a[1], &how));
    if (!tv_as_number(in, &f)) {
        return in.kind == TV_UNDEFINED
                   ? tr_undefined_error(r, in)
                   : tr_fail(r, "round needs a number, not %s", tv_type_name(in));
    }
    if (precision < 0 || precision > 100) {
        return tr_unsupported(r, "round to %lld digits is not supported", (long long)precision);
    }
    if (slice_is(how, "common")) {
        if (tv_as_int(in, &i)) {
            *out = tv_int(i);
            return SMOE_OK;
        }
        snprintf(text, sizeof text, "%.*f", (int)precision,
                 f); /* exact, ties to even, as Python's */
        *out = tv_float(isfinite(f) ? strtod(text, NULL) : f);
        return SMOE_OK;
    }
    if (!slice_is(how, "ceil") && !slice_is(how, "floor")) {
        return tr_fail(r, "the method of round must be common, ceil or floor");
    }
    double scale = pow(10, (double)precision);
    *out = tv_float((slice_is(how, "ceil") ? ceil(f * scale) : floor(f * scale)) / scale);
    return SMOE_OK;
}

static smoe_status f_safe(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    TRY(no_args(r, args, "safe"));
    TRY(tr_str(r, in, &s));
    *out = tv_str(s);
    out->is_markup = true;
    return SMOE_OK;
}

/* The keys to sort by: one path, or several separated by commas, which give lists. */
static smoe_status sort_key(tr *r, tv item, tv path, bool case_sensitive, tv *out)
{
    if (!tv_is_str(path) || text_find(path.u.s, slice_from(","), 0) == SIZE_MAX) {
        TRY(get_path(r, item, path, (tv){0}, out));
        return fold_case(r, case_sensitive, out);
    }
    tv parts[16];
    size_t n = 0;
    slice rest = path.u.s;
    for (bool last = false; !last;) {
        size_t comma = text_find(rest, slice_from(","), 0);
        last = comma == SIZE_MAX;
        slice part = {rest.data, last ? rest.len : comma};
        rest = last ? rest : (slice){rest.data + comma + 1, rest.len - comma - 1};
        if (n == 16) {
            return tr_unsupported(r, "sorting by more than 16 attributes is not supported");
        }
        TRY(get_path(r, item, tv_str(part), (tv){0}, &parts[n]));
        TRY(fold_case(r, case_sensitive, &parts[n]));
        n++;
    }
    return tr_list_new(r, TV_LIST, parts, n, out);
}

static smoe_status f_sort(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("sort", 0, "reverse", "case_sensitive", "attribute");
    const tv *items;
    size_t n;
    TRY(all_items(r, in, &items, &n));
    TRY(tr_list_new(r, TV_LIST, items, n, out));
    tv *keys = tr_alloc(r, n, sizeof *keys);
    if (!keys) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        TRY(sort_key(r, items[i], a[2], tv_truth(a[1]), &keys[i]));
    }
    return tr_sort(r, keys, out->u.list->items, n, tv_truth(a[0]));
}

static smoe_status f_string(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    TRY(no_args(r, args, "string"));
    TRY(tr_str(r, in, &s));
    *out = tv_str(s);
    out->is_markup = in.is_markup;
    return SMOE_OK;
}

static smoe_status f_sum(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("sum", 0, "attribute", "start");
    const tv *items;
    size_t n;
    TRY(all_items(r, in, &items, &n));
    *out = a[1].kind == TV_MISSING ? tv_int(0) : a[1];
    if (tv_is_str(*out)) {
        return tr_fail(r, "sum cannot add up texts");
    }
    for (size_t i = 0; i < n; i++) {
        tv v = {0};
        TRY(get_path(r, items[i], a[0], (tv){0}, &v));
        TRY(tr_arith(r, OP_ADD, *out, v, out));
    }
    return SMOE_OK;
}

/* Words start after white space and - ( { [ <, which is Jinja's rule and not Python's title(). */
static smoe_status put_title(tr *r, buf *b, slice s)
{
    size_t n;
    bool at_start = true;
    for (size_t at = 0; at < s.len; at += n) {
        uint32_t c = text_decode(s, at, &n), mapped[3];
        bool is_break = text_is_space(c) || (c < 0x80 && c && strchr("-({[<", (int)c));
        size_t n_mapped = at_start && !is_break ? text_upper(c, mapped) : text_lower(c, mapped);
        at_start = is_break;
        for (size_t i = 0; i < n_mapped; i++) {
            TRY(tr_put_char(r, b, mapped[i]));
        }
    }
    return SMOE_OK;
}

static smoe_status f_title(tr *r, tv in, const tr_args *args, tv *out)
{
    slice s = {0};
    buf b;
    TRY(no_args(r, args, "title"));
    TRY(tr_str(r, in, &s));
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_title(r, &b, s), out);
}

static smoe_status f_tojson(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys");
    bool has_indent = given(a[1]);
    tr_json_style style = {.item_separator = slice_from(has_indent ? "," : ", "),
                           .key_separator = slice_from(": "),
                           .ascii = tv_truth(a[0]),
                           .sort_keys = tv_truth(a[3])};
    tv indent = a[1];
    buf b;
    if (has_indent && !tv_is_str(indent)) {
        int64_t width = 0;
        TRY(int_arg(r, a[1], 0, &width));
        TRY(tr_arith(r, OP_MUL, tv_str(slice_from(" ")), tv_int(width), &indent));
    }
    style.indent = has_indent ? &indent.u.s : NULL;
    if (given(a[2])) {
        const tv *items;
        size_t n;
        TRY(all_items(r, a[2], &items, &n));
        if (n != 2 || !tv_is_str(items[0]) || !tv_is_str(items[1])) {
            return tr_fail(r, "the separators of tojson must be two strings");
        }
        style.item_separator = items[0].u.s;
        style.key_separator = items[1].u.s;
    }
    tr_text_begin(&b);
    return tr_text_end(r, &b, tr_put_json(r, &b, in, &style), out);
}

static smoe_status f_trim(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("trim", 0, "chars");
    slice s = {0}, chars = {0};
    TRY(tr_str(r, in, &s));
    if (given(a[0]) && !tv_is_str(a[0])) {
        return tr_fail(r, "the characters of trim must be str, not %s", tv_type_name(a[0]));
    }
    chars = given(a[0]) ? a[0].u.s : chars;
    TRY(tr_spend(r, s.len / 16 + chars.len));
    *out = tv_str(tr_strip(s, given(a[0]) ? &chars : NULL, true, true));
    out->is_markup = in.is_markup;
    return SMOE_OK;
}

static smoe_status f_unique(tr *r, tv in, const tr_args *args, tv *out)
{
    BIND("unique", 0, "case_sensitive", "attribute");
    const tv *items;
    size_t n, n_unique = 0;
    tv_dict *seen = NULL;
    TRY(all_items(r, in, &items, &n));
    TRY(tr_dict_new(r, n, &seen));
    tv *unique = tr_alloc(r, n, sizeof *unique);
    if (!unique) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        tv key = {0}, found = {0};
        TRY(get_path(r, items[i], a[1], (tv){0}, &key));
        TRY(fold_case(r, tv_truth(a[0]), &key));
        TRY(tr_dict_get(r, seen, key, &found));
        if (found.kind == TV_MISSING) {
            TRY(tr_dict_put(r, seen, key, tv_bool(true)));
            unique[n_unique++] = items[i];
        }
    }
    return tr_iter_new(r, "generator", unique, n_unique, out);
}

static const struct {
    const char *name;
    filter_fn *fn;
} filters[] = {
    {"abs", f_abs},
    {"batch", f_batch},
    {"capitalize", f_capitalize},
    {"count", f_length},
    {"d", f_default},
    {"default", f_default},
    {"dictsort", f_dictsort},
    {"e", f_escape},
    {"escape", f_escape},
    {"first", f_first},
    {"float", f_float},
    {"format", f_format},
    {"indent", f_indent},
    {"int", f_int},
    {"items", f_items},
    {"join", f_join},
    {"last", f_last},
    {"length", f_length},
    {"list", f_list},
    {"lower", f_lower},
    {"map", f_map},
    {"max", f_max},
    {"min", f_min},
    {"reject", f_reject},
    {"rejectattr", f_rejectattr},
    {"replace", f_replace},
    {"reverse", f_reverse},
    {"round", f_round},
    {"safe", f_safe},
    {"select", f_select},
    {"selectattr", f_selectattr},
    {"sort", f_sort},
    {"string", f_string},
    {"sum", f_sum},
    {"title", f_title},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"unique", f_unique},
    {"upper", f_upper},
};

int template_filter_find(slice name)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (slice_is(name, filters[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

int template_filter_inner(uint32_t filter, bool *is_filter)
{
    filter_fn *fn = filters[filter].fn;
    *is_filter = fn == f_map;
    return fn == f_map || fn == f_select || fn == f_reject ? 0
           : fn == f_selectattr || fn == f_rejectattr      ? 1
                                                           : -1;
}

smoe_status tr_call_filter(tr *r, uint32_t id, tv in, const tr_args *args, tv *out)
{
    TRY(tr_spend(r, 1));
    return filters[id].fn(r, in, args, out);
}
