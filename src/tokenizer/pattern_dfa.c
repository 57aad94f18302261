/* pattern_dfa.c: see pattern_dfa.h. Three steps: the pattern into nodes, the nodes into
 * instructions (a nondeterministic automaton whose branches are ordered), the instructions into
 * the table.
 *
 * Whether an assertion about the next character holds, and whether a match ends, is settled when
 * that character is read: a transition says both where to go and whether a match ended just before
 * the character. Places of lower priority than a match that ended are dropped, those above it go
 * on, and if one of them matches later, that match counts. */
#include "tokenizer/pattern_dfa.h"

#include "base/mem.h"
#include "tokenizer/pattern_nfa.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

enum {
    DFA_MAX_STATES = 512,
    DFA_MAX_SYMBOLS = 128, /* one of them is the end of the text */
    DFA_BLOCK = 256,
    DFA_N_BLOCKS = UNICODE_N_CODES / DFA_BLOCK,
    DFA_DEAD = 0, /* states */
    DFA_START = 1,
    DFA_ACCEPT = 0x8000, /* in a transition: a match ends before this character */
};

struct pattern_dfa {
    unsigned char ascii[128];     /* code -> symbol */
    uint16_t block[DFA_N_BLOCKS]; /* code / DFA_BLOCK -> which block of cells */
    unsigned char *cells;         /* code -> symbol, in blocks */
    uint16_t *next;               /* [state][symbol] */
    uint32_t n_symbols, end_symbol;
};

/* --- characters into symbols ------------------------------------------------------------------ */

/* Characters that the pattern does not tell apart are one symbol. */
typedef struct alphabet {
    uint64_t members[DFA_MAX_SYMBOLS]; /* symbol -> which sets have it, a bit each */
    uint32_t n;
    size_t n_blocks, cap_blocks;
} alphabet;

static int find_symbol(alphabet *a, uint64_t members)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->members[i] == members) {
            return (int)i;
        }
    }
    if (a->n == DFA_MAX_SYMBOLS - 1) {
        return -1;
    }
    a->members[a->n] = members;
    return (int)a->n++;
}

static uint64_t sets_with(const pattern_nfa *nfa, uint32_t code, uint32_t category)
{
    uint64_t members = 0;
    for (uint32_t i = 0; i < nfa->n_sets; i++) {
        members |= (uint64_t)nfa_set_has(nfa, i, code, category) << i;
    }
    return members;
}

/* The symbols of one block; false when there are too many. */
static bool fill_block(const pattern_nfa *nfa, alphabet *a, uint32_t first, unsigned char *cells)
{
    uint32_t category_before = 0;
    int symbol = -1;
    for (uint32_t code = first; code < first + DFA_BLOCK; code++) {
        uint32_t category = unicode_category_bit(code);
        if (symbol < 0 || category != category_before || nfa_has_edge(nfa, code)) {
            symbol = find_symbol(a, sets_with(nfa, code, category));
            if (symbol < 0) {
                return false;
            }
        }
        category_before = category;
        cells[code - first] = (unsigned char)symbol;
    }
    return true;
}

/* Planes that have no characters but unassigned or private ones look like their first block. */
static bool is_like_the_block_before(const pattern_nfa *nfa, uint32_t first)
{
    bool is_empty = (first > 0x40000 && first < 0xE0000) || (first > 0xE1000 && first < 0xEFF00) ||
                    (first > 0xF0000 && first < 0xFFF00) || (first > 0x100000 && first < 0x10FF00);
    return is_empty && !nfa_has_edge_in(nfa, first, first + DFA_BLOCK - 1);
}

