/* bpe.c: see bpe.h.
 *
 * Nearly all words are a few bytes long: for them a plain scan for the lowest rank beats any clever
 * structure. Longer ones (a megabyte without a space is one word) go through a linked list of
 * symbols and a heap of candidate pairs. An entry of the heap is stale, and skipped, when the pair
 * at its node no longer has its rank; ranks of a live pair never change, so that test is exact. */
#include "tokenizer/bpe.h"

#include "base/mem.h"
#include "tokenizer/utf8.h"

#define BPE_NO_RANK UINT32_MAX
#define BPE_NO_PAIR UINT64_MAX
#define BPE_END UINT32_MAX /* no neighbour */

enum {
    BPE_SCAN_BYTES = 48,
    BPE_MAX_PROBES = 4096, /* honest tables need a few dozen; more means chosen collisions */
};

static uint32_t hash_pair(uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)((h ^ h >> 31) * 0xBF58476D1CE4E5B9u >> 32);
}

/* The slot of the pair, or the empty slot where it would go. */
static bpe_merge *find_slot(const bpe *b, uint32_t left, uint32_t right)
{
    uint32_t at = hash_pair(left, right) & b->mask;
    while (b->merges[at].rank != BPE_NO_RANK &&
           (b->merges[at].left != left || b->merges[at].right != right)) {
        at = (at + 1) & b->mask;
    }
    return &b->merges[at];
}

/* rank << 32 | what the pair becomes: smaller merges first. BPE_NO_PAIR: it does not merge. */
static uint64_t find_pair(const bpe *b, uint32_t left, uint32_t right)
{
    const bpe_merge *merge = find_slot(b, left, right);
    return (uint64_t)merge->rank << 32 | merge->merged;
}

smoe_status bpe_init(bpe *b, const vocab *v, uint32_t n_merges, smoe_err *err)
{
    uint32_t size = 16;
    while (size < n_merges + n_merges / 2) {
        size *= 2;
    }
    *b = (bpe){.mask = size - 1, .unk_id = -1, .merges = mem_alloc(size * sizeof *b->merges)};
    if (!b->merges) {
        return err_nomem(err, "the merges", size * sizeof *b->merges);
    }
    memset(b->merges, 0xFF, size * sizeof *b->merges);
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        b->byte_ids[byte] = vocab_find(v, slice_of(&c, 1));
        b->fallback_ids[byte] = -1;
    }
    return SMOE_OK;
}

void bpe_fini(bpe *b)
{
    mem_free(b->merges);
    *b = (bpe){0};
}

smoe_status bpe_add(bpe *b, uint32_t left, uint32_t right, uint32_t merged, smoe_err *err)
{
    bpe_merge *slot = find_slot(b, left, right);
    uint32_t home = hash_pair(left, right) & b->mask;
    if ((((uint32_t)(slot - b->merges) - home) & b->mask) > BPE_MAX_PROBES) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.merges is built to collide (merge %u needs more than "
                       "%d probes); get the file from the model's publisher again",
                       b->n_merges, BPE_MAX_PROBES);
    }
    *slot = (bpe_merge){left, right, b->n_merges++, merged};
    return SMOE_OK;
}

void bpe_work_fini(bpe_work *w)
{
    mem_free(w->symbols);
    mem_free(w->nodes);
    mem_free(w->heap);
    *w = (bpe_work){0};
}

/* --- what merging starts from ----------------------------------------------------------------- */

typedef struct symbols {
    uint32_t *ids;
    size_t n;
    bool has_unk; /* an unknown token waits: its neighbours may still join it */
} symbols;

static void put_known(const bpe *b, symbols *s, int32_t id)
{
    if (s->has_unk) {
        s->ids[s->n++] = (uint32_t)b->unk_id;
        s->has_unk = false;
    }
    s->ids[s->n++] = (uint32_t)id;
}

/* A character without a token. That an unknown token which waits is put after the bytes of a later
 * character looks like a slip of the reference, and is what it does. */
