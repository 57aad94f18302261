/* template_eval.c: expressions to values. Every level counts towards a limit of depth, every node
 * towards the limit of steps; r->at follows along, so that any error knows its place. */
#include "tokenizer/template_render.h"

static smoe_status eval_list(tr *r, const tn_list *l, tv *out)
{
    for (size_t i = 0; i < l->n; i++) {
        TRY(tr_eval(r, l->items[i], &out[i]));
    }
    return SMOE_OK;
}

static smoe_status eval_name(tr *r, const tn *node, tv *out)
{
    *out = r->globals[node->id];
    for (const tr_scope *s = r->scope; s; s = s->parent) {
        for (size_t i = 0; i < s->n; i++) {
            if (s->items[i].id == node->id) {
                *out = s->items[i].value;
                s = NULL;
                break;
            }
        }
        if (!s) {
            break;
        }
    }
    if (out->kind == TV_MISSING) {
        *out = node->value;
    }
    return SMOE_OK;
}

static smoe_status eval_sequence(tr *r, const tn *node, tv *out)
{
    TRY(tr_list_new(r, node->kind == TN_LIST ? TV_LIST : TV_TUPLE, NULL, node->items.n, out));
    return eval_list(r, &node->items, out->u.list->items);
}

static smoe_status eval_dict(tr *r, const tn *node, tv *out)
{
    tv_dict *d = NULL;
    TRY(tr_dict_new(r, node->items.n / 2, &d));
    for (size_t i = 0; i < node->items.n; i += 2) {
        tv key = {0}, value = {0};
        TRY(tr_eval(r, node->items.items[i], &key));
        TRY(tr_eval(r, node->items.items[i + 1], &value));
        r->at = node->at;
        TRY(tr_dict_put(r, d, key, value));
    }
    *out = (tv){.kind = TV_DICT, .u.dict = d};
    return SMOE_OK;
}

static smoe_status eval_slice(tr *r, const tn *node, tv *out)
{
    tv v = {0}, bounds[3] = {tv_none(), tv_none(), tv_none()};
    TRY(tr_eval(r, node->a, &v));
    for (size_t i = 0; i < 3; i++) {
        if (node->items.items[i]) {
            TRY(tr_eval(r, node->items.items[i], &bounds[i]));
        }
    }
    if (bounds[2].kind == TV_NONE) {
        bounds[2] = tv_int(1);
    }
    r->at = node->at;
    return tr_slice(r, v, bounds, out);
}

static smoe_status spread_star(tr *r, const tn *star, tv **pos, size_t *n_pos)
{
    tv v = {0};
    tv_iter *it = NULL;
    TRY(tr_eval(r, star, &v));
    TRY(tr_iter(r, v, &it));
    size_t n = it->n - it->at;
    tv *all = tr_alloc(r, *n_pos + n, sizeof *all);
    if (!all) {
        return tr_no_memory(r);
    }
    if (*n_pos) {
        memcpy(all, *pos, *n_pos * sizeof *all);
    }
    if (n) {
        memcpy(all + *n_pos, it->items + it->at, n * sizeof *all);
    }
    it->at = it->n;
    *pos = all;
    *n_pos += n;
    return SMOE_OK;
}

static smoe_status star_star_value(tr *r, const tn *node, tv *out)
{
    TRY(tr_eval(r, node, out));
    if (out->kind != TV_DICT) {
        return tr_fail(r, "the argument after ** must be a mapping, not %s", tv_type_name(*out));
    }
    for (size_t i = 0; i < out->u.dict->n; i++) {
        if (!tv_is_str(out->u.dict->items[i].key)) {
            return tr_fail(r, "keywords must be strings");
        }
    }
    return SMOE_OK;
}

/* caller: what a call block passes along, or NULL. */
static smoe_status eval_args(tr *r, const tn_args *args, const tv *caller, tr_args *out)
{
    tv *pos = NULL, more = {0};
    size_t n_pos = args->pos.n, n_kw = 0, n_more = 0;
    if (n_pos) {
        pos = tr_alloc(r, n_pos, sizeof *pos);
        if (!pos) {
            return tr_no_memory(r);
        }
        TRY(eval_list(r, &args->pos, pos));
    }
    if (args->star) {
        TRY(spread_star(r, args->star, &pos, &n_pos));
    }
    if (args->star_star) {
        TRY(star_star_value(r, args->star_star, &more));
        n_more = more.u.dict->n;
    }
    tv_pair *kw = NULL;
    if (args->kw.n + n_more + (caller != NULL)) {
        kw = tr_alloc(r, args->kw.n + n_more + 1, sizeof *kw);
        if (!kw) {
            return tr_no_memory(r);
        }
    }
    for (; n_kw < args->kw.n; n_kw++) {
        kw[n_kw].key = tv_str(args->kw_names[n_kw]);
        TRY(tr_eval(r, args->kw.items[n_kw], &kw[n_kw].value));
    }
    for (size_t i = 0; i < n_more; i++) {
        kw[n_kw++] = more.u.dict->items[i];
    }
    if (caller) {
        kw[n_kw++] = (tv_pair){tv_cstr("caller"), *caller};
    }
    *out = (tr_args){pos, n_pos, kw, n_kw};
    return SMOE_OK;
}

smoe_status tr_eval_call(tr *r, const tn *node, const tv *caller, tv *out)
{
    tv callee = {0};
    tr_args args;
    TRY(tr_eval(r, node->a, &callee));
    TRY(eval_args(r, node->args, caller, &args));
    r->at = node->at;
    return tr_call(r, callee, &args, out);
}

