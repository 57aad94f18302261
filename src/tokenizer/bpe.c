/* bpe.c: see bpe.h.
 *
 * Nearly all words are a few bytes long: for them a plain scan for the lowest rank beats any clever
 * structure. Longer ones (a megabyte without a space is one word) go through a linked list of
 * symbols and a heap of candidate pairs. An entry of the heap is stale, and skipped, when the pair
 * at its node no longer has its rank; ranks of a live pair never change, so that test is exact. */
#include "tokenizer/bpe.h"

#include "base/mem.h"

#define BPE_NO_RANK UINT32_MAX
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

static uint32_t pair_rank(const bpe *b, uint32_t left, uint32_t right)
{
    return find_slot(b, left, right)->rank;
}

smoe_status bpe_init(bpe *b, const vocab *v, uint32_t n_merges, smoe_err *err)
{
    uint32_t size = 16;
    while (size < n_merges + n_merges / 2) {
        size *= 2;
    }
    *b = (bpe){.mask = size - 1, .merges = mem_alloc(size * sizeof *b->merges)};
    if (!b->merges) {
        return err_nomem(err, "the merges", size * sizeof *b->merges);
    }
    memset(b->merges, 0xFF, size * sizeof *b->merges);
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        b->byte_ids[byte] = vocab_find(v, slice_of(&c, 1));
    }
    return SMOE_OK;
}

void bpe_fini(bpe *b)
{
    mem_free(b->merges);
    *b = (bpe){0};
}

smoe_status bpe_add(bpe *b, bpe_merge merge, smoe_err *err)
{
    bpe_merge *slot = find_slot(b, merge.left, merge.right);
    uint32_t home = hash_pair(merge.left, merge.right) & b->mask;
    if ((((uint32_t)(slot - b->merges) - home) & b->mask) > BPE_MAX_PROBES) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.merges is built to collide (merge %u needs more than "
                       "%d probes); get the file from the model's publisher again",
                       merge.rank, BPE_MAX_PROBES);
    }
    *slot = merge;
    return SMOE_OK;
}

void bpe_work_fini(bpe_work *w)
{
    mem_free(w->nodes);
    mem_free(w->heap);
    *w = (bpe_work){0};
}

/* Short words: ranks[i] is the rank of (ids[i], ids[i + 1]). */
static smoe_status encode_by_scan(const bpe *b, slice word, smoe_ids *out, smoe_err *err)
{
    uint32_t ids[BPE_SCAN_BYTES], ranks[BPE_SCAN_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < word.len; i++) {
        int32_t id = b->byte_ids[(unsigned char)word.data[i]];
        if (id >= 0) {
            ids[n++] = (uint32_t)id;
        }
    }
    for (size_t i = 0; i + 1 < n; i++) {
        ranks[i] = pair_rank(b, ids[i], ids[i + 1]);
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            best = ranks[i] < ranks[best] ? i : best;
        }
        if (ranks[best] == BPE_NO_RANK) {
            break;
        }
        ids[best] = find_slot(b, ids[best], ids[best + 1])->merged;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof *ranks);
        if (best > 0) {
            ranks[best - 1] = pair_rank(b, ids[best - 1], ids[best]);
        }
        if (best + 1 < n) {
            ranks[best] = pair_rank(b, ids[best], ids[best + 1]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        TRY(smoe_ids_push(out, (int32_t)ids[i], err));
    }
    return SMOE_OK;
}

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
    left->rank =
        left->next == BPE_END ? BPE_NO_RANK : pair_rank(b, left->id, w->nodes[left->next].id);
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
        bpe_node *nodes = mem_realloc(w->nodes, n * sizeof *nodes);
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

static size_t link_symbols(const bpe *b, bpe_node *nodes, slice word)
{
    uint32_t n = 0;
    for (size_t i = 0; i < word.len; i++) {
        int32_t id = b->byte_ids[(unsigned char)word.data[i]];
        if (id >= 0) {
            nodes[n] = (bpe_node){(uint32_t)id, BPE_NO_RANK, n ? n - 1 : BPE_END, n + 1};
            n++;
        }
    }
    if (n) {
        nodes[n - 1].next = BPE_END;
    }
    return n;
}

static smoe_status encode_by_heap(const bpe *b, bpe_work *w, slice word, smoe_ids *out,
                                  smoe_err *err)
{
    TRY(reserve_work(w, word.len, err));
    size_t n = link_symbols(b, w->nodes, word);
    w->n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        note_pair(b, w, (uint32_t)i);
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

smoe_status bpe_encode(const bpe *b, const vocab *v, bpe_work *w, slice word, smoe_ids *out,
                       smoe_err *err)
{
    int32_t whole = b->ignore_merges ? vocab_find(v, word) : -1;
    if (whole >= 0) {
        return smoe_ids_push(out, whole, err);
    }
    return word.len <= BPE_SCAN_BYTES ? encode_by_scan(b, word, out, err)
                                      : encode_by_heap(b, w, word, out, err);
}
