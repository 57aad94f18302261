/* template_render.h: the state of one render, and what every part of the interpreter asks of it.
 *
 * Every operation pays: tr_spend counts steps, tr_alloc bytes. So a template that loops forever or
 * builds endless texts ends with an error that says where. */
#ifndef TOKENIZER_TEMPLATE_RENDER_H
#define TOKENIZER_TEMPLATE_RENDER_H

#include "base/buf.h"
#include "json/json_read.h"
#include "tokenizer/template_ast.h"

enum {
    TR_MAX_STEPS = 50 * 1000 * 1000,
    TR_MAX_OUTPUT_BYTES = 64 << 20,
    TR_MAX_ARENA_BYTES = 512 << 20,
    TR_MAX_EVAL_DEPTH = 1000, /* levels of the tree, over all macros that are running */
    TR_MAX_MACRO_DEPTH = 100,
    TR_MAX_VALUE_DEPTH = 100, /* of lists in lists */
    TR_MAX_RANGE = 100000,    /* the sandbox's own limit */
};

enum tr_control { TR_GO, TR_BREAK, TR_CONTINUE };

typedef struct tr_binding {
    uint32_t id;
    tv value;
} tr_binding;

/* The variables of one scope. Looked up from the inside out, then among the globals. */
typedef struct tr_scope {
    struct tr_scope *parent;
    tr_binding *items;
    size_t n, cap;
} tr_scope;

typedef struct tr {
    const smoe_template *t;
    arena a;
    size_t n_bytes;
    size_t n_steps;
    unsigned depth, macro_depth, value_depth;
    uint32_t at; /* the offset in the source that errors name */
    enum tr_control control;
    tr_scope *scope;
    tv *globals; /* by name id: functions, then what the caller passed */
    tv captured; /* what TN_CAPTURED stands for */
    buf *out;
    smoe_err *err;
} tr;

struct tv_macro {
    const tn *node;
    tr_scope *scope; /* where it was defined */
};

/* A for loop. Items come from source; the filter (if any) runs as they are needed. */
struct tv_loop {
    const tn *node;
    tr_scope *scope; /* of the filter */
    tv_iter *source;
    tv current, previous, ahead; /* ahead: MISSING, or the next item, already fetched */
    int64_t index0;
    tv changed; /* what loop.changed() saw last */
    bool is_filtered;
};

/* The arguments of a call, after * and ** were spread. */
typedef struct tr_args {
    const tv *pos;
    size_t n_pos;
    const tv_pair *kw; /* keys are strings */
    size_t n_kw;
} tr_args;

