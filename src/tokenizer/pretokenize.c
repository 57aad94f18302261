/* pretokenize.c: see pretokenize.h. */
#include "tokenizer/pretokenize.h"

#include "base/mem.h"

const char pretokenize_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

void pretokenize_init(pretokenizer *p)
{
    *p = (pretokenizer){0};
}

void pretokenize_fini(pretokenizer *p)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        regex_free(p->stages[i].pattern);
    }
    *p = (pretokenizer){0};
}

smoe_status pretokenize_add(pretokenizer *p, const pretokenize_stage *stage, smoe_err *err)
{
    if (p->n_stages == PRETOKENIZE_MAX_STAGES) {
        regex_free(stage->pattern);
        return err_set(err, SMOE_UNSUPPORTED,
                       "tokenizer.json: pre_tokenizer has more than %d parts, which is not "
                       "supported",
                       PRETOKENIZE_MAX_STAGES);
    }
    p->stages[p->n_stages++] = *stage;
    return SMOE_OK;
}

struct pretokenize_work {
    const pretokenizer *p;
    pretokenize_sink *sink; /* of the run in progress, and its context */
    void *context;
    regex_work *regex;
    buf changed[PRETOKENIZE_MAX_STAGES]; /* what a stage made of its piece */
};

void pretokenize_work_free(pretokenize_work *w)
{
    if (w) {
        regex_work_free(w->regex);
        for (size_t i = 0; i < PRETOKENIZE_MAX_STAGES; i++) {
            buf_fini(&w->changed[i]);
        }
        mem_free(w);
    }
}

smoe_status pretokenize_work_new(const pretokenizer *p, size_t n_bytes, pretokenize_work **out,
                                 smoe_err *err)
{
    pretokenize_work *w = mem_calloc(1, sizeof *w);
    if (!w) {
        return err_nomem(err, "the pre-tokenizer", sizeof *w);
    }
    w->p = p;
    for (size_t i = 0; i < PRETOKENIZE_MAX_STAGES; i++) {
        buf_init(&w->changed[i], SIZE_MAX / 2);
    }
    smoe_status status = regex_work_new(n_bytes, &w->regex, err);
    if (status != SMOE_OK) {
        pretokenize_work_free(w);
        return status;
    }
    *out = w;
    return SMOE_OK;
}

static smoe_status run_from(pretokenize_work *w, size_t i, slice text, bool is_first,
                            smoe_err *err);

/* One stage on one piece: the pieces it is being cut into. */
typedef struct cutting {
    pretokenize_work *w;
    size_t stage;
    slice text;
    bool is_first;
    /* A piece that may still grow. */
    size_t start, end;
    bool has_piece, was_match;
} cutting;

static smoe_status put_piece(const cutting *c, size_t start, size_t end, smoe_err *err)
{
    return run_from(c->w, c->stage + 1, slice_of(c->text.data + start, end - start),
                    c->is_first && start == 0, err);
}

static smoe_status put_waiting(cutting *c, smoe_err *err)
{
    bool has_piece = c->has_piece;
    c->has_piece = false;
    return has_piece ? put_piece(c, c->start, c->end, err) : SMOE_OK;
}

/* The next part of the text, all of it matched or all of it not. */
static smoe_status put_part(cutting *c, size_t start, size_t end, bool is_match, smoe_err *err)
{
    const pretokenize_stage *stage = &c->w->p->stages[c->stage];
    bool was_match = c->was_match, joins = false;
    if (start == end) {
        return SMOE_OK;
    }
    c->was_match = is_match;
    switch (stage->behavior) {
    case SPLIT_ISOLATED:
        return put_piece(c, start, end, err);
    case SPLIT_REMOVED:
        return is_match ? SMOE_OK : put_piece(c, start, end, err);
    case SPLIT_CONTIGUOUS:
        joins = is_match == was_match;
        break;
    case SPLIT_MERGED_WITH_PREVIOUS:
        joins = is_match && !was_match;
        break;
    case SPLIT_MERGED_WITH_NEXT:
        joins = !is_match && was_match;
        break;
    }
    if (c->has_piece && joins) {
        c->end = end;
        return SMOE_OK;
    }
    TRY(put_waiting(c, err));
    c->start = start;
    c->end = end;
    c->has_piece = true;
    return SMOE_OK;
}

static smoe_status run_split(pretokenize_work *w, size_t i, slice text, bool is_first,
                             smoe_err *err)
{
    const pretokenize_stage *stage = &w->p->stages[i];
    cutting c = {.w = w, .stage = i, .text = text, .is_first = is_first};
    for (size_t done = 0; done < text.len;) {
        size_t start, end;
        TRY(regex_find(stage->pattern, w->regex, text, done, &start, &end, err));
        TRY(put_part(&c, done, start, stage->invert, err));
        TRY(put_part(&c, start, end, !stage->invert, err));
        done = end;
    }
    return put_waiting(&c, err);
}

static smoe_status run_metaspace(pretokenize_work *w, size_t i, slice text, bool is_first,
                                 smoe_err *err)
{
    const pretokenize_stage *stage = &w->p->stages[i];
    slice mark = slice_of(stage->mark, stage->mark_len);
    buf *out = &w->changed[i];
    bool prepends =
        stage->prepend == PREPEND_ALWAYS || (stage->prepend == PREPEND_FIRST && is_first);
    buf_clear(out);
    if (prepends && text.data[0] != ' ' && !slice_starts(text, mark)) {
        TRY(buf_append_slice(out, mark, err));
    }
    for (size_t done = 0; done < text.len;) {
        const char *space = memchr(text.data + done, ' ', text.len - done);
        size_t at = space ? (size_t)(space - text.data) : text.len;
        TRY(buf_append(out, text.data + done, at - done, err));
        if (space) {
            TRY(buf_append_slice(out, mark, err));
        }
        done = at + 1;
    }
    return stage->pattern ? run_split(w, i, buf_slice(out), is_first, err)
                          : run_from(w, i + 1, buf_slice(out), is_first, err);
}

static smoe_status run_space(pretokenize_work *w, size_t i, slice text, bool is_first,
                             smoe_err *err)
{
    buf *out = &w->changed[i];
    if (text.data[0] == ' ') {
        return run_from(w, i + 1, text, is_first, err);
    }
    buf_clear(out);
    TRY(buf_putc(out, ' ', err));
    TRY(buf_append_slice(out, text, err));
    return run_from(w, i + 1, buf_slice(out), is_first, err);
}

/* Passes a piece through stage i and those after it. At most PRETOKENIZE_MAX_STAGES deep. */
static smoe_status run_from(pretokenize_work *w, size_t i, slice text, bool is_first, smoe_err *err)
{
    if (i == w->p->n_stages) {
        return w->sink(w->context, text, err);
    }
    switch (w->p->stages[i].kind) {
    case STAGE_SPACE:
        return run_space(w, i, text, is_first, err);
    case STAGE_METASPACE:
        return run_metaspace(w, i, text, is_first, err);
    case STAGE_SPLIT:
        break;
    }
    return run_split(w, i, text, is_first, err);
}

smoe_status pretokenize_run(pretokenize_work *w, slice text, bool is_first, pretokenize_sink *sink,
                            void *context, smoe_err *err)
{
    w->sink = sink;
    w->context = context;
    return text.len ? run_from(w, 0, text, is_first, err) : SMOE_OK;
}
