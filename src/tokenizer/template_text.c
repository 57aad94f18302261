/* template_text.c: see template_text.h. The character tables are those of unicode.h; Python's own
 * notions (white space, line ends, what repr() prints) are written out here. */
#include "tokenizer/template_text.h"

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

uint32_t text_decode(slice s, size_t at, size_t *n_bytes)
{
    uint32_t c = 0;
    *n_bytes = utf8_get(s.data + at, &c);
    return c;
}

size_t text_n_chars(slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    }
    return n;
}

size_t text_offset(slice s, size_t i_char)
{
    for (size_t i = 0; i < s.len; i++) {
        if (((unsigned char)s.data[i] & 0xc0) != 0x80 && i_char-- == 0) {
            return i;
        }
    }
    return s.len;
}

bool text_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool text_is_line_end(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

bool text_is_printable(uint32_t c)
{
    const char *k = unicode_category(c); /* controls and the like, and separators but the space */
    return c == ' ' || (k[0] != 'C' && k[0] != 'Z');
}

bool text_is_alpha(uint32_t c)
{
    return unicode_category(c)[0] == 'L';
}

bool text_is_decimal(uint32_t c)
{
    return strcmp(unicode_category(c), "Nd") == 0;
}

/* Digits that are not decimal (superscripts, circled digits), and letters with a numeric value
 * (mostly Chinese numerals): Unicode 14, as in Python 3.11. */
static const uint32_t digits[][2] = {
    {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
    {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
    {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
    {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
    {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
};

static const uint32_t numeric_letters[][2] = {
    {0x3405, 0x3405},   {0x3483, 0x3483},   {0x382a, 0x382a},   {0x3b4d, 0x3b4d},
    {0x4e00, 0x4e00},   {0x4e03, 0x4e03},   {0x4e07, 0x4e07},   {0x4e09, 0x4e09},
    {0x4e5d, 0x4e5d},   {0x4e8c, 0x4e8c},   {0x4e94, 0x4e94},   {0x4e96, 0x4e96},
    {0x4ebf, 0x4ec0},   {0x4edf, 0x4edf},   {0x4ee8, 0x4ee8},   {0x4f0d, 0x4f0d},
    {0x4f70, 0x4f70},   {0x5104, 0x5104},   {0x5146, 0x5146},   {0x5169, 0x5169},
    {0x516b, 0x516b},   {0x516d, 0x516d},   {0x5341, 0x5341},   {0x5343, 0x5345},
    {0x534c, 0x534c},   {0x53c1, 0x53c4},   {0x56db, 0x56db},   {0x58f1, 0x58f1},
    {0x58f9, 0x58f9},   {0x5e7a, 0x5e7a},   {0x5efe, 0x5eff},   {0x5f0c, 0x5f0e},
    {0x5f10, 0x5f10},   {0x62fe, 0x62fe},   {0x634c, 0x634c},   {0x67d2, 0x67d2},
    {0x6f06, 0x6f06},   {0x7396, 0x7396},   {0x767e, 0x767e},   {0x8086, 0x8086},
    {0x842c, 0x842c},   {0x8cae, 0x8cae},   {0x8cb3, 0x8cb3},   {0x8d30, 0x8d30},
    {0x9621, 0x9621},   {0x9646, 0x9646},   {0x964c, 0x964c},   {0x9678, 0x9678},
    {0x96f6, 0x96f6},   {0xf96b, 0xf96b},   {0xf973, 0xf973},   {0xf978, 0xf978},
    {0xf9b2, 0xf9b2},   {0xf9d1, 0xf9d1},   {0xf9d3, 0xf9d3},   {0xf9fd, 0xf9fd},
    {0x20001, 0x20001}, {0x20064, 0x20064}, {0x200e2, 0x200e2}, {0x20121, 0x20121},
    {0x2092a, 0x2092a}, {0x20983, 0x20983}, {0x2098c, 0x2098c}, {0x2099c, 0x2099c},
    {0x20aea, 0x20aea}, {0x20afd, 0x20afd}, {0x20b19, 0x20b19}, {0x22390, 0x22390},
    {0x22998, 0x22998}, {0x23b1b, 0x23b1b}, {0x2626d, 0x2626d}, {0x2f890, 0x2f890},
};

static bool in_ranges(uint32_t c, const uint32_t (*ranges)[2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= ranges[i][0] && c <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

bool text_is_digit(uint32_t c)
{
    return text_is_decimal(c) || in_ranges(c, digits, sizeof digits / sizeof digits[0]);
}

bool text_is_numeric(uint32_t c)
{
    return unicode_category(c)[0] == 'N' ||
           in_ranges(c, numeric_letters, sizeof numeric_letters / sizeof numeric_letters[0]);
}

bool text_is_cased(uint32_t c, bool *is_upper)
{
    const char *k = unicode_category(c);
    *is_upper = k[0] == 'L' && (k[1] == 'u' || k[1] == 't');
    return *is_upper || (k[0] == 'L' && k[1] == 'l');
}

/* The letters whose capital is more than one letter (Unicode's SpecialCasing.txt), for the scripts
 * in which running text uses them: sharp s, the Latin ligatures, and the Armenian one. */
static const struct {
    uint32_t from, upper[3], title[3];
} specials[] = {
    {0xdf, {'S', 'S'}, {'S', 's'}},
    {0x149, {0x2bc, 'N'}, {0x2bc, 'N'}},
    {0x1f0, {'J', 0x30c}, {'J', 0x30c}},
    {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
    {0x587, {0x535, 0x552}, {0x535, 0x582}},
    {0x1e96, {'H', 0x331}, {'H', 0x331}},
    {0x1e97, {'T', 0x308}, {'T', 0x308}},
    {0x1e98, {'W', 0x30a}, {'W', 0x30a}},
    {0x1e99, {'Y', 0x30a}, {'Y', 0x30a}},
    {0x1e9a, {'A', 0x2be}, {'A', 0x2be}},
    {0xfb00, {'F', 'F'}, {'F', 'f'}},
    {0xfb01, {'F', 'I'}, {'F', 'i'}},
    {0xfb02, {'F', 'L'}, {'F', 'l'}},
    {0xfb03, {'F', 'F', 'I'}, {'F', 'f', 'i'}},
    {0xfb04, {'F', 'F', 'L'}, {'F', 'f', 'l'}},
    {0xfb05, {'S', 'T'}, {'S', 't'}},
    {0xfb06, {'S', 'T'}, {'S', 't'}},
};

static size_t map_case(uint32_t c, bool is_title, uint32_t out[3])
{
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        if (specials[i].from == c) {
            const uint32_t *to = is_title ? specials[i].title : specials[i].upper;
            size_t n = 0;
            while (n < 3 && to[n]) {
                out[n] = to[n];
                n++;
            }
            return n;
        }
    }
    out[0] = is_title ? unicode_to_title(c) : unicode_to_upper(c);
    return 1;
}

size_t text_upper(uint32_t c, uint32_t out[3])
{
    return map_case(c, false, out);
}

size_t text_title(uint32_t c, uint32_t out[3])
{
    return map_case(c, true, out);
}

size_t text_lower(uint32_t c, uint32_t out[3])
{
    if (c == 0x130) { /* the only letter whose small form is two characters */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = unicode_to_lower(c);
    return 1;
}

slice text_lstrip(slice s)
{
    size_t i = 0, n;
    while (i < s.len && text_is_space(text_decode(s, i, &n))) {
        i += n;
    }
    return (slice){s.data + i, s.len - i};
}

slice text_rstrip(slice s)
{
    while (s.len) {
        size_t i = s.len - 1, n;
        while (i && ((unsigned char)s.data[i] & 0xc0) == 0x80) {
            i--;
        }
        if (!text_is_space(text_decode(s, i, &n))) {
            break;
        }
        s.len = i;
    }
    return s;
}

size_t text_find(slice s, slice needle, size_t from)
{
    if (from > s.len || needle.len > s.len - from) {
        return SIZE_MAX;
    }
    if (needle.len == 0) {
        return from;
    }
    const char *p = memmem(s.data + from, s.len - from, needle.data, needle.len);
    return p ? (size_t)(p - s.data) : SIZE_MAX;
}
