/* vocab.h: id <-> text. Owns the text of every token. Ids may have holes. */
#ifndef TOKENIZER_VOCAB_H
#define TOKENIZER_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

enum {
    VOCAB_MAX_IDS = 1 << 22,
    VOCAB_MAX_TOKEN_BYTES = 1 << 16,
};

enum vocab_kind {
    VOCAB_NONE,    /* a hole */
    VOCAB_PLAIN,   /* an ordinary token */
    VOCAB_ADDED,   /* an added token */
    VOCAB_SPECIAL, /* an added token that is never shown */
};

typedef struct vocab_token {
    const char *key;  /* of a byte-level vocabulary the bytes, else the text as in the file; of a
                         token that is only an added one its text */
    const char *data; /* what it decodes to; the same memory as key unless a decoder changed it */
    uint32_t key_len, len;
    uint8_t kind;
    bool is_literal; /* of a byte-level vocabulary: it has characters outside the alphabet of bytes,
                        no text reaches it, and key is its text */
    bool in_model; /* it is in model.vocab; key stays the model's if it is an added token too */
    bool is_whole; /* encoding key gives just this token: bpe.h */
} vocab_token;

typedef struct vocab_slot {
    uint32_t tag; /* of the key's hash */
    uint32_t id;  /* + 1; 0 = empty */
} vocab_slot;

typedef struct vocab {
    vocab_token *tokens; /* n_ids of them */
    uint32_t n_ids;      /* highest id + 1 */
    uint32_t cap_ids;
    uint32_t n_in_model;
    bool is_byte_level; /* set before the first token is added */
    vocab_slot *index;  /* open addressing over the tokens of the model */
    uint32_t index_mask;
    arena bytes;
} vocab;

/* The byte-level alphabet gives every byte a printable character of its own: 0x21-0x7E, 0xA1-0xAC
 * and 0xAE-0xFF stand for themselves, the other 68 bytes, in order, for U+0100 onwards. Writes the
 * bytes that text (valid UTF-8) stands for to out (text.len bytes of room); false when a character
 * is not in the alphabet. */
bool byte_alphabet_decode(slice text, char *out, size_t *n_bytes);

void vocab_init(vocab *v);
void vocab_fini(vocab *v);
/* Room for ids below n_ids (at most VOCAB_MAX_IDS). */
smoe_status vocab_resize(vocab *v, uint32_t n_ids, smoe_err *err);
/* id < n_ids. A second token for the same id is refused. text is valid UTF-8 of at most
 * VOCAB_MAX_TOKEN_BYTES bytes, as it stands in the file. */
smoe_status vocab_add(vocab *v, uint32_t id, slice text, smoe_err *err);
/* The same with key as vocab_token has it, borrowed for as long as v lives. */
smoe_status vocab_add_key(vocab *v, uint32_t id, slice key, bool is_literal, smoe_err *err);
/* Creates an added token, or marks the model's token that has this id already as one. */
smoe_status vocab_add_added(vocab *v, uint32_t id, slice text, bool special, smoe_err *err);
/* After the last vocab_add, before vocab_find. */
smoe_status vocab_build_index(vocab *v, smoe_err *err);
/* The model's token with this key, or -1. */
int32_t vocab_find(const vocab *v, slice key);
/* The model's token that stands in the file as text, or -1. */
int32_t vocab_find_text(const vocab *v, slice text);
/* The token of a byte that has no character: "<0x0A>", or -1. */
int32_t vocab_find_byte(const vocab *v, unsigned char byte);

#endif
