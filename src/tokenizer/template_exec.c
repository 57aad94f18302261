/* template_exec.c: statements, scopes and macros. */
#include "tokenizer/template_render.h"

smoe_status tr_scope_new(tr *r, tr_scope *parent, const tn_scope *shadows, tr_scope **out)
{
    *out = tr_alloc(r, 1, sizeof **out);
    if (!*out) {
        return tr_no_memory(r);
    }
    (*out)->parent = parent;
    for (size_t i = 0; shadows && i < shadows->n; i++) {
        TRY(tr_bind_name(r, *out, shadows->ids[i], (tv){0}));
    }
    return SMOE_OK;
}

void tr_scope_clear(tr_scope *s)
{
    s->n = 0;
}

smoe_status tr_bind_name(tr *r, tr_scope *s, uint32_t id, tv value)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->items[i].id == id) {
            s->items[i].value = value;
            return SMOE_OK;
        }
    }
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 8;
        tr_binding *items = tr_alloc(r, cap, sizeof *items);
        if (!items) {
            return tr_no_memory(r);
        }
        if (s->n) {
            memcpy(items, s->items, s->n * sizeof *items);
        }
        s->items = items;
        s->cap = cap;
    }
    s->items[s->n++] = (tr_binding){id, value};
    return SMOE_OK;
}

/* Binds a name that exists only if the template mentions it. */
static smoe_status bind_special(tr *r, tr_scope *s, const char *name, tv value)
{
    uint64_t id = 0;
    return map_get(&r->t->name_ids, slice_from(name), &id) ? tr_bind_name(r, s, (uint32_t)id, value)
                                                           : SMOE_OK;
}

static smoe_status assign_attribute(tr *r, const tn *target, tv value)
{
    tn variable = {.kind = TN_NAME, .id = target->id, .at = target->at, .value = {.kind = TV_NONE}};
    tv ns = {0};
    TRY(tr_eval(r, &variable, &ns));
    if (ns.kind != TV_NAMESPACE) {
        return tr_fail(r, "cannot assign attribute on non-namespace object");
    }
    if (slice_starts(target->name, slice_from("_"))) {
        return tr_fail(r, "a namespace cannot have attributes that start with an underscore");
    }
    return tr_dict_put(r, ns.u.dict, tv_str(target->name), value);
}

smoe_status tr_assign(tr *r, const tn *target, tv value)
{
    r->at = target->at;
    if (target->kind == TN_NAME) {
        return tr_bind_name(r, r->scope, target->id, value);
    }
    if (target->kind == TN_NSREF) {
        return assign_attribute(r, target, value);
    }
    tv_iter *it = NULL;
    TRY(tr_iter(r, value, &it));
    size_t want = target->items.n, n = it->n - it->at;
    if (n != want) {
        return n > want
                   ? tr_fail(r, "too many values to unpack (expected %zu)", want)
                   : tr_fail(r, "not enough values to unpack (expected %zu, got %zu)", want, n);
    }
    for (size_t i = 0; i < want; i++) {
        TRY(tr_assign(r, target->items.items[i], it->items[it->at++]));
    }
    return SMOE_OK;
}

/* Runs body with its output caught. */
static smoe_status capture(tr *r, const tn_list *body, tv *out)
{
    buf b;
    buf *saved = r->out;
    tr_text_begin(&b);
    r->out = &b;
    smoe_status status = tr_exec(r, body);
    r->out = saved;
    return tr_text_end(r, &b, status, out);
}

static smoe_status exec_print(tr *r, const tn *node)
{
    for (size_t i = 0; i < node->items.n; i++) {
        tv v = {0};
        TRY(tr_eval(r, node->items.items[i], &v));
        r->at = node->items.items[i]->at;
        TRY(tr_put_str(r, r->out, v));
    }
    return SMOE_OK;
}

static smoe_status exec_if(tr *r, const tn *node)
{
    for (; node; node = node->c) {
        tv yes = tv_bool(true);
        TRY(node->a ? tr_eval(r, node->a, &yes) : SMOE_OK);
        if (tv_truth(yes)) {
            return tr_exec(r, &node->body);
        }
    }
    return SMOE_OK;
}

static smoe_status in_scope(tr *r, tr_scope *scope, const tn_list *body)
{
    tr_scope *saved = r->scope;
    r->scope = scope;
    TRY(tr_exec(r, body));
    r->scope = saved;
    return SMOE_OK;
}

/* One round: a fresh set of variables in the loop's scope. */
static smoe_status exec_round(tr *r, const tn *node, tv_loop *loop, tr_scope *scope, tv item)
{
    tr_scope *saved = r->scope;
    tr_scope_clear(scope);
    for (size_t i = 0; i < node->scope.n; i++) {
        TRY(tr_bind_name(r, scope, node->scope.ids[i], (tv){0}));
    }
    TRY(bind_special(r, scope, "loop", (tv){.kind = TV_LOOP, .u.loop = loop}));
    r->scope = scope;
    TRY(tr_assign(r, node->a, item));
    TRY(tr_exec(r, &node->body));
    r->scope = saved;
    return SMOE_OK;
}

