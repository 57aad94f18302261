/* template_expr.c: expressions. Chains of one precedence (a + b - c, a and b and c) become one node
 * with a list, so that long chains are not deep. Calls of functions nobody can provide, unknown
 * filters and unknown tests are refused here, with their position. */
#include "tokenizer/template_builtins.h"
#include "tokenizer/template_parse.h"

static smoe_status p_primary(parser *p, bool with_ns, tn **out);
static smoe_status p_unary(parser *p, bool with_filter, tn **out);
static smoe_status p_args(parser *p, tn_args **out);

static smoe_status list_node(parser *p, const node_list *l, enum tn_kind kind, uint32_t at,
                             tn **out)
{
    TRY(p_node(p, kind, out));
    (*out)->at = at;
    (*out)->items = (tn_list){l->items, l->n};
    return SMOE_OK;
}

typedef smoe_status operand_fn(parser *p, tn **out);
/* The operator at the current token, skipped; -1 when it is none of this level. */
typedef int operator_fn(parser *p);

/* operand (operator operand)*. The offset of the node is that of its first operator. */
static smoe_status p_chain(parser *p, enum tn_kind kind, operand_fn *operand, operator_fn *operator,
                           tn ** out)
{
    node_list l = {0};
    tn *item = NULL;
    TRY(operand(p, &item));
    TRY(pl_add(p, &l, item));
    uint32_t at = p->tok->at;
    for (int op; (op = operator(p)) >= 0;) {
        TRY(operand(p, &item));
        item->op = (uint8_t)op;
        TRY(pl_add(p, &l, item));
    }
    if (l.n == 1) {
        *out = item;
        return SMOE_OK;
    }
    return list_node(p, &l, kind, at, out);
}

static int find_op(parser *p, const char *const *texts, const int *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p_skip_op(p, texts[i])) {
            return ops[i];
        }
    }
    return -1;
}

static int pow_op(parser *p)
{
    return p_skip_op(p, "**") ? OP_POW : -1;
}

static int mul_op(parser *p)
{
    static const char *const texts[] = {"*", "/", "//", "%"};
    static const int ops[] = {OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD};
    return find_op(p, texts, ops, 4);
}

static int concat_op(parser *p)
{
    return p_skip_op(p, "~") ? 0 : -1;
}

static int add_op(parser *p)
{
    static const char *const texts[] = {"+", "-"};
    static const int ops[] = {OP_ADD, OP_SUB};
    return find_op(p, texts, ops, 2);
}

