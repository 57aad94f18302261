/* template.c: loading and rendering, and the accounts of one render. */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "smoe/tokenizer.h"
#include "tokenizer/template_builtins.h"
#include "tokenizer/template_render.h"
#include "tokenizer/utf8.h"

static smoe_status render_fail(tr *r, smoe_status code, const char *fmt, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, fmt, args);
    return template_fail(r->t->source, r->at, r->err, code, "%s", text);
}

smoe_status tr_fail(tr *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    smoe_status status = render_fail(r, SMOE_FORMAT, fmt, args);
    va_end(args);
    return status;
}

smoe_status tr_unsupported(tr *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    smoe_status status = render_fail(r, SMOE_UNSUPPORTED, fmt, args);
    va_end(args);
    return status;
}

smoe_status tr_spend(tr *r, size_t n_steps)
{
    if (n_steps > TR_MAX_STEPS - r->n_steps) {
        return tr_fail(r, "the template runs for more than %d steps; it may never end",
                       TR_MAX_STEPS);
    }
    r->n_steps += n_steps;
    return SMOE_OK;
}

smoe_status tr_no_memory(const tr *r)
{
    return r->err->code;
}

void *tr_alloc(tr *r, size_t n, size_t size_bytes)
{
    size_t n_bytes = 0;
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes) ||
        n_bytes > TR_MAX_ARENA_BYTES - r->n_bytes) {
        tr_fail(r, "the template needs more than %d MiB of memory", TR_MAX_ARENA_BYTES >> 20);
        return NULL;
    }
    if (tr_spend(r, n_bytes / 64) != SMOE_OK) {
        return NULL;
    }
    void *p = arena_alloc(&r->a, n_bytes);
    if (!p) {
        err_nomem(r->err, "rendering the chat template", n_bytes);
        return NULL;
    }
    r->n_bytes += n_bytes + 16;
    if (r->n_bytes > TR_MAX_ARENA_BYTES) {
        r->n_bytes = TR_MAX_ARENA_BYTES;
    }
    return p;
}

void tr_text_begin(buf *b)
{
    buf_init(b, TR_MAX_OUTPUT_BYTES);
}

smoe_status tr_put(tr *r, buf *b, slice s)
{
    TRY(tr_spend(r, 1 + s.len / 64));
    if (s.len > TR_MAX_OUTPUT_BYTES - b->len) {
        return tr_fail(r, "a text grows beyond %d MiB", TR_MAX_OUTPUT_BYTES >> 20);
    }
    return s.len ? buf_append(b, s.data, s.len, r->err) : SMOE_OK;
}

smoe_status tr_put_escaped(tr *r, buf *b, slice s)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < s.len; i++) {
        const char *found = s.data[i] ? strchr(from, s.data[i]) : NULL;
        TRY(tr_put(r, b, found ? slice_from(to[found - from]) : (slice){s.data + i, 1}));
    }
    return SMOE_OK;
}

smoe_status tr_put_char(tr *r, buf *b, uint32_t c)
{
    char bytes[4];
    return tr_put(r, b, (slice){bytes, utf8_put(c, bytes)});
}

smoe_status tr_text_end(tr *r, buf *b, smoe_status status, tv *out)
{
    if (status == SMOE_OK) {
        char *copy = tr_alloc(r, b->len + 1, 1);
        if (!copy) {
            status = tr_no_memory(r);
        } else {
            if (b->len) {
                memcpy(copy, b->data, b->len);
            }
            *out = tv_str((slice){copy, b->len});
        }
    }
    buf_fini(b);
    return status;
}

/* "\r\n" and "\r" become "\n", and one line end at the end goes. */
static smoe_status normalise(smoe_template *t, slice source, smoe_err *err)
{
    char *text = arena_alloc(&t->a, source.len + 1);
    size_t n = 0;
    if (!text) {
        return err_nomem(err, "the chat template", source.len);
    }
    for (size_t i = 0; i < source.len; i++) {
        bool is_return = source.data[i] == '\r';
        if (is_return && i + 1 < source.len && source.data[i + 1] == '\n') {
            i++;
        }
        text[n++] = is_return ? '\n' : source.data[i];
    }
    n -= n > 0 && text[n - 1] == '\n';
    t->source = (slice){text, n};
    return SMOE_OK;
}