static smoe_status exec_for(tr *r, const tn *node)
{
    tv iterable = {0}, item = {0};
    tr_scope *scope = NULL;
    bool found = false, completed = false;
    tv_loop *loop = tr_alloc(r, 1, sizeof *loop);
    if (!loop) {
        return tr_no_memory(r);
    }
    TRY(tr_eval(r, node->b, &iterable));
    r->at = node->b->at;
    *loop = (tv_loop){.node = node, .index0 = -1, .is_filtered = node->c != NULL};
    TRY(tr_iter(r, iterable, &loop->source));
    TRY(node->c ? tr_scope_new(r, r->scope, NULL, &loop->scope) : SMOE_OK);
    TRY(tr_scope_new(r, r->scope, NULL, &scope));
    for (;;) {
        TRY(tr_loop_next(r, loop, &found, &item));
        if (!found) {
            break;
        }
        TRY(exec_round(r, node, loop, scope, item));
        enum tr_control control = r->control;
        r->control = TR_GO;
        completed = completed ||
                    control == TR_GO; /* Jinja's else runs if no round reached its end */
        if (control == TR_BREAK) {
            break;
        }
    }
    if (completed || node->orelse.n == 0) {
        return SMOE_OK;
    }
    TRY(tr_scope_new(r, r->scope, &node->else_scope, &scope));
    return in_scope(r, scope, &node->orelse);
}

/* Runs body in a scope of its own and gives the text through the filters of node->b. */
static smoe_status caught_and_filtered(tr *r, const tn *node, tv *out)
{
    tr_scope *saved = r->scope;
    TRY(tr_scope_new(r, saved, &node->scope, &r->scope));
    TRY(capture(r, &node->body, &r->captured));
    if (r->control == TR_GO) {
        TRY(tr_eval(r, node->b, out));
    }
    r->scope = saved;
    return SMOE_OK;
}

static smoe_status exec_set_block(tr *r, const tn *node)
{
    tv v = {0};
    TRY(caught_and_filtered(r, node, &v));
    return r->control == TR_GO ? tr_assign(r, node->a, v) : SMOE_OK;
}

static smoe_status exec_filter_block(tr *r, const tn *node)
{
    tv v = {0};
    TRY(caught_and_filtered(r, node, &v));
    return r->control == TR_GO ? tr_put_str(r, r->out, v) : SMOE_OK;
}

static smoe_status exec_set(tr *r, const tn *node)
{
    tv v = {0};
    TRY(tr_eval(r, node->b, &v));
    return tr_assign(r, node->a, v);
}

static smoe_status new_macro(tr *r, const tn *node, tv *out)
{
    tv_macro *m = tr_alloc(r, 1, sizeof *m);
    if (!m) {
        return tr_no_memory(r);
    }
    *m = (tv_macro){node, r->scope};
    *out = (tv){.kind = TV_MACRO, .u.macro = m};
    return SMOE_OK;
}

static smoe_status exec_macro(tr *r, const tn *node)
{
    tv macro = {0};
    TRY(new_macro(r, node, &macro));
    return tr_bind_name(r, r->scope, node->id, macro);
}

static smoe_status exec_call_block(tr *r, const tn *node)
{
    tv caller = {0}, v = {0};
    TRY(new_macro(r, node->b, &caller));
    TRY(tr_eval_call(r, node->a, &caller, &v));
    r->at = node->at;
    return tr_put_str(r, r->out, v);
}

static smoe_status exec_with(tr *r, const tn *node)
{
    tr_scope *scope = NULL, *outer = r->scope;
    TRY(tr_scope_new(r, outer, &node->scope, &scope));
    for (size_t i = 0; i < node->items.n; i += 2) {
        tv v = {0};
        TRY(tr_eval(r, node->items.items[i + 1], &v));
        r->scope = scope;
        TRY(tr_assign(r, node->items.items[i], v));
        r->scope = outer;
    }
    return in_scope(r, scope, &node->body);
}

static smoe_status exec_generation(tr *r, const tn *node)
{
    tr_scope *scope = NULL;
    TRY(tr_scope_new(r, r->scope, &node->scope, &scope));
    return in_scope(r, scope, &node->body);
}

static smoe_status exec_node(tr *r, const tn *node)
{
    switch (node->kind) {
    case TN_TEXT:
        return tr_put(r, r->out, node->value.u.s);
    case TN_PRINT:
        return exec_print(r, node);
    case TN_IF:
        return exec_if(r, node);
    case TN_FOR:
        return exec_for(r, node);
    case TN_SET:
        return exec_set(r, node);
    case TN_SET_BLOCK:
        return exec_set_block(r, node);
    case TN_FILTER_BLOCK:
        return exec_filter_block(r, node);
    case TN_MACRO:
        return exec_macro(r, node);
    case TN_CALL_BLOCK:
        return exec_call_block(r, node);
    case TN_WITH:
        return exec_with(r, node);
    case TN_GENERATION:
        return exec_generation(r, node);
    default:
        r->control = node->kind == TN_BREAK ? TR_BREAK : TR_CONTINUE;
        return SMOE_OK;
    }
}