static int compare_op(parser *p)
{
    static const char *const texts[] = {"==", "!=", "<", "<=", ">", ">="};
    static const int ops[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
    if (p_skip_name(p, "in")) {
        return OP_IN;
    }
    if (p_is_name(p, "not") && p->tok[1].kind == TT_NAME && slice_is(p->tok[1].text, "in")) {
        p->tok += 2;
        return OP_NOT_IN;
    }
    return find_op(p, texts, ops, 6);
}

static int and_op(parser *p)
{
    return p_skip_name(p, "and") ? 0 : -1;
}

static int or_op(parser *p)
{
    return p_skip_name(p, "or") ? 0 : -1;
}

static smoe_status p_operand(parser *p, tn **out)
{
    return p_unary(p, true, out);
}

static smoe_status p_pow(parser *p, tn **out)
{
    return p_chain(p, TN_ARITH, p_operand, pow_op, out);
}

static smoe_status p_mul(parser *p, tn **out)
{
    return p_chain(p, TN_ARITH, p_pow, mul_op, out);
}

static smoe_status p_concat(parser *p, tn **out)
{
    return p_chain(p, TN_CONCAT, p_mul, concat_op, out);
}

static smoe_status p_add(parser *p, tn **out)
{
    return p_chain(p, TN_ARITH, p_concat, add_op, out);
}

static smoe_status p_compare(parser *p, tn **out)
{
    return p_chain(p, TN_COMPARE, p_add, compare_op, out);
}

static smoe_status p_not(parser *p, tn **out)
{
    if (!p_is_name(p, "not")) {
        return p_compare(p, out);
    }
    tn *node;
    TRY(p_node(p, TN_NOT, &node));
    p->tok++;
    TRY(p_enter(p));
    TRY(p_not(p, &node->a));
    p_leave(p);
    *out = node;
    return SMOE_OK;
}

static smoe_status p_and(parser *p, tn **out)
{
    return p_chain(p, TN_AND, p_not, and_op, out);
}

static smoe_status p_or(parser *p, tn **out)
{
    return p_chain(p, TN_OR, p_and, or_op, out);
}

smoe_status p_expression(parser *p, bool with_cond, tn **out)
{
    TRY(p_enter(p));
    tn *left = NULL;
    TRY(p_or(p, &left));
    while (with_cond && p_is_name(p, "if")) {
        tn *cond;
        TRY(p_node(p, TN_COND, &cond));
        p->tok++;
        cond->b = left;
        TRY(p_or(p, &cond->a));
        if (p_skip_name(p, "else")) {
            TRY(p_expression(p, true, &cond->c));
        }
        left = cond;
        TRY(p_enter(p)); /* a loop here nests to the left */
        p->depth--;
    }
    p_leave(p);
    *out = left;
    return SMOE_OK;
}

static bool is_tuple_end(const parser *p, const char *end_name)
{
    return p->tok->kind == TT_VAR_END || p->tok->kind == TT_BLOCK_END || p_is_op(p, ")") ||
           (end_name && p_is_name(p, end_name));
}

/* simple: names and literals only, as in targets. parens: "()" is a tuple. */
static smoe_status p_tuple_of(parser *p, bool simple, bool with_ns, bool with_cond,
                              const char *end_name, bool parens, tn **out)
{
    node_list l = {0};
    bool is_tuple = false;
    uint32_t at = p->tok->at;
    for (;;) {
        if (l.n) {
            TRY(p_expect_op(p, ","));
        }
        if (is_tuple_end(p, end_name)) {
            break;
        }
        tn *item = NULL;
        TRY(simple ? p_primary(p, with_ns, &item) : p_expression(p, with_cond, &item));
        TRY(pl_add(p, &l, item));
        if (!p_is_op(p, ",")) {
            break;
        }
        is_tuple = true;
    }
    if (!is_tuple && l.n == 1) {
        *out = l.items[0];
        return SMOE_OK;
    }
    if (!is_tuple && !parens) {
        return p_fail(p, "expected an expression, found '%.*s'", SLICE_ARG(p->tok->text));
    }
    return list_node(p, &l, TN_TUPLE, at, out);
}

smoe_status p_tuple(parser *p, bool with_cond, const char *end_name, tn **out)
{
    return p_tuple_of(p, false, false, with_cond, end_name, false, out);
}

static smoe_status check_target(parser *p, tn *target)
{
    switch (target->kind) {
    case TN_NAME:
        p->t->names[target->id].is_stored = true;
        return SMOE_OK;
    case TN_NSREF:
        return SMOE_OK;
    case TN_TUPLE:
        for (size_t i = 0; i < target->items.n; i++) {
            TRY(check_target(p, target->items.items[i]));
        }
        return SMOE_OK;
    default:
        return template_fail(p->t->source, target->at, p->err, SMOE_FORMAT,
                             "only names can be assigned to");
    }
}

smoe_status p_target(parser *p, bool with_ns, const char *end_name, tn **out)
{
    TRY(p_tuple_of(p, true, with_ns, true, end_name, false, out));
    return check_target(p, *out);
}

static smoe_status p_list(parser *p, tn **out)
{
    TRY(p_node(p, TN_LIST, out));
    node_list l = {0};
    p->tok++;
    while (!p_is_op(p, "]")) {
        if (l.n) {
            TRY(p_expect_op(p, ","));
            if (p_is_op(p, "]")) {
                break;
            }
        }
        tn *item = NULL;
        TRY(p_expression(p, true, &item));
        TRY(pl_add(p, &l, item));
    }
    (*out)->items = (tn_list){l.items, l.n};
    return p_expect_op(p, "]");
}

static smoe_status p_dict(parser *p, tn **out)
{
    TRY(p_node(p, TN_DICT, out));
    node_list l = {0};
    p->tok++;
    while (!p_is_op(p, "}")) {
        if (l.n) {
            TRY(p_expect_op(p, ","));
            if (p_is_op(p, "}")) {
                break;
            }
        }
        tn *key = NULL, *value = NULL;
        TRY(p_expression(p, true, &key));
        TRY(p_expect_op(p, ":"));
        TRY(p_expression(p, true, &value));
        TRY(pl_add(p, &l, key));
        TRY(pl_add(p, &l, value));
    }
    (*out)->items = (tn_list){l.items, l.n};
    return p_expect_op(p, "}");
}

static smoe_status p_strings(parser *p, tn **out)
{
    TRY(p_node(p, TN_CONST, out));
    size_t n = 0;
    const template_token *first = p->tok;
    for (; p->tok->kind == TT_STR; p->tok++) {
        n += p->tok->text.len;
    }
    char *text = (char *)first->text.data;
    if (p->tok - first > 1) {
        text = arena_alloc(&p->t->a, n + 1);
        if (!text) {
            return err_nomem(p->err, "the chat template", n);
        }
        size_t len = 0;
        for (const template_token *k = first; k < p->tok; k++) {
            memcpy(text + len, k->text.data, k->text.len);
            len += k->text.len;
        }
    }
    (*out)->value = tv_str((slice){text, n});
    return SMOE_OK;
}

static smoe_status p_name_or_literal(parser *p, bool with_ns, tn **out)
{
    static const struct {
        const char *text;
        uint8_t kind;
        bool b;
    } literals[] = {{"true", TV_BOOL, true},   {"True", TV_BOOL, true},  {"false", TV_BOOL, false},
                    {"False", TV_BOOL, false}, {"none", TV_NONE, false}, {"None", TV_NONE, false}};
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        if (p_is_name(p, literals[i].text)) {
            TRY(p_node(p, TN_CONST, out));
            (*out)->value = (tv){.kind = literals[i].kind, .u.b = literals[i].b};
            p->tok++;
            return SMOE_OK;
        }
    }
    TRY(p_name_node(p, out));
    if (with_ns && p_skip_op(p, ".")) {
        (*out)->kind = TN_NSREF;
        (*out)->name = p->tok->text;
        if (p->tok->kind != TT_NAME) {
            return p_fail(p, "expected a name after the dot, found '%.*s'",
                          SLICE_ARG(p->tok->text));
        }
        p->tok++;
    }
    return SMOE_OK;
}