/* Sets *fits to false when the pattern needs more symbols than there may be. */
static smoe_status fill_symbols(pattern_dfa *d, const pattern_nfa *nfa, alphabet *a, bool *fits,
                                smoe_err *err)
{
    for (uint32_t b = 0; b < DFA_N_BLOCKS; b++) {
        if (b > 0 && is_like_the_block_before(nfa, b * DFA_BLOCK)) {
            d->block[b] = d->block[b - 1];
            continue;
        }
        if (a->n_blocks == a->cap_blocks) {
            size_t cap = a->cap_blocks ? 2 * a->cap_blocks : 64;
            unsigned char *cells = mem_realloc(d->cells, cap * DFA_BLOCK);
            if (!cells) {
                return err_nomem(err, "a pattern's characters", cap * DFA_BLOCK);
            }
            d->cells = cells;
            a->cap_blocks = cap;
        }
        unsigned char *cells = d->cells + a->n_blocks * DFA_BLOCK;
        *fits = fill_block(nfa, a, b * DFA_BLOCK, cells);
        if (!*fits) {
            return SMOE_OK;
        }
        /* Most blocks are like one not far before. */
        size_t same = a->n_blocks;
        while (same > 0 && a->n_blocks - same < 16 &&
               memcmp(d->cells + (same - 1) * DFA_BLOCK, cells, DFA_BLOCK) != 0) {
            same--;
        }
        bool is_old = same > 0 && a->n_blocks - same < 16;
        d->block[b] = (uint16_t)(is_old ? same - 1 : a->n_blocks);
        a->n_blocks += !is_old;
    }
    memcpy(d->ascii, d->cells, sizeof d->ascii);
    return SMOE_OK;
}

/* --- instructions into states ----------------------------------------------------------------- */

/* A state: the places where the pattern may go on, most preferred first. */
typedef struct place_list {
    uint32_t first, n; /* in builder.places */
} place_list;

typedef struct builder {
    const pattern_nfa *nfa;
    const alphabet *alphabet;
    place_list states[DFA_MAX_STATES];
    uint32_t n_states;
    uint16_t *places;
    uint32_t n_places, cap_places;
    /* of the transition in hand */
    uint32_t seen[NFA_MAX_CODE], round;
    uint16_t list[NFA_MAX_CODE], stack[NFA_MAX_CODE + 1];
    uint32_t n_list;
} builder;

/* Follows everything that needs no character from `start`, knowing the next one. True when a match
 * ends there: nothing of lower priority matters then. */
static bool follow(builder *b, uint32_t start, uint32_t symbol, bool is_end)
{
    uint32_t n = 0;
    uint64_t members = is_end ? 0 : b->alphabet->members[symbol];
    b->stack[n++] = (uint16_t)start;
    while (n) {
        uint32_t at = b->stack[--n];
        if (b->seen[at] == b->round) {
            continue;
        }
        b->seen[at] = b->round;
        const nfa_code *code = &b->nfa->code[at];
        bool has = code->op != NFA_BRANCH && code->op != NFA_MATCH && (members >> code->set & 1);
        switch (code->op) {
        case NFA_MATCH:
            return true;
        case NFA_BRANCH:
            if (code->other != code->next) {
                b->stack[n++] = (uint16_t)code->other;
            }
            b->stack[n++] = (uint16_t)code->next;
            break;
        case NFA_SET:
            if (has) {
                b->list[b->n_list++] = (uint16_t)code->next;
            }
            break;
        case NFA_AHEAD:
        case NFA_NOT_AHEAD:
            if (has == (code->op == NFA_AHEAD)) {
                b->stack[n++] = (uint16_t)code->next;
            }
            break;
        }
    }
    return false;
}

/* The number of the state with the places in b->list; UINT32_MAX when it is one too many. */
static smoe_status find_state(builder *b, uint32_t *state, smoe_err *err)
{
    for (*state = 0; *state < b->n_states; ++*state) {
        const place_list *s = &b->states[*state];
        if (s->n == b->n_list &&
            (s->n == 0 || memcmp(b->places + s->first, b->list, s->n * sizeof *b->list) == 0)) {
            return SMOE_OK;
        }
    }
    if (b->n_states == DFA_MAX_STATES) {
        *state = UINT32_MAX;
        return SMOE_OK;
    }
    if (b->n_places + b->n_list > b->cap_places) {
        uint32_t cap = 2 * b->cap_places + NFA_MAX_CODE;
        uint16_t *places = mem_realloc(b->places, cap * sizeof *places);
        if (!places) {
            return err_nomem(err, "a pattern's states", cap * sizeof *places);
        }
        b->places = places;
        b->cap_places = cap;
    }
    if (b->n_list) {
        memcpy(b->places + b->n_places, b->list, b->n_list * sizeof *b->list);
    }
    b->states[b->n_states++] = (place_list){b->n_places, b->n_list};
    b->n_places += b->n_list;
    return SMOE_OK;
}

