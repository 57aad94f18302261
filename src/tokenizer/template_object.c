/* template_object.c: building, iterating and looking into values. Failing lookups give an
 * undefined, as in Jinja; only using that undefined is an error. */
#include <stdio.h>

#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

const char *tv_type_name(tv v)
{
    static const char *const names[] = {
        [TV_MISSING] = "nothing",  [TV_UNDEFINED] = "Undefined",
        [TV_NONE] = "NoneType",    [TV_BOOL] = "bool",
        [TV_INT] = "int",          [TV_FLOAT] = "float",
        [TV_STR] = "str",          [TV_LIST] = "list",
        [TV_TUPLE] = "tuple",      [TV_DICT] = "dict",
        [TV_RANGE] = "range",      [TV_VIEW] = "dict view",
        [TV_ITER] = "generator",   [TV_NAMESPACE] = "Namespace",
        [TV_LOOP] = "LoopContext", [TV_MACRO] = "Macro",
        [TV_METHOD] = "method",    [TV_FUNC] = "function",
        [TV_CYCLER] = "Cycler",    [TV_JOINER] = "Joiner",
    };
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    return v.kind == TV_VIEW   ? views[v.u.view->what]
           : v.kind == TV_ITER ? v.u.iter->what
                               : names[v.kind];
}

bool tv_truth(tv v)
{
    switch (v.kind) {
    case TV_MISSING:
    case TV_UNDEFINED:
    case TV_NONE:
        return false;
    case TV_BOOL:
        return v.u.b;
    case TV_INT:
        return v.u.i != 0;
    case TV_FLOAT:
        return v.u.f != 0;
    case TV_STR:
        return v.u.s.len != 0;
    case TV_LIST:
    case TV_TUPLE:
        return v.u.list->n != 0;
    case TV_DICT:
        return v.u.dict->n != 0;
    case TV_RANGE:
        return v.u.range->n != 0;
    case TV_VIEW:
        return v.u.view->dict->n != 0;
    default:
        return true;
    }
}

smoe_status tr_list_new(tr *r, enum tv_kind kind, const tv *items, size_t n, tv *out)
{
    tv_list *list = tr_alloc(r, 1, sizeof *list);
    if (!list) {
        return tr_no_memory(r);
    }
    list->items = tr_alloc(r, n, sizeof *items);
    if (!list->items) {
        return tr_no_memory(r);
    }
    if (items && n) {
        memcpy(list->items, items, n * sizeof *items);
    }
    list->n = n;
    *out = (tv){.kind = (uint8_t)kind, .u.list = list};
    return SMOE_OK;
}

smoe_status tr_dict_new(tr *r, size_t cap, tv_dict **out)
{
    *out = tr_alloc(r, 1, sizeof **out);
    if (!*out || !((*out)->items = tr_alloc(r, cap, sizeof(tv_pair)))) {
        return tr_no_memory(r);
    }
    (*out)->cap = cap;
    return SMOE_OK;
}

static bool is_hashable(tv v)
{
    if (v.kind == TV_TUPLE) {
        for (size_t i = 0; i < v.u.list->n; i++) {
            if (!is_hashable(v.u.list->items[i])) { /* tuples of tuples are as deep as the source */
                return false;
            }
        }
    }
    return v.kind != TV_LIST && v.kind != TV_DICT && v.kind != TV_VIEW;
}

static smoe_status dict_find(tr *r, const tv_dict *d, tv key, size_t *at)
{
    if (!is_hashable(key)) {
        return tr_fail(r, "unhashable type: '%s'", tv_type_name(key));
    }
    TRY(tr_spend(r, d->n / 8));
    for (size_t i = 0; i < d->n; i++) {
        tv other = d->items[i].key;
        bool equal = false;
        if (tv_is_str(key) && tv_is_str(other)) {
            equal = slice_eq(key.u.s, other.u.s);
        } else {
            TRY(tr_equal(r, key, other, &equal));
        }
        if (equal) {
            *at = i;
            return SMOE_OK;
        }
    }
    *at = SIZE_MAX;
    return SMOE_OK;
}

smoe_status tr_dict_get(tr *r, const tv_dict *d, tv key, tv *out)
{
    size_t at = 0;
    TRY(dict_find(r, d, key, &at));
    *out = at == SIZE_MAX ? (tv){0} : d->items[at].value;
    return SMOE_OK;
}