static smoe_status p_primary(parser *p, bool with_ns, tn **out)
{
    switch (p->tok->kind) {
    case TT_NAME:
        return p_name_or_literal(p, with_ns, out);
    case TT_STR:
        return p_strings(p, out);
    case TT_INT:
    case TT_FLOAT:
        TRY(p_node(p, TN_CONST, out));
        (*out)->value = p->tok->kind == TT_INT ? tv_int(p->tok->num.i) : tv_float(p->tok->num.f);
        p->tok++;
        return SMOE_OK;
    default:
        break;
    }
    if (p_is_op(p, "(")) {
        TRY(p_enter(p));
        p->tok++;
        TRY(p_tuple_of(p, false, false, true, NULL, true, out));
        p_leave(p);
        return p_expect_op(p, ")");
    }
    if (p_is_op(p, "[")) {
        return p_list(p, out);
    }
    if (p_is_op(p, "{")) {
        return p_dict(p, out);
    }
    return p_fail(p, "expected an expression, found '%.*s'", SLICE_ARG(p->tok->text));
}

/* After "[": one index or start:stop:step. */
static smoe_status p_subscript(parser *p, tn *node)
{
    tn *parts[3] = {NULL, NULL, NULL};
    size_t i = 0;
    bool is_slice = false;
    for (;;) {
        if (p_is_op(p, ":")) {
            if (i == 2) {
                return p_fail(p, "a slice has at most three parts");
            }
            is_slice = true;
            i++;
            p->tok++;
        } else if (p_is_op(p, "]") || p_is_op(p, ",")) {
            break;
        } else if (parts[i]) {
            return p_fail(p, "expected ']', found '%.*s'", SLICE_ARG(p->tok->text));
        } else {
            TRY(p_expression(p, true, &parts[i]));
        }
    }
    if (!is_slice && !parts[0]) {
        return p_fail(p, "expected an index, found '%.*s'", SLICE_ARG(p->tok->text));
    }
    if (!is_slice) {
        node->kind = TN_ITEM;
        node->b = parts[0];
        return SMOE_OK;
    }
    node_list l = {0};
    for (i = 0; i < 3; i++) {
        TRY(pl_add(p, &l, parts[i]));
    }
    node->items = (tn_list){l.items, 3};
    return SMOE_OK;
}

