/* hf_load.c: reads the tokenizer.json of Hugging Face tokenizers (version 1.0): byte-pair encoding
 * over bytes, as the GPT-2, Llama 3 and Qwen families publish it, or over characters, as Llama 2
 * and Mixtral do. The vocabulary and the merges come out of the file or out of its compiled form
 * (compiled.c); everything else always out of JSON. */
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tokenizer/compiled.h"
#include "tokenizer/hf_json.h"

static smoe_status read_vocab(smoe_tokenizer *tok, const json_value *entries, smoe_err *err)
{
    uint32_t n_ids = 0;
    if (jr_kind(entries) != JSON_KIND_OBJECT || jr_len(entries) == 0) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.vocab is %s; expected an object with at least "
                       "one token",
                       entries ? jr_kind_name(entries) : "absent");
    }
    for (void *it = jr_iter(entries); it; it = jr_next(entries, it)) {
        int64_t id;
        slice text = jr_iter_key(it);
        if (!jr_int(jr_iter_value(it), &id) || id < 0 || id >= VOCAB_MAX_IDS) {
            return err_set(err, SMOE_FORMAT,
                           "tokenizer.json: model.vocab[\"%.*s\"] is not an id from 0 to %d",
                           SLICE_ARG(hf_clip(text)), VOCAB_MAX_IDS - 1);
        }
        if (text.len > VOCAB_MAX_TOKEN_BYTES) {
            return err_set(err, SMOE_RANGE,
                           "tokenizer.json: token %lld of model.vocab has %zu bytes; the limit "
                           "is %d",
                           (long long)id, text.len, VOCAB_MAX_TOKEN_BYTES);
        }
        n_ids = (uint32_t)id >= n_ids ? (uint32_t)id + 1 : n_ids;
    }
    TRY(vocab_resize(&tok->vocab, n_ids, err));
    for (void *it = jr_iter(entries); it; it = jr_next(entries, it)) {
        int64_t id = 0;
        jr_int(jr_iter_value(it), &id);
        TRY(vocab_add(&tok->vocab, (uint32_t)id, jr_iter_key(it), err));
    }
    return vocab_build_index(&tok->vocab, err);
}

/* A merge is ["a", "b"] or, in older files, "a b". */
static bool split_merge(const json_value *v, slice *left, slice *right)
{
    slice line;
    if (jr_string(v, &line)) {
        const char *space = memchr(line.data, ' ', line.len);
        if (!space) {
            return false;
        }
        *left = slice_of(line.data, (size_t)(space - line.data));
        *right = slice_of(space + 1, line.len - left->len - 1);
        return !memchr(right->data, ' ', right->len);
    }
    return jr_len(v) == 2 && jr_string(jr_at(v, 0), left) && jr_string(jr_at(v, 1), right);
}

static smoe_status merge_id(const vocab *v, size_t i, slice text, uint32_t *id, smoe_err *err)
{
    int32_t found = vocab_find_text(v, text);
    if (found < 0) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.merges[%zu] needs the token \"%.*s\", which "
                       "model.vocab "
                       "does not have",
                       i, SLICE_ARG(hf_clip(text)));
    }
    *id = (uint32_t)found;
    return SMOE_OK;
}

static smoe_status read_merges(smoe_tokenizer *tok, const json_value *merges, buf *scratch,
                               smoe_err *err)
{
    size_t n = jr_len(merges);
    if (jr_kind(merges) != JSON_KIND_ARRAY || n > BPE_MAX_MERGES) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.merges is %s of %zu; expected an array of at most %d",
                       merges ? jr_kind_name(merges) : "absent", n, BPE_MAX_MERGES);
    }
    TRY(bpe_init(&tok->bpe, &tok->vocab, (uint32_t)n, err));
    for (size_t i = 0; i < n; i++) {
        slice left, right, line;
        uint32_t left_id, right_id, merged_id;
        if (jr_string(jr_at(merges, i), &line) && slice_starts(line, slice_from("#version"))) {
            continue; /* the first line of the merges.txt that old files were made from */
        }
        if (!split_merge(jr_at(merges, i), &left, &right)) {
            return err_set(err, SMOE_FORMAT,
                           "tokenizer.json: model.merges[%zu] is %s; expected two tokens, as "
                           "[\"a\", \"b\"] or \"a b\"",
                           i, jr_kind_name(jr_at(merges, i)));
        }
        buf_clear(scratch);
        TRY(buf_append_slice(scratch, left, err));
        TRY(buf_append_slice(scratch, right, err));
        TRY(merge_id(&tok->vocab, i, left, &left_id, err));
        TRY(merge_id(&tok->vocab, i, right, &right_id, err));
        TRY(merge_id(&tok->vocab, i, buf_slice(scratch), &merged_id, err));
        TRY(bpe_add(&tok->bpe, left_id, right_id, merged_id, err));
    }
    return SMOE_OK;
}

