/* template_functions.c: the global functions, and calls in general. */
#include <stdio.h>
#include <time.h>

#include "tokenizer/template_builtins.h"
#include "tokenizer/template_render.h"

typedef smoe_status function_fn(tr *r, const tr_args *args, tv *out);

smoe_status tr_bind(tr *r, const tr_args *args, const char *what, const char *const *names,
                    size_t n_names, size_t n_required, tv *out)
{
    if (args->n_pos > n_names) {
        return tr_fail(r, "%s takes at most %zu arguments (%zu given)", what, n_names, args->n_pos);
    }
    for (size_t i = 0; i < args->n_pos; i++) {
        out[i] = args->pos[i];
    }
    for (size_t k = 0; k < args->n_kw; k++) {
        slice name = args->kw[k].key.u.s;
        size_t i = 0;
        while (i < n_names && names && !slice_is(name, names[i])) {
            i++;
        }
        int len = name.len < 100 ? (int)name.len : 100;
        if (i == n_names || !names) {
            return tr_fail(r, "%s has no argument named '%.*s'", what, len, name.data);
        }
        if (out[i].kind != TV_MISSING) {
            return tr_fail(r, "%s got two values for its argument '%.*s'", what, len, name.data);
        }
        out[i] = args->kw[k].value;
    }
    for (size_t i = 0; i < n_required; i++) {
        if (out[i].kind == TV_MISSING) {
            return tr_fail(r, "%s needs %zu arguments at least", what, n_required);
        }
    }
    return SMOE_OK;
}

/* dict(mapping or pairs, key=value, ...). */
static smoe_status build_dict(tr *r, const tr_args *args, tv_dict **out)
{
    TRY(tr_dict_new(r, args->n_kw, out));
    if (args->n_pos > 1) {
        return tr_fail(r, "dict takes at most 1 positional argument (%zu given)", args->n_pos);
    }
    if (args->n_pos == 1 && args->pos[0].kind == TV_DICT) {
        const tv_dict *from = args->pos[0].u.dict;
        for (size_t i = 0; i < from->n; i++) {
            TRY(tr_dict_put(r, *out, from->items[i].key, from->items[i].value));
        }
    } else if (args->n_pos == 1) {
        tv_iter *pairs = NULL, *pair = NULL;
        TRY(tr_iter(r, args->pos[0], &pairs));
        for (; pairs->at < pairs->n; pairs->at++) {
            TRY(tr_iter(r, pairs->items[pairs->at], &pair));
            if (pair->n - pair->at != 2) {
                return tr_fail(r, "dict needs pairs of a key and a value");
            }
            TRY(tr_dict_put(r, *out, pair->items[pair->at], pair->items[pair->at + 1]));
        }
    }
    for (size_t i = 0; i < args->n_kw; i++) {
        TRY(tr_dict_put(r, *out, args->kw[i].key, args->kw[i].value));
    }
    return SMOE_OK;
}

static smoe_status fn_dict(tr *r, const tr_args *args, tv *out)
{
    tv_dict *d = NULL;
    TRY(build_dict(r, args, &d));
    *out = (tv){.kind = TV_DICT, .u.dict = d};
    return SMOE_OK;
}

static smoe_status fn_namespace(tr *r, const tr_args *args, tv *out)
{
    TRY(fn_dict(r, args, out));
    for (size_t i = 0; i < out->u.dict->n; i++) {
        tv key = out->u.dict->items[i].key;
        if (tv_is_str(key) && slice_starts(key.u.s, slice_from("_"))) {
            return tr_fail(r, "a namespace cannot have attributes that start with an underscore");
        }
    }
    out->kind = TV_NAMESPACE;
    return SMOE_OK;
}

static smoe_status fn_range(tr *r, const tr_args *args, tv *out)
{
    tv a[3] = {{0}};
    int64_t n[3] = {0, 0, 1};
    TRY(tr_bind(r, args, "range", NULL, 3, 1, a));
    for (size_t i = 0; i < args->n_pos; i++) {
        if (!tv_as_int(a[i], &n[args->n_pos == 1 ? 1 : i])) {
            return a[i].kind == TV_UNDEFINED
                       ? tr_undefined_error(r, a[i])
                       : tr_fail(r, "range needs integers, not %s", tv_type_name(a[i]));
        }
    }
    if (n[2] == 0) {
        return tr_fail(r, "the step of range must not be zero");
    }
    /* As a difference of unsigned numbers it cannot overflow. */
    uint64_t distance = n[2] > 0 ? (uint64_t)n[1] - (uint64_t)n[0]
                                 : (uint64_t)n[0] - (uint64_t)n[1];
    uint64_t stride = n[2] > 0 ? (uint64_t)n[2] : -(uint64_t)n[2];
    bool is_empty = n[2] > 0 ? n[0] >= n[1] : n[0] <= n[1];
    uint64_t count = is_empty ? 0 : (distance - 1) / stride + 1;
    if (count > TR_MAX_RANGE) {
        return tr_fail(r, "a range of more than %d items is not allowed in a template",
                       TR_MAX_RANGE);
    }
    tv_range *range = tr_alloc(r, 1, sizeof *range);
    if (!range) {
        return tr_no_memory(r);
    }
    *range = (tv_range){n[0], n[1], n[2], (size_t)count};
    *out = (tv){.kind = TV_RANGE, .u.range = range};
    return SMOE_OK;
}

