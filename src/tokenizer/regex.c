/* regex.c: see regex.h. The only file that includes PCRE2.
 *
 * Patterns come from files, so a match may be made to backtrack without end, or to look far ahead
 * from every position in vain: both have a limit on their steps, generous for a run of spaces as
 * long as the text and an error beyond. */
#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

#include "base/mem.h"
#include "tokenizer/pattern.h"
#include "tokenizer/pattern_dfa.h"
#include "tokenizer/utf8.h"

enum {
    MIN_MATCH_STEPS = 10000000,
    MATCH_STEPS_PER_BYTE = 8,
    JIT_STACK_START_BYTES = 64 << 10,
    JIT_STACK_MAX_BYTES = 64 << 20,
};

struct regex {
    pattern_dfa *table; /* or else */
    pcre2_code *code;
};

struct regex_work {
    size_t n_steps, max_steps; /* of tables, in vain */
    /* Made when a pattern is first run that needs them. */
    pcre2_general_context *general;
    pcre2_match_context *match;
    pcre2_jit_stack *stack;
    pcre2_match_data *data;
};

static void *regex_alloc(PCRE2_SIZE n_bytes, void *unused)
{
    (void)unused;
    return mem_alloc(n_bytes);
}

static void regex_release(void *p, void *unused)
{
    (void)unused;
    mem_free(p);
}

/* Where the JIT compiler is missing or forbidden, PCRE2 interprets: slower, with the same matches.
 */
static smoe_status compile(slice translated, pcre2_code **code, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    pcre2_general_context *general = pcre2_general_context_create(regex_alloc, regex_release, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int error = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset = 0;
    uint32_t matches_empty = 0;
    *code = NULL;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        *code = pcre2_compile((PCRE2_SPTR)translated.data, translated.len, PCRE2_UTF | PCRE2_UCP,
                              &error, &offset, context);
    }
    if (!*code && (!context || error == PCRE2_ERROR_HEAP_FAILED)) {
        status = err_nomem(err, "the pre-tokenizer's pattern", translated.len);
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
        *code = NULL;
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return status;
}

smoe_status regex_new(slice pattern, enum regex_engine engine, regex **out, smoe_err *err)
{
    smoe_status status;
    buf translated;
    buf_init(&translated, 256 * PATTERN_MAX_BYTES);
    regex *r = mem_calloc(1, sizeof *r);
    if (!r) {
        return err_nomem(err, "a pattern", sizeof *r);
    }
    if (engine == REGEX_TABLE_OR_PCRE2) {
        CHECK(pattern_translate(pattern, PATTERN_CATEGORIES_KNOWN, &translated, err));
        CHECK(pattern_dfa_new(buf_slice(&translated), &r->table, err));
    }
    if (!r->table) {
        buf_clear(&translated);
        CHECK(pattern_translate(pattern, PATTERN_CATEGORIES_OLD, &translated, err));
        CHECK(compile(buf_slice(&translated), &r->code, err));
    }
    *out = r;
    r = NULL;
out:
    regex_free(r);
    buf_fini(&translated);
    return status;
}

void regex_free(regex *r)
{
    if (r) {
        pattern_dfa_free(r->table);
        pcre2_code_free(r->code);
        mem_free(r);
    }
}

bool regex_is_table(const regex *r)
{
    return r->table != NULL;
}

smoe_status regex_work_new(size_t n_bytes, regex_work **out, smoe_err *err)
{
    regex_work *w = mem_calloc(1, sizeof *w);
    if (!w) {
        return err_nomem(err, "the pre-tokenizer", sizeof *w);
    }
    w->max_steps = MIN_MATCH_STEPS + MATCH_STEPS_PER_BYTE * n_bytes;
    *out = w;
    return SMOE_OK;
}

void regex_work_free(regex_work *w)
{
    if (w) {
        pcre2_match_data_free(w->data);
        pcre2_jit_stack_free(w->stack);
        pcre2_match_context_free(w->match);
        pcre2_general_context_free(w->general);
        mem_free(w);
    }
}

static smoe_status prepare_pcre2(regex_work *w, smoe_err *err)
{
    w->general = pcre2_general_context_create(regex_alloc, regex_release, NULL);
    w->match = w->general ? pcre2_match_context_create(w->general) : NULL;
    w->data = w->match ? pcre2_match_data_create(1, w->general) : NULL;
    if (!w->data) {
        pcre2_match_context_free(w->match);
        pcre2_general_context_free(w->general);
        w->general = NULL;
        w->match = NULL;
        return err_nomem(err, "the pre-tokenizer", sizeof *w);
    }
    /* Refused where there is no JIT, and not needed there. */
    w->stack = pcre2_jit_stack_create(JIT_STACK_START_BYTES, JIT_STACK_MAX_BYTES, w->general);
    pcre2_jit_stack_assign(w->match, NULL, w->stack);
    pcre2_set_match_limit(w->match,
                          w->max_steps < UINT32_MAX ? (uint32_t)w->max_steps : UINT32_MAX);
    return SMOE_OK;
}

static smoe_status cannot_cut(slice text, size_t from, const char *why, smoe_err *err)
{
    return err_set(err, SMOE_RANGE,
                   "the text cannot be cut into words: the pre-tokenizer's pattern failed at byte "
                   "%zu of %zu (%s)",
                   from, text.len, why);
}

static smoe_status find_by_pcre2(const regex *r, regex_work *w, slice text, size_t from,
                                 size_t *start, size_t *end, smoe_err *err)
{
    if (!w->data) {
        TRY(prepare_pcre2(w, err));
    }
    int n = pcre2_match(r->code, (PCRE2_SPTR)text.data, text.len, from, PCRE2_NO_UTF_CHECK, w->data,
                        w->match);
    if (n == PCRE2_ERROR_NOMATCH) {
        *start = *end = text.len;
        return SMOE_OK;
    }
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(w->data);
    if (n < 0 || found[1] <= found[0] || found[0] < from) {
        char why[40];
        snprintf(why, sizeof why, "PCRE2 error %d", n);
        return cannot_cut(text, from, why, err);
    }
    *start = found[0];
    *end = found[1];
    return SMOE_OK;
}

smoe_status regex_find(const regex *r, regex_work *w, slice text, size_t from, size_t *start,
                       size_t *end, smoe_err *err)
{
    if (!r->table) {
        return find_by_pcre2(r, w, text, from, start, end, err);
    }
    for (size_t at = from; at < text.len;) {
        size_t n_steps = 0, n = pattern_dfa_match(r->table, text, at, &n_steps);
        if (n) {
            *start = at;
            *end = at + n;
            return SMOE_OK;
        }
        w->n_steps += n_steps;
        if (w->n_steps > w->max_steps) {
            return cannot_cut(text, from, "it looks ahead too far too often", err);
        }
        uint32_t code;
        at += utf8_get(text.data + at, &code);
    }
    *start = *end = text.len;
    return SMOE_OK;
}
