/* pattern_nfa.h: a pattern as instructions whose branches are ordered; input of pattern_dfa.c. */
#ifndef TOKENIZER_PATTERN_NFA_H
#define TOKENIZER_PATTERN_NFA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum {
    NFA_MAX_CODE = 1024,
    NFA_MAX_SETS = 64,
    NFA_MAX_RANGES = 2048,
    NFA_MAX_NODES = 1024,
};

enum nfa_op {
    NFA_SET,       /* one character of the set, then next */
    NFA_AHEAD,     /* goes on at next if the character that follows is in the set ... */
    NFA_NOT_AHEAD, /* ... if it is not, or the text ends */
    NFA_BRANCH,    /* next is preferred to other */
    NFA_MATCH,
};

typedef struct nfa_code {
    uint16_t op, set;
    uint16_t next, other;
} nfa_code;

typedef struct nfa_range {
    uint32_t first, last;
} nfa_range;

/* Characters whose category is in the mask or that lie in a range; negated: all others. */
typedef struct nfa_set {
    uint32_t categories; /* unicode_category_mask */
    uint32_t first_range, n_ranges;
    bool negated;
} nfa_set;

/* What the pattern's text says; the parser's. */
typedef struct nfa_node {
    uint16_t kind, set;
    uint16_t left, right; /* nodes */
    uint16_t min, max;
    bool lazy, may_be_empty;
} nfa_node;

typedef struct pattern_nfa {
    nfa_code code[NFA_MAX_CODE]; /* starts at 0 */
    uint32_t n_code;
    nfa_set sets[NFA_MAX_SETS];
    uint32_t n_sets;
    nfa_range ranges[NFA_MAX_RANGES];
    uint32_t n_ranges;
    nfa_node nodes[NFA_MAX_NODES];
    uint32_t n_nodes;
} pattern_nfa;

/* Fills a zeroed automaton; false when the pattern has something that is not done here. */
bool pattern_nfa_parse(pattern_nfa *nfa, slice pattern);

/* category: unicode_category_bit(code). */
bool nfa_set_has(const pattern_nfa *nfa, uint32_t set, uint32_t code, uint32_t category);
/* Whether a range of some set begins at code, or ended just before it. */
bool nfa_has_edge(const pattern_nfa *nfa, uint32_t code);
bool nfa_has_edge_in(const pattern_nfa *nfa, uint32_t first, uint32_t last);

#endif
