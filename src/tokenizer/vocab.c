/* vocab.c: see vocab.h. */
#include "tokenizer/vocab.h"

#include "base/mem.h"
#include "tokenizer/utf8.h"

enum { VOCAB_MAX_PROBES = 4096 }; /* honest ones need a few dozen; more means chosen collisions */

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

smoe_status vocab_add_key(vocab *v, uint32_t id, slice key, bool is_literal, smoe_err *err)
{
    vocab_token *token = &v->tokens[id];
    if (token->kind != VOCAB_NONE) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.vocab gives id %u to two tokens, one of them "
                       "\"%.*s\"; "
                       "every token needs an id of its own",
                       id, (int)(key.len < 64 ? key.len : 64), key.data);
    }
    uint32_t len = (uint32_t)key.len;
    *token = (vocab_token){.key = key.data,
                           .data = key.data,
                           .key_len = len,
                           .len = len,
                           .kind = VOCAB_PLAIN,
                           .is_literal = is_literal,
                           .in_model = true};
    v->n_in_model++;
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
    char *bytes;
    size_t n_bytes = text.len;
    TRY(keep(v, text, &bytes, err));
    bool is_plain = !v->is_byte_level || byte_alphabet_decode(text, bytes, &n_bytes);
    if (!is_plain) {
        memcpy(bytes, text.data, text.len);
        n_bytes = text.len;
    }
    return vocab_add_key(v, id, slice_of(bytes, n_bytes), !is_plain, err);
}

smoe_status vocab_add_added(vocab *v, uint32_t id, slice text, bool special, smoe_err *err)
{
    vocab_token *token = &v->tokens[id];
    if (token->kind == VOCAB_NONE) {
        char *bytes;
        TRY(keep(v, text, &bytes, err));
        uint32_t len = (uint32_t)text.len;
        *token = (vocab_token){.key = bytes, .data = bytes, .key_len = len, .len = len};
    }
    token->kind = special ? VOCAB_SPECIAL : VOCAB_ADDED;
    return SMOE_OK;
}

/* Most keys are words of a few bytes: two loads that overlap hold up to sixteen. */
static uint64_t hash_key(slice s)
{
    uint64_t a = 0, b = 0, h = s.len * 0x9E3779B97F4A7C15u;
    const char *p = s.data;
    size_t n = s.len;
    for (; n > 16; p += 8, n -= 8) {
        memcpy(&a, p, 8);
        h = (h ^ a) * 0xBF58476D1CE4E5B9u;
        h ^= h >> 31;
    }
    if (n >= 8) {
        memcpy(&a, p, 8);
        memcpy(&b, p + n - 8, 8);
    } else if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        a = low;
        b = high;
    } else if (n > 0) {
        a = (unsigned char)p[0] | (uint64_t)(unsigned char)p[n / 2] << 8;
        b = (unsigned char)p[n - 1];
    }
    h = (h ^ a) * 0x94D049BB133111EBu;
    h = (h ^ h >> 32 ^ b) * 0xBF58476D1CE4E5B9u;
    return h ^ h >> 29;
}

/* The slot of a key, or the empty slot where it would go. */
static uint32_t find_slot(const vocab *v, slice key, bool literal, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & v->index_mask, tag = (uint32_t)(hash >> 32);
    for (; v->index[at].id; at = (at + 1) & v->index_mask) {
        if (v->index[at].tag == tag) {
            const vocab_token *token = &v->tokens[v->index[at].id - 1];
            if (token->key_len == key.len && memcmp(token->key, key.data, key.len) == 0 &&
                token->is_literal == literal) {
                break;
            }
        }
    }
    return at;
}

smoe_status vocab_build_index(vocab *v, smoe_err *err)
{
    uint32_t size = 16;
    while (size < 2 * (uint64_t)v->n_in_model) {
        size *= 2;
    }
    mem_free(v->index);
    v->index = mem_calloc(size, sizeof *v->index);
    if (!v->index) {
        return err_nomem(err, "the vocabulary's index", size * sizeof *v->index);
    }
    v->index_mask = size - 1;
    for (uint32_t id = 0; id < v->n_ids; id++) {
        const vocab_token *token = &v->tokens[id];
        if (!token->in_model) {
            continue;
        }
        slice key = slice_of(token->key, token->key_len);
        uint64_t hash = hash_key(key);
        uint32_t at = find_slot(v, key, token->is_literal, hash);
        if (((at - (uint32_t)hash) & v->index_mask) > VOCAB_MAX_PROBES || v->index[at].id) {
            return err_set(err, SMOE_FORMAT,
                           "tokenizer.json: model.vocab %s at token %u; get the file from the "
                           "model's publisher again",
                           v->index[at].id ? "repeats itself" : "is built to collide", id);
        }
        v->index[at] = (vocab_slot){(uint32_t)(hash >> 32), id + 1};
    }
    return SMOE_OK;
}

int32_t vocab_find(const vocab *v, slice key)
{
    return (int32_t)v->index[find_slot(v, key, false, hash_key(key))].id - 1;
}

int32_t vocab_find_text(const vocab *v, slice text)
{
    char bytes[VOCAB_MAX_TOKEN_BYTES];
    size_t n_bytes;
    if (text.len > sizeof bytes) {
        return -1;
    }
    if (!v->is_byte_level) {
        return vocab_find(v, text);
    }
    if (byte_alphabet_decode(text, bytes, &n_bytes)) {
        return vocab_find(v, slice_of(bytes, n_bytes));
    }
    return (int32_t)v->index[find_slot(v, text, true, hash_key(text))].id - 1;
}

int32_t vocab_find_byte(const vocab *v, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    return vocab_find_text(v, slice_of(text, sizeof text));
}
