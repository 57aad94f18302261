/* template_parse.c: statements. Refuses, with line and column, what a chat template has no use for
 * or what this interpreter cannot do: inheritance, imports, includes, recursive loops, autoescape.
 */
#include "tokenizer/template_parse.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "tokenizer/utf8.h"

/* Messages may quote the template or the conversation: what is cut or not printable becomes "?". */
static void make_printable(char *text)
{
    size_t n = 0, len = strlen(text);
    uint32_t code = 0;
    for (size_t at = 0; at < len; at += n) {
        bool is_char = utf8_step((slice){text + at, len - at}, &n, &code) == UTF8_CHAR;
        if (is_char && (code == '\n' || code == '\t')) {
            text[at] = ' ';
        } else if (!is_char || code < 0x20) {
            memset(text + at, '?', n);
        }
    }
}

smoe_status template_fail(slice source, size_t at, smoe_err *err, smoe_status code, const char *fmt,
                          ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    make_printable(text);
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < at && i < source.len; i++) {
        if (source.data[i] == '\n') {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)source.data[i] & 0xc0) != 0x80;
        }
    }
    return err_set(err, code, "chat template line %u, column %u: %s", line, column, text);
}

smoe_status p_fail(parser *p, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return template_fail(p->t->source, p->tok->at, p->err, SMOE_FORMAT, "%s", text);
}

static smoe_status no_memory(parser *p)
{
    return err_nomem(p->err, "the chat template", sizeof(tn));
}

smoe_status pl_add(parser *p, node_list *l, tn *node)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        tn **items = arena_array(&p->t->a, cap, sizeof(tn *));
        if (!items) {
            return no_memory(p);
        }
        if (l->n) {
            memcpy(items, l->items, l->n * sizeof(tn *));
        }
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n++] = node;
    return SMOE_OK;
}

smoe_status p_enter(parser *p)
{
    if (++p->depth > TEMPLATE_MAX_DEPTH) {
        return p_fail(p, "the template is nested more than %d levels deep", TEMPLATE_MAX_DEPTH);
    }
    return SMOE_OK;
}

smoe_status p_node(parser *p, enum tn_kind kind, tn **out)
{
    *out = arena_alloc(&p->t->a, sizeof **out);
    if (!*out) {
        return no_memory(p);
    }
    (*out)->kind = (uint8_t)kind;
    (*out)->at = p->tok->at;
    return SMOE_OK;
}

smoe_status template_name_id(smoe_template *t, slice text, uint32_t *id, smoe_err *err)
{
    uint64_t value = 0;
    if (map_get(&t->name_ids, text, &value)) {
        *id = (uint32_t)value;
        return SMOE_OK;
    }
    if (t->n_names == TEMPLATE_MAX_NAMES) {
        return err_set(err, SMOE_UNSUPPORTED, "the chat template uses more than %d different names",
                       TEMPLATE_MAX_NAMES);
    }
    if (t->n_names == t->cap_names) {
        size_t cap = t->cap_names ? t->cap_names * 2 : 64;
        template_name *names = arena_array(&t->a, cap, sizeof *names);
        if (!names) {
            return err_nomem(err, "the names of the chat template", cap * sizeof *names);
        }
        if (t->n_names) {
            memcpy(names, t->names, t->n_names * sizeof *names);
        }
        t->names = names;
        t->cap_names = cap;
    }
    if (!map_put(&t->name_ids, text, t->n_names)) {
        return err_nomem(err, "the names of the chat template", text.len);
    }
    t->names[t->n_names] = (template_name){.text = text};
    *id = (uint32_t)t->n_names++;
    return SMOE_OK;
}

smoe_status p_name_node(parser *p, tn **out)
{
    if (p->tok->kind != TT_NAME) {
        return p_fail(p, "expected a name, found '%.*s'", SLICE_ARG(p->tok->text));
    }
    TRY(p_node(p, TN_NAME, out));
    slice name = p->tok->text;
    (*out)->name = name;
    TRY(template_name_id(p->t, name, &(*out)->id, p->err));
    tv_undef *undef = arena_alloc(&p->t->a, sizeof *undef);
    if (!undef) {
        return no_memory(p);
    }
    undef->name = name;
    (*out)->value = (tv){.kind = TV_UNDEFINED, .u.undef = undef};
    p->special |= slice_is(name, "caller")    ? TN_USES_CALLER
                  : slice_is(name, "kwargs")  ? TN_USES_KWARGS
                  : slice_is(name, "varargs") ? TN_USES_VARARGS
                                              : 0;
    p->tok++;
    return SMOE_OK;
}