smoe_status tr_fail(tr *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
smoe_status tr_unsupported(tr *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
smoe_status tr_spend(tr *r, size_t n_steps);
void *tr_alloc(tr *r, size_t n, size_t size_bytes); /* zeroed; NULL: return r->err->code */
smoe_status tr_no_memory(const tr *r);              /* the status to return then */

/* Building a text: put into b, then take it into the arena. tr_text_end always frees b, and passes
 * on a failure of the puts before it. */
void tr_text_begin(buf *b);
smoe_status tr_put(tr *r, buf *b, slice s);
smoe_status tr_put_escaped(tr *r, buf *b, slice s); /* & < > ' " as HTML writes them */
smoe_status tr_put_char(tr *r, buf *b, uint32_t c);
smoe_status tr_text_end(tr *r, buf *b, smoe_status status, tv *out);

/* Arguments by Python's rules: fills out[n_names], MISSING where not given. names NULL: positional
 * only. what names the callee in messages. */
smoe_status tr_bind(tr *r, const tr_args *args, const char *what, const char *const *names,
                    size_t n_names, size_t n_required, tv *out);

/* Objects (template_object.c). */
smoe_status tr_list_new(tr *r, enum tv_kind kind, const tv *items, size_t n, tv *out);
smoe_status tr_dict_new(tr *r, size_t cap, tv_dict **out);
smoe_status tr_dict_get(tr *r, const tv_dict *d, tv key, tv *out); /* MISSING when absent */
smoe_status tr_dict_put(tr *r, tv_dict *d, tv key, tv value);
smoe_status tr_iter(tr *r, tv v, tv_iter **out); /* what a for loop would see */
smoe_status tr_iter_new(tr *r, const char *what, const tv *items, size_t n, tv *out);
bool tv_is_iterable(tv v);
smoe_status tr_length(tr *r, tv v, size_t *n);
smoe_status tr_undefined(tr *r, const char *owner, slice name, tv *out);
smoe_status tr_undefined_hint(tr *r, const char *hint, tv *out);
smoe_status tr_undefined_error(tr *r, tv v);
smoe_status tr_attribute(tr *r, tv v, slice name, tv *out);
smoe_status tr_item(tr *r, tv v, tv key, tv *out);
smoe_status tr_slice(tr *r, tv v, const tv bounds[3], tv *out);
smoe_status tr_from_json(tr *r, const json_value *json, tv *out);

/* Loops (template_loop.c). */
smoe_status tr_loop_next(tr *r, tv_loop *loop, bool *found, tv *out);
smoe_status tr_loop_attribute(tr *r, tv_loop *loop, slice name, tv *out);
smoe_status tr_loop_cycle(tr *r, tv self, const tr_args *args, tv *out);
smoe_status tr_loop_changed(tr *r, tv self, const tr_args *args, tv *out);

/* Operators (template_ops.c). */
smoe_status tr_arith(tr *r, enum tn_op op, tv a, tv b, tv *out);
smoe_status tr_negate(tr *r, tv v, bool is_minus, tv *out);
smoe_status tr_compare(tr *r, enum tn_op op, tv a, tv b, bool *out);
smoe_status tr_equal(tr *r, tv a, tv b, bool *out);
smoe_status tr_contains(tr *r, tv container, tv v, bool *out);

/* Text forms (template_repr.c). */
smoe_status tr_put_str(tr *r, buf *b, tv v);  /* str(v) */
smoe_status tr_put_repr(tr *r, buf *b, tv v); /* repr(v) */
smoe_status tr_str(tr *r, tv v, slice *out);
size_t tr_float_repr(double f, char out[32]);
smoe_status tr_percent_format(tr *r, slice format, tv args, tv *out); /* format % args */
smoe_status tr_brace_format(tr *r, slice format, const tr_args *args, tv *out);

/* json.dumps (template_json.c). indent NULL: everything on one line. */
typedef struct tr_json_style {
    const slice *indent;
    slice item_separator, key_separator;
    bool ascii, sort_keys;
} tr_json_style;

smoe_status tr_put_json(tr *r, buf *b, tv v, const tr_json_style *style);

/* Sorts both by keys: stable, also in reverse (template_sort.c). */
smoe_status tr_sort(tr *r, tv *keys, tv *values, size_t n, bool reverse);

/* Numbers from texts (template_number.c): *ok, or the result, is false when s is none. */
smoe_status tr_parse_int(tr *r, slice s, int base, bool *ok, tv *out);
bool tr_parse_float(slice s, double *out);
smoe_status tr_float_to_int(tr *r, double f, tv *out);

/* What filters share with methods (template_methods.c, template_case.c). max < 0: all. */
slice tr_strip(slice s, const slice *chars, bool left, bool right);
smoe_status tr_replace(tr *r, slice s, slice from, slice to, int64_t max, tv *out);
smoe_status tr_split_lines(tr *r, slice s, bool keep_ends, tv *out);
smoe_status tr_upper(tr *r, slice s, tv *out);
smoe_status tr_lower(tr *r, slice s, tv *out);
smoe_status tr_capitalize(tr *r, slice s, tv *out);
smoe_status tr_title(tr *r, slice s, tv *out);
smoe_status tr_swapcase(tr *r, slice s, tv *out);
bool tr_is_case(slice s, bool want_upper); /* str.isupper, str.islower */

/* Calls. */
smoe_status tr_call(tr *r, tv callee, const tr_args *args, tv *out);
smoe_status tr_call_macro(tr *r, const tv_macro *m, const tr_args *args, tv *out);
smoe_status tr_call_method(tr *r, const tv_method *m, const tr_args *args, tv *out);
smoe_status tr_call_function(tr *r, int id, const tr_args *args, tv *out);
smoe_status tr_call_filter(tr *r, uint32_t id, tv in, const tr_args *args, tv *out);
smoe_status tr_call_test(tr *r, uint32_t id, tv in, const tr_args *args, bool *out);
int template_method_find(tv self, slice name,
                         bool *is_mutator); /* -1: no such attribute */

/* Statements and expressions. */
smoe_status tr_eval(tr *r, const tn *node, tv *out);
smoe_status tr_eval_call(tr *r, const tn *node, const tv *caller, tv *out); /* of a TN_CALL */
smoe_status tr_exec(tr *r, const tn_list *body);
smoe_status tr_bind_name(tr *r, tr_scope *s, uint32_t id, tv value);
smoe_status tr_assign(tr *r, const tn *target, tv value);
smoe_status tr_scope_new(tr *r, tr_scope *parent, const tn_scope *shadows, tr_scope **out);
void tr_scope_clear(tr_scope *s);

#endif
