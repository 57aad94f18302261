/* vocab.c: see vocab.h. */
#include "tokenizer/vocab.h"

#include "base/mem.h"
#include "tokenizer/utf8.h"

static bool stands_for_itself(uint32_t byte)
{
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
           (byte >= 0xAE && byte <= 0xFF);
}

/* The byte of one character of the alphabet, or -1. */
static int alphabet_byte(uint32_t code)
{
    if (code <= 0xFF) {
        return stands_for_itself(code) ? (int)code : -1;
    }
    uint32_t rank = code - 0x100; /* among the bytes that do not stand for themselves */
    if (rank <= 0x20) {
        return (int)rank;
    }
    if (rank <= 0x42) {
        return (int)(0x7F + rank - 0x21);
    }
    return rank == 0x43 ? 0xAD : -1;
}

bool byte_alphabet_decode(slice text, char *out, size_t *n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len;) {
        uint32_t code;
        i += utf8_get(text.data + i, &code);
        int byte = alphabet_byte(code);
        if (byte < 0) {
            return false;
        }
        out[n++] = (char)byte;
    }
    *n_bytes = n;
    return true;
}

void vocab_init(vocab *v)
{
    *v = (vocab){0};
    arena_init(&v->bytes);
}

void vocab_fini(vocab *v)
{
    mem_free(v->tokens);
    mem_free(v->index);
    arena_fini(&v->bytes);
    *v = (vocab){0};
}

smoe_status vocab_resize(vocab *v, uint32_t n_ids, smoe_err *err)
{
    if (n_ids > v->cap_ids) {
        size_t cap = n_ids < VOCAB_MAX_IDS / 2 ? n_ids + n_ids / 8 : VOCAB_MAX_IDS;
        vocab_token *tokens = mem_realloc(v->tokens, cap * sizeof *tokens);
        if (!tokens) {
            return err_nomem(err, "the vocabulary", cap * sizeof *tokens);
        }
        memset(tokens + v->cap_ids, 0, (cap - v->cap_ids) * sizeof *tokens);
        v->tokens = tokens;
        v->cap_ids = (uint32_t)cap;
    }
    v->n_ids = n_ids > v->n_ids ? n_ids : v->n_ids;
    return SMOE_OK;
}

/* A copy of text, in the arena. */
static smoe_status keep(vocab *v, slice text, char **copy, smoe_err *err)
{
    *copy = arena_strndup(&v->bytes, text.data, text.len);
    return *copy ? SMOE_OK : err_nomem(err, "the text of a token", text.len);
}

smoe_status vocab_add(vocab *v, uint32_t id, slice text, smoe_err *err)
{
    vocab_token *token = &v->tokens[id];
    if (token->kind != VOCAB_NONE) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.vocab gives id %u to two tokens, one of them "
                       "\"%.*s\"; "
                       "every token needs an id of its own",
                       id, (int)(text.len < 64 ? text.len : 64), text.data);
    }
    char *bytes;
    TRY(keep(v, text, &bytes, err));
    size_t n_bytes = text.len;
    bool in_alphabet = byte_alphabet_decode(text, bytes, &n_bytes);
    if (!in_alphabet) {
        memcpy(bytes, text.data, text.len);
    }
    *token = (vocab_token){bytes, (uint32_t)n_bytes, in_alphabet ? VOCAB_BYTES : VOCAB_LITERAL};
    return SMOE_OK;
}

smoe_status vocab_add_added(vocab *v, uint32_t id, slice text, bool special, smoe_err *err)
{
    vocab_token *token = &v->tokens[id];
    if (token->kind == VOCAB_NONE) {
        char *bytes;
        TRY(keep(v, text, &bytes, err));
        *token = (vocab_token){bytes, (uint32_t)text.len, VOCAB_ADDED};
    }
    token->kind = special ? VOCAB_SPECIAL : VOCAB_ADDED;
    return SMOE_OK;
}

static uint32_t hash_bytes(slice s)
{
    uint64_t h = 0x9E3779B97F4A7C15u ^ s.len;
    for (size_t i = 0; i < s.len; i++) {
        h = (h ^ (unsigned char)s.data[i]) * 0x100000001B3u;
    }
    return (uint32_t)((h ^ h >> 29) * 0xBF58476D1CE4E5B9u >> 32);
}

smoe_status vocab_build_index(vocab *v, smoe_err *err)
{
    uint32_t size = 16;
    while (size < 2 * (uint64_t)v->n_ids) {
        size *= 2;
    }
    v->index = mem_calloc(size, sizeof *v->index);
    if (!v->index) {
        return err_nomem(err, "the vocabulary's index", size * sizeof *v->index);
    }
    v->index_mask = size - 1;
    for (uint32_t id = 0; id < v->n_ids; id++) {
        const vocab_token *token = &v->tokens[id];
        if (token->kind == VOCAB_BYTES) {
            uint32_t at = hash_bytes(slice_of(token->data, token->len)) & v->index_mask;
            while (v->index[at]) {
                at = (at + 1) & v->index_mask;
            }
            v->index[at] = id + 1;
        }
    }
    return SMOE_OK;
}

int32_t vocab_find(const vocab *v, slice bytes)
{
    uint32_t at = hash_bytes(bytes) & v->index_mask;
    for (; v->index[at]; at = (at + 1) & v->index_mask) {
        const vocab_token *token = &v->tokens[v->index[at] - 1];
        if (slice_eq(slice_of(token->data, token->len), bytes)) {
            return (int32_t)(v->index[at] - 1);
        }
    }
    return -1;
}
