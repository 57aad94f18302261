/* utf8.c: see utf8.h. */
#include "tokenizer/utf8.h"

/* How many bytes a lead byte asks for (0: never a lead byte) and which second byte may follow it.
 * The narrowed second byte is what excludes overlong forms, surrogates and codes past U+10FFFF. */
static size_t lead_length(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    if (lead < 0xE0) {
        return 2;
    }
    if (lead < 0xF0) {
        *low = lead == 0xE0 ? 0xA0 : 0x80;
        *high = lead == 0xED ? 0x9F : 0xBF;
        return 3;
    }
    *low = lead == 0xF0 ? 0x90 : 0x80;
    *high = lead == 0xF4 ? 0x8F : 0xBF;
    return 4;
}

enum utf8_kind utf8_step(slice text, size_t *n_bytes, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text.data;
    unsigned char low, high;
    size_t len = lead_length(s[0], &low, &high);
    if (len == 0) {
        *n_bytes = 1;
        return UTF8_INVALID;
    }
    for (size_t i = 1; i < len; i++) {
        if (i == text.len) {
            *n_bytes = i;
            return UTF8_PARTIAL;
        }
        if (s[i] < low || s[i] > high) {
            *n_bytes = i;
            return UTF8_INVALID;
        }
        low = 0x80;
        high = 0xBF;
    }
    *n_bytes = utf8_get(text.data, code);
    return UTF8_CHAR;
}

size_t utf8_skip_ascii(slice text, size_t i)
{
    uint64_t word;
    while (text.len - i >= sizeof word) {
        memcpy(&word, text.data + i, sizeof word);
        if (word & 0x8080808080808080u) {
            break;
        }
        i += sizeof word;
    }
    while (i < text.len && (unsigned char)text.data[i] < 0x80) {
        i++;
    }
    return i;
}

size_t utf8_valid_prefix(slice text)
{
    size_t i = 0;
    while ((i = utf8_skip_ascii(text, i)) < text.len) {
        size_t n;
        uint32_t code;
        if (utf8_step(slice_of(text.data + i, text.len - i), &n, &code) != UTF8_CHAR) {
            break;
        }
        i += n;
    }
    return i;
}

size_t utf8_put(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}