smoe_status tr_dict_put(tr *r, tv_dict *d, tv key, tv value)
{
    size_t at = 0;
    TRY(dict_find(r, d, key, &at));
    if (at != SIZE_MAX) {
        d->items[at].value = value;
        return SMOE_OK;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;
        tv_pair *items = tr_alloc(r, cap, sizeof *items);
        if (!items) {
            return tr_no_memory(r);
        }
        if (d->n) {
            memcpy(items, d->items, d->n * sizeof *items);
        }
        d->items = items;
        d->cap = cap;
    }
    d->items[d->n++] = (tv_pair){key, value};
    return SMOE_OK;
}

smoe_status tr_iter_new(tr *r, const char *what, const tv *items, size_t n, tv *out)
{
    tv_iter *it = tr_alloc(r, 1, sizeof *it);
    if (!it) {
        return tr_no_memory(r);
    }
    *it = (tv_iter){.items = items, .n = n, .what = what};
    *out = (tv){.kind = TV_ITER, .u.iter = it};
    return SMOE_OK;
}

static smoe_status dict_items(tr *r, const tv_dict *d, enum tv_view_kind what, tv *items)
{
    for (size_t i = 0; i < d->n; i++) {
        if (what == TV_ITEMS) {
            tv pair[2] = {d->items[i].key, d->items[i].value};
            TRY(tr_list_new(r, TV_TUPLE, pair, 2, &items[i]));
        } else {
            items[i] = what == TV_KEYS ? d->items[i].key : d->items[i].value;
        }
    }
    return SMOE_OK;
}

static void str_items(slice s, tv *items)
{
    size_t n_bytes;
    for (size_t at = 0, i = 0; at < s.len; at += n_bytes, i++) {
        text_decode(s, at, &n_bytes);
        items[i] = tv_str((slice){s.data + at, n_bytes});
    }
}

bool tv_is_iterable(tv v)
{
    return (v.kind >= TV_STR && v.kind <= TV_ITER) || v.kind == TV_UNDEFINED || v.kind == TV_LOOP;
}

/* The number of items of what is not consumed by counting. */
static bool sized(tv v, size_t *n)
{
    switch (v.kind) {
    case TV_UNDEFINED:
        *n = 0;
        return true;
    case TV_STR:
        *n = text_n_chars(v.u.s);
        return true;
    case TV_LIST:
    case TV_TUPLE:
        *n = v.u.list->n;
        return true;
    case TV_DICT:
        *n = v.u.dict->n;
        return true;
    case TV_RANGE:
        *n = v.u.range->n;
        return true;
    case TV_VIEW:
        *n = v.u.view->dict->n;
        return true;
    default:
        return false;
    }
}

smoe_status tr_length(tr *r, tv v, size_t *n)
{
    if (v.kind == TV_LOOP) {
        tv length = {0};
        TRY(tr_loop_attribute(r, v.u.loop, slice_from("length"), &length));
        *n = (size_t)length.u.i;
        return SMOE_OK;
    }
    if (!sized(v, n)) {
        return tr_fail(r, "object of type '%s' has no len()", tv_type_name(v));
    }
    return tr_spend(r, v.kind == TV_STR ? v.u.s.len / 64 : 0);
}

smoe_status tr_iter(tr *r, tv v, tv_iter **out)
{
    if (v.kind == TV_ITER) {
        *out = v.u.iter;
        return SMOE_OK;
    }
    size_t n = 0;
    if (!sized(v, &n)) {
        return v.kind == TV_LOOP ? tr_unsupported(r, "iterating over loop itself is not supported")
                                 : tr_fail(r, "'%s' object is not iterable", tv_type_name(v));
    }
    tv result = {0};
    if (v.kind == TV_LIST || v.kind == TV_TUPLE) {
        TRY(tr_iter_new(r, "iterator", v.u.list->items, n, &result));
        *out = result.u.iter;
        return SMOE_OK;
    }
    tv *items = tr_alloc(r, n, sizeof *items);
    if (!items) {
        return tr_no_memory(r);
    }
    if (v.kind == TV_STR) {
        str_items(v.u.s, items);
    } else if (v.kind == TV_DICT) {
        TRY(dict_items(r, v.u.dict, TV_KEYS, items));
    } else if (v.kind == TV_VIEW) {
        TRY(dict_items(r, v.u.view->dict, v.u.view->what, items));
    } else if (v.kind == TV_RANGE) {
        for (size_t i = 0; i < n; i++) {
            items[i] = tv_int(v.u.range->start + (int64_t)i * v.u.range->step);
        }
    }
    TRY(tr_iter_new(r, "iterator", items, n, &result));
    *out = result.u.iter;
    return SMOE_OK;
}