smoe_status tr_exec(tr *r, const tn_list *body)
{
    if (r->depth == TR_MAX_EVAL_DEPTH) {
        return tr_fail(r, "the template recurses too deeply");
    }
    r->depth++;
    for (size_t i = 0; i < body->n && r->control == TR_GO; i++) {
        r->at = body->items[i]->at;
        TRY(tr_spend(r, 1));
        TRY(exec_node(r, body->items[i]));
    }
    r->depth--;
    return SMOE_OK;
}

static bool has_param(const tn *node, const char *name)
{
    for (size_t i = 0; i < node->params.n; i++) {
        if (slice_is(node->params.items[i]->name, name)) {
            return true;
        }
    }
    return false;
}

/* Takes a named argument out of those not used yet; MISSING when it is not there. */
static tv take_kw(const tr_args *args, bool *used, slice name)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!used[i] && slice_eq(args->kw[i].key.u.s, name)) {
            used[i] = true;
            return args->kw[i].value;
        }
    }
    return (tv){0};
}

/* kwargs, varargs and caller, for a macro that mentions them; otherwise nothing may be left over.
 */
static smoe_status bind_rest(tr *r, const tn *node, tr_scope *scope, const tr_args *args,
                             bool *used)
{
    size_t n_params = node->params.n;
    tv v = {0};
    if ((node->special & TN_USES_CALLER) && !has_param(node, "caller")) {
        v = take_kw(args, used, slice_from("caller"));
        TRY(v.kind == TV_MISSING ? tr_undefined_hint(r, "No caller defined", &v) : SMOE_OK);
        TRY(bind_special(r, scope, "caller", v));
    }
    bool catches = (node->special & TN_USES_KWARGS) && !has_param(node, "kwargs");
    tv_dict *rest = NULL;
    TRY(catches ? tr_dict_new(r, args->n_kw, &rest) : SMOE_OK);
    for (size_t i = 0; i < args->n_kw; i++) {
        slice name = args->kw[i].key.u.s;
        if (!used[i] && !catches) {
            return tr_fail(r, "macro '%.*s' takes no keyword argument '%.*s'",
                           SLICE_ARG(node->name), name.len < 100 ? (int)name.len : 100, name.data);
        }
        TRY(!used[i] ? tr_dict_put(r, rest, args->kw[i].key, args->kw[i].value) : SMOE_OK);
    }
    TRY(catches ? bind_special(r, scope, "kwargs", (tv){.kind = TV_DICT, .u.dict = rest})
                : SMOE_OK);
    size_t n_extra = args->n_pos > n_params ? args->n_pos - n_params : 0;
    if ((node->special & TN_USES_VARARGS) && !has_param(node, "varargs")) {
        TRY(tr_list_new(r, TV_TUPLE, n_extra ? args->pos + n_params : NULL, n_extra, &v));
        return bind_special(r, scope, "varargs", v);
    }
    return n_extra ? tr_fail(r, "macro '%.*s' takes not more than %zu argument(s)",
                             SLICE_ARG(node->name), n_params)
                   : SMOE_OK;
}

static smoe_status bind_params(tr *r, const tn *node, tr_scope *scope, const tr_args *args)
{
    size_t n_params = node->params.n, first_default = n_params - node->items.n;
    bool *used = tr_alloc(r, args->n_kw, sizeof *used);
    if (!used) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n_params; i++) {
        const tn *param = node->params.items[i];
        tv v = i < args->n_pos ? args->pos[i] : take_kw(args, used, param->name);
        TRY(tr_bind_name(r, scope, param->id, v));
    }
    TRY(bind_rest(r, node, scope, args, used));
    for (size_t i = 0; i < n_params; i++) { /* defaults see the parameters, in order */
        const tn *param = node->params.items[i];
        tv v = {0};
        TRY(tr_eval(r, param, &v));
        if (v.kind != TV_UNDEFINED || v.u.undef != param->value.u.undef) {
            continue;
        }
        if (i >= first_default) {
            TRY(tr_eval(r, node->items.items[i - first_default], &v));
            TRY(tr_bind_name(r, scope, param->id, v));
        }
    }
    return SMOE_OK;
}

smoe_status tr_call_macro(tr *r, const tv_macro *m, const tr_args *args, tv *out)
{
    tr_scope *saved = r->scope, *scope = NULL;
    if (r->macro_depth == TR_MAX_MACRO_DEPTH) {
        return tr_fail(r, "macros call each other more than %d levels deep", TR_MAX_MACRO_DEPTH);
    }
    r->macro_depth++;
    TRY(tr_scope_new(r, m->scope, &m->node->scope, &scope));
    r->scope = scope;
    TRY(bind_params(r, m->node, scope, args));
    TRY(capture(r, &m->node->body, out));
    r->scope = saved;
    r->macro_depth--;
    return SMOE_OK;
}