static void put_unknown(const bpe *b, symbols *s, slice character)
{
    bool falls_back = true;
    for (size_t i = 0; i < character.len; i++) {
        falls_back = falls_back && b->fallback_ids[(unsigned char)character.data[i]] >= 0;
    }
    if (falls_back) {
        for (size_t i = 0; i < character.len; i++) {
            s->ids[s->n++] = (uint32_t)b->fallback_ids[(unsigned char)character.data[i]];
        }
    } else if (b->unk_id >= 0) {
        if (s->has_unk && !b->fuse_unk) {
            s->ids[s->n++] = (uint32_t)b->unk_id;
        }
        s->has_unk = true;
    }
}

/* Writes at most word.len ids. */
static size_t first_symbols(const bpe *b, const vocab *v, slice word, uint32_t *ids)
{
    symbols s = {.ids = ids};
    for (size_t i = 0; i < word.len;) {
        unsigned char byte = (unsigned char)word.data[i];
        uint32_t code;
        size_t n = v->is_byte_level || byte < 0x80 ? 1 : utf8_get(word.data + i, &code);
        slice character = slice_of(word.data + i, n);
        int32_t id = n == 1 ? b->byte_ids[byte] : vocab_find(v, character);
        if (id >= 0) {
            put_known(b, &s, id);
        } else {
            put_unknown(b, &s, character);
        }
        i += n;
    }
    if (s.has_unk) {
        ids[s.n++] = (uint32_t)b->unk_id;
    }
    return s.n;
}

/* --- short words ------------------------------------------------------------------------------ */

/* pairs[i] is that of (ids[i], ids[i + 1]). */
static size_t merge_by_scan(const bpe *b, uint32_t *ids, size_t n)
{
    uint64_t pairs[BPE_SCAN_BYTES];
    for (size_t i = 0; i + 1 < n; i++) {
        pairs[i] = find_pair(b, ids[i], ids[i + 1]);
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            best = pairs[i] < pairs[best] ? i : best;
        }
        if (pairs[best] == BPE_NO_PAIR) {
            break;
        }
        ids[best] = (uint32_t)pairs[best];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            ids[i] = ids[i + 1];
            pairs[i - 1] = pairs[i];
        }
        if (best > 0) {
            pairs[best - 1] = find_pair(b, ids[best - 1], ids[best]);
        }
        if (best + 1 < n) {
            pairs[best] = find_pair(b, ids[best], ids[best + 1]);
        }
    }
    return n;
}

/* --- long words ------------------------------------------------------------------------------- */

static void heap_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) {
            child++;
        }
        if (moving <= heap[child]) {
            break;
        }
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

static uint64_t heap_pop(bpe_work *w)
{
    uint64_t top = w->heap[0];
    w->heap[0] = w->heap[--w->n_heap];
    heap_down(w->heap, w->n_heap, 0);
    return top;
}

/* Notes the pair (node, next) and makes it a candidate when it can merge. The heap has room: it
 * starts with at most one entry per node, and every merge takes one out before it puts at most two
 * in. */
static void note_pair(const bpe *b, bpe_work *w, uint32_t node)
{
    bpe_node *left = &w->nodes[node];
    left->rank = left->next == BPE_END
                     ? BPE_NO_RANK
                     : find_slot(b, left->id, w->nodes[left->next].id)->rank;
    if (left->rank == BPE_NO_RANK) {
        return;
    }
    uint64_t entry = (uint64_t)left->rank << 32 | node;
    size_t i = w->n_heap++;
    for (; i > 0 && entry < w->heap[(i - 1) / 2]; i = (i - 1) / 2) {
        w->heap[i] = w->heap[(i - 1) / 2];
    }
    w->heap[i] = entry;
}

