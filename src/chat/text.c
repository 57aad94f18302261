/* text.c: see text.h. */
#include "chat/text.h"

#include "tokenizer/unicode.h"

#define REPLACEMENT "\xef\xbf\xbd"

static bool is_tail(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

size_t text_sequence(slice s)
{
    const unsigned char *c = (const unsigned char *)s.data;
    if (s.len == 0) {
        return 0;
    }
    if (c[0] < 0x80) {
        return 1;
    }
    size_t n = c[0] >= 0xc2 && c[0] <= 0xdf ? 2 : (c[0] & 0xf0) == 0xe0 ? 3 : 0;
    n = c[0] >= 0xf0 && c[0] <= 0xf4 ? 4 : n;
    if (n == 0 || s.len < n) {
        return 0;
    }
    /* Overlong forms, surrogates and values past U+10FFFF all show in the second byte. */
    unsigned char low = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
    if (!is_tail(c[1], low, high)) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if (!is_tail(c[i], 0x80, 0xbf)) {
            return 0;
        }
    }
    return n;
}

/* U+0000 .. U+001F, U+007F and U+0080 .. U+009F. */
static bool is_control(slice sequence)
{
    unsigned char c = (unsigned char)sequence.data[0];
    if (sequence.len == 1) {
        return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
    }
    return c == 0xc2 && (unsigned char)sequence.data[1] < 0xa0;
}

/* The picture of a control character: U+2400 + its value, U+2421 for DEL, U+FFFD for the rest. */
static smoe_status put_picture(slice sequence, buf *out, smoe_err *err)
{
    unsigned char c = (unsigned char)sequence.data[0];
    if (sequence.len > 1) {
        return buf_puts(out, REPLACEMENT, err);
    }
    char picture[] = {'\xe2', '\x90', (char)(0x80 + (c == 0x7f ? 0x21 : c)), 0};
    return buf_puts(out, picture, err);
}

static smoe_status copy(slice text, bool show_controls, buf *out, smoe_err *err)
{
    while (text.len > 0) {
        size_t n = text_sequence(text);
        slice sequence = {text.data, n > 0 ? n : 1};
        if (n == 0 || *text.data == '\0') {
            TRY(buf_puts(out, REPLACEMENT, err));
        } else if (show_controls && is_control(sequence)) {
            TRY(put_picture(sequence, out, err));
        } else {
            TRY(buf_append_slice(out, sequence, err));
        }
        text.data += sequence.len;
        text.len -= sequence.len;
    }
    return SMOE_OK;
}

smoe_status text_scrub(slice text, buf *out, smoe_err *err)
{
    return copy(text, false, out, err);
}

smoe_status text_for_terminal(slice text, buf *out, smoe_err *err)
{
    return copy(text, true, out, err);
}

unsigned text_columns(slice sequence)
{
    const unsigned char *c = (const unsigned char *)sequence.data;
    uint32_t code = c[0];
    if (sequence.len > 1) {
        code &= 0xffu >> (sequence.len + 1);
    }
    for (size_t i = 1; i < sequence.len; i++) {
        code = code << 6 | (c[i] & 0x3f);
    }
    return unicode_width(code);
}