/* The settings of the model; of a byte-level one they only matter where a byte has no token. */
static smoe_status read_unknown(smoe_tokenizer *tok, const json_value *model, smoe_err *err)
{
    bpe *b = &tok->bpe;
    const json_value *v = jr_get(model, "unk_token");
    bool byte_fallback = false;
    slice text;
    TRY(hf_read_flag(model, "model", "fuse_unk", &b->fuse_unk, err));
    TRY(hf_read_flag(model, "model", "byte_fallback", &byte_fallback, err));
    if (jr_string(v, &text)) {
        b->unk_id = vocab_find_text(&tok->vocab, text);
    } else if (!jr_is_null(v)) {
        return hf_refuse(err, "model.unk_token", v, "null or a token");
    }
    if (!jr_is_null(v) && b->unk_id < 0) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.unk_token \"%.*s\" is not in model.vocab",
                       SLICE_ARG(hf_clip(text)));
    }
    for (int byte = 0; byte < 256; byte++) {
        b->fallback_ids[byte] = byte_fallback ? vocab_find_byte(&tok->vocab, (unsigned char)byte)
                                              : -1;
        if (tok->vocab.is_byte_level && byte_fallback && b->byte_ids[byte] < 0) {
            return hf_refuse(err, "model.byte_fallback", jr_get(model, "byte_fallback"),
                             "false where a byte-level vocabulary lacks a byte");
        }
    }
    return SMOE_OK;
}

static smoe_status check_model(const json_value *model, smoe_err *err)
{
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    double dropout = 0;
    if (!hf_type_is(model, "BPE")) {
        return hf_refuse(err, "model.type", jr_get(model, "type"), "\"BPE\"");
    }
    TRY(hf_only_keys(model, "model", keys, err));
    const json_value *v = jr_get(model, "dropout");
    if (!jr_is_null(v) && !(jr_number(v, &dropout) && dropout == 0)) {
        return hf_refuse(err, "model.dropout", v, "null");
    }
    if (!hf_is_nothing(v = jr_get(model, "continuing_subword_prefix"))) {
        return hf_refuse(err, "model.continuing_subword_prefix", v, "null or \"\"");
    }
    if (!hf_is_nothing(v = jr_get(model, "end_of_word_suffix"))) {
        return hf_refuse(err, "model.end_of_word_suffix", v, "null or \"\"");
    }
    return SMOE_OK;
}

static smoe_status read_model(smoe_tokenizer *tok, const json_value *model,
                              const compiled_model *compiled, smoe_err *err)
{
    bool ignore_merges = false;
    TRY(check_model(model, err));
    TRY(hf_read_flag(model, "model", "ignore_merges", &ignore_merges, err));
    if (compiled) {
        TRY(compiled_read_model(compiled, tok, err));
    } else {
        buf scratch;
        buf_init(&scratch, 2 * VOCAB_MAX_TOKEN_BYTES + 1);
        smoe_status status = read_vocab(tok, jr_get(model, "vocab"), err);
        if (status == SMOE_OK) {
            status = read_merges(tok, jr_get(model, "merges"), &scratch, err);
        }
        buf_fini(&scratch);
        TRY(status);
    }
    tok->bpe.ignore_merges = ignore_merges;
    TRY(read_unknown(tok, model, err));
    return compiled ? SMOE_OK : bpe_mark_whole(&tok->bpe, &tok->vocab, err);
}

