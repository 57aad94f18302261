/* template_parse.h: what the two halves of the parser share. template_parse.c reads statements,
 * template_expr.c expressions. Both are recursive descent in Jinja's own order of precedence. */
#ifndef TOKENIZER_TEMPLATE_PARSE_H
#define TOKENIZER_TEMPLATE_PARSE_H

#include "tokenizer/template_lex.h"

typedef struct parser {
    smoe_template *t;
    const template_token *tok; /* the current token */
    unsigned depth;            /* of the recursion */
    unsigned n_loops;          /* enclosing loops that break and continue can reach */
    uint8_t special;           /* enum tn_special: names read so far in this macro body */
    smoe_err *err;
} parser;

/* A growing list of nodes, moved into the arena by pl_finish. */
typedef struct node_list {
    tn **items;
    size_t n, cap;
} node_list;

smoe_status pl_add(parser *p, node_list *l, tn *node);

smoe_status p_fail(parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
smoe_status p_enter(parser *p); /* one level deeper; every return path then calls p_leave */
static inline void p_leave(parser *p)
{
    p->depth--;
}
/* A node at the offset of the current token. */
smoe_status p_node(parser *p, enum tn_kind kind, tn **out);
smoe_status p_name_node(parser *p, tn **out); /* the current token, a name, as TN_NAME; skips it */

bool p_is_op(const parser *p, const char *op);
bool p_is_name(const parser *p, const char *name);
bool p_skip_op(parser *p, const char *op); /* skips it if it is there */
bool p_skip_name(parser *p, const char *name);
smoe_status p_expect_op(parser *p, const char *op);
smoe_status p_expect_name(parser *p, const char *name);

smoe_status p_expression(parser *p, bool with_cond, tn **out);
/* One expression, or a tuple of those separated by commas. end_name: a name that ends it, or NULL.
 */
smoe_status p_tuple(parser *p, bool with_cond, const char *end_name, tn **out);
/* A target of set, for or with. */
smoe_status p_target(parser *p, bool with_ns, const char *end_name, tn **out);
/* "name(args)|name ..." applied to in; the current token is the first name. */
smoe_status p_filters(parser *p, tn *in, tn **out);

#endif
