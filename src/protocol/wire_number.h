/* wire_number.h: the protocol's numbers: decimal, no sign on whole ones, no blanks, no hex, no nan,
 * no inf; what strtoul and strtod would let through beyond that is refused. */
#ifndef PROTOCOL_WIRE_NUMBER_H
#define PROTOCOL_WIRE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* One or more digits, value at most max. */
bool wire_uint(slice s, uint64_t max, uint64_t *out);
/* One or more digits; a larger value becomes cap. */
bool wire_uint_capped(slice s, uint32_t cap, uint64_t *out);
/* [+-]digits[.digits][e[+-]digits] that is finite (as a float, as a double). */
bool wire_float(slice s, float *out);
bool wire_double(slice s, double *out);

#endif
