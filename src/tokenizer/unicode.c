/* unicode.c: see unicode.h. The only file of this module that includes utf8proc. */
#include "tokenizer/unicode.h"

#include <utf8proc.h>

static const unicode_range recent[] = {
    {0x61d, 0x61d, "Po"},     {0x870, 0x887, "Lo"},     {0x888, 0x888, "Sk"},
    {0x889, 0x88e, "Lo"},     {0x890, 0x891, "Cf"},     {0x897, 0x89f, "Mn"},
    {0x8b5, 0x8c8, "Lo"},     {0x8c9, 0x8c9, "Lm"},     {0x8ca, 0x8d2, "Mn"},
    {0xc3c, 0xc3c, "Mn"},     {0xc5d, 0xc5d, "Lo"},     {0xcdd, 0xcdd, "Lo"},
    {0xcf3, 0xcf3, "Mc"},     {0xece, 0xece, "Mn"},     {0x170d, 0x170d, "Lo"},
    {0x1715, 0x1715, "Mc"},   {0x171f, 0x171f, "Lo"},   {0x180f, 0x180f, "Mn"},
    {0x1ac1, 0x1ace, "Mn"},   {0x1b4c, 0x1b4c, "Lo"},   {0x1b4e, 0x1b4f, "Po"},
    {0x1b7d, 0x1b7f, "Po"},   {0x1c89, 0x1c89, "Lu"},   {0x1c8a, 0x1c8a, "Ll"},
    {0x1dfa, 0x1dfa, "Mn"},   {0x20c0, 0x20c0, "Sc"},   {0x2427, 0x2429, "So"},
    {0x2c2f, 0x2c2f, "Lu"},   {0x2c5f, 0x2c5f, "Ll"},   {0x2e53, 0x2e54, "Po"},
    {0x2e55, 0x2e55, "Ps"},   {0x2e56, 0x2e56, "Pe"},   {0x2e57, 0x2e57, "Ps"},
    {0x2e58, 0x2e58, "Pe"},   {0x2e59, 0x2e59, "Ps"},   {0x2e5a, 0x2e5a, "Pe"},
    {0x2e5b, 0x2e5b, "Ps"},   {0x2e5c, 0x2e5c, "Pe"},   {0x2e5d, 0x2e5d, "Pd"},
    {0x2ffc, 0x2fff, "So"},   {0x31e4, 0x31e5, "So"},   {0x31ef, 0x31ef, "So"},
    {0x9ffd, 0x9fff, "Lo"},   {0xa7c0, 0xa7c0, "Lu"},   {0xa7c1, 0xa7c1, "Ll"},
    {0xa7cb, 0xa7cc, "Lu"},   {0xa7cd, 0xa7cd, "Ll"},   {0xa7d0, 0xa7d0, "Lu"},
    {0xa7d1, 0xa7d1, "Ll"},   {0xa7d3, 0xa7d3, "Ll"},   {0xa7d5, 0xa7d5, "Ll"},
    {0xa7d6, 0xa7d6, "Lu"},   {0xa7d7, 0xa7d7, "Ll"},   {0xa7d8, 0xa7d8, "Lu"},
    {0xa7d9, 0xa7d9, "Ll"},   {0xa7da, 0xa7da, "Lu"},   {0xa7db, 0xa7db, "Ll"},
    {0xa7dc, 0xa7dc, "Lu"},   {0xa7f2, 0xa7f4, "Lm"},   {0xfbc2, 0xfbc2, "Sk"},
    {0xfd40, 0xfd4f, "So"},   {0xfdcf, 0xfdcf, "So"},   {0xfdfe, 0xfdff, "So"},
    {0x10570, 0x1057a, "Lu"}, {0x1057c, 0x1058a, "Lu"}, {0x1058c, 0x10592, "Lu"},
    {0x10594, 0x10595, "Lu"}, {0x10597, 0x105a1, "Ll"}, {0x105a3, 0x105b1, "Ll"},
    {0x105b3, 0x105b9, "Ll"}, {0x105bb, 0x105bc, "Ll"}, {0x105c0, 0x105f3, "Lo"},
    {0x10780, 0x10785, "Lm"}, {0x10787, 0x107b0, "Lm"}, {0x107b2, 0x107ba, "Lm"},
    {0x10d40, 0x10d49, "Nd"}, {0x10d4a, 0x10d4d, "Lo"}, {0x10d4e, 0x10d4e, "Lm"},
    {0x10d4f, 0x10d4f, "Lo"}, {0x10d50, 0x10d65, "Lu"}, {0x10d69, 0x10d6d, "Mn"},
    {0x10d6e, 0x10d6e, "Pd"}, {0x10d6f, 0x10d6f, "Lm"}, {0x10d70, 0x10d85, "Ll"},
    {0x10d8e, 0x10d8f, "Sm"}, {0x10ec2, 0x10ec4, "Lo"}, {0x10efc, 0x10eff, "Mn"},
    {0x10f70, 0x10f81, "Lo"}, {0x10f82, 0x10f85, "Mn"}, {0x10f86, 0x10f89, "Po"},
    {0x11070, 0x11070, "Mn"}, {0x11071, 0x11072, "Lo"}, {0x11073, 0x11074, "Mn"},
    {0x11075, 0x11075, "Lo"}, {0x110c2, 0x110c2, "Mn"}, {0x1123f, 0x11240, "Lo"},
    {0x11241, 0x11241, "Mn"}, {0x11380, 0x11389, "Lo"}, {0x1138b, 0x1138b, "Lo"},
    {0x1138e, 0x1138e, "Lo"}, {0x11390, 0x113b5, "Lo"}, {0x113b7, 0x113b7, "Lo"},
    {0x113b8, 0x113ba, "Mc"}, {0x113bb, 0x113c0, "Mn"}, {0x113c2, 0x113c2, "Mc"},
    {0x113c5, 0x113c5, "Mc"}, {0x113c7, 0x113ca, "Mc"}, {0x113cc, 0x113cd, "Mc"},
    {0x113ce, 0x113ce, "Mn"}, {0x113cf, 0x113cf, "Mc"}, {0x113d0, 0x113d0, "Mn"},
    {0x113d1, 0x113d1, "Lo"}, {0x113d2, 0x113d2, "Mn"}, {0x113d3, 0x113d3, "Lo"},
    {0x113d4, 0x113d5, "Po"}, {0x113d7, 0x113d8, "Po"}, {0x113e1, 0x113e2, "Mn"},
    {0x116b9, 0x116b9, "Po"}, {0x116d0, 0x116e3, "Nd"}, {0x11740, 0x11746, "Lo"},
    {0x11ab0, 0x11abf, "Lo"}, {0x11b00, 0x11b09, "Po"}, {0x11bc0, 0x11be0, "Lo"},
    {0x11be1, 0x11be1, "Po"}, {0x11bf0, 0x11bf9, "Nd"}, {0x11f00, 0x11f01, "Mn"},
    {0x11f02, 0x11f02, "Lo"}, {0x11f03, 0x11f03, "Mc"}, {0x11f04, 0x11f10, "Lo"},
    {0x11f12, 0x11f33, "Lo"}, {0x11f34, 0x11f35, "Mc"}, {0x11f36, 0x11f3a, "Mn"},
    {0x11f3e, 0x11f3f, "Mc"}, {0x11f40, 0x11f40, "Mn"}, {0x11f41, 0x11f41, "Mc"},
    {0x11f42, 0x11f42, "Mn"}, {0x11f43, 0x11f4f, "Po"}, {0x11f50, 0x11f59, "Nd"},
    {0x11f5a, 0x11f5a, "Mn"}, {0x12f90, 0x12ff0, "Lo"}, {0x12ff1, 0x12ff2, "Po"},
    {0x1342f, 0x1342f, "Lo"}, {0x13439, 0x1343f, "Cf"}, {0x13440, 0x13440, "Mn"},
    {0x13441, 0x13446, "Lo"}, {0x13447, 0x13455, "Mn"}, {0x13460, 0x143fa, "Lo"},
    {0x16100, 0x1611d, "Lo"}, {0x1611e, 0x16129, "Mn"}, {0x1612a, 0x1612c, "Mc"},
    {0x1612d, 0x1612f, "Mn"}, {0x16130, 0x16139, "Nd"}, {0x16a70, 0x16abe, "Lo"},
    {0x16ac0, 0x16ac9, "Nd"}, {0x16d40, 0x16d42, "Lm"}, {0x16d43, 0x16d6a, "Lo"},
    {0x16d6b, 0x16d6c, "Lm"}, {0x16d6d, 0x16d6f, "Po"}, {0x16d70, 0x16d79, "Nd"},
    {0x18cff, 0x18cff, "Lo"}, {0x1aff0, 0x1aff3, "Lm"}, {0x1aff5, 0x1affb, "Lm"},
    {0x1affd, 0x1affe, "Lm"}, {0x1b11f, 0x1b122, "Lo"}, {0x1b132, 0x1b132, "Lo"},
    {0x1b155, 0x1b155, "Lo"}, {0x1cc00, 0x1ccef, "So"}, {0x1ccf0, 0x1ccf9, "Nd"},
    {0x1cd00, 0x1ceb3, "So"}, {0x1cf00, 0x1cf2d, "Mn"}, {0x1cf30, 0x1cf46, "Mn"},
    {0x1cf50, 0x1cfc3, "So"}, {0x1d1e9, 0x1d1ea, "So"}, {0x1d2c0, 0x1d2d3, "No"},
    {0x1df00, 0x1df09, "Ll"}, {0x1df0a, 0x1df0a, "Lo"}, {0x1df0b, 0x1df1e, "Ll"},
    {0x1df25, 0x1df2a, "Ll"}, {0x1e030, 0x1e06d, "Lm"}, {0x1e08f, 0x1e08f, "Mn"},
    {0x1e290, 0x1e2ad, "Lo"}, {0x1e2ae, 0x1e2ae, "Mn"}, {0x1e4d0, 0x1e4ea, "Lo"},
    {0x1e4eb, 0x1e4eb, "Lm"}, {0x1e4ec, 0x1e4ef, "Mn"}, {0x1e4f0, 0x1e4f9, "Nd"},
    {0x1e5d0, 0x1e5ed, "Lo"}, {0x1e5ee, 0x1e5ef, "Mn"}, {0x1e5f0, 0x1e5f0, "Lo"},
    {0x1e5f1, 0x1e5fa, "Nd"}, {0x1e5ff, 0x1e5ff, "Po"}, {0x1e7e0, 0x1e7e6, "Lo"},
    {0x1e7e8, 0x1e7eb, "Lo"}, {0x1e7ed, 0x1e7ee, "Lo"}, {0x1e7f0, 0x1e7fe, "Lo"},
    {0x1f6dc, 0x1f6df, "So"}, {0x1f774, 0x1f776, "So"}, {0x1f77b, 0x1f7d9, "So"},
    {0x1f7f0, 0x1f7f0, "So"}, {0x1f8b2, 0x1f8bb, "So"}, {0x1f8c0, 0x1f8c1, "So"},
    {0x1f979, 0x1f9cc, "So"}, {0x1fa75, 0x1fa7c, "So"}, {0x1fa87, 0x1fa89, "So"},
    {0x1fa8f, 0x1fac6, "So"}, {0x1face, 0x1fadc, "So"}, {0x1fadf, 0x1fae9, "So"},
    {0x1faf0, 0x1faf8, "So"}, {0x1fbcb, 0x1fbef, "So"}, {0x2a6de, 0x2a6df, "Lo"},
    {0x2b735, 0x2b739, "Lo"}, {0x2ebf0, 0x2ee5d, "Lo"}, {0x31350, 0x323af, "Lo"},
};

