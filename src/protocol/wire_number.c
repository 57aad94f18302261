/* wire_number.c: see wire_number.h. The grammar is checked here, so the C library only converts. */
#include "protocol/wire_number.h"

#include <math.h>
#include <stdlib.h>

bool wire_uint_capped(slice s, uint32_t cap, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(s.data[i] - '0');
        value = value < cap ? value : cap;
    }
    *out = value;
    return s.len > 0;
}

bool wire_uint(slice s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    if (s.len == 0) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return false;
        }
        unsigned digit = (unsigned)(s.data[i] - '0');
        if (digit > max || value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static size_t count_digits(slice s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && s.data[at + n] >= '0' && s.data[at + n] <= '9') {
        n++;
    }
    return n;
}

static bool is_decimal(slice s)
{
    size_t i = s.len > 0 && (s.data[0] == '-' || s.data[0] == '+');
    size_t n_digits = count_digits(s, i);
    i += n_digits;
    if (i < s.len && s.data[i] == '.') {
        size_t n_fraction = count_digits(s, i + 1);
        n_digits += n_fraction;
        i += 1 + n_fraction;
    }
    if (n_digits == 0) {
        return false;
    }
    if (i < s.len && (s.data[i] == 'e' || s.data[i] == 'E')) {
        i++;
        i += i < s.len && (s.data[i] == '-' || s.data[i] == '+');
        size_t n_exponent = count_digits(s, i);
        if (n_exponent == 0) {
            return false;
        }
        i += n_exponent;
    }
    return i == s.len;
}

bool wire_double(slice s, double *out)
{
    char text[64];
    if (s.len >= sizeof text || !is_decimal(s)) {
        return false;
    }
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    double value = strtod(text, NULL);
    if (!isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

bool wire_float(slice s, float *out)
{
    double value;
    if (!wire_double(s, &value) || !isfinite((float)value)) {
        return false;
    }
    *out = (float)value;
    return true;
}