static smoe_status reserve_work(bpe_work *w, size_t n, smoe_err *err)
{
    if (n > w->cap_nodes) {
        uint32_t *ids = mem_realloc(w->symbols, n * sizeof *ids);
        w->symbols = ids ? ids : w->symbols;
        bpe_node *nodes = ids ? mem_realloc(w->nodes, n * sizeof *nodes) : NULL;
        if (!nodes) {
            return err_nomem(err, "the symbols of a long word", n * sizeof *nodes);
        }
        w->nodes = nodes;
        w->cap_nodes = n;
    }
    if (2 * n > w->cap_heap) {
        uint64_t *heap = mem_realloc(w->heap, 2 * n * sizeof *heap);
        if (!heap) {
            return err_nomem(err, "the merges of a long word", 2 * n * sizeof *heap);
        }
        w->heap = heap;
        w->cap_heap = 2 * n;
    }
    return SMOE_OK;
}

static smoe_status encode_by_heap(const bpe *b, const vocab *v, bpe_work *w, slice word,
                                  smoe_ids *out, smoe_err *err)
{
    TRY(reserve_work(w, word.len, err));
    uint32_t n = (uint32_t)first_symbols(b, v, word, w->symbols);
    for (uint32_t i = 0; i < n; i++) {
        w->nodes[i] = (bpe_node){w->symbols[i], BPE_NO_RANK, i ? i - 1 : BPE_END,
                                 i + 1 < n ? i + 1 : BPE_END};
    }
    w->n_heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        note_pair(b, w, i);
    }
    while (w->n_heap) {
        uint64_t entry = heap_pop(w);
        bpe_node *left = &w->nodes[(uint32_t)entry];
        if (left->rank != entry >> 32) {
            continue;
        }
        bpe_node *right = &w->nodes[left->next];
        left->id = find_slot(b, left->id, right->id)->merged;
        left->next = right->next;
        right->rank = BPE_NO_RANK; /* gone: its entry in the heap is stale */
        if (left->next != BPE_END) {
            w->nodes[left->next].prev = (uint32_t)entry;
        }
        note_pair(b, w, (uint32_t)entry);
        if (left->prev != BPE_END) {
            note_pair(b, w, left->prev);
        }
    }
    for (uint32_t i = n ? 0 : BPE_END; i != BPE_END; i = w->nodes[i].next) {
        TRY(smoe_ids_push(out, (int32_t)w->nodes[i].id, err));
    }
    return SMOE_OK;
}

static smoe_status encode_merging(const bpe *b, const vocab *v, bpe_work *w, slice word,
                                  smoe_ids *out, smoe_err *err)
{
    if (word.len > BPE_SCAN_BYTES) {
        return encode_by_heap(b, v, w, word, out, err);
    }
    uint32_t ids[BPE_SCAN_BYTES];
    size_t n = merge_by_scan(b, ids, first_symbols(b, v, word, ids));
    for (size_t i = 0; i < n; i++) {
        TRY(smoe_ids_push(out, (int32_t)ids[i], err));
    }
    return SMOE_OK;
}

smoe_status bpe_mark_whole(const bpe *b, vocab *v, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    bpe_work w = {0};
    smoe_ids ids = {0};
    for (uint32_t id = 0; id < v->n_ids; id++) {
        vocab_token *token = &v->tokens[id];
        slice key = slice_of(token->key, token->key_len);
        if (token->in_model && !token->is_literal && key.len) {
            ids.len = 0;
            CHECK(encode_merging(b, v, &w, key, &ids, err));
            token->is_whole = b->ignore_merges || (ids.len == 1 && ids.data[0] == (int32_t)id);
        }
    }
out:
    bpe_work_fini(&w);
    smoe_ids_free(&ids);
    return status;
}

smoe_status bpe_encode(const bpe *b, const vocab *v, bpe_work *w, slice word, smoe_ids *out,
                       smoe_err *err)
{
    int32_t whole = vocab_find(v, word);
    if (whole >= 0 && v->tokens[whole].is_whole) {
        return smoe_ids_push(out, whole, err);
    }
    return encode_merging(b, v, w, word, out, err);
}
