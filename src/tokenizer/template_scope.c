/* template_scope.c: which names a scope shadows from its start.
 *
 * Jinja resolves names when it compiles: a name that a scope assigns before it reads it is a new
 * local of that scope, undefined until the assignment, even where an inner scope reads it earlier
 * and even if the caller passed a variable of that name. An interpreter that looks names up as it
 * goes would find the caller's. So this pass repeats Jinja's symbol analysis and lists, for every
 * scope, the names to start as undefined. An assignment in only one branch of an if does not
 * shadow.
 *
 * The same walk refuses calls of functions that nobody can provide: variables come from JSON, so a
 * name that is neither built in nor assigned in the template is never callable. */
#include "base/mem.h"
#include "tokenizer/template_ast.h"
#include "tokenizer/template_builtins.h"

enum { REF = 1, SHADOW = 2 };

typedef struct frame {
    const struct frame *parent;
    uint8_t *flags; /* by name id */
    unsigned branch_depth;
    size_t n_shadows;
} frame;

typedef struct scoper {
    smoe_template *t;
    smoe_err *err;
} scoper;

static bool has_ref(const frame *f, uint32_t id)
{
    for (; f; f = f->parent) {
        if (f->flags[id] & REF) {
            return true;
        }
    }
    return false;
}

static void store(frame *f, uint32_t id)
{
    if (f->branch_depth == 0 && !has_ref(f, id)) {
        f->flags[id] |= SHADOW;
        f->n_shadows++;
    }
    f->flags[id] |= REF;
}

static void store_target(frame *f, const tn *target, bool is_param)
{
    if (target->kind == TN_NAME && is_param) {
        f->flags[target->id] |= REF;
    } else if (target->kind == TN_NAME) {
        store(f, target->id);
    } else if (target->kind == TN_NSREF) {
        f->flags[target->id] |= REF;
    }
    for (size_t i = 0; i < target->items.n; i++) {
        store_target(f, target->items.items[i], is_param);
    }
}

static smoe_status load_list(scoper *s, frame *f, const tn_list *l);

static smoe_status load(scoper *s, frame *f, const tn *node)
{
    if (!node) {
        return SMOE_OK;
    }
    if (node->kind == TN_NAME) {
        f->flags[node->id] |= REF;
        s->t->names[node->id].is_loaded = true;
    }
    if (node->kind == TN_CALL && node->a->kind == TN_NAME) {
        const tn *callee = node->a;
        bool is_known = template_function_find(callee->name) >= 0 ||
                        slice_is(callee->name, "caller") || s->t->names[callee->id].is_stored;
        if (!is_known) {
            return template_fail(s->t->source, callee->at, s->err, SMOE_UNSUPPORTED,
                                 "the function \"%.*s\" is not supported", SLICE_ARG(callee->name));
        }
    }
    TRY(load(s, f, node->a));
    TRY(load(s, f, node->b));
    TRY(load(s, f, node->c));
    TRY(load_list(s, f, &node->items));
    if (node->args) {
        TRY(load_list(s, f, &node->args->pos));
        TRY(load_list(s, f, &node->args->kw));
        TRY(load(s, f, node->args->star));
        TRY(load(s, f, node->args->star_star));
    }
    return SMOE_OK;
}

static smoe_status load_list(scoper *s, frame *f, const tn_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        TRY(load(s, f, l->items[i]));
    }
    return SMOE_OK;
}

/* What the statements of one scope read and assign, without the scopes inside. */
static smoe_status analyze(scoper *s, frame *f, const tn_list *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const tn *node = body->items[i];
        switch (node->kind) {
        case TN_PRINT:
            TRY(load_list(s, f, &node->items));
            break;
        case TN_IF:
            for (const tn *branch = node; branch; branch = branch->c) {
                TRY(load(s, f, branch->a));
                f->branch_depth++;
                TRY(analyze(s, f, &branch->body));
                f->branch_depth--;
            }
            break;
        case TN_FOR:
        case TN_FILTER_BLOCK:
            TRY(load(s, f, node->b));
            break;
        case TN_SET:
            TRY(load(s, f, node->b));
            store_target(f, node->a, false);
            break;
        case TN_SET_BLOCK:
            store_target(f, node->a, false);
            break;
        case TN_MACRO:
            store(f, node->id);
            break;
        case TN_CALL_BLOCK:
            TRY(load(s, f, node->a));
            break;
        case TN_WITH:
            for (size_t j = 1; j < node->items.n; j += 2) {
                TRY(load(s, f, node->items.items[j]));
            }
            break;
        default:
            break;
        }
    }
    return SMOE_OK;
}

