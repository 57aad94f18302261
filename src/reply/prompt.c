/* prompt.c: whether a prompt leaves a think block open. See reasoning.h. */
#include "reply/reasoning.h"

bool reasoning_is_open(const smoe_tokenizer *tok, const int32_t *ids, size_t n_ids)
{
    int32_t open = smoe_tokenizer_find(tok, "<think>", 7);
    for (size_t i = n_ids; i > 0 && open >= 0; i--) {
        const char *bytes;
        size_t n;
        if (ids[i - 1] == open) {
            return true;
        }
        if (!smoe_tokenizer_bytes(tok, ids[i - 1], &bytes, &n, NULL)) {
            return false;
        }
        for (; n > 0; n--, bytes++) {
            if (*bytes != '\n' && *bytes != ' ') {
                return false;
            }
        }
    }
    return false;
}
