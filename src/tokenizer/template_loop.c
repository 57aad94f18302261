/* template_loop.c: for loops and the variable loop. The filter of a loop runs as items are needed,
 * as Jinja's generator does: it sees what the body changed in a namespace. Asking for the length
 * (or for revindex) runs it for all that is left. */
#include "tokenizer/template_render.h"

static smoe_status passes(tr *r, tv_loop *loop, tv item, bool *out)
{
    *out = true;
    if (!loop->is_filtered) {
        return SMOE_OK;
    }
    tr_scope *saved = r->scope;
    tv yes = {0};
    tr_scope_clear(loop->scope);
    r->scope = loop->scope;
    TRY(tr_assign(r, loop->node->a, item));
    TRY(tr_eval(r, loop->node->c, &yes));
    r->scope = saved;
    *out = tv_truth(yes);
    return SMOE_OK;
}

static smoe_status fetch(tr *r, tv_loop *loop, tv *out)
{
    *out = (tv){0};
    while (loop->source->at < loop->source->n) {
        tv item = loop->source->items[loop->source->at++];
        bool ok = false;
        TRY(tr_spend(r, 1));
        TRY(passes(r, loop, item, &ok));
        if (ok) {
            *out = item;
            break;
        }
    }
    return SMOE_OK;
}

static smoe_status peek(tr *r, tv_loop *loop)
{
    return loop->ahead.kind == TV_MISSING ? fetch(r, loop, &loop->ahead) : SMOE_OK;
}

smoe_status tr_loop_next(tr *r, tv_loop *loop, bool *found, tv *out)
{
    TRY(peek(r, loop));
    *found = loop->ahead.kind != TV_MISSING;
    if (*found) {
        *out = loop->ahead;
        loop->ahead = (tv){0};
        loop->index0++;
        loop->previous = loop->current;
        loop->current = *out;
    }
    return SMOE_OK;
}

static smoe_status length(tr *r, tv_loop *loop, int64_t *out)
{
    if (loop->is_filtered) {
        size_t n = 0;
        tv *items = tr_alloc(r, loop->source->n - loop->source->at, sizeof *items);
        tv rest = {0};
        if (!items) {
            return tr_no_memory(r);
        }
        for (tv item;;) {
            TRY(fetch(r, loop, &item));
            if (item.kind == TV_MISSING) {
                break;
            }
            items[n++] = item;
        }
        TRY(tr_iter_new(r, "iterator", items, n, &rest));
        loop->source = rest.u.iter;
        loop->is_filtered = false;
    }
    *out = loop->index0 + 1 + (loop->ahead.kind != TV_MISSING) +
           (int64_t)(loop->source->n - loop->source->at);
    return SMOE_OK;
}

smoe_status tr_loop_attribute(tr *r, tv_loop *loop, slice name, tv *out)
{
    int64_t n = 0, i = loop->index0;
    *out = (tv){0};
    if (slice_is(name, "index0") || slice_is(name, "index")) {
        *out = tv_int(i + slice_is(name, "index"));
    } else if (slice_is(name, "first")) {
        *out = tv_bool(i == 0);
    } else if (slice_is(name, "last")) {
        TRY(peek(r, loop));
        *out = tv_bool(loop->ahead.kind == TV_MISSING);
    } else if (slice_is(name, "length")) {
        TRY(length(r, loop, &n));
        *out = tv_int(n);
    } else if (slice_is(name, "revindex") || slice_is(name, "revindex0")) {
        TRY(length(r, loop, &n));
        *out = tv_int(n - i - slice_is(name, "revindex0"));
    } else if (slice_is(name, "previtem")) {
        *out = loop->previous;
        return i == 0 ? tr_undefined_hint(r, "there is no previous item", out) : SMOE_OK;
    } else if (slice_is(name, "nextitem")) {
        TRY(peek(r, loop));
        *out = loop->ahead;
        return out->kind == TV_MISSING ? tr_undefined_hint(r, "there is no next item", out)
                                       : SMOE_OK;
    } else if (slice_is(name, "depth") || slice_is(name, "depth0")) {
        *out = tv_int(slice_is(name, "depth"));
    }
    return SMOE_OK;
}

smoe_status tr_loop_cycle(tr *r, tv self, const tr_args *args, tv *out)
{
    if (args->n_pos == 0 || args->n_kw) {
        return tr_fail(r, "loop.cycle needs items to cycle through");
    }
    *out = args->pos[(size_t)self.u.loop->index0 % args->n_pos];
    return SMOE_OK;
}

smoe_status tr_loop_changed(tr *r, tv self, const tr_args *args, tv *out)
{
    tv now = {0};
    bool same = false;
    if (args->n_kw) {
        return tr_fail(r, "loop.changed takes no named arguments");
    }
    TRY(tr_list_new(r, TV_TUPLE, args->pos, args->n_pos, &now));
    TRY(tr_equal(r, self.u.loop->changed, now, &same));
    self.u.loop->changed = now;
    *out = tv_bool(!same);
    return SMOE_OK;
}