/* What these do is trim offsets or add special tokens: neither concerns us. */
static smoe_status check_post_processor(const json_value *v, int depth, smoe_err *err)
{
    if (jr_is_null(v) || hf_type_is(v, "ByteLevel") || hf_type_is(v, "TemplateProcessing")) {
        return SMOE_OK;
    }
    if (!hf_type_is(v, "Sequence") || depth == HF_MAX_NESTED_SEQUENCES) {
        return hf_refuse(err, "post_processor", jr_get(v, "type"),
                      "null, \"ByteLevel\", \"TemplateProcessing\" or a \"Sequence\" of them");
    }
    const json_value *list = jr_get(v, "processors");
    for (size_t i = 0; i < jr_len(list); i++) {
        TRY(check_post_processor(jr_at(list, i), depth + 1, err));
    }
    return SMOE_OK;
}

typedef struct added_entry {
    slice content;
    int64_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} added_entry;

static smoe_status read_added_entry(const json_value *v, size_t i, added_entry *out, smoe_err *err)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    char where[40];
    snprintf(where, sizeof where, "added_tokens[%zu]", i);
    *out = (added_entry){.normalized = true};
    TRY(hf_only_keys(v, where, keys, err));
    if (!jr_string(jr_get(v, "content"), &out->content) || out->content.len == 0 ||
        out->content.len > ADDED_MAX_BYTES) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: %s.content is not a text of 1 to %d bytes", where,
                       ADDED_MAX_BYTES);
    }
    if (!jr_int(jr_get(v, "id"), &out->id) || out->id < 0 || out->id >= VOCAB_MAX_IDS) {
        return err_set(err, SMOE_FORMAT, "tokenizer.json: %s.id is not an id from 0 to %d", where,
                       VOCAB_MAX_IDS - 1);
    }
    TRY(hf_read_flag(v, where, "single_word", &out->single_word, err));
    TRY(hf_read_flag(v, where, "lstrip", &out->lstrip, err));
    TRY(hf_read_flag(v, where, "rstrip", &out->rstrip, err));
    TRY(hf_read_flag(v, where, "normalized", &out->normalized, err));
    return hf_read_flag(v, where, "special", &out->special, err);
}

/* The reference ignores the id in the file: it takes the vocabulary's id, or the next free one. A
 * file in which the two differ means different things to different programs. */
static smoe_status check_added_id(const smoe_tokenizer *tok, const added_entry *entry, int64_t next,
                                  smoe_err *err)
{
    int32_t found = vocab_find_text(&tok->vocab, entry->content);
    bool in_vocab = found >= 0;
    int64_t expected = in_vocab ? found : next;
    if (entry->id != expected) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "tokenizer.json: the added token \"%.*s\" says id %lld, but Hugging Face "
                       "tokenizers gives it %lld (%s); correct the file",
                       SLICE_ARG(hf_clip(entry->content)), (long long)entry->id,
                       (long long)expected,
                       in_vocab ? "its id in model.vocab" : "the next free one");
    }
    uint8_t kind = entry->id < tok->vocab.n_ids ? tok->vocab.tokens[entry->id].kind : VOCAB_NONE;
    if (kind != VOCAB_NONE && !in_vocab) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: the added token \"%.*s\" has the id %lld of another token",
                       SLICE_ARG(hf_clip(entry->content)), (long long)entry->id);
    }
    return SMOE_OK;
}

/* What reading the list needs besides the tokenizer. */
typedef struct added_reader {
    normalizer_work normalize;
    added_set seen; /* all contents as they are in the file */
} added_reader;