/* What Jinja calls the object in "'dict object' has no attribute 'x'". */
static const char *owner_name(tv v)
{
    switch (v.kind) {
    case TV_NONE:
        return "None";
    case TV_BOOL:
        return "bool object";
    case TV_INT:
        return "int object";
    case TV_FLOAT:
        return "float object";
    case TV_STR:
        return "str object";
    case TV_LIST:
        return "list object";
    case TV_TUPLE:
        return "tuple object";
    case TV_DICT:
        return "dict object";
    case TV_NAMESPACE:
        return "namespace object";
    case TV_LOOP:
        return "loop object";
    default:
        return "object";
    }
}

static smoe_status undefined(tr *r, tv_undef undef, tv *out)
{
    tv_undef *copy = tr_alloc(r, 1, sizeof *copy);
    if (!copy) {
        return tr_no_memory(r);
    }
    *copy = undef;
    *out = (tv){.kind = TV_UNDEFINED, .u.undef = copy};
    return SMOE_OK;
}

smoe_status tr_undefined(tr *r, const char *owner, slice name, tv *out)
{
    return undefined(r, (tv_undef){.owner = owner, .name = name}, out);
}

smoe_status tr_undefined_hint(tr *r, const char *hint, tv *out)
{
    return undefined(r, (tv_undef){.hint = hint}, out);
}

smoe_status tr_undefined_error(tr *r, tv v)
{
    const tv_undef *u = v.u.undef;
    int len = u->name.len < 100 ? (int)u->name.len : 100;
    if (u->hint) {
        return tr_fail(r, "%s", u->hint);
    }
    if (u->is_unsafe) {
        return tr_fail(r, "the attribute '%.*s' of a %s may not be used in a template", len,
                       u->name.data, u->owner);
    }
    if (u->owner) {
        return tr_fail(r, "'%s' has no attribute '%.*s'", u->owner, len, u->name.data);
    }
    return tr_fail(r, "'%.*s' is undefined", len, u->name.data);
}

static smoe_status method(tr *r, tv self, slice name, tv *out)
{
    bool is_mutator = false;
    int id = template_method_find(self, name, &is_mutator);
    *out = (tv){0};
    if (id < 0) {
        return SMOE_OK;
    }
    if (is_mutator) {
        return undefined(r, (tv_undef){.owner = owner_name(self), .name = name, .is_unsafe = true},
                         out);
    }
    tv_method *m = tr_alloc(r, 1, sizeof *m);
    if (!m) {
        return tr_no_memory(r);
    }
    *m = (tv_method){.self = self, .id = id};
    *out = (tv){.kind = TV_METHOD, .u.method = m};
    return SMOE_OK;
}

static smoe_status macro_attribute(tr *r, const tv_macro *m, slice name, tv *out)
{
    if (slice_is(name, "name")) {
        *out = tv_str(m->node->name);
    } else if (slice_is(name, "arguments")) {
        TRY(tr_list_new(r, TV_TUPLE, NULL, m->node->params.n, out));
        for (size_t i = 0; i < m->node->params.n; i++) {
            out->u.list->items[i] = tv_str(m->node->params.items[i]->name);
        }
    } else if (slice_is(name, "caller")) {
        *out = tv_bool(m->node->special & TN_USES_CALLER);
    } else if (slice_is(name, "catch_kwargs")) {
        *out = tv_bool(m->node->special & TN_USES_KWARGS);
    } else if (slice_is(name, "catch_varargs")) {
        *out = tv_bool(m->node->special & TN_USES_VARARGS);
    }
    return SMOE_OK;
}