smoe_status smoe_template_new(const char *source, size_t len, smoe_template **out, smoe_err *err)
{
    smoe_status status;
    slice text = {source, len};
    if (len > TEMPLATE_MAX_BYTES) {
        return err_set(err, SMOE_RANGE,
                       "the chat template is %zu bytes long; at most %d are accepted", len,
                       TEMPLATE_MAX_BYTES);
    }
    if (utf8_valid_prefix(text) != text.len) {
        return err_set(err, SMOE_FORMAT, "the chat template is not valid UTF-8");
    }
    smoe_template *t = mem_calloc(1, sizeof *t);
    if (!t) {
        return err_nomem(err, "the chat template", sizeof *t);
    }
    arena_init(&t->a);
    map_init(&t->name_ids);
    CHECK(normalise(t, text, err));
    CHECK(template_parse(t, err));
    CHECK(template_scopes(t, err));
    *out = t;
    return SMOE_OK;
out:
    smoe_template_free(t);
    return status;
}

void smoe_template_free(smoe_template *t)
{
    if (t) {
        map_fini(&t->name_ids);
        arena_fini(&t->a);
        mem_free(t);
    }
}

bool smoe_template_uses(const smoe_template *t, const char *name)
{
    uint64_t id = 0;
    return map_get(&t->name_ids, slice_from(name), &id) && t->names[id].is_loaded;
}

/* The functions, and over them what the caller passed and the template mentions. */
static smoe_status set_globals(tr *r, const json_value *variables)
{
    r->globals = tr_alloc(r, r->t->n_names, sizeof *r->globals);
    if (!r->globals) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < r->t->n_names; i++) {
        int func = template_function_find(r->t->names[i].text);
        if (func >= 0) {
            r->globals[i] = (tv){.kind = TV_FUNC, .u.func = func};
        }
    }
    for (void *it = jr_iter(variables); it; it = jr_next(variables, it)) {
        uint64_t id = 0;
        if (map_get(&r->t->name_ids, jr_iter_key(it), &id)) {
            TRY(tr_from_json(r, jr_iter_value(it), &r->globals[id]));
        }
    }
    return SMOE_OK;
}

smoe_status smoe_template_render(const smoe_template *t, const char *variables_json, size_t len,
                                 char **text, size_t *text_len, smoe_err *err)
{
    smoe_err own_err;
    json_value *variables = NULL;
    buf out;
    smoe_status status;
    tr r = {.t = t, .out = &out, .err = err ? err : &own_err};
    arena_init(&r.a);
    buf_init(&out, TR_MAX_OUTPUT_BYTES);
    CHECK(jr_parse((slice){variables_json, len}, "the variables of the chat template", &variables,
                   r.err));
    if (jr_kind(variables) != JSON_KIND_OBJECT) {
        status = err_set(r.err, SMOE_FORMAT,
                         "the variables of the chat template must be a JSON object, "
                         "found %s",
                         jr_kind_name(variables));
        goto out;
    }
    CHECK(set_globals(&r, variables));
    CHECK(tr_scope_new(&r, NULL, &t->scope, &r.scope));
    CHECK(tr_exec(&r, &t->body));
    CHECK(buf_append(&out, "", 0, r.err));
    size_t n = out.len;
    char *taken = buf_take(&out);
    if (!taken) {
        status = err_nomem(r.err, "the rendered chat", 1);
        goto out;
    }
    *text = taken;
    *text_len = n;
out:
    buf_fini(&out);
    arena_fini(&r.a);
    jr_free(variables);
    return status;
}

void smoe_text_free(char *text)
{
    mem_free(text);
}
