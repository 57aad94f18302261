/* dmath.c: see dmath.h. Plain Taylor series on reduced arguments: nothing here is called often.
 * The build forbids contraction (-ffp-contract=off), so each operation rounds once, everywhere. */
#include "base/dmath.h"

#include <math.h>
#include <stdint.h>

/* ln 2 split so that k * LN2_HI is exact for |k| < 2^11. */
static const double LN2_HI = 0x1.62e42fefa38p-1, LN2_LO = 0x1.ef35793c7673p-45;
/* pi / 2 in three parts of 33 bits or less: n * part is exact for n < 2^20. */
static const double PIO2_1 = 0x1.921fb544p+0, PIO2_2 = 0x1.0b4611a6p-34,
                    PIO2_3 = 0x1.3198a2e037073p-69;

double dmath_log(double x)
{
    int k;
    double m = frexp(x, &k); /* exact; m in [1/2, 1) */
    if (m < 0.70710678118654752) {
        m *= 2;
        k--;
    }
    /* log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172 */
    double s = (m - 1) / (m + 1), z = s * s, sum = 0;
    for (int i = 23; i >= 1; i -= 2) {
        sum = sum * z + 1.0 / i;
    }
    return k * LN2_HI + (k * LN2_LO + 2 * s * sum);
}

double dmath_exp(double x)
{
    double k = floor(x * 1.4426950408889634 + 0.5);
    double r = (x - k * LN2_HI) - k * LN2_LO, sum = 1;
    for (int i = 18; i >= 1; i--) {
        sum = sum * r / i + 1;
    }
    return ldexp(sum, (int)k);
}

double dmath_pow(double base, double exponent)
{
    return dmath_exp(exponent * dmath_log(base));
}

void dmath_sincos(double x, double *sin_x, double *cos_x)
{
    double n = floor(x * 0.63661977236758134 + 0.5);
    double r = ((x - n * PIO2_1) - n * PIO2_2) - n * PIO2_3; /* |r| <= pi / 4 and a little */
    double z = r * r, s = 0, c = 0;
    for (int i = 20; i >= 2; i -= 2) {
        s = (s * z + 1) / -(double)(i * (i + 1));
        c = (c * z + 1) / -(double)((i - 1) * i);
    }
    s = r * (s * z + 1);
    c = c * z + 1;
    switch ((int64_t)n & 3) {
    case 0: *sin_x = s; *cos_x = c; break;
    case 1: *sin_x = c; *cos_x = -s; break;
    case 2: *sin_x = -s; *cos_x = -c; break;
    default: *sin_x = -c; *cos_x = s; break;
    }
}
