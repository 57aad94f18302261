/* bpe.h: byte-pair encoding of one word. Merges the pair of lowest rank first, the leftmost of
 * equals, until no neighbours can merge. */
#ifndef TOKENIZER_BPE_H
#define TOKENIZER_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "smoe/tokenizer.h"
#include "tokenizer/vocab.h"

enum { BPE_MAX_MERGES = 1 << 24 };

typedef struct bpe_merge {
    uint32_t left, right; /* ids */
    uint32_t rank;        /* UINT32_MAX: an empty slot */
    uint32_t merged;      /* id */
} bpe_merge;

typedef struct bpe {
    bpe_merge *merges; /* open addressing by (left, right) */
    uint32_t mask, n_merges;
    /* Before merging, a byte-level model takes the token of each byte, another one the token of
     * each character. These are for bytes below 0x80, or all of a byte-level model; -1: none. */
    int32_t byte_ids[256];
    /* Where there is none: the tokens <0x00>..<0xFF> of the character's bytes (-1: not used) ... */
    int32_t fallback_ids[256];
    int32_t unk_id;     /* ... or else this (-1: nothing) */
    bool fuse_unk;      /* once for all neighbours */
    bool ignore_merges; /* a word that is a token is that token, whatever the merges say */
} bpe;

typedef struct bpe_node {
    uint32_t id;
    uint32_t rank; /* of the pair (this, next) */
    uint32_t prev, next;
} bpe_node;

/* Working memory for words too long to scan, kept from word to word. */
typedef struct bpe_work {
    uint32_t *symbols;
    bpe_node *nodes;
    size_t cap_nodes; /* of symbols too */
    uint64_t *heap;   /* rank << 32 | node: the smallest is the next pair to merge */
    size_t n_heap, cap_heap;
} bpe_work;

/* The vocabulary's index must be built. Room for n_merges. */
smoe_status bpe_init(bpe *b, const vocab *v, uint32_t n_merges, smoe_err *err);
void bpe_fini(bpe *b);
/* The next merge, which has the next rank. A pair given twice keeps the later rank, as the
 * reference does. */
smoe_status bpe_add(bpe *b, uint32_t left, uint32_t right, uint32_t merged, smoe_err *err);
/* After the last bpe_add: finds the tokens that their own key encodes to (vocab_token.is_whole), so
 * that a word that is one of them needs no merging. Most words are. */
smoe_status bpe_mark_whole(const bpe *b, vocab *v, smoe_err *err);

void bpe_work_fini(bpe_work *w);
/* Appends the ids of word (valid UTF-8 of less than 2^31 bytes). O(n log n). */
smoe_status bpe_encode(const bpe *b, const vocab *v, bpe_work *w, slice word, smoe_ids *out,
                       smoe_err *err);

#endif
