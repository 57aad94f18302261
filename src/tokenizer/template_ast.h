/* template_ast.h: the syntax tree of a template. One node type; which field means what is said at
 * each kind. The tree, its names and its constants lie in the template's arena and never change
 * after load, so a template can be rendered by many threads at once. */
#ifndef TOKENIZER_TEMPLATE_AST_H
#define TOKENIZER_TEMPLATE_AST_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "tokenizer/template_value.h"

enum tn_kind {
    /* expressions */
    TN_CONST,    /* value */
    TN_NAME,     /* name, id; value: the undefined it gives when unbound */
    TN_TUPLE,    /* items; also a target */
    TN_LIST,     /* items */
    TN_DICT,     /* items: key, value, key, value, ... */
    TN_ATTR,     /* a . name */
    TN_ITEM,     /* a [ b ] */
    TN_SLICE,    /* a [ items[0] : items[1] : items[2] ], each may be NULL */
    TN_CALL,     /* a ( args ) */
    TN_FILTER,   /* a | id ( args ) */
    TN_TEST,     /* a is id ( args ) */
    TN_NEG,      /* - a */
    TN_POS,      /* + a */
    TN_NOT,      /* not a */
    TN_ARITH,    /* items, each joined to the result so far by its op */
    TN_CONCAT,   /* items joined by ~ */
    TN_COMPARE,  /* items chained by their op */
    TN_AND,      /* items */
    TN_OR,       /* items */
    TN_COND,     /* b if a else c (c may be NULL) */
    TN_CAPTURED, /* the text a filter block or a set block caught */
    TN_NSREF,    /* name . attribute, only as a target: id, name = the attribute */
    /* statements */
    TN_TEXT,         /* value */
    TN_PRINT,        /* items */
    TN_IF,           /* a (NULL: else), body; c: the next branch */
    TN_FOR,          /* a: target, b: iterable, c: filter or NULL, body, orelse */
    TN_SET,          /* a: target, b: value */
    TN_SET_BLOCK,    /* a: target, b: what to make of the captured text, body */
    TN_MACRO,        /* id, name, params, items: defaults of the last ones, body, special */
    TN_CALL_BLOCK,   /* a: the call, b: its caller as a TN_MACRO */
    TN_FILTER_BLOCK, /* b: the filter over TN_CAPTURED, body */
    TN_WITH,         /* items: target, value, target, value, ...; body */
    TN_GENERATION,   /* body */
    TN_BREAK,
    TN_CONTINUE,
};

enum tn_op {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
};

/* Names that a macro receives only if its body mentions them. */
enum tn_special { TN_USES_CALLER = 1, TN_USES_KWARGS = 2, TN_USES_VARARGS = 4 };

typedef struct tn tn;

typedef struct tn_list {
    tn **items;
    size_t n;
} tn_list;

/* Names that a new scope shadows with "undefined" at its start (see template_scope.c). */
typedef struct tn_scope {
    uint32_t *ids;
    size_t n;
} tn_scope;

typedef struct tn_args {
    tn_list pos;
    tn_list kw;
    slice *kw_names; /* kw.n of them */
    tn *star;        /* *args, or NULL */
    tn *star_star;   /* **kwargs, or NULL */
} tn_args;

struct tn {
    uint8_t kind;    /* enum tn_kind */
    uint8_t special; /* TN_MACRO: enum tn_special */
    bool negated;    /* TN_TEST: is not */
    uint8_t op;      /* enum tn_op: what joins it to the operand before it (TN_ARITH, TN_COMPARE) */
    uint32_t at;     /* offset in the source */
    uint32_t id;     /* of a name, filter or test */
    slice name;
    tv value;
    tn *a, *b, *c;
    tn_list items;
    tn_args *args;
    tn_list body, orelse;
    tn_list params; /* TN_NAME each */
    tn_scope scope, else_scope;
};

enum { TEMPLATE_MAX_BYTES = 1 << 20, TEMPLATE_MAX_DEPTH = 100, TEMPLATE_MAX_NAMES = 4096 };

typedef struct template_name {
    slice text;
    bool is_loaded; /* read somewhere */
    bool is_stored; /* assigned somewhere: a set, a loop, a macro, a parameter */
} template_name;

typedef struct smoe_template {
    arena a;
    slice source; /* line ends normalised */
    tn_list body;
    tn_scope scope;
    template_name *names; /* by id */
    size_t n_names, cap_names;
    map name_ids;
} smoe_template;

/* Lexes, parses and checks t->source into t->body. */
smoe_status template_parse(smoe_template *t, smoe_err *err);
/* Finds, for every scope of the tree, the names it shadows from its start. */
smoe_status template_scopes(smoe_template *t, smoe_err *err);
/* The id of a name, a new one when needed. */
smoe_status template_name_id(smoe_template *t, slice text, uint32_t *id, smoe_err *err);
/* "chat template line 3, column 7: ..." for an offset of the source. */
smoe_status template_fail(slice source, size_t at, smoe_err *err, smoe_status code, const char *fmt,
                          ...) __attribute__((format(printf, 5, 6)));

#endif
