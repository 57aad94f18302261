/* tokens.c: which token ids end an answer and which the repetition penalty spares, resolved once,
 * here, from the checkpoint's own files. Also looks for special tokens that were never trained. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "formats/checksum.h"
#include "json/json_read.h"
#include "quant/quant.h"
#include "shatter/plan.h"

enum { N_SAMPLED_ROWS = 1024 };

static bool has_id(const smoe_ids *ids, int32_t id)
{
    for (size_t i = 0; i < ids->len; i++) {
        if (ids->data[i] == id) {
            return true;
        }
    }
    return false;
}

static smoe_status add_id(smoe_ids *ids, int32_t id, smoe_err *err)
{
    return has_id(ids, id) ? SMOE_OK : smoe_ids_push(ids, id, err);
}

/* An eos_token_id as configs write it: absent, null, an id, or a list of ids. */
static smoe_status add_eos_value(shatter_plan *p, const json_value *v, const char *where,
                                 smoe_err *err)
{
    bool is_list = jr_kind(v) == JSON_KIND_ARRAY;
    for (size_t i = 0; i < (is_list ? jr_len(v) : 1); i++) {
        const json_value *item = is_list ? jr_at(v, i) : v;
        int64_t id;
        if (jr_is_null(item)) {
            continue;
        }
        if (!jr_int(item, &id) || id < 0 || id >= p->config.n_vocab) {
            return err_set(err, SMOE_FORMAT, "%s: \"eos_token_id\" in %s is not an id within 0..%u",
                           p->source.dir, where, p->config.n_vocab - 1);
        }
        TRY(add_id(&p->eos_ids, (int32_t)id, err));
    }
    return SMOE_OK;
}

/* tokenizer_config.json's eos_token: a text, or an added token whose "content" is one. */
static smoe_status add_eos_token(shatter_plan *p, const smoe_tokenizer *tok, const json_value *root,
                                 smoe_err *err)
{
    slice text;
    const json_value *v = jr_get(root, "eos_token");
    if (!jr_string(v, &text) && !jr_string(jr_get(v, "content"), &text)) {
        return SMOE_OK;
    }
    int32_t id = smoe_tokenizer_find(tok, text.data, text.len);
    if (id < 0 || (uint32_t)id >= p->config.n_vocab) {
        return err_set(err, SMOE_FORMAT,
                       "%s: tokenizer_config.json's eos_token \"%.*s\" is not a token of "
                       "tokenizer.json; the two files are of different models",
                       p->source.dir, NAME_ARG(text));
    }
    return add_id(&p->eos_ids, id, err);
}

static smoe_status add_eos_from_files(shatter_plan *p, const smoe_tokenizer *tok, smoe_err *err)
{
    static const int sources[] = {FILE_GENERATION, FILE_CONFIG, FILE_TOKENIZER_CONFIG};
    for (int i = 0; i < 3; i++) {
        const text_file *f = &p->files[sources[i]];
        json_value *root = NULL;
        if (!f->present) {
            continue;
        }
        TRY(jr_parse(buf_slice(&f->text), f->name, &root, err));
        smoe_status status = sources[i] == FILE_TOKENIZER_CONFIG
                                 ? add_eos_token(p, tok, root, err)
                                 : add_eos_value(p, jr_get(root, "eos_token_id"), f->name, err);
        jr_free(root);
        TRY(status);
    }
    return SMOE_OK;
}

/* End markers of the chat formats in use: a tokenizer that has one as a special token means it. */
static smoe_status add_end_markers(shatter_plan *p, const smoe_tokenizer *tok, smoe_err *err)
{
    static const char *const markers[] = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>",
                                          "<|end_of_text|>", "</s>"};
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        const char *bytes;
        size_t len;
        bool is_special = false;
        int32_t id = smoe_tokenizer_find(tok, markers[i], strlen(markers[i]));
        if (id >= 0 && smoe_tokenizer_bytes(tok, id, &bytes, &len, &is_special) && is_special) {
            TRY(add_id(&p->eos_ids, id, err));
        }
    }
    return SMOE_OK;
}

/* Design A3: punctuation and line ends repeat in every text, end tokens must stay reachable. */
static smoe_status add_exempt(shatter_plan *p, const smoe_tokenizer *tok, smoe_err *err)
{
    static const char *const spared[] = {".", ",", "\n", "\n\n", "?", "!"};
    for (size_t i = 0; i < sizeof spared / sizeof spared[0]; i++) {
        int32_t id = smoe_tokenizer_find(tok, spared[i], strlen(spared[i]));
        if (id >= 0) {
            TRY(add_id(&p->penalty_exempt_ids, id, err));
        }
    }
    for (size_t i = 0; i < p->eos_ids.len; i++) {
        TRY(add_id(&p->penalty_exempt_ids, p->eos_ids.data[i], err));
    }
    return SMOE_OK;
}