/* Python's getattr: MISSING when there is none. */
static smoe_status own_attribute(tr *r, tv v, slice name, tv *out)
{
    *out = (tv){0};
    switch (v.kind) {
    case TV_UNDEFINED:
        return tr_undefined_error(r, v);
    case TV_NAMESPACE:
        if (slice_starts(name, slice_from("_"))) {
            return SMOE_OK;
        }
        return tr_dict_get(r, v.u.dict, tv_str(name), out);
    case TV_LOOP:
        TRY(tr_loop_attribute(r, v.u.loop, name, out));
        return out->kind == TV_MISSING ? method(r, v, name, out) : SMOE_OK;
    case TV_MACRO:
        return macro_attribute(r, v.u.macro, name, out);
    case TV_CYCLER:
        if (slice_is(name, "current")) {
            *out = v.u.cycler->items[v.u.cycler->at];
            return SMOE_OK;
        }
        return method(r, v, name, out);
    default:
        return method(r, v, name, out);
    }
}

smoe_status tr_attribute(tr *r, tv v, slice name, tv *out)
{
    TRY(own_attribute(r, v, name, out));
    if (out->kind == TV_MISSING && v.kind == TV_DICT) {
        TRY(tr_dict_get(r, v.u.dict, tv_str(name), out));
    }
    return out->kind == TV_MISSING ? tr_undefined(r, owner_name(v), name, out) : SMOE_OK;
}

static void sequence_item(tv v, int64_t i, tv *out)
{
    size_t n = 0;
    sized(v, &n);
    if (i < 0) {
        i += (int64_t)n;
    }
    if (i < 0 || (size_t)i >= n) {
        return;
    }
    if (v.kind == TV_RANGE) {
        *out = tv_int(v.u.range->start + i * v.u.range->step);
    } else if (v.kind == TV_STR) {
        size_t n_bytes, at = text_offset(v.u.s, (size_t)i);
        text_decode(v.u.s, at, &n_bytes);
        *out = tv_str((slice){v.u.s.data + at, n_bytes});
    } else {
        *out = v.u.list->items[i];
    }
}

smoe_status tr_item(tr *r, tv v, tv key, tv *out)
{
    int64_t i = 0;
    *out = (tv){0};
    if (v.kind == TV_UNDEFINED) {
        return tr_undefined_error(r, v);
    }
    if (v.kind == TV_DICT && is_hashable(key)) {
        TRY(tr_dict_get(r, v.u.dict, key, out));
    } else if (v.kind == TV_STR || v.kind == TV_LIST || v.kind == TV_TUPLE || v.kind == TV_RANGE) {
        if (tv_as_int(key, &i)) {
            TRY(tr_spend(r, v.kind == TV_STR ? v.u.s.len / 32 : 0));
            sequence_item(v, i, out);
        }
    }
    if (out->kind == TV_MISSING && tv_is_str(key)) {
        TRY(own_attribute(r, v, key.u.s, out));
    }
    if (out->kind != TV_MISSING) {
        return SMOE_OK;
    }
    slice name = slice_from("?");
    if (key.kind == TV_INT || tv_is_str(key)) {
        TRY(tr_str(r, key, &name));
    }
    return tr_undefined(r, owner_name(v), name, out);
}

/* Python's slice.indices: where the walk starts, and how many steps it takes. */
static smoe_status slice_indices(tr *r, const tv bounds[3], size_t n_items, int64_t *start,
                                 int64_t *step, size_t *n)
{
    int64_t len = (int64_t)n_items, at[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++) {
        if (bounds[i].kind != TV_NONE && !tv_as_int(bounds[i], &at[i])) {
            return bounds[i].kind == TV_UNDEFINED
                       ? tr_undefined_error(r, bounds[i])
                       : tr_fail(r, "slice indices must be integers or None, found '%s'",
                                 tv_type_name(bounds[i]));
        }
    }
    if (at[2] == 0) {
        return tr_fail(r, "slice step cannot be zero");
    }
    *step = at[2] < -INT64_MAX ? -INT64_MAX : at[2];
    int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? len - 1 : len;
    for (int i = 0; i < 2; i++) {
        if (bounds[i].kind == TV_NONE) {
            at[i] = (i == 0) == (*step < 0) ? high : low;
        } else {
            at[i] = at[i] < 0 ? (at[i] < -len ? low : at[i] + len) : at[i];
            at[i] = at[i] < low ? low : at[i] > high ? high : at[i];
        }
    }
    int64_t distance = *step > 0 ? at[1] - at[0] : at[0] - at[1];
    int64_t stride = *step > 0 ? *step : -*step;
    *start = at[0];
    *n = distance > 0 ? (size_t)((distance - 1) / stride) + 1 : 0;
    return SMOE_OK;
}