bool p_is_op(const parser *p, const char *op)
{
    return p->tok->kind == TT_OP && slice_is(p->tok->text, op);
}

bool p_is_name(const parser *p, const char *name)
{
    return p->tok->kind == TT_NAME && slice_is(p->tok->text, name);
}

bool p_skip_op(parser *p, const char *op)
{
    bool found = p_is_op(p, op);
    p->tok += found;
    return found;
}

bool p_skip_name(parser *p, const char *name)
{
    bool found = p_is_name(p, name);
    p->tok += found;
    return found;
}

smoe_status p_expect_op(parser *p, const char *op)
{
    return p_skip_op(p, op) ? SMOE_OK
                            : p_fail(p, "expected '%s', found '%.*s'", op, SLICE_ARG(p->tok->text));
}

smoe_status p_expect_name(parser *p, const char *name)
{
    return p_skip_name(p, name)
               ? SMOE_OK
               : p_fail(p, "expected '%s', found '%.*s'", name, SLICE_ARG(p->tok->text));
}

static smoe_status expect_block_end(parser *p)
{
    if (p->tok->kind != TT_BLOCK_END) {
        return p_fail(p, "expected the end of the tag, found '%.*s'", SLICE_ARG(p->tok->text));
    }
    p->tok++;
    return SMOE_OK;
}

static smoe_status p_statement(parser *p, node_list *out);

/* Statements up to the end of the template (ends NULL) or to a tag named in ends (NULL-terminated),
 * whose name is then the current token. */
static smoe_status p_body(parser *p, const char *const *ends, tn_list *out)
{
    node_list l = {0};
    tn *node = NULL;
    uint32_t opened_at = p->tok->at;
    for (; p->tok->kind != TT_EOF;) {
        if (p->tok->kind == TT_DATA) {
            TRY(p_node(p, TN_TEXT, &node));
            node->value = tv_str(p->tok->text);
            TRY(pl_add(p, &l, node));
            p->tok++;
        } else if (p->tok->kind == TT_VAR_BEGIN) {
            p->tok++;
            node_list items = {0};
            tn *item = NULL;
            TRY(p_node(p, TN_PRINT, &node));
            TRY(p_tuple(p, true, NULL, &item));
            TRY(pl_add(p, &items, item));
            node->items = (tn_list){items.items, items.n};
            if (p->tok->kind != TT_VAR_END) {
                return p_fail(p, "expected '}}', found '%.*s'", SLICE_ARG(p->tok->text));
            }
            p->tok++;
            TRY(pl_add(p, &l, node));
        } else {
            p->tok++;
            for (const char *const *end = ends; end && *end; end++) {
                if (p_is_name(p, *end)) {
                    *out = (tn_list){l.items, l.n};
                    return SMOE_OK;
                }
            }
            TRY(p_statement(p, &l));
            TRY(expect_block_end(p));
        }
    }
    if (ends) {
        return template_fail(p->t->source, opened_at, p->err, SMOE_FORMAT,
                             "the block that starts here is never closed: no {%% %s %%}", ends[0]);
    }
    *out = (tn_list){l.items, l.n};
    return SMOE_OK;
}

static smoe_status p_block(parser *p, const char *const *ends, tn_list *out)
{
    p_skip_op(p, ":");
    TRY(expect_block_end(p));
    return p_body(p, ends, out);
}

static smoe_status p_if(parser *p, tn **out)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL}, *const last[] = {"endif",
                                                                                        NULL};
    TRY(p_node(p, TN_IF, out));
    tn *branch = *out;
    for (;;) {
        p->tok++; /* if or elif */
        TRY(p_tuple(p, false, NULL, &branch->a));
        TRY(p_block(p, ends, &branch->body));
        if (p_skip_name(p, "endif")) {
            return SMOE_OK;
        }
        TRY(p_node(p, TN_IF, &branch->c));
        branch = branch->c;
        if (p_skip_name(p, "else")) {
            TRY(p_block(p, last, &branch->body));
            p->tok++;
            return SMOE_OK;
        }
    }
}

static bool target_has(const tn *target, const char *name)
{
    bool found = target->kind == TN_NAME && slice_is(target->name, name);
    for (size_t i = 0; i < target->items.n; i++) {
        found = found || target_has(target->items.items[i], name);
    }
    return found;
}