static smoe_status add_to_sets(smoe_tokenizer *tok, added_reader *r, const added_entry *entry,
                               size_t order, smoe_err *err)
{
    added_token token = {.text = entry->content,
                         .order = order,
                         .id = (int32_t)entry->id,
                         .lstrip = entry->lstrip,
                         .rstrip = entry->rstrip,
                         .single_word = entry->single_word};
    TRY(added_add(&r->seen, &token, err));
    if (!entry->normalized) {
        return added_add(&tok->added_raw, &token, err);
    }
    TRY(normalizer_run(&tok->normalizer, &r->normalize, entry->content, &token.text, err));
    if (token.text.len == 0) {
        return SMOE_OK; /* nothing is left of it to be found */
    }
    return added_add(&tok->added_normalized, &token, err);
}

static smoe_status read_added_list(smoe_tokenizer *tok, added_reader *r, const json_value *list,
                                   smoe_err *err)
{
    size_t n = jr_len(list);
    int64_t next = tok->vocab.n_in_model;
    if ((!jr_is_null(list) && jr_kind(list) != JSON_KIND_ARRAY) || n > ADDED_MAX_TOKENS) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: added_tokens is %s of %zu; expected an array of at most %d",
                       jr_kind_name(list), n, ADDED_MAX_TOKENS);
    }
    for (size_t i = 0; i < n; i++) {
        added_entry entry;
        TRY(read_added_entry(jr_at(list, i), i, &entry, err));
        TRY(check_added_id(tok, &entry, next, err));
        if (entry.id >= next) {
            TRY(vocab_resize(&tok->vocab, (uint32_t)(entry.id + 1), err));
            next = entry.id + 1;
        }
        TRY(vocab_add_added(&tok->vocab, (uint32_t)entry.id, entry.content, entry.special, err));
        /* Where normalisation makes two texts equal, the reference prefers special tokens. */
        TRY(add_to_sets(tok, r, &entry, entry.special ? i : n + i, err));
    }
    const added_token *twice = added_seal(&r->seen);
    if (twice) {
        return err_set(err, SMOE_FORMAT, "tokenizer.json: the added token \"%.*s\" is listed twice",
                       SLICE_ARG(hf_clip(twice->text)));
    }
    added_seal(&tok->added_raw);
    added_seal(&tok->added_normalized);
    return SMOE_OK;
}

static smoe_status read_added(smoe_tokenizer *tok, const json_value *list, smoe_err *err)
{
    added_reader r;
    normalizer_work_init(&r.normalize, ADDED_MAX_BYTES);
    added_init(&r.seen);
    smoe_status status = read_added_list(tok, &r, list, err);
    normalizer_work_fini(&r.normalize);
    added_fini(&r.seen);
    return status;
}

static smoe_status read_root(smoe_tokenizer *tok, const json_value *root,
                             const compiled_model *compiled, smoe_err *err)
{
    static const char *const keys[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    const json_value *v;
    slice version;
    TRY(hf_only_keys(root, "the file", keys, err));
    if ((v = jr_get(root, "version")) && !(jr_string(v, &version) && slice_is(version, "1.0"))) {
        return hf_refuse(err, "version", v, "\"1.0\"");
    }
    if (!jr_is_null(v = jr_get(root, "truncation"))) {
        return hf_refuse(err, "truncation", v, "null");
    }
    if (!jr_is_null(v = jr_get(root, "padding"))) {
        return hf_refuse(err, "padding", v, "null");
    }
    TRY(check_post_processor(jr_get(root, "post_processor"), 0, err));
    TRY(hf_read_normalizer(&tok->normalizer, jr_get(root, "normalizer"), err));
    TRY(hf_read_pre_tokenizer(&tok->pretokenizer, jr_get(root, "pre_tokenizer"),
                              &tok->vocab.is_byte_level, err));
    TRY(read_model(tok, jr_get(root, "model"), compiled, err));
    TRY(read_added(tok, jr_get(root, "added_tokens"), err));
    return hf_read_decoder(tok, jr_get(root, "decoder"), err);
}

smoe_status hf_load(smoe_tokenizer *tok, const json_value *root, const compiled_model *compiled,
                    smoe_err *err)
{
    vocab_init(&tok->vocab);
    added_init(&tok->added_raw);
    added_init(&tok->added_normalized);
    normalizer_init(&tok->normalizer);
    pretokenize_init(&tok->pretokenizer);
    return read_root(tok, root, compiled, err);
}
