/* compiled.c: see compiled.h. */
#include "tokenizer/compiled.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "json/json_write.h"

enum { FLAG_IN_MODEL = 1, FLAG_LITERAL = 2, FLAG_WHOLE = 4, FLAGS = 7, MAX_SETTINGS_DEPTH = 64 };

static const char magic[] = {'s', 'm', 'o', 'e', ' ', 't', 'o', 'k'};

static uint32_t get_u32(const char *p)
{
    const unsigned char *s = (const unsigned char *)p;
    return s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
}

static uint64_t get_u64(const char *p)
{
    return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

static smoe_status put_u32(buf *out, uint32_t v, smoe_err *err)
{
    char s[4] = {(char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24)};
    return buf_append(out, s, sizeof s, err);
}

static smoe_status put_u64(buf *out, uint64_t v, smoe_err *err)
{
    TRY(put_u32(out, (uint32_t)v, err));
    return put_u32(out, (uint32_t)(v >> 32), err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void copy_value(json_writer *w, const json_value *v, int depth, bool is_root);

static void copy_object(json_writer *w, const json_value *v, int depth, bool is_root)
{
    static const char *const left_out[] = {"vocab", "merges"};
    jw_begin_object(w);
    for (void *it = jr_iter(v); it; it = jr_next(v, it)) {
        slice key = jr_iter_key(it);
        jw_key_slice(w, key);
        const json_value *value = jr_iter_value(it);
        if (!is_root || !slice_is(key, "model") || jr_kind(value) != JSON_KIND_OBJECT) {
            copy_value(w, value, depth + 1, false);
            continue;
        }
        jw_begin_object(w);
        for (void *inner = jr_iter(value); inner; inner = jr_next(value, inner)) {
            slice name = jr_iter_key(inner);
            if (!slice_is(name, left_out[0]) && !slice_is(name, left_out[1])) {
                jw_key_slice(w, name);
                copy_value(w, jr_iter_value(inner), depth + 2, false);
            }
        }
        jw_end_object(w);
    }
    jw_end_object(w);
}

/* Deeper than any tokenizer that was accepted: null there. */
static void copy_value(json_writer *w, const json_value *v, int depth, bool is_root)
{
    slice text;
    int64_t integer = 0;
    double number = 0;
    bool flag = false;
    enum json_kind kind = depth > MAX_SETTINGS_DEPTH ? JSON_KIND_NULL : jr_kind(v);
    switch (kind) {
    case JSON_KIND_NULL:
        jw_null(w);
        break;
    case JSON_KIND_BOOL:
        jr_bool(v, &flag);
        jw_bool(w, flag);
        break;
    case JSON_KIND_INT:
        jr_int(v, &integer);
        jw_int(w, integer);
        break;
    case JSON_KIND_REAL:
        jr_number(v, &number);
        jw_number(w, number);
        break;
    case JSON_KIND_STRING:
        jr_string(v, &text);
        jw_string(w, text);
        break;
    case JSON_KIND_ARRAY:
        jw_begin_array(w);
        for (size_t i = 0; i < jr_len(v); i++) {
            copy_value(w, jr_at(v, i), depth + 1, false);
        }
        jw_end_array(w);
        break;
    case JSON_KIND_OBJECT:
        copy_object(w, v, depth, is_root);
        break;
    }
}

static int by_rank(const void *left, const void *right)
{
    uint32_t a = ((const bpe_merge *)left)->rank, b = ((const bpe_merge *)right)->rank;
    return (a > b) - (a < b);
}

/* The merges in use, by rank; the caller frees them. */
static smoe_status list_merges(const bpe *b, bpe_merge **out, uint32_t *n, smoe_err *err)
{
    *n = 0;
    for (uint32_t i = 0; i <= b->mask; i++) {
        *n += b->merges[i].rank != UINT32_MAX;
    }
    *out = mem_alloc(*n * sizeof **out);
    if (!*out) {
        return err_nomem(err, "the merges", *n * sizeof **out);
    }
    for (uint32_t i = 0, k = 0; i <= b->mask; i++) {
        if (b->merges[i].rank != UINT32_MAX) {
            (*out)[k++] = b->merges[i];
        }
    }
    qsort(*out, *n, sizeof **out, by_rank);
    return SMOE_OK;
}

static smoe_status put_body(const smoe_tokenizer *tok, const bpe_merge *merges, uint32_t n_merges,
                            slice settings, buf *out, smoe_err *err)
{
    const vocab *v = &tok->vocab;
    uint32_t end = 0;
    for (uint32_t id = 0; id < v->n_ids; id++) {
        end += v->tokens[id].in_model ? v->tokens[id].key_len : 0;
        TRY(put_u32(out, end, err));
    }
    for (uint32_t i = 0; i < n_merges; i++) {
        TRY(put_u32(out, merges[i].left, err));
        TRY(put_u32(out, merges[i].right, err));
        TRY(put_u32(out, merges[i].merged, err));
    }
    for (uint32_t id = 0; id < v->n_ids; id++) {
        const vocab_token *t = &v->tokens[id];
        TRY(buf_putc(out,
                     (char)((t->in_model ? FLAG_IN_MODEL : 0) | (t->is_literal ? FLAG_LITERAL : 0) |
                            (t->is_whole ? FLAG_WHOLE : 0)),
                     err));
    }
    TRY(buf_append_slice(out, settings, err));
    for (uint32_t id = 0; id < v->n_ids; id++) {
        if (v->tokens[id].in_model) {
            TRY(buf_append(out, v->tokens[id].key, v->tokens[id].key_len, err));
        }
    }
    return SMOE_OK;
}

static smoe_status put_all(const smoe_tokenizer *tok, uint64_t json_id, slice settings, buf *body,
                           buf *out, smoe_err *err)
{
    const vocab *v = &tok->vocab;
    bpe_merge *merges = NULL;
    uint32_t n_merges;
    uint64_t n_keys = 0;
    smoe_status status;
    for (uint32_t id = 0; id < v->n_ids; id++) {
        n_keys += v->tokens[id].in_model ? v->tokens[id].key_len : 0;
    }
    CHECK(list_merges(&tok->bpe, &merges, &n_merges, err));
    CHECK(put_body(tok, merges, n_merges, settings, body, err));
    CHECK(buf_append(out, magic, sizeof magic, err));
    CHECK(put_u32(out, COMPILED_VERSION, err));
    CHECK(put_u32(out, v->n_ids, err));
    CHECK(put_u32(out, n_merges, err));
    CHECK(put_u32(out, (uint32_t)settings.len, err));
    CHECK(put_u64(out, n_keys, err));
    CHECK(put_u64(out, json_id, err));
    CHECK(put_u64(out, hash_bytes(body->data, body->len), err));
    CHECK(buf_append_slice(out, buf_slice(body), err));
out:
    mem_free(merges);
    return status;
}

smoe_status smoe_tokenizer_compile(const char *json, size_t len, uint64_t json_id, char **out,
                                   size_t *out_len, smoe_err *err)
{
    smoe_status status;
    smoe_tokenizer *tok = NULL;
    json_value *root = NULL;
    json_writer w;
    buf settings, body, all;
    buf_init(&settings, TOKENIZER_MAX_JSON_BYTES);
    buf_init(&body, 2 * (size_t)TOKENIZER_MAX_JSON_BYTES);
    buf_init(&all, 2 * (size_t)TOKENIZER_MAX_JSON_BYTES);
    CHECK(smoe_tokenizer_new(json, len, &tok, err));
    CHECK(jr_parse(slice_of(json, len), "tokenizer.json", &root, err));
    jw_init(&w, &settings);
    copy_value(&w, root, 0, true);
    CHECK(jw_finish(&w, err));
    CHECK(put_all(tok, json_id, buf_slice(&settings), &body, &all, err));
    *out_len = all.len;
    *out = buf_take(&all);
out:
    jr_free(root);
    smoe_tokenizer_free(tok);
    buf_fini(&settings);
    buf_fini(&body);
    buf_fini(&all);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

static smoe_status damaged(smoe_err *err, const char *what)
{
    return err_set(err, SMOE_FORMAT,
                   "the compiled tokenizer is damaged: %s; make the file again with smoe shatter",
                   what);
}

static smoe_status read_tokens(const compiled_model *c, smoe_tokenizer *tok, smoe_err *err)
{
    vocab *v = &tok->vocab;
    uint32_t start = 0;
    const char *keys = arena_strndup(&v->bytes, c->keys.data, c->keys.len);
    if (!keys) {
        return err_nomem(err, "the vocabulary", c->keys.len);
    }
    TRY(vocab_resize(v, c->n_ids, err));
    for (uint32_t id = 0; id < c->n_ids; id++) {
        uint32_t end = get_u32(c->key_ends + 4 * (size_t)id);
        unsigned char flags = (unsigned char)c->flags[id];
        if (end < start || end > c->keys.len || end - start > VOCAB_MAX_TOKEN_BYTES ||
            (flags & ~FLAGS) || (!(flags & FLAG_IN_MODEL) && (flags || end != start))) {
            return damaged(err, "a token is not where it should be");
        }
        if (flags & FLAG_IN_MODEL) {
            slice key = slice_of(keys + start, end - start);
            TRY(vocab_add_key(v, id, key, flags & FLAG_LITERAL, err));
            v->tokens[id].is_whole = flags & FLAG_WHOLE;
        }
        start = end;
    }
    return start == c->keys.len ? SMOE_OK : damaged(err, "texts of tokens are left over");
}

smoe_status compiled_read_model(const compiled_model *c, smoe_tokenizer *tok, smoe_err *err)
{
    TRY(read_tokens(c, tok, err));
    TRY(vocab_build_index(&tok->vocab, err));
    TRY(bpe_init(&tok->bpe, &tok->vocab, c->n_merges, err));
    for (size_t i = 0; i < c->n_merges; i++) {
        uint32_t ids[3];
        for (size_t k = 0; k < 3; k++) {
            ids[k] = get_u32(c->merges + 12 * i + 4 * k);
            if (ids[k] >= c->n_ids || !tok->vocab.tokens[ids[k]].in_model) {
                return damaged(err, "a merge is of a token that is not there");
            }
        }
        TRY(bpe_add(&tok->bpe, ids[0], ids[1], ids[2], err));
    }
    return SMOE_OK;
}

/* Everything but the contents of the parts. */
static smoe_status open_parts(slice data, uint64_t json_id, compiled_model *c, slice *settings,
                              smoe_err *err)
{
    if (data.len < COMPILED_HEADER_BYTES || memcmp(data.data, magic, sizeof magic) != 0) {
        return damaged(err, "it does not start as one does");
    }
    if (get_u32(data.data + 8) != COMPILED_VERSION || get_u64(data.data + 32) != json_id) {
        return err_set(err, SMOE_MISMATCH,
                       "the compiled tokenizer is of version %u and made from %016llx; expected "
                       "version %d and %016llx",
                       get_u32(data.data + 8), (unsigned long long)get_u64(data.data + 32),
                       COMPILED_VERSION, (unsigned long long)json_id);
    }
    uint64_t n_keys = get_u64(data.data + 24), n_settings = get_u32(data.data + 20);
    c->n_ids = get_u32(data.data + 12);
    c->n_merges = get_u32(data.data + 16);
    uint64_t n_fixed = COMPILED_HEADER_BYTES + 5 * (uint64_t)c->n_ids +
                       12 * (uint64_t)c->n_merges + n_settings;
    if (c->n_ids > VOCAB_MAX_IDS || c->n_merges > BPE_MAX_MERGES || n_fixed > data.len ||
        n_keys != data.len - n_fixed) {
        return damaged(err, "its sizes do not add up");
    }
    slice body = slice_of(data.data + COMPILED_HEADER_BYTES, data.len - COMPILED_HEADER_BYTES);
    if (hash_bytes(body.data, body.len) != get_u64(data.data + 40)) {
        return damaged(err, "its checksum is wrong");
    }
    c->key_ends = body.data;
    c->merges = c->key_ends + 4 * (size_t)c->n_ids;
    c->flags = c->merges + 12 * (size_t)c->n_merges;
    *settings = slice_of(c->flags + c->n_ids, (size_t)n_settings);
    c->keys = slice_of(settings->data + n_settings, (size_t)n_keys);
    return SMOE_OK;
}

smoe_status smoe_tokenizer_open_compiled(const char *data, size_t len, uint64_t json_id,
                                         smoe_tokenizer **out, smoe_err *err)
{
    smoe_status status;
    compiled_model c = {.n_ids = 0};
    slice settings;
    json_value *root = NULL;
    smoe_tokenizer *tok = NULL;
    CHECK(open_parts(slice_of(data, len), json_id, &c, &settings, err));
    CHECK(jr_parse(settings, "the compiled tokenizer.json", &root, err));
    tok = mem_calloc(1, sizeof *tok);
    if (!tok) {
        CHECK(err_nomem(err, "a tokenizer", sizeof *tok));
    }
    CHECK(hf_load(tok, root, &c, err));
    *out = tok;
    tok = NULL;
out:
    jr_free(root);
    smoe_tokenizer_free(tok);
    return status;
}