static smoe_status p_item(parser *p, tn *in, tn **out)
{
    TRY(p_node(p, TN_SLICE, out));
    (*out)->a = in;
    p->tok++;
    if (p_is_op(p, "]")) { /* x[]: the empty tuple as a key */
        return p_fail(p, "expected an index, found ']'");
    }
    TRY(p_subscript(p, *out));
    if (!p_is_op(p, ",")) {
        return p_expect_op(p, "]");
    }
    if ((*out)->kind == TN_SLICE) {
        return p_fail(p, "slices of several dimensions are not supported");
    }
    tn *tuple;
    TRY(p_node(p, TN_TUPLE, &tuple));
    node_list l = {0};
    TRY(pl_add(p, &l, (*out)->b));
    while (p_skip_op(p, ",")) {
        tn *item = NULL;
        TRY(p_expression(p, true, &item));
        TRY(pl_add(p, &l, item));
    }
    tuple->items = (tn_list){l.items, l.n};
    (*out)->b = tuple;
    return p_expect_op(p, "]");
}

static smoe_status p_attribute(parser *p, tn *in, tn **out)
{
    p->tok++;
    if (p->tok->kind == TT_INT) {
        TRY(p_node(p, TN_ITEM, out));
        TRY(p_node(p, TN_CONST, &(*out)->b));
        (*out)->b->value = tv_int(p->tok->num.i);
    } else if (p->tok->kind == TT_NAME) {
        TRY(p_node(p, TN_ATTR, out));
        (*out)->name = p->tok->text;
    } else {
        return p_fail(p, "expected a name or a number after the dot, found '%.*s'",
                      SLICE_ARG(p->tok->text));
    }
    p->tok++;
    (*out)->a = in;
    return SMOE_OK;
}

static smoe_status p_call(parser *p, tn *in, tn **out)
{
    TRY(p_node(p, TN_CALL, out));
    (*out)->a = in;
    (*out)->at = in->kind == TN_ATTR || in->kind == TN_NAME ? in->at : (*out)->at;
    return p_args(p, &(*out)->args);
}

/* A loop here builds a tree that is deep on the left; its depth is bounded like recursion. */
static smoe_status deepen(parser *p, unsigned *n)
{
    if (++*n > TEMPLATE_MAX_DEPTH) {
        return p_fail(p, "an expression is nested more than %d levels deep", TEMPLATE_MAX_DEPTH);
    }
    return SMOE_OK;
}

static smoe_status p_postfix(parser *p, tn *in, unsigned *n, tn **out)
{
    for (;;) {
        if (p_is_op(p, ".")) {
            TRY(p_attribute(p, in, &in));
        } else if (p_is_op(p, "[")) {
            TRY(p_item(p, in, &in));
        } else if (p_is_op(p, "(")) {
            TRY(p_call(p, in, &in));
        } else {
            *out = in;
            return SMOE_OK;
        }
        TRY(deepen(p, n));
    }
}

