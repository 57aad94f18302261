/* template_sort.c: Python's sorted(). */
#include "tokenizer/template_render.h"

/* Merge sort of positions: stable, and every comparison may fail. reverse keeps equal items in
 * their order, as Python does. */
static smoe_status merge(tr *r, const tv *keys, size_t *at, size_t *scratch, size_t n, bool reverse)
{
    if (n < 2) {
        return SMOE_OK;
    }
    size_t half = n / 2, i = 0, j = half, k = 0;
    TRY(merge(r, keys, at, scratch, half, reverse));
    TRY(merge(r, keys, at + half, scratch, n - half, reverse));
    while (i < half && j < n) {
        bool right_first = false;
        tv left = keys[at[i]], right = keys[at[j]];
        TRY(tr_compare(r, OP_LT, reverse ? left : right, reverse ? right : left, &right_first));
        scratch[k++] = right_first ? at[j++] : at[i++];
    }
    while (i < half) {
        scratch[k++] = at[i++];
    }
    memcpy(at, scratch, k * sizeof *at);
    return SMOE_OK;
}

smoe_status tr_sort(tr *r, tv *keys, tv *values, size_t n, bool reverse)
{
    size_t *at = tr_alloc(r, n, 2 * sizeof *at);
    tv *copy = tr_alloc(r, n, 2 * sizeof *copy);
    if (!at || !copy) {
        return tr_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        at[i] = i;
        copy[i] = keys[i];
        copy[n + i] = values[i];
    }
    TRY(merge(r, keys, at, at + n, n, reverse));
    for (size_t i = 0; i < n; i++) {
        keys[i] = copy[at[i]];
        values[i] = copy[n + at[i]];
    }
    return SMOE_OK;
}
