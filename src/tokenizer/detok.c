/* detok.c: ids -> text, whole characters only. A state of at most three bytes: the start of a
 * character whose rest the next token may bring; and what is dropped at the start of a text. */
#include <string.h>

#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/utf8.h"

void smoe_detok_init(smoe_detok *d, const smoe_tokenizer *tok)
{
    *d = (smoe_detok){
        .tok = tok, .n_strip = tok->n_strip, .drops_spaces = tok->drops_first_spaces};
}

typedef struct output {
    char *data;
    size_t len, size;
} output;

static bool emit(output *out, const char *data, size_t len)
{
    if (len > out->size - out->len) {
        return false;
    }
    memcpy(out->data + out->len, data, len);
    out->len += len;
    return true;
}

/* Emits the whole characters at the start of text and what can become none as U+FFFD. *n_left:
 * bytes at the end that may still become one. */
static bool emit_characters(output *out, slice text, size_t *n_left)
{
    *n_left = 0;
    while (text.len) {
        size_t n;
        uint32_t code;
        enum utf8_kind kind = utf8_step(text, &n, &code);
        if (kind == UTF8_PARTIAL) {
            *n_left = n;
            return true;
        }
        if (!(kind == UTF8_CHAR ? emit(out, text.data, n) : emit(out, UTF8_REPLACEMENT, 3))) {
            return false;
        }
        text = slice_of(text.data + n, text.len - n);
    }
    return true;
}

/* Bytes of one token, or a part of them. */
static bool feed(smoe_detok *d, const char *bytes, size_t len, output *o)
{
    size_t used = 0, n_left = d->n_pending;
    char head[8];
    memcpy(head, d->pending, d->n_pending);
    /* Byte by byte until the pending character is settled; the rest is then looked at in place. */
    while (n_left && used < len) {
        head[n_left] = bytes[used++];
        if (!emit_characters(o, slice_of(head, n_left + 1), &n_left)) {
            return false;
        }
        if (n_left == 1) {
            head[0] = bytes[used - 1]; /* the last byte ended the old sequence and starts another */
        }
    }
    if (n_left == 0) {
        slice rest = slice_of(bytes + used, len - used);
        if (!emit_characters(o, rest, &n_left)) {
            return false;
        }
        memcpy(head, bytes + len - n_left, n_left);
    }
    memcpy(d->pending, head, n_left);
    d->n_pending = n_left;
    return true;
}

size_t smoe_detok_push(smoe_detok *d, int32_t id, char *out, size_t size)
{
    output o = {.data = out, .size = size};
    smoe_detok next = *d; /* kept only if there was room for everything */
    const char *bytes;
    size_t len;
    bool is_special;
    if (!smoe_tokenizer_bytes(d->tok, id, &bytes, &len, &is_special) || is_special) {
        return 0;
    }
    next.drops_spaces = false;
    while (len && next.n_strip) {
        if (*bytes != ' ') {
            next.n_strip = 0;
            break;
        }
        bytes++;
        len--;
        next.n_strip--;
    }
    while (len) {
        const char *space = d->drops_spaces ? memchr(bytes, ' ', len) : NULL;
        size_t n = space ? (size_t)(space - bytes) : len;
        if (n && !feed(&next, bytes, n, &o)) {
            return SIZE_MAX;
        }
        n += space != NULL;
        bytes += n;
        len -= n;
    }
    *d = next;
    return o.len;
}

size_t smoe_detok_finish(smoe_detok *d, char *out, size_t size)
{
    output o = {.data = out, .size = size};
    if (d->n_pending && !emit(&o, UTF8_REPLACEMENT, 3)) {
        return SIZE_MAX;
    }
    d->n_pending = 0;
    return o.len;
}