static smoe_status p_for(parser *p, tn **out)
{
    static const char *const ends[] = {"endfor", "else", NULL}, *const last[] = {"endfor", NULL};
    TRY(p_node(p, TN_FOR, out));
    tn *node = *out;
    p->tok++;
    TRY(p_target(p, false, "in", &node->a));
    if (target_has(node->a, "loop")) {
        return template_fail(p->t->source, node->a->at, p->err, SMOE_FORMAT,
                             "the name loop belongs to the loop and cannot be its target");
    }
    TRY(p_expect_name(p, "in"));
    TRY(p_tuple(p, false, "recursive", &node->b));
    if (p_skip_name(p, "if")) {
        TRY(p_expression(p, true, &node->c));
    }
    if (p_is_name(p, "recursive")) {
        return template_fail(p->t->source, p->tok->at, p->err, SMOE_UNSUPPORTED,
                             "recursive loops are not supported");
    }
    p->n_loops++;
    TRY(p_block(p, ends, &node->body));
    p->n_loops--;
    if (p_skip_name(p, "else")) {
        TRY(p_block(p, last, &node->orelse));
    }
    p->tok++;
    return SMOE_OK;
}

static smoe_status captured(parser *p, tn **out)
{
    return p_node(p, TN_CAPTURED, out);
}

static smoe_status p_set(parser *p, tn **out)
{
    static const char *const ends[] = {"endset", NULL};
    TRY(p_node(p, TN_SET, out));
    tn *node = *out;
    p->tok++;
    TRY(p_target(p, true, NULL, &node->a));
    if (p->n_loops && target_has(node->a, "loop")) {
        return template_fail(p->t->source, node->a->at, p->err, SMOE_FORMAT,
                             "the name loop belongs to the loop and cannot be set");
    }
    if (p_skip_op(p, "=")) {
        return p_tuple(p, true, NULL, &node->b);
    }
    node->kind = TN_SET_BLOCK;
    TRY(captured(p, &node->b));
    if (p_skip_op(p, "|")) {
        TRY(p_filters(p, node->b, &node->b));
    }
    TRY(p_block(p, ends, &node->body));
    p->tok++;
    return SMOE_OK;
}

/* "(a, b=1)" of a macro or call block. */
static smoe_status p_signature(parser *p, tn *macro)
{
    node_list params = {0}, defaults = {0};
    TRY(p_expect_op(p, "("));
    while (!p_is_op(p, ")")) {
        if (params.n) {
            TRY(p_expect_op(p, ","));
        }
        tn *param = NULL, *value = NULL;
        TRY(p_name_node(p, &param));
        p->t->names[param->id].is_stored = true;
        TRY(pl_add(p, &params, param));
        if (p_skip_op(p, "=")) {
            TRY(p_expression(p, true, &value));
            TRY(pl_add(p, &defaults, value));
        } else if (defaults.n) {
            return p_fail(p, "a parameter without a default after one with a default");
        }
    }
    macro->params = (tn_list){params.items, params.n};
    macro->items = (tn_list){defaults.items, defaults.n};
    return p_expect_op(p, ")");
}

/* The body of a macro or call block: a function of its own, which no break or continue leaves. */
static smoe_status p_function_body(parser *p, const char *const *ends, tn *macro)
{
    unsigned n_loops = p->n_loops;
    uint8_t special = p->special;
    p->n_loops = 0;
    p->special = 0;
    TRY(p_block(p, ends, &macro->body));
    macro->special = p->special;
    p->special |= special;
    p->n_loops = n_loops;
    p->tok++;
    return SMOE_OK;
}

static smoe_status p_macro(parser *p, tn **out)
{
    static const char *const ends[] = {"endmacro", NULL};
    p->tok++;
    TRY(p_name_node(p, out));
    (*out)->kind = TN_MACRO;
    p->t->names[(*out)->id].is_stored = true;
    TRY(p_signature(p, *out));
    return p_function_body(p, ends, *out);
}

static smoe_status p_call_block(parser *p, tn **out)
{
    static const char *const ends[] = {"endcall", NULL};
    TRY(p_node(p, TN_CALL_BLOCK, out));
    tn *node = *out, *caller;
    TRY(p_node(p, TN_MACRO, &caller));
    caller->name = slice_from("caller");
    node->b = caller;
    p->tok++;
    if (p_is_op(p, "(")) {
        TRY(p_signature(p, caller));
    }
    TRY(p_expression(p, true, &node->a));
    if (node->a->kind != TN_CALL) {
        return template_fail(p->t->source, node->at, p->err, SMOE_FORMAT,
                             "a call block must call something");
    }
    return p_function_body(p, ends, caller);
}

