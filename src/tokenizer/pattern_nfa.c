/* pattern_nfa.c: see pattern_nfa.h. Reads only the few forms that pattern_translate writes:
 * [...] with \x{..}, ranges and \p{..}; \x{..}; groups; alternatives; quantifiers. */
#include "tokenizer/pattern_nfa.h"

#include "tokenizer/unicode.h"

enum node_kind {
    NODE_EMPTY,
    NODE_SET,
    NODE_AHEAD, /* of a set */
    NODE_NOT_AHEAD,
    NODE_THEN,   /* left, then right */
    NODE_EITHER, /* left, or else right */
    NODE_REPEAT, /* left, min to max times */
};

enum { NFA_ENDLESS = UINT16_MAX, NFA_MAX_DEPTH = 64 };

typedef struct parser {
    pattern_nfa *nfa;
    slice in;
    size_t at;
    bool failed;
    bool caseless;
    int depth;
} parser;

static uint16_t parse_either(parser *p);

static char peek(const parser *p)
{
    return p->at < p->in.len ? p->in.data[p->at] : '\0';
}

static bool take(parser *p, const char *text)
{
    bool there = slice_starts(slice_of(p->in.data + p->at, p->in.len - p->at), slice_from(text));
    p->at += there ? strlen(text) : 0;
    return there;
}

static uint16_t fail(parser *p)
{
    p->failed = true;
    return 0;
}

static uint16_t add_node(parser *p, nfa_node node)
{
    if (p->nfa->n_nodes == NFA_MAX_NODES) {
        return fail(p);
    }
    p->nfa->nodes[p->nfa->n_nodes] = node;
    return (uint16_t)p->nfa->n_nodes++;
}

static bool may_be_empty(const parser *p, uint16_t node)
{
    return p->nfa->nodes[node].may_be_empty;
}

/* --- sets ------------------------------------------------------------------------------------- */

bool nfa_set_has(const pattern_nfa *nfa, uint32_t set, uint32_t code, uint32_t category)
{
    const nfa_set *s = &nfa->sets[set];
    bool has = s->categories & category;
    for (uint32_t i = 0; i < s->n_ranges && !has; i++) {
        const nfa_range *r = &nfa->ranges[s->first_range + i];
        has = code >= r->first && code <= r->last;
    }
    return has != s->negated;
}

bool nfa_has_edge_in(const pattern_nfa *nfa, uint32_t first, uint32_t last)
{
    for (uint32_t i = 0; i < nfa->n_ranges; i++) {
        const nfa_range *r = &nfa->ranges[i];
        if ((r->first >= first && r->first <= last) ||
            (r->last + 1 >= first && r->last + 1 <= last)) {
            return true;
        }
    }
    return false;
}

bool nfa_has_edge(const pattern_nfa *nfa, uint32_t code)
{
    return nfa_has_edge_in(nfa, code, code);
}

static void add_range(parser *p, uint32_t first, uint32_t last)
{
    if (p->nfa->n_ranges == NFA_MAX_RANGES) {
        p->failed = true;
        return;
    }
    p->nfa->ranges[p->nfa->n_ranges++] = (nfa_range){first, last};
}

static void add_other_case(parser *p, uint32_t first, uint32_t last, uint32_t low, uint32_t shift)
{
    uint32_t from = first > low ? first : low, to = last < low + 25 ? last : low + 25;
    if (from <= to) {
        add_range(p, from + shift, to + shift);
    }
}

/* With the letters of the other case, and the two characters outside ASCII that fold to one. */
static void add_characters(parser *p, uint32_t first, uint32_t last)
{
    add_range(p, first, last);
    if (!p->caseless) {
        return;
    }
    add_other_case(p, first, last, 'A', 0x20);
    add_other_case(p, first, last, 'a', (uint32_t)-0x20);
    if ((first <= 'S' && last >= 'S') || (first <= 's' && last >= 's')) {
        add_range(p, 0x17F, 0x17F);
    }
    if ((first <= 'K' && last >= 'K') || (first <= 'k' && last >= 'k')) {
        add_range(p, 0x212A, 0x212A);
    }
}