/* The name of a filter or test, "a.b" included (no such thing exists, but it parses). */
static smoe_status p_builtin(parser *p, bool is_filter, uint32_t *id)
{
    if (p->tok->kind != TT_NAME) {
        return p_fail(p, "expected the name of a %s, found '%.*s'", is_filter ? "filter" : "test",
                      SLICE_ARG(p->tok->text));
    }
    const template_token *first = p->tok++;
    slice name = first->text;
    while (p_is_op(p, ".") && p->tok[1].kind == TT_NAME) { /* a dotted name, which nothing has */
        name.len = (size_t)(p->tok[1].text.data + p->tok[1].text.len - name.data);
        p->tok += 2;
    }
    int found = is_filter ? template_filter_find(name) : template_test_find(name);
    if (found < 0) {
        return template_fail(p->t->source, first->at, p->err, SMOE_UNSUPPORTED,
                             "the %s \"%.*s\" is not supported", is_filter ? "filter" : "test",
                             SLICE_ARG(name));
    }
    *id = (uint32_t)found;
    return SMOE_OK;
}

/* map('upper'), select('string'), selectattr('x', 'eq', 1): a literal name is checked now. */
static smoe_status check_inner_name(parser *p, const tn *filter)
{
    bool is_filter;
    int at = template_filter_inner(filter->id, &is_filter);
    if (at < 0 || !filter->args || filter->args->pos.n <= (size_t)at) {
        return SMOE_OK;
    }
    const tn *arg = filter->args->pos.items[at];
    if (arg->kind != TN_CONST || !tv_is_str(arg->value)) {
        return SMOE_OK;
    }
    slice name = arg->value.u.s;
    if ((is_filter ? template_filter_find(name) : template_test_find(name)) < 0) {
        return template_fail(p->t->source, arg->at, p->err, SMOE_UNSUPPORTED,
                             "the %s \"%.*s\" is not supported", is_filter ? "filter" : "test",
                             SLICE_ARG(name));
    }
    return SMOE_OK;
}

static smoe_status p_filter(parser *p, tn *in, tn **out)
{
    tn *node;
    TRY(p_node(p, TN_FILTER, &node));
    node->a = in;
    TRY(p_builtin(p, true, &node->id));
    if (p_is_op(p, "(")) {
        TRY(p_args(p, &node->args));
    }
    *out = node;
    return check_inner_name(p, node);
}

smoe_status p_filters(parser *p, tn *in, tn **out)
{
    unsigned n = 0;
    do {
        TRY(p_filter(p, in, &in));
        TRY(deepen(p, &n));
    } while (p_skip_op(p, "|"));
    *out = in;
    return SMOE_OK;
}

/* After "is": [not] name [argument]. */
static smoe_status p_test(parser *p, tn *in, tn **out)
{
    tn *node;
    TRY(p_node(p, TN_TEST, &node));
    node->a = in;
    node->negated = p_skip_name(p, "not");
    TRY(p_builtin(p, false, &node->id));
    *out = node;
    uint8_t kind = p->tok->kind;
    if (p_is_op(p, "(")) {
        return p_args(p, &node->args);
    }
    bool has_arg = kind == TT_STR || kind == TT_INT || kind == TT_FLOAT || p_is_op(p, "[") ||
                   p_is_op(p, "{") ||
                   (kind == TT_NAME && !p_is_name(p, "else") && !p_is_name(p, "or") &&
                    !p_is_name(p, "and"));
    if (!has_arg) {
        return SMOE_OK;
    }
    if (p_is_name(p, "is")) {
        return p_fail(p, "tests cannot be chained with is");
    }
    tn *arg = NULL;
    unsigned n = 0;
    TRY(p_primary(p, false, &arg));
    TRY(p_postfix(p, arg, &n, &arg));
    node_list l = {0};
    TRY(pl_add(p, &l, arg));
    node->args = arena_alloc(&p->t->a, sizeof *node->args);
    if (!node->args) {
        return err_nomem(p->err, "the chat template", sizeof *node->args);
    }
    node->args->pos = (tn_list){l.items, 1};
    return SMOE_OK;
}