static smoe_status slice_str(tr *r, slice s, int64_t start, int64_t step, size_t n, tv *out)
{
    TRY(tr_spend(r, s.len / 16));
    if (step == 1) {
        size_t begin = text_offset(s, (size_t)start);
        slice rest = {s.data + begin, s.len - begin};
        *out = tv_str((slice){rest.data, text_offset(rest, n)});
        return SMOE_OK;
    }
    size_t n_chars = text_n_chars(s);
    tv *chars = tr_alloc(r, n_chars, sizeof *chars);
    if (!chars) {
        return tr_no_memory(r);
    }
    str_items(s, chars);
    buf b;
    tr_text_begin(&b);
    smoe_status status = SMOE_OK;
    for (size_t i = 0; i < n && status == SMOE_OK; i++) {
        status = tr_put(r, &b, chars[start + (int64_t)i * step].u.s);
    }
    return tr_text_end(r, &b, status, out);
}

smoe_status tr_slice(tr *r, tv v, const tv bounds[3], tv *out)
{
    size_t n_items = 0, n = 0;
    int64_t start = 0, step = 1;
    if (v.kind == TV_UNDEFINED) {
        return tr_undefined_error(r, v);
    }
    if (v.kind != TV_STR && v.kind != TV_LIST && v.kind != TV_TUPLE && v.kind != TV_RANGE) {
        return tr_fail(r, "'%s' object cannot be sliced", tv_type_name(v));
    }
    sized(v, &n_items);
    TRY(slice_indices(r, bounds, n_items, &start, &step, &n));
    if (v.kind == TV_STR) {
        return slice_str(r, v.u.s, start, step, n, out);
    }
    if (v.kind == TV_RANGE) {
        return tr_unsupported(r, "slices of a range are not supported; add |list before the slice");
    }
    TRY(tr_list_new(r, v.kind, NULL, n, out));
    for (size_t i = 0; i < n; i++) {
        out->u.list->items[i] = v.u.list->items[start + (int64_t)i * step];
    }
    return SMOE_OK;
}

static smoe_status array_from_json(tr *r, const json_value *json, tv *out)
{
    TRY(tr_list_new(r, TV_LIST, NULL, jr_len(json), out));
    for (size_t i = 0; i < out->u.list->n; i++) {
        TRY(tr_from_json(r, jr_at(json, i), &out->u.list->items[i]));
    }
    return SMOE_OK;
}

static smoe_status object_from_json(tr *r, const json_value *json, tv *out)
{
    tv_dict *d = NULL;
    TRY(tr_dict_new(r, jr_len(json), &d));
    for (void *it = jr_iter(json); it; it = jr_next(json, it)) {
        tv_pair *pair = &d->items[d->n++]; /* the reader has refused duplicate keys */
        pair->key = tv_str(jr_iter_key(it));
        TRY(tr_from_json(r, jr_iter_value(it), &pair->value));
    }
    *out = (tv){.kind = TV_DICT, .u.dict = d};
    return SMOE_OK;
}

/* Texts stay where the JSON document has them: it outlives the render. */
smoe_status tr_from_json(tr *r, const json_value *json, tv *out)
{
    if (r->value_depth == TR_MAX_VALUE_DEPTH) {
        return err_set(r->err, SMOE_FORMAT,
                       "the variables of the chat template are nested more than %d "
                       "levels deep",
                       TR_MAX_VALUE_DEPTH);
    }
    r->value_depth++;
    smoe_status status = SMOE_OK;
    *out = tv_none();
    switch (jr_kind(json)) {
    case JSON_KIND_NULL:
        break;
    case JSON_KIND_BOOL:
        out->kind = TV_BOOL;
        jr_bool(json, &out->u.b);
        break;
    case JSON_KIND_INT:
        out->kind = TV_INT;
        jr_int(json, &out->u.i);
        break;
    case JSON_KIND_REAL:
        out->kind = TV_FLOAT;
        jr_number(json, &out->u.f);
        break;
    case JSON_KIND_STRING:
        out->kind = TV_STR;
        jr_string(json, &out->u.s);
        break;
    case JSON_KIND_ARRAY:
        status = array_from_json(r, json, out);
        break;
    case JSON_KIND_OBJECT:
        status = object_from_json(r, json, out);
        break;
    }
    r->value_depth--;
    return status;
}