static bool take_code(parser *p, uint32_t *code)
{
    if (!take(p, "\\x{")) {
        return false;
    }
    for (*code = 0; peek(p) && peek(p) != '}'; p->at++) {
        char c = peek(p);
        *code = *code * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return take(p, "}");
}

static bool same_set(const pattern_nfa *nfa, const nfa_set *a, const nfa_set *b)
{
    return a->categories == b->categories && a->negated == b->negated &&
           a->n_ranges == b->n_ranges &&
           (a->n_ranges == 0 || memcmp(&nfa->ranges[a->first_range], &nfa->ranges[b->first_range],
                                       a->n_ranges * sizeof *nfa->ranges) == 0);
}

/* The set whose ranges were added last. */
static uint16_t add_set(parser *p, nfa_set set)
{
    pattern_nfa *nfa = p->nfa;
    set.n_ranges = nfa->n_ranges - set.first_range;
    for (uint32_t i = 0; i < nfa->n_sets; i++) {
        if (same_set(nfa, &nfa->sets[i], &set)) {
            nfa->n_ranges = set.first_range;
            return (uint16_t)i;
        }
    }
    if (nfa->n_sets == NFA_MAX_SETS) {
        return fail(p);
    }
    nfa->sets[nfa->n_sets] = set;
    return (uint16_t)nfa->n_sets++;
}

static uint16_t parse_set(parser *p)
{
    nfa_set set = {.first_range = p->nfa->n_ranges};
    uint32_t first, last;
    if (take_code(p, &first)) {
        add_characters(p, first, first);
        return add_set(p, set);
    }
    if (take(p, ".")) {
        add_range(p, '\n', '\n');
        set.negated = true;
        return add_set(p, set);
    }
    if (!take(p, "[")) {
        return fail(p);
    }
    set.negated = take(p, "^");
    while (!p->failed && !take(p, "]")) {
        if (take(p, "\\p{")) {
            char name[3] = {peek(p), '\0', '\0'};
            p->at++;
            if (peek(p) != '}') {
                name[1] = peek(p);
                p->at++;
            }
            set.categories |= unicode_category_mask(name);
            if (!take(p, "}")) {
                return fail(p);
            }
            continue;
        }
        if (!take_code(p, &first)) {
            return fail(p);
        }
        last = first;
        if (take(p, "-") && !take_code(p, &last)) {
            return fail(p);
        }
        add_characters(p, first, last);
    }
    return add_set(p, set);
}

/* --- structure -------------------------------------------------------------------------------- */

/* What an assertion looks at must be one character: a set, or alternatives of sets. The
 * alternatives become assertions of their own: all of them denied, or any of them met. */
static uint16_t make_ahead(parser *p, uint16_t node, bool denied)
{
    nfa_node n = p->nfa->nodes[node];
    if (n.kind == NODE_SET) {
        return add_node(p, (nfa_node){.kind = denied ? NODE_NOT_AHEAD : NODE_AHEAD,
                                      .set = n.set,
                                      .may_be_empty = true});
    }
    if (n.kind != NODE_EITHER) {
        return fail(p);
    }
    uint16_t left = make_ahead(p, n.left, denied), right = make_ahead(p, n.right, denied);
    return add_node(p, (nfa_node){.kind = denied ? NODE_THEN : NODE_EITHER,
                                  .left = left,
                                  .right = right,
                                  .may_be_empty = true});
}

static uint16_t parse_group(parser *p)
{
    bool was_caseless = p->caseless;
    bool is_caseless = take(p, "(?i:"), is_ahead = !is_caseless && take(p, "(?=");
    bool is_denied = !is_caseless && !is_ahead && take(p, "(?!");
    if (!is_caseless && !is_ahead && !is_denied && !take(p, "(?:")) {
        return fail(p); /* lookbehind, atomic */
    }
    p->caseless = was_caseless || is_caseless;
    uint16_t node = parse_either(p);
    p->caseless = was_caseless;
    if (p->failed || !take(p, ")")) {
        return fail(p);
    }
    return is_ahead || is_denied ? make_ahead(p, node, is_denied) : node;
}

static bool take_number(parser *p, uint16_t *number)
{
    size_t from = p->at;
    uint32_t n = 0;
    for (; peek(p) >= '0' && peek(p) <= '9' && n <= 1000; p->at++) {
        n = n * 10 + (uint32_t)(peek(p) - '0');
    }
    *number = (uint16_t)n;
    return p->at > from && n <= 1000;
}

/* False when no quantifier stands here. */
static bool take_quantifier(parser *p, nfa_node *n)
{
    n->min = 0;
    n->max = NFA_ENDLESS;
    if (take(p, "*")) {
        return true;
    }
    if (take(p, "+")) {
        n->min = 1;
        return true;
    }
    if (take(p, "?")) {
        n->max = 1;
        return true;
    }
    if (!take(p, "{")) {
        return false;
    }
    p->failed = !take_number(p, &n->min);
    n->max = n->min;
    if (take(p, ",") && !take_number(p, &n->max)) {
        n->max = NFA_ENDLESS;
    }
    p->failed = p->failed || !take(p, "}");
    return true;
}

static uint16_t parse_item(parser *p)
{
    uint16_t atom = peek(p) == '('
                        ? parse_group(p)
                        : add_node(p, (nfa_node){.kind = NODE_SET, .set = parse_set(p)});
    nfa_node repeat = {.kind = NODE_REPEAT, .left = atom};
    if (p->failed || !take_quantifier(p, &repeat)) {
        return atom;
    }
    repeat.lazy = take(p, "?");
    /* Possessive; or a repetition of nothing, where engines differ in when they stop. */
    if (take(p, "+") || may_be_empty(p, atom)) {
        return fail(p);
    }
    repeat.may_be_empty = repeat.min == 0;
    return add_node(p, repeat);
}

static uint16_t parse_sequence(parser *p)
{
    uint16_t left = 0;
    bool is_first = true;
    while (!p->failed && p->at < p->in.len && peek(p) != '|' && peek(p) != ')') {
        uint16_t item = parse_item(p);
        left = is_first || p->failed
                   ? item
                   : add_node(p, (nfa_node){.kind = NODE_THEN,
                                            .left = left,
                                            .right = item,
                                            .may_be_empty = may_be_empty(p, left) &&
                                                            may_be_empty(p, item)});
        is_first = false;
    }
    return is_first ? add_node(p, (nfa_node){.kind = NODE_EMPTY, .may_be_empty = true}) : left;
}

static uint16_t parse_either(parser *p)
{
    if (++p->depth > NFA_MAX_DEPTH) {
        return fail(p);
    }
    uint16_t left = parse_sequence(p);
    if (!p->failed && take(p, "|")) {
        uint16_t right = parse_either(p);
        if (p->failed) {
            return 0;
        }
        left = add_node(p, (nfa_node){.kind = NODE_EITHER,
                                      .left = left,
                                      .right = right,
                                      .may_be_empty =
                                          may_be_empty(p, left) || may_be_empty(p, right)});
    }
    p->depth--;
    return left;
}

/* --- nodes into instructions ------------------------------------------------------------------ */

static uint16_t put(parser *p, enum nfa_op op, uint16_t set)
{
    pattern_nfa *nfa = p->nfa;
    if (nfa->n_code == NFA_MAX_CODE) {
        return fail(p);
    }
    uint16_t next = (uint16_t)(nfa->n_code + 1);
    nfa->code[nfa->n_code] = (nfa_code){(uint16_t)op, set, next, next};
    return (uint16_t)nfa->n_code++;
}

static uint16_t here(const parser *p)
{
    return (uint16_t)p->nfa->n_code;
}

static void emit(parser *p, uint16_t node);

/* A branch that goes on at the next instruction or jumps to where `leave` is set later. */
static void set_exit(parser *p, uint16_t branch, bool lazy)
{
    nfa_code *code = &p->nfa->code[branch];
    if (lazy) {
        code->other = code->next;
        code->next = here(p);
    } else {
        code->other = here(p);
    }
}

static void emit_repeat(parser *p, const nfa_node *n)
{
    for (uint16_t i = 0; i < n->min && !p->failed; i++) {
        emit(p, n->left);
    }
    if (n->max == NFA_ENDLESS) {
        uint16_t branch = put(p, NFA_BRANCH, 0);
        emit(p, n->left);
        uint16_t back = put(p, NFA_BRANCH, 0);
        if (!p->failed) {
            p->nfa->code[back].next = p->nfa->code[back].other = branch;
            set_exit(p, branch, n->lazy);
        }
        return;
    }
    /* x{0,3} is (x(x(x)?)?)?: all branches leave to the same place. */
    uint16_t branches[NFA_MAX_CODE];
    uint16_t n_branches = 0;
    for (uint16_t i = n->min; i < n->max && !p->failed; i++) {
        branches[n_branches++] = put(p, NFA_BRANCH, 0);
        emit(p, n->left);
    }
    for (uint16_t i = 0; i < n_branches && !p->failed; i++) {
        set_exit(p, branches[i], n->lazy);
    }
}

static void emit_either(parser *p, const nfa_node *n)
{
    uint16_t branch = put(p, NFA_BRANCH, 0);
    emit(p, n->left);
    uint16_t jump = put(p, NFA_BRANCH, 0);
    if (p->failed) {
        return;
    }
    p->nfa->code[branch].other = here(p);
    emit(p, n->right);
    p->nfa->code[jump].next = p->nfa->code[jump].other = here(p);
}

static void emit(parser *p, uint16_t node)
{
    const nfa_node *n = &p->nfa->nodes[node];
    if (p->failed) {
        return;
    }
    switch ((enum node_kind)n->kind) {
    case NODE_EMPTY:
        break;
    case NODE_SET:
        put(p, NFA_SET, n->set);
        break;
    case NODE_AHEAD:
        put(p, NFA_AHEAD, n->set);
        break;
    case NODE_NOT_AHEAD:
        put(p, NFA_NOT_AHEAD, n->set);
        break;
    case NODE_THEN:
        emit(p, n->left);
        emit(p, n->right);
        break;
    case NODE_EITHER:
        emit_either(p, n);
        break;
    case NODE_REPEAT:
        emit_repeat(p, n);
        break;
    }
}

bool pattern_nfa_parse(pattern_nfa *nfa, slice pattern)
{
    parser p = {.nfa = nfa, .in = pattern};
    uint16_t root = parse_either(&p);
    if (p.failed || p.at < pattern.len) {
        return false;
    }
    emit(&p, root);
    put(&p, NFA_MATCH, 0);
    return !p.failed;
}