static smoe_status p_filter_block(parser *p, tn **out)
{
    static const char *const ends[] = {"endfilter", NULL};
    TRY(p_node(p, TN_FILTER_BLOCK, out));
    p->tok++;
    TRY(captured(p, &(*out)->b));
    TRY(p_filters(p, (*out)->b, &(*out)->b));
    TRY(p_block(p, ends, &(*out)->body));
    p->tok++;
    return SMOE_OK;
}

static smoe_status p_with(parser *p, tn **out)
{
    static const char *const ends[] = {"endwith", NULL};
    TRY(p_node(p, TN_WITH, out));
    node_list l = {0};
    p->tok++;
    while (p->tok->kind != TT_BLOCK_END) {
        if (l.n) {
            TRY(p_expect_op(p, ","));
        }
        tn *target = NULL, *value = NULL;
        TRY(p_target(p, false, NULL, &target));
        TRY(p_expect_op(p, "="));
        TRY(p_expression(p, true, &value));
        TRY(pl_add(p, &l, target));
        TRY(pl_add(p, &l, value));
    }
    (*out)->items = (tn_list){l.items, l.n};
    TRY(p_block(p, ends, &(*out)->body));
    p->tok++;
    return SMOE_OK;
}

static smoe_status p_generation(parser *p, tn **out)
{
    static const char *const ends[] = {"endgeneration", NULL};
    TRY(p_node(p, TN_GENERATION, out));
    p->tok++;
    return p_function_body(p, ends, *out);
}

static smoe_status p_print(parser *p, tn **out)
{
    TRY(p_node(p, TN_PRINT, out));
    node_list l = {0};
    p->tok++;
    while (p->tok->kind != TT_BLOCK_END) {
        if (l.n) {
            TRY(p_expect_op(p, ","));
        }
        tn *item = NULL;
        TRY(p_expression(p, true, &item));
        TRY(pl_add(p, &l, item));
    }
    (*out)->items = (tn_list){l.items, l.n};
    return SMOE_OK;
}

static smoe_status p_loop_control(parser *p, tn **out)
{
    bool is_break = p_is_name(p, "break");
    if (p->n_loops == 0) {
        return p_fail(p, "'%s' outside of a loop", is_break ? "break" : "continue");
    }
    TRY(p_node(p, is_break ? TN_BREAK : TN_CONTINUE, out));
    p->tok++;
    return SMOE_OK;
}

static smoe_status p_statement(parser *p, node_list *out)
{
    static const struct {
        const char *name;
        smoe_status (*parse)(parser *p, tn **out);
    } statements[] = {
        {"if", p_if},
        {"for", p_for},
        {"set", p_set},
        {"macro", p_macro},
        {"call", p_call_block},
        {"filter", p_filter_block},
        {"with", p_with},
        {"print", p_print},
        {"generation", p_generation},
        {"break", p_loop_control},
        {"continue", p_loop_control},
    };
    static const char *const refused[] = {"block", "extends",    "include", "import",
                                          "from",  "autoescape", "do",      "trans"};
    if (p->tok->kind != TT_NAME) {
        return p_fail(p, "expected the name of a tag, found '%.*s'", SLICE_ARG(p->tok->text));
    }
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        if (p_is_name(p, statements[i].name)) {
            tn *node = NULL;
            TRY(p_enter(p));
            TRY(statements[i].parse(p, &node));
            p_leave(p);
            return pl_add(p, out, node);
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (p_is_name(p, refused[i])) {
            return template_fail(p->t->source, p->tok->at, p->err, SMOE_UNSUPPORTED,
                                 "the tag \"%s\" is not supported", refused[i]);
        }
    }
    return p_fail(p, "unknown or misplaced tag '%.*s'", SLICE_ARG(p->tok->text));
}

smoe_status template_parse(smoe_template *t, smoe_err *err)
{
    template_tokens tokens = {0};
    smoe_status status;
    CHECK(template_lex(t->source, &t->a, &tokens, err));
    parser p = {.t = t, .tok = tokens.items, .err = err};
    CHECK(p_body(&p, NULL, &t->body));
out:
    mem_free(tokens.items);
    return status;
}