static smoe_status eval_filter(tr *r, const tn *node, tv *out)
{
    tv in = {0};
    tr_args args = {0};
    TRY(tr_eval(r, node->a, &in));
    if (node->args) {
        TRY(eval_args(r, node->args, NULL, &args));
    }
    r->at = node->at;
    return tr_call_filter(r, node->id, in, &args, out);
}

static smoe_status eval_test(tr *r, const tn *node, tv *out)
{
    tv in = {0};
    tr_args args = {0};
    bool yes = false;
    TRY(tr_eval(r, node->a, &in));
    if (node->args) {
        TRY(eval_args(r, node->args, NULL, &args));
    }
    r->at = node->at;
    TRY(tr_call_test(r, node->id, in, &args, &yes));
    *out = tv_bool(yes != node->negated);
    return SMOE_OK;
}

static smoe_status eval_arith(tr *r, const tn *node, tv *out)
{
    TRY(tr_eval(r, node->items.items[0], out));
    for (size_t i = 1; i < node->items.n; i++) {
        tv right = {0};
        TRY(tr_eval(r, node->items.items[i], &right));
        r->at = node->at;
        TRY(tr_arith(r, (enum tn_op)node->items.items[i]->op, *out, right, out));
    }
    return SMOE_OK;
}

static smoe_status put_concat(tr *r, const tn *node, buf *b)
{
    for (size_t i = 0; i < node->items.n; i++) {
        tv v = {0};
        TRY(tr_eval(r, node->items.items[i], &v));
        r->at = node->at;
        TRY(tr_put_str(r, b, v));
    }
    return SMOE_OK;
}

static smoe_status eval_concat(tr *r, const tn *node, tv *out)
{
    buf b;
    tr_text_begin(&b);
    return tr_text_end(r, &b, put_concat(r, node, &b), out);
}

static smoe_status eval_compare(tr *r, const tn *node, tv *out)
{
    tv left = {0}, right = {0};
    bool yes = true;
    TRY(tr_eval(r, node->items.items[0], &left));
    for (size_t i = 1; i < node->items.n && yes; i++, left = right) {
        TRY(tr_eval(r, node->items.items[i], &right));
        r->at = node->at;
        TRY(tr_compare(r, (enum tn_op)node->items.items[i]->op, left, right, &yes));
    }
    *out = tv_bool(yes);
    return SMOE_OK;
}

static smoe_status eval_logic(tr *r, const tn *node, tv *out)
{
    for (size_t i = 0; i < node->items.n; i++) {
        TRY(tr_eval(r, node->items.items[i], out));
        if (tv_truth(*out) == (node->kind == TN_OR)) {
            break;
        }
    }
    return SMOE_OK;
}

static smoe_status eval_cond(tr *r, const tn *node, tv *out)
{
    tv yes = {0};
    TRY(tr_eval(r, node->a, &yes));
    if (tv_truth(yes) || node->c) {
        return tr_eval(r, tv_truth(yes) ? node->b : node->c, out);
    }
    return tr_undefined_hint(r,
                             "the inline if-expression evaluated to false and no else section was "
                             "defined",
                             out);
}

static smoe_status eval_unary(tr *r, const tn *node, tv *out)
{
    tv v = {0};
    TRY(tr_eval(r, node->a, &v));
    r->at = node->at;
    if (node->kind == TN_NOT) {
        *out = tv_bool(!tv_truth(v));
        return SMOE_OK;
    }
    return tr_negate(r, v, node->kind == TN_NEG, out);
}

static smoe_status eval_lookup(tr *r, const tn *node, tv *out)
{
    tv v = {0}, key = {0};
    TRY(tr_eval(r, node->a, &v));
    TRY(node->kind == TN_ITEM ? tr_eval(r, node->b, &key) : SMOE_OK);
    r->at = node->at;
    return node->kind == TN_ITEM ? tr_item(r, v, key, out) : tr_attribute(r, v, node->name, out);
}

static smoe_status eval_node(tr *r, const tn *node, tv *out)
{
    switch (node->kind) {
    case TN_CONST:
        *out = node->value;
        return SMOE_OK;
    case TN_NAME:
        return eval_name(r, node, out);
    case TN_TUPLE:
    case TN_LIST:
        return eval_sequence(r, node, out);
    case TN_DICT:
        return eval_dict(r, node, out);
    case TN_ATTR:
    case TN_ITEM:
        return eval_lookup(r, node, out);
    case TN_SLICE:
        return eval_slice(r, node, out);
    case TN_CALL:
        return tr_eval_call(r, node, NULL, out);
    case TN_FILTER:
        return eval_filter(r, node, out);
    case TN_TEST:
        return eval_test(r, node, out);
    case TN_NEG:
    case TN_POS:
    case TN_NOT:
        return eval_unary(r, node, out);
    case TN_ARITH:
        return eval_arith(r, node, out);
    case TN_CONCAT:
        return eval_concat(r, node, out);
    case TN_COMPARE:
        return eval_compare(r, node, out);
    case TN_AND:
    case TN_OR:
        return eval_logic(r, node, out);
    case TN_COND:
        return eval_cond(r, node, out);
    case TN_CAPTURED:
        *out = r->captured;
        return SMOE_OK;
    default:
        return err_set(r->err, SMOE_INTERNAL,
                       "a statement of the chat template stands as an expression");
    }
}

smoe_status tr_eval(tr *r, const tn *node, tv *out)
{
    r->at = node->at;
    TRY(tr_spend(r, 1));
    if (r->depth == TR_MAX_EVAL_DEPTH) {
        return tr_fail(r, "the template recurses too deeply");
    }
    r->depth++;
    smoe_status status = eval_node(r, node, out);
    r->depth--;
    return status;
}