enum { N_RECENT = sizeof recent / sizeof recent[0] };

const unicode_range *unicode_recent(size_t *n_ranges)
{
    *n_ranges = N_RECENT;
    return recent;
}

bool unicode_is_white_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* The range of a character assigned recently, or NULL. */
static const unicode_range *find_recent(uint32_t code)
{
    size_t low = 0, high = N_RECENT;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (code > recent[mid].last) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < N_RECENT && code >= recent[low].first ? &recent[low] : NULL;
}

const char *unicode_category(uint32_t code)
{
    const unicode_range *range = find_recent(code);
    return range ? range->category : utf8proc_category_string((utf8proc_int32_t)code);
}

/* In the order of utf8proc's numbers. */
static const char categories[][3] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc",
                                     "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
                                     "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs",
                                     "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

uint32_t unicode_category_mask(const char *name)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++) {
        if (name[0] == categories[i][0] && (!name[1] || name[1] == categories[i][1])) {
            mask |= (uint32_t)1 << i;
        }
    }
    return mask;
}

uint32_t unicode_category_bit(uint32_t code)
{
    const unicode_range *range = find_recent(code);
    return range ? unicode_category_mask(range->category)
                 : (uint32_t)1 << utf8proc_category((utf8proc_int32_t)code);
}

bool unicode_is_word(uint32_t c)
{
    const char *category = unicode_category(c);
    switch (category[0]) {
    case 'L':
    case 'M':
        return true;
    case 'N':
        return category[1] != 'o';
    case 'P':
        return category[1] == 'c';
    default:
        /* Circled and squared letters are symbols, but alphabetic; then the join controls. */
        return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
               (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
               c == 0x200D;
    }
}

unsigned unicode_combining_class(uint32_t code)
{
    return (unsigned)utf8proc_get_property((utf8proc_int32_t)code)->combining_class;
}

size_t unicode_decompose(uint32_t code, bool compat, int32_t out[UNICODE_MAX_DECOMPOSED])
{
    int last_boundclass = 0;
    utf8proc_option_t options = compat ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    utf8proc_ssize_t n = utf8proc_decompose_char(
        (utf8proc_int32_t)code, out, UNICODE_MAX_DECOMPOSED, options, &last_boundclass);
    if (n <= 0 || n > UNICODE_MAX_DECOMPOSED) { /* none is longer than 18 */
        out[0] = (int32_t)code;
        return 1;
    }
    return (size_t)n;
}

size_t unicode_compose(int32_t *codes, size_t n)
{
    utf8proc_ssize_t left =
        utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return left < 0 ? n : (size_t)left;
}

uint32_t unicode_to_upper(uint32_t code)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
}

uint32_t unicode_to_title(uint32_t code)
{
    return (uint32_t)utf8proc_totitle((utf8proc_int32_t)code);
}

uint32_t unicode_to_lower(uint32_t code)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

unsigned unicode_width(uint32_t code)
{
    int width = utf8proc_charwidth((utf8proc_int32_t)code);
    return width > 0 ? (unsigned)width : 0;
}
