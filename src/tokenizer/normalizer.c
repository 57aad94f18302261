/* normalizer.c: see normalizer.h. */
#include "tokenizer/normalizer.h"

#include "base/mem.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

void normalizer_init(normalizer *n)
{
    *n = (normalizer){0};
}

void normalizer_fini(normalizer *n)
{
    for (size_t i = 0; i < n->n_steps; i++) {
        regex_free(n->steps[i].pattern);
        mem_free((void *)n->steps[i].text.data);
    }
    *n = (normalizer){0};
}

smoe_status normalizer_add(normalizer *n, const normalizer_step *step, smoe_err *err)
{
    char *text = mem_strndup(step->text.data, step->text.len);
    if (!text || n->n_steps == NORMALIZER_MAX_STEPS) {
        mem_free(text);
        regex_free(step->pattern);
        return text ? err_set(err, SMOE_UNSUPPORTED,
                              "tokenizer.json: normalizer has more than %d steps, which is not "
                              "supported",
                              NORMALIZER_MAX_STEPS)
                    : err_nomem(err, "a normalizer", step->text.len);
    }
    n->steps[n->n_steps] = *step;
    n->steps[n->n_steps++].text = slice_of(text, step->text.len);
    return SMOE_OK;
}

void normalizer_work_init(normalizer_work *w, size_t n_bytes)
{
    *w = (normalizer_work){.n_bytes = n_bytes};
    normalize_init(&w->form);
    buf_init(&w->texts[0], SIZE_MAX / 2);
    buf_init(&w->texts[1], SIZE_MAX / 2);
}

void normalizer_work_fini(normalizer_work *w)
{
    normalize_fini(&w->form);
    buf_fini(&w->texts[0]);
    buf_fini(&w->texts[1]);
    regex_work_free(w->regex);
    w->regex = NULL;
}

static smoe_status replace(const normalizer_step *step, normalizer_work *w, slice text, buf *out,
                           smoe_err *err)
{
    if (!w->regex) {
        TRY(regex_work_new(w->n_bytes, &w->regex, err));
    }
    for (size_t done = 0; done < text.len;) {
        size_t start, end;
        TRY(regex_find(step->pattern, w->regex, text, done, &start, &end, err));
        TRY(buf_append(out, text.data + done, start - done, err));
        if (start < end) {
            TRY(buf_append_slice(out, step->text, err));
        }
        done = end;
    }
    return SMOE_OK;
}

/* Character by character. U+0130 is the one whose lower case is two characters. */
static smoe_status change_characters(enum normalizer_kind kind, slice text, buf *out, smoe_err *err)
{
    TRY(buf_reserve(out, text.len, err));
    for (size_t i = 0; i < text.len;) {
        uint32_t code;
        char utf8[4];
        i += utf8_get(text.data + i, &code);
        if (kind == NORMALIZER_STRIP_ACCENTS) {
            if (unicode_is_mark(code)) {
                continue;
            }
        } else if (code == 0x130) {
            TRY(buf_puts(out, "i\xCC\x87", err));
            continue;
        } else {
            code = unicode_reference_lower(code);
        }
        TRY(buf_append(out, utf8, utf8_put(code, utf8), err));
    }
    return SMOE_OK;
}

static smoe_status run_step(const normalizer_step *step, normalizer_work *w, buf *out, slice *text,
                            smoe_err *err)
{
    if (step->kind == NORMALIZER_FORM) {
        slice formed;
        TRY(normalize_text(&w->form, step->form, *text, &formed, err));
        if (formed.data == text->data) {
            return SMOE_OK;
        }
        /* A later step of the same kind would overwrite it. */
        buf_clear(out);
        TRY(buf_append_slice(out, formed, err));
        *text = buf_slice(out);
        return SMOE_OK;
    }
    buf_clear(out);
    switch (step->kind) {
    case NORMALIZER_PREPEND:
        TRY(buf_append_slice(out, step->text, err));
        TRY(buf_append_slice(out, *text, err));
        break;
    case NORMALIZER_REPLACE:
        TRY(replace(step, w, *text, out, err));
        break;
    default:
        TRY(change_characters(step->kind, *text, out, err));
        break;
    }
    *text = buf_slice(out);
    return SMOE_OK;
}

smoe_status normalizer_run(const normalizer *n, normalizer_work *w, slice text, slice *out,
                           smoe_err *err)
{
    for (size_t i = 0; i < n->n_steps && text.len; i++) {
        buf *target = &w->texts[text.data == w->texts[0].data];
        TRY(run_step(&n->steps[i], w, target, &text, err));
    }
    *out = text;
    return SMOE_OK;
}