static smoe_status inner_scopes(scoper *s, const frame *f, const tn_list *body);

static void declare(scoper *s, frame *f, const char *name)
{
    uint64_t id = 0;
    if (map_get(&s->t->name_ids, slice_from(name), &id)) {
        f->flags[id] |= REF;
    }
}

/* The declarations that precede the body of a scope. */
static smoe_status declare_params(scoper *s, frame *f, const tn *node)
{
    if (node->kind == TN_FOR) {
        declare(s, f, "loop");
        store_target(f, node->a, true);
    } else if (node->kind == TN_MACRO) {
        declare(s, f, "caller");
        declare(s, f, "kwargs");
        declare(s, f, "varargs");
        for (size_t i = 0; i < node->params.n; i++) {
            store_target(f, node->params.items[i], true);
        }
        TRY(load_list(s, f, &node->items));
    } else if (node->kind == TN_WITH) {
        for (size_t i = 0; i < node->items.n; i += 2) {
            store_target(f, node->items.items[i], true);
        }
    } else if (node->kind == TN_SET_BLOCK) {
        TRY(load(s, f, node->b));
    }
    return SMOE_OK;
}

static smoe_status list_shadows(scoper *s, const frame *f, tn_scope *out)
{
    out->ids = arena_array(&s->t->a, f->n_shadows, sizeof *out->ids);
    if (!out->ids) {
        return err_nomem(s->err, "the names of the chat template", f->n_shadows * sizeof *out->ids);
    }
    for (uint32_t id = 0; id < s->t->n_names; id++) {
        if (f->flags[id] & SHADOW) {
            out->ids[out->n++] = id;
        }
    }
    return SMOE_OK;
}

/* One scope: the body of node (NULL: the whole template), its own scopes included. */
static smoe_status scope(scoper *s, const frame *parent, const tn *node, const tn_list *body,
                         tn_scope *out)
{
    size_t n_names = s->t->n_names;
    frame f = {.parent = parent, .flags = mem_calloc(n_names + 1, 1)};
    smoe_status status;
    if (!f.flags) {
        return err_nomem(s->err, "the names of the chat template", n_names + 1);
    }
    if (node) {
        CHECK(declare_params(s, &f, node));
    }
    CHECK(analyze(s, &f, body));
    CHECK(list_shadows(s, &f, out));
    CHECK(inner_scopes(s, &f, body));
out:
    mem_free(f.flags);
    return status;
}

static smoe_status for_scopes(scoper *s, const frame *f, tn *node)
{
    if (node->c) { /* the filter reads names, and assigns none */
        frame test = {.parent = f, .flags = mem_calloc(s->t->n_names + 1, 1)};
        if (!test.flags) {
            return err_nomem(s->err, "the names of the chat template", s->t->n_names + 1);
        }
        smoe_status status = load(s, &test, node->c);
        mem_free(test.flags);
        TRY(status);
    }
    TRY(scope(s, f, node, &node->body, &node->scope));
    return scope(s, f, NULL, &node->orelse, &node->else_scope);
}

static smoe_status inner_scopes(scoper *s, const frame *f, const tn_list *body)
{
    for (size_t i = 0; i < body->n; i++) {
        tn *node = body->items[i];
        switch (node->kind) {
        case TN_IF:
            for (tn *branch = node; branch; branch = branch->c) {
                TRY(inner_scopes(s, f, &branch->body));
            }
            break;
        case TN_FOR:
            TRY(for_scopes(s, f, node));
            break;
        case TN_MACRO:
        case TN_SET_BLOCK:
        case TN_FILTER_BLOCK:
        case TN_WITH:
        case TN_GENERATION:
            TRY(scope(s, f, node, &node->body, &node->scope));
            break;
        case TN_CALL_BLOCK:
            TRY(scope(s, f, node->b, &node->b->body, &node->b->scope));
            break;
        default:
            break;
        }
    }
    return SMOE_OK;
}

smoe_status template_scopes(smoe_template *t, smoe_err *err)
{
    scoper s = {t, err};
    return scope(&s, NULL, NULL, &t->body, &t->scope);
}