static smoe_status fn_raise_exception(tr *r, const tr_args *args, tv *out)
{
    static const char *const names[] = {"message"};
    tv message = {0};
    slice s = {0};
    (void)out;
    TRY(tr_bind(r, args, "raise_exception", names, 1, 1, &message));
    TRY(tr_str(r, message, &s));
    return tr_fail(r, "%.*s", s.len < 500 ? (int)s.len : 500, s.data);
}

static smoe_status fn_strftime_now(tr *r, const tr_args *args, tv *out)
{
    static const char *const names[] = {"format"};
    tv format = {0};
    char spec[256], text[1024];
    TRY(tr_bind(r, args, "strftime_now", names, 1, 1, &format));
    if (!tv_is_str(format) || format.u.s.len >= sizeof spec) {
        return tr_fail(r, "strftime_now needs a format of at most %zu bytes", sizeof spec - 1);
    }
    memcpy(spec, format.u.s.data, format.u.s.len);
    spec[format.u.s.len] = '\0';
    if (strstr(spec, "%f")) {
        return tr_unsupported(r, "the format %%f of strftime_now is not supported");
    }
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    size_t n = spec[0] ? strftime(text, sizeof text, spec, &local) : 0;
    char *copy = tr_alloc(r, n, 1);
    if (!copy) {
        return tr_no_memory(r);
    }
    memcpy(copy, text, n);
    *out = tv_str((slice){copy, n});
    return SMOE_OK;
}

static smoe_status fn_cycler(tr *r, const tr_args *args, tv *out)
{
    tv items = {0};
    if (args->n_pos == 0 || args->n_kw) {
        return tr_fail(r, "cycler needs at least one item, and no named ones");
    }
    TRY(tr_list_new(r, TV_LIST, args->pos, args->n_pos, &items));
    tv_cycler *c = tr_alloc(r, 1, sizeof *c);
    if (!c) {
        return tr_no_memory(r);
    }
    *c = (tv_cycler){.items = items.u.list->items, .n = args->n_pos};
    *out = (tv){.kind = TV_CYCLER, .u.cycler = c};
    return SMOE_OK;
}

static smoe_status fn_joiner(tr *r, const tr_args *args, tv *out)
{
    static const char *const names[] = {"sep"};
    tv sep = {0};
    TRY(tr_bind(r, args, "joiner", names, 1, 0, &sep));
    tv_joiner *j = tr_alloc(r, 1, sizeof *j);
    if (!j) {
        return tr_no_memory(r);
    }
    j->separator = sep.kind == TV_MISSING ? tv_str(slice_from(", ")) : sep;
    *out = (tv){.kind = TV_JOINER, .u.joiner = j};
    return SMOE_OK;
}

static const struct {
    const char *name;
    function_fn *fn;
} functions[] = {
    {"namespace", fn_namespace},
    {"range", fn_range},
    {"dict", fn_dict},
    {"cycler", fn_cycler},
    {"joiner", fn_joiner},
    {"raise_exception", fn_raise_exception},
    {"strftime_now", fn_strftime_now},
};

int template_function_find(slice name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (slice_is(name, functions[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

smoe_status tr_call_function(tr *r, int id, const tr_args *args, tv *out)
{
    return functions[id].fn(r, args, out);
}

smoe_status tr_call(tr *r, tv callee, const tr_args *args, tv *out)
{
    TRY(tr_spend(r, 1));
    switch (callee.kind) {
    case TV_UNDEFINED:
        return tr_undefined_error(r, callee);
    case TV_MACRO:
        return tr_call_macro(r, callee.u.macro, args, out);
    case TV_METHOD:
        return tr_call_method(r, callee.u.method, args, out);
    case TV_FUNC:
        return tr_call_function(r, callee.u.func, args, out);
    case TV_JOINER:
        TRY(tr_bind(r, args, "a joiner", NULL, 0, 0, NULL));
        *out = callee.u.joiner->used ? callee.u.joiner->separator : tv_str(slice_from(""));
        callee.u.joiner->used = true;
        return SMOE_OK;
    case TV_LOOP:
        return tr_unsupported(r, "recursive loops are not supported");
    default:
        return tr_fail(r, "'%s' object is not callable", tv_type_name(callee));
    }
}
