/* template_number.c: texts as numbers, by the rules of Python's int() and float(). */
#include <locale.h>
#include <stdlib.h>

#include "tokenizer/template_render.h"

/* Without white space around it and single underscores inside. */
static bool clean_number(slice s, char *text, size_t size)
{
    size_t n = 0;
    s = tr_strip(s, NULL, true, true);
    for (size_t i = 0; i < s.len; i++) {
        bool between = i > 0 && i + 1 < s.len && s.data[i - 1] != '_' && s.data[i + 1] != '_';
        if (s.data[i] == '_') {
            if (!between) {
                return false;
            }
        } else if (n + 1 == size || s.data[i] == '\0' || (unsigned char)s.data[i] >= 0x80) {
            return false;
        } else {
            text[n++] = s.data[i];
        }
    }
    text[n] = '\0';
    return n > 0;
}

smoe_status tr_parse_int(tr *r, slice s, int base, bool *ok, tv *out)
{
    char text[80], *p = text;
    int64_t value = 0;
    *ok = false;
    if (!clean_number(s, text, sizeof text)) {
        return SMOE_OK;
    }
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    char prefix = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
    if (prefix && p[0] == '0' && (p[1] | 0x20) == prefix) {
        p += 2;
    }
    *ok = *p != '\0';
    for (; *p && *ok; p++) {
        int digit = *p >= '0' && *p <= '9' ? *p - '0'
                    : (*p | 0x20) >= 'a'   ? (*p | 0x20) - 'a' + 10
                                           : 99;
        *ok = digit < base;
        if (*ok && (__builtin_mul_overflow(value, base, &value) ||
                    __builtin_sub_overflow(value, digit, &value))) {
            return tr_unsupported(r, "an integer does not fit 64 bits");
        }
    }
    *out = tv_int(value);
    return *ok && !negative ? tr_negate(r, *out, true, out) : SMOE_OK;
}

bool tr_parse_float(slice s, double *out)
{
    char text[400], *end = text;
    if (!clean_number(s, text, sizeof text)) {
        return false;
    }
    for (char *p = text; *p; p++) { /* no hexadecimal floats, no "nan(...)" */
        if (strchr("xXpP(", *p)) {
            return false;
        }
        *p = *p == '.' ? localeconv()->decimal_point[0] : *p;
    }
    *out = strtod(text, &end);
    return *end == '\0';
}

smoe_status tr_float_to_int(tr *r, double f, tv *out)
{
    if (f >= 0x1p63 || f < -0x1p63) {
        return tr_unsupported(r, "an integer does not fit 64 bits");
    }
    *out = tv_int((int64_t)f);
    return SMOE_OK;
}
