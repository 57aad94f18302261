/* vocab.h: id <-> bytes. Owns the bytes of every token. Ids may have holes. */
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
    VOCAB_BYTES,   /* an ordinary token, written in the byte-level alphabet: its bytes */
    VOCAB_LITERAL, /* an ordinary token with characters outside that alphabet: its text */
    VOCAB_ADDED,   /* an added token: its text */
    VOCAB_SPECIAL, /* an added token that is never shown */
};

typedef struct vocab_token {
    const char *data;
    uint32_t len;
    uint8_t kind;
} vocab_token;

typedef struct vocab {
    vocab_token *tokens; /* n_ids of them */
    uint32_t n_ids;      /* highest id + 1 */
    uint32_t cap_ids;
    uint32_t *index; /* open addressing over the VOCAB_BYTES tokens: id + 1, 0 = empty */
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
 * VOCAB_MAX_TOKEN_BYTES bytes. */
smoe_status vocab_add(vocab *v, uint32_t id, slice text, smoe_err *err);
/* Creates an added token, or marks the ordinary token that has this id already as one: its bytes
 * and its place in the index stay. */
smoe_status vocab_add_added(vocab *v, uint32_t id, slice text, bool special, smoe_err *err);
/* After the last vocab_add, before vocab_add_added and vocab_find. */
smoe_status vocab_build_index(vocab *v, smoe_err *err);
/* The token of model.vocab that stands for exactly these bytes, or -1. */
int32_t vocab_find(const vocab *v, slice bytes);

#endif
