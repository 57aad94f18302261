/* pretokenize.c: see pretokenize.h. The only file that includes PCRE2.
 *
 * Patterns come from files, so a match may be made to backtrack without end: every match has a
 * limit on its steps, generous for a run of spaces as long as the text and an error beyond. */
#include "tokenizer/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "tokenizer/pattern.h"

const char pretokenize_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

enum {
    MIN_MATCH_STEPS = 10000000,
    MATCH_STEPS_PER_BYTE = 8,
    JIT_STACK_START_BYTES = 64 << 10,
    JIT_STACK_MAX_BYTES = 64 << 20,
};

static void *regex_alloc(PCRE2_SIZE n_bytes, void *unused)
{
    (void)unused;
    return mem_alloc(n_bytes);
}

static void regex_free(void *p, void *unused)
{
    (void)unused;
    mem_free(p);
}

void pretokenize_init(pretokenizer *p)
{
    *p = (pretokenizer){0};
}

void pretokenize_fini(pretokenizer *p)
{
    for (size_t i = 0; i < p->n_splits; i++) {
        pcre2_code_free(p->splits[i]);
    }
    *p = (pretokenizer){0};
}

/* Where the JIT compiler is missing or forbidden, PCRE2 interprets: slower, with the same matches.
 */
static smoe_status compile(const buf *translated, pcre2_code **code, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    pcre2_general_context *general = pcre2_general_context_create(regex_alloc, regex_free, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int error = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset = 0;
    uint32_t matches_empty = 0;
    *code = NULL;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        *code = pcre2_compile((PCRE2_SPTR)translated->data, translated->len, PCRE2_UTF | PCRE2_UCP,
                              &error, &offset, context);
    }
    if (!*code && (!context || error == PCRE2_ERROR_HEAP_FAILED)) {
        status = err_nomem(err, "the pre-tokenizer's pattern", translated->len);
    } else if (!*code) {
        PCRE2_UCHAR message[128] = "";
        pcre2_get_error_message(error, message, sizeof message);
        status = err_set(err, SMOE_UNSUPPORTED,
                         "tokenizer.json: the pre-tokenizer's pattern does not compile: %s",
                         (const char *)message);
    } else if (pcre2_pattern_info(*code, PCRE2_INFO_MATCHEMPTY, &matches_empty) != 0 ||
               matches_empty) {
        status = err_set(err, SMOE_UNSUPPORTED,
                         "tokenizer.json: the pre-tokenizer's pattern may match the empty string, "
                         "which is not supported");
    } else {
        pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE);
    }
    if (status != SMOE_OK) {
        pcre2_code_free(*code);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return status;
}

smoe_status pretokenize_add(pretokenizer *p, slice pattern, smoe_err *err)
{
    smoe_status status;
    buf translated;
    buf_init(&translated, 64 * PATTERN_MAX_BYTES);
    if (p->n_splits == PRETOKENIZE_MAX_SPLITS) {
        CHECK(err_set(err, SMOE_UNSUPPORTED,
                      "tokenizer.json: pre_tokenizer has more than %d patterns, which is not "
                      "supported",
                      PRETOKENIZE_MAX_SPLITS));
    }
    CHECK(pattern_translate(pattern, &translated, err));
    CHECK(compile(&translated, &p->splits[p->n_splits], err));
    p->n_splits++;
out:
    buf_fini(&translated);
    return status;
}

struct pretokenize_work {
    const pretokenizer *p;
    pretokenize_sink *sink; /* of the run in progress, and its context */
    void *context;
    pcre2_general_context *general;
    pcre2_match_context *match;
    pcre2_jit_stack *stack;
    pcre2_match_data *data[PRETOKENIZE_MAX_SPLITS]; /* one per split: they nest */
    buf prefixed;
};

void pretokenize_work_free(pretokenize_work *w)
{
    if (w) {
        for (size_t i = 0; i < w->p->n_splits; i++) {
            pcre2_match_data_free(w->data[i]);
        }
        pcre2_jit_stack_free(w->stack);
        pcre2_match_context_free(w->match);
        pcre2_general_context_free(w->general);
        buf_fini(&w->prefixed);
        mem_free(w);
    }
}

smoe_status pretokenize_work_new(const pretokenizer *p, pretokenize_work **out, smoe_err *err)
{
    pretokenize_work *w = mem_calloc(1, sizeof *w);
    if (!w) {
        return err_nomem(err, "the pre-tokenizer", sizeof *w);
    }
    w->p = p;
    buf_init(&w->prefixed, SIZE_MAX / 2);
    w->general = pcre2_general_context_create(regex_alloc, regex_free, NULL);
    w->match = w->general ? pcre2_match_context_create(w->general) : NULL;
    bool ready = w->match != NULL;
    for (size_t i = 0; ready && i < p->n_splits; i++) {
        w->data[i] = pcre2_match_data_create(1, w->general);
        ready = w->data[i] != NULL;
    }
    if (!ready) {
        pretokenize_work_free(w);
        return err_nomem(err, "the pre-tokenizer", sizeof *w);
    }
    /* Refused where there is no JIT, and not needed there. */
    w->stack = pcre2_jit_stack_create(JIT_STACK_START_BYTES, JIT_STACK_MAX_BYTES, w->general);
    pcre2_jit_stack_assign(w->match, NULL, w->stack);
    *out = w;
    return SMOE_OK;
}

static smoe_status run_from(pretokenize_work *w, size_t i, slice text, smoe_err *err);

static smoe_status run_split(pretokenize_work *w, size_t i, slice text, smoe_err *err)
{
    size_t done = 0;
    while (done < text.len) {
        int n = pcre2_match(w->p->splits[i], (PCRE2_SPTR)text.data, text.len, done,
                            PCRE2_NO_UTF_CHECK, w->data[i], w->match);
        if (n == PCRE2_ERROR_NOMATCH) {
            break;
        }
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(w->data[i]);
        if (n < 0 || found[1] <= found[0] || found[0] < done) {
            return err_set(err, SMOE_RANGE,
                           "the text cannot be cut into words: the pre-tokenizer's pattern failed "
                           "at "
                           "byte %zu of %zu (PCRE2 error %d)",
                           done, text.len, n);
        }
        size_t start = found[0], end = found[1];
        if (start > done) {
            TRY(run_from(w, i + 1, slice_of(text.data + done, start - done), err));
        }
        TRY(run_from(w, i + 1, slice_of(text.data + start, end - start), err));
        done = end;
    }
    return done < text.len ? run_from(w, i + 1, slice_of(text.data + done, text.len - done), err)
                           : SMOE_OK;
}

/* Passes a piece through split i and those after it. At most PRETOKENIZE_MAX_SPLITS deep. */
static smoe_status run_from(pretokenize_work *w, size_t i, slice text, smoe_err *err)
{
    if (w->p->add_prefix_space && i == w->p->prefix_before && text.data[0] != ' ') {
        buf_clear(&w->prefixed);
        TRY(buf_putc(&w->prefixed, ' ', err));
        TRY(buf_append_slice(&w->prefixed, text, err));
        text = buf_slice(&w->prefixed);
    }
    return i < w->p->n_splits ? run_split(w, i, text, err) : w->sink(w->context, text, err);
}

smoe_status pretokenize_run(pretokenize_work *w, slice text, pretokenize_sink *sink, void *context,
                            smoe_err *err)
{
    size_t steps = MIN_MATCH_STEPS + MATCH_STEPS_PER_BYTE * text.len;
    w->sink = sink;
    w->context = context;
    pcre2_set_match_limit(w->match, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    return text.len ? run_from(w, 0, text, err) : SMOE_OK;
}