static smoe_status row_norm(const shatter_plan *p, uint64_t row, void *raw, float *values,
                            double *norm, smoe_err *err)
{
    const matrix_source *m = &p->dense[0].source; /* the embedding comes first */
    uint64_t n_bytes = dtype_row_bytes(m->type, m->cols);
    TRY(file_read_at(&p->source.shards[m->shard].file, m->offset + row * n_bytes, raw, n_bytes,
                     err));
    dequantize_row_ref(m->type, raw, values, (int64_t)m->cols);
    *norm = 0;
    for (uint64_t i = 0; i < m->cols; i++) {
        *norm += (double)values[i] * values[i];
    }
    *norm = sqrt(*norm);
    return SMOE_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What a prompt may hold that was never trained: tokens that end a turn, and those around a think
 * block. */
static smoe_status find_suspects(const shatter_plan *p, const smoe_tokenizer *tok, smoe_ids *out,
                                 size_t *n_ends, smoe_err *err)
{
    static const char *const others[] = {"<|im_end|>", "<think>", "</think>"};
    for (size_t i = 0; i < p->eos_ids.len; i++) {
        TRY(add_id(out, p->eos_ids.data[i], err));
    }
    *n_ends = out->len;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int32_t id = smoe_tokenizer_find(tok, others[i], strlen(others[i]));
        if (id >= 0) {
            TRY(add_id(out, id, err));
        }
        *n_ends += i == 0 && out->len > *n_ends;
    }
    return SMOE_OK;
}

static void note_row(const shatter_events *events, const smoe_tokenizer *tok, int32_t id,
                     double norm, double median, bool is_end)
{
    const char *bytes = "";
    size_t len = 0;
    smoe_tokenizer_bytes(tok, id, &bytes, &len, NULL);
    plan_note(events,
              "token %d (%.*s) has an embedding row of almost zero (norm %.2g, median %.2g): this "
              "checkpoint was not trained with it, and a prompt that holds it ruins the answer; %s",
              id, (int)(len < 60 ? len : 60), bytes, norm, median,
              is_end ? "check that tokenizer and chat template are its own, or, when it is a base "
                       "model, do not chat with it"
                     : "keep its own chat template, and put no think block into a prompt");
}

/* A token whose embedding row is almost zero was never trained: a template that uses it derails
 * the model, so people should know. Reads the suspects' rows and, for the median, evenly spaced
 * ones. */
static smoe_status note_untrained(const shatter_plan *p, const smoe_tokenizer *tok,
                                  const shatter_events *events, smoe_err *err)
{
    uint64_t n_rows = p->config.n_vocab, n = n_rows < N_SAMPLED_ROWS ? n_rows : N_SAMPLED_ROWS;
    smoe_status status = SMOE_OK;
    smoe_ids suspects = {0};
    size_t n_ends;
    double *norms = mem_calloc((size_t)n, sizeof *norms), norm;
    float *values = mem_calloc(p->config.n_embd, sizeof *values);
    void *raw = mem_calloc(p->config.n_embd, sizeof(float));
    if (norms == NULL || values == NULL || raw == NULL) {
        status = err_nomem(err, "embedding rows", p->config.n_embd * 2 * sizeof(float));
        goto out;
    }
    for (uint64_t i = 0; i < n; i++) {
        CHECK(row_norm(p, i * n_rows / n, raw, values, &norms[i], err));
    }
    qsort(norms, (size_t)n, sizeof *norms, by_value);
    CHECK(find_suspects(p, tok, &suspects, &n_ends, err));
    for (size_t i = 0; i < suspects.len; i++) {
        CHECK(row_norm(p, (uint64_t)suspects.data[i], raw, values, &norm, err));
        if (norm < 0.01 * norms[n / 2]) {
            note_row(events, tok, suspects.data[i], norm, norms[n / 2], i < n_ends);
        }
    }
out:
    smoe_ids_free(&suspects);
    mem_free(norms);
    mem_free(values);
    mem_free(raw);
    return status;
}

/* Tied to the tokenizer.json beside it by that file's checksum in the scout. */
static smoe_status compile_tokenizer(shatter_plan *p, smoe_err *err)
{
    const buf *json = &p->files[FILE_TOKENIZER].text;
    text_file *out = &p->files[FILE_COMPILED];
    char *data;
    size_t len;
    checksum sum;
    checksum_init(&sum);
    checksum_add(&sum, json->data, json->len);
    TRY(smoe_tokenizer_compile(json->data, json->len, checksum_end(&sum), &data, &len, err));
    smoe_status status = buf_append(&out->text, data, len, err);
    smoe_text_free(data);
    out->present = status == SMOE_OK;
    return status;
}

smoe_status plan_tokens(shatter_plan *p, const shatter_events *events, smoe_err *err)
{
    smoe_tokenizer *tok = NULL;
    smoe_status status;
    const buf *text = &p->files[FILE_TOKENIZER].text;
    CHECK(smoe_tokenizer_new(text->data != NULL ? text->data : "", text->len, &tok, err));
    if (smoe_tokenizer_n_vocab(tok) > p->config.n_vocab) {
        status = err_set(err, SMOE_MISMATCH,
                         "%s: tokenizer.json has ids up to %u, but config.json's "
                         "vocab_size is %u; the two files are of different models",
                         p->source.dir, smoe_tokenizer_n_vocab(tok) - 1, p->config.n_vocab);
        goto out;
    }
    CHECK(add_eos_from_files(p, tok, err));
    CHECK(add_end_markers(p, tok, err));
    CHECK(add_exempt(p, tok, err));
    if (p->eos_ids.len == 0) {
        plan_note(events, "%s names no end token anywhere: answers will run to their length limit",
                  p->source.dir);
    }
    CHECK(note_untrained(p, tok, events, err));
    CHECK(compile_tokenizer(p, err));
out:
    smoe_tokenizer_free(tok);
    return status;
}