static smoe_status fill_state(builder *b, pattern_dfa *d, uint32_t from, bool *fits, smoe_err *err)
{
    for (uint32_t symbol = 0; symbol < d->n_symbols; symbol++) {
        bool accepts = false, is_end = symbol == d->end_symbol;
        b->round++;
        b->n_list = 0;
        for (uint32_t i = 0; i < b->states[from].n && !accepts; i++) {
            accepts = follow(b, b->places[b->states[from].first + i], symbol, is_end);
        }
        uint32_t to;
        TRY(find_state(b, &to, err));
        *fits = to != UINT32_MAX && !(accepts && from == DFA_START);
        if (!*fits) {
            return SMOE_OK;
        }
        d->next[from * d->n_symbols + symbol] = (uint16_t)(to | (accepts ? DFA_ACCEPT : 0));
    }
    return SMOE_OK;
}

static smoe_status fill_states(builder *b, pattern_dfa *d, bool *fits, smoe_err *err)
{
    uint32_t state;
    size_t n_bytes = (size_t)DFA_MAX_STATES * d->n_symbols * sizeof *d->next;
    d->next = mem_alloc(n_bytes);
    if (!d->next) {
        return err_nomem(err, "a pattern's table", n_bytes);
    }
    TRY(find_state(b, &state, err)); /* the empty list: dead */
    b->list[b->n_list++] = 0;
    TRY(find_state(b, &state, err));
    for (uint32_t from = 0; from < b->n_states && *fits; from++) {
        TRY(fill_state(b, d, from, fits, err));
    }
    if (*fits) {
        n_bytes = (size_t)b->n_states * d->n_symbols * sizeof *d->next;
        uint16_t *next = mem_realloc(d->next, n_bytes);
        d->next = next ? next : d->next;
    }
    return SMOE_OK;
}

static smoe_status build(pattern_dfa *d, const pattern_nfa *nfa, bool *fits, smoe_err *err)
{
    smoe_status status;
    alphabet a = {.n = 0};
    builder *b = mem_calloc(1, sizeof *b);
    if (!b) {
        return err_nomem(err, "a pattern's states", sizeof *b);
    }
    CHECK(fill_symbols(d, nfa, &a, fits, err));
    if (*fits) {
        d->end_symbol = a.n;
        d->n_symbols = a.n + 1;
        b->nfa = nfa;
        b->alphabet = &a;
        CHECK(fill_states(b, d, fits, err));
    }
out:
    mem_free(b->places);
    mem_free(b);
    return status;
}

smoe_status pattern_dfa_new(slice pattern, pattern_dfa **out, smoe_err *err)
{
    smoe_status status;
    bool fits = true;
    *out = NULL;
    pattern_dfa *d = mem_calloc(1, sizeof *d);
    pattern_nfa *nfa = mem_calloc(1, sizeof *nfa);
    if (!d || !nfa) {
        CHECK(err_nomem(err, "a pattern", sizeof *d + sizeof *nfa));
    }
    fits = pattern_nfa_parse(nfa, pattern);
    if (fits) {
        CHECK(build(d, nfa, &fits, err));
    }
    if (fits) {
        *out = d;
        d = NULL;
    }
out:
    mem_free(nfa);
    pattern_dfa_free(d);
    return status;
}

void pattern_dfa_free(pattern_dfa *d)
{
    if (d) {
        mem_free(d->cells);
        mem_free(d->next);
        mem_free(d);
    }
}

size_t pattern_dfa_match(const pattern_dfa *d, slice text, size_t at, size_t *n_steps)
{
    const unsigned char *start = (const unsigned char *)text.data + at, *p = start;
    const unsigned char *end = (const unsigned char *)text.data + text.len;
    size_t matched = 0, n = 0;
    uint32_t state = DFA_START;
    for (; state != DFA_DEAD; n++) {
        uint32_t symbol = d->end_symbol, code;
        size_t n_bytes = 0;
        if (p < end && *p < 0x80) {
            symbol = d->ascii[*p];
            n_bytes = 1;
        } else if (p < end) {
            n_bytes = utf8_get((const char *)p, &code);
            symbol = d->cells[d->block[code / DFA_BLOCK] * DFA_BLOCK + code % DFA_BLOCK];
        }
        uint32_t to = d->next[state * d->n_symbols + symbol];
        if (to & DFA_ACCEPT) {
            matched = (size_t)(p - start);
        }
        state = to & ~(uint32_t)DFA_ACCEPT;
        p += n_bytes;
    }
    *n_steps += n;
    return matched;
}
