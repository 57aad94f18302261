/* added.c: see added.h. The tokens are one sorted array: while the text is followed byte by byte,
 * the tokens that agree with it so far are a shrinking range of that array. */
#include "tokenizer/added.h"

#include <stdlib.h>

#include "base/mem.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

void added_init(added_set *s)
{
    *s = (added_set){0};
    arena_init(&s->texts);
}

void added_fini(added_set *s)
{
    mem_free(s->tokens);
    arena_fini(&s->texts);
    *s = (added_set){0};
}

smoe_status added_add(added_set *s, const added_token *token, smoe_err *err)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 32;
        added_token *tokens = mem_realloc(s->tokens, cap * sizeof *tokens);
        if (!tokens) {
            return err_nomem(err, "the added tokens", cap * sizeof *tokens);
        }
        s->tokens = tokens;
        s->cap = cap;
    }
    s->tokens[s->n] = *token;
    s->tokens[s->n].text = arena_slice(&s->texts, token->text);
    if (!s->tokens[s->n].text.data) {
        return err_nomem(err, "an added token", token->text.len);
    }
    s->starts[(unsigned char)token->text.data[0]] = true;
    s->n++;
    return SMOE_OK;
}

static int compare_tokens(const void *left, const void *right)
{
    const added_token *a = left, *b = right;
    size_t n = a->text.len < b->text.len ? a->text.len : b->text.len;
    int order = memcmp(a->text.data, b->text.data, n);
    if (order == 0) {
        order = (a->text.len > b->text.len) - (a->text.len < b->text.len);
    }
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

const added_token *added_seal(added_set *s)
{
    if (s->n) {
        qsort(s->tokens, s->n, sizeof *s->tokens, compare_tokens);
    }
    for (size_t i = 1; i < s->n; i++) {
        if (slice_eq(s->tokens[i - 1].text, s->tokens[i].text)) {
            return &s->tokens[i];
        }
    }
    return NULL;
}

/* The first token of [low, high) whose byte k is not below c. All of them agree before byte k. */
static size_t lower_bound(const added_set *s, size_t low, size_t high, size_t k, unsigned c)
{
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        slice text = s->tokens[mid].text;
        if (text.len <= k || (unsigned char)text.data[k] < c) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* The longest token at the start of text, or NULL. */
static const added_token *longest_at(const added_set *s, slice text)
{
    const added_token *longest = NULL;
    size_t low = 0, high = s->n;
    for (size_t k = 0; k < text.len && low < high; k++) {
        unsigned c = (unsigned char)text.data[k];
        low = lower_bound(s, low, high, k, c);
        high = lower_bound(s, low, high, k, c + 1);
        if (low < high && s->tokens[low].text.len == k + 1) {
            longest = &s->tokens[low];
        }
    }
    return longest;
}

static uint32_t first_char(slice text)
{
    uint32_t code;
    utf8_get(text.data, &code);
    return code;
}

static uint32_t last_char(slice text, size_t *n_bytes)
{
    size_t start = text.len - 1;
    while (start > 0 && ((unsigned char)text.data[start] & 0xC0) == 0x80) {
        start--;
    }
    uint32_t code;
    *n_bytes = utf8_get(text.data + start, &code);
    return code;
}

static bool stands_alone(slice text, size_t start, size_t end)
{
    size_t n_bytes;
    return (start == 0 || !unicode_is_word(last_char(slice_of(text.data, start), &n_bytes))) &&
           (end == text.len ||
            !unicode_is_word(first_char(slice_of(text.data + end, text.len - end))));
}

/* Where the white space that ends at end begins, not before from. */
static size_t space_before(slice text, size_t from, size_t end)
{
    size_t n_bytes;
    while (end > from && unicode_is_white_space(last_char(slice_of(text.data, end), &n_bytes))) {
        end -= n_bytes;
    }
    return end;
}

static size_t space_after(slice text, size_t start)
{
    uint32_t code;
    while (start < text.len) {
        size_t n_bytes = utf8_get(text.data + start, &code);
        if (!unicode_is_white_space(code)) {
            break;
        }
        start += n_bytes;
    }
    return start;
}

/* The search goes on behind the token itself, not behind the white space it swallowed: a token made
 * of white space is found there again, and ordinary text resumes after it. That is what the
 * reference does. */
smoe_status added_split(const added_set *s, slice text, added_sink *sink, void *context,
                        smoe_err *err)
{
    size_t done = 0, space_end = 0; /* space_end: where the white space last swallowed ends */
    for (size_t i = 0; s->n && i < text.len;) {
        const added_token *token = s->starts[(unsigned char)text.data[i]]
                                       ? longest_at(s, slice_of(text.data + i, text.len - i))
                                       : NULL;
        if (!token) {
            i++;
            continue;
        }
        size_t start = i, end = i + token->text.len;
        i = end;
        if (token->single_word && !stands_alone(text, start, end)) {
            continue;
        }
        if (token->lstrip) {
            start = space_before(text, done, start);
            start = start > done ? start : done;
        }
        if (token->rstrip) {
            space_end = end < space_end ? space_end : space_after(text, end);
            end = space_end;
        }
        if (done < start) {
            TRY(sink(context, slice_of(text.data + done, start - done), -1, err));
        }
        size_t from = start < end ? start : end;
        TRY(sink(context, slice_of(text.data + from, end - from), token->id, err));
        done = end;
    }
    return done < text.len ? sink(context, slice_of(text.data + done, text.len - done), -1, err)
                           : SMOE_OK;
}
