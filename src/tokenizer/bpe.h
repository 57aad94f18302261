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
    uint32_t mask;
    int32_t byte_ids[256]; /* the token of each single byte, -1 when the vocabulary has none */
    bool ignore_merges;    /* a word that is a token is that token, whatever the merges say */
} bpe;

typedef struct bpe_node {
    uint32_t id;
    uint32_t rank; /* of the pair (this, next) */
    uint32_t prev, next;
} bpe_node;

/* Working memory for words too long to scan, kept from word to word. */
typedef struct bpe_work {
    bpe_node *nodes;
    size_t cap_nodes;
    uint64_t *heap; /* rank << 32 | node: the smallest is the next pair to merge */
    size_t n_heap, cap_heap;
} bpe_work;

/* The vocabulary's index must be built. */
smoe_status bpe_init(bpe *b, const vocab *v, uint32_t n_merges, smoe_err *err);
void bpe_fini(bpe *b);
/* At most n_merges of them. A pair given twice keeps the later rank, as the reference does. */
smoe_status bpe_add(bpe *b, bpe_merge merge, smoe_err *err);

void bpe_work_fini(bpe_work *w);
/* Appends the ids of word (len < 2^31). A byte without a token gives nothing, as in the reference
 * when there is no unknown token. O(n log n). */
smoe_status bpe_encode(const bpe *b, const vocab *v, bpe_work *w, slice word, smoe_ids *out,
                       smoe_err *err);

#endif