static smoe_status p_unary(parser *p, bool with_filter, tn **out)
{
    TRY(p_enter(p));
    tn *node = NULL;
    if (p_is_op(p, "-") || p_is_op(p, "+")) {
        TRY(p_node(p, p_is_op(p, "-") ? TN_NEG : TN_POS, &node));
        p->tok++;
        TRY(p_unary(p, false, &node->a));
    } else {
        TRY(p_primary(p, false, &node));
    }
    unsigned n = 0;
    TRY(p_postfix(p, node, &n, &node));
    while (with_filter) {
        if (p_skip_op(p, "|")) {
            TRY(p_filter(p, node, &node));
        } else if (p_skip_name(p, "is")) {
            TRY(p_test(p, node, &node));
        } else if (p_is_op(p, "(")) {
            TRY(p_call(p, node, &node));
        } else {
            break;
        }
        TRY(deepen(p, &n));
    }
    p_leave(p);
    *out = node;
    return SMOE_OK;
}

static smoe_status p_one_arg(parser *p, tn_args *args, node_list *pos, node_list *kw,
                             slice *kw_names)
{
    tn *value = NULL;
    if (p_is_op(p, "*") || p_is_op(p, "**")) {
        bool twice = p_is_op(p, "**");
        if (args->star_star || (!twice && args->star)) {
            return p_fail(p, "invalid syntax for the arguments of a call");
        }
        p->tok++;
        return p_expression(p, true, twice ? &args->star_star : &args->star);
    }
    bool is_kw = p->tok->kind == TT_NAME && p->tok[1].kind == TT_OP &&
                 slice_is(p->tok[1].text, "=");
    if (args->star_star || (!is_kw && (args->star || kw->n))) {
        return p_fail(p, "a positional argument after a named one");
    }
    if (!is_kw) {
        TRY(p_expression(p, true, &value));
        return pl_add(p, pos, value);
    }
    slice name = p->tok->text;
    for (size_t i = 0; i < kw->n; i++) {
        if (slice_eq(kw_names[i], name)) {
            return p_fail(p, "the argument \"%.*s\" is given twice", SLICE_ARG(name));
        }
    }
    if (kw->n == TEMPLATE_MAX_KW) {
        return p_fail(p, "a call has more than %d named arguments", TEMPLATE_MAX_KW);
    }
    kw_names[kw->n] = name;
    p->tok += 2;
    TRY(p_expression(p, true, &value));
    return pl_add(p, kw, value);
}

static smoe_status p_args(parser *p, tn_args **out)
{
    arena *a = &p->t->a;
    tn_args *args = arena_alloc(a, sizeof *args);
    node_list pos = {0}, kw = {0};
    slice names[TEMPLATE_MAX_KW];
    if (!args) {
        return err_nomem(p->err, "the chat template", sizeof *args);
    }
    TRY(p_expect_op(p, "("));
    for (bool first = true; !p_is_op(p, ")"); first = false) {
        if (!first) {
            TRY(p_expect_op(p, ","));
            if (p_is_op(p, ")")) {
                break;
            }
        }
        TRY(p_one_arg(p, args, &pos, &kw, names));
    }
    TRY(p_expect_op(p, ")"));
    args->pos = (tn_list){pos.items, pos.n};
    args->kw = (tn_list){kw.items, kw.n};
    args->kw_names = arena_array(a, kw.n, sizeof *names);
    if (!args->kw_names) {
        return err_nomem(p->err, "the chat template", kw.n * sizeof *names);
    }
    if (kw.n) {
        memcpy(args->kw_names, names, kw.n * sizeof *names);
    }
    *out = args;
    return SMOE_OK;
}
