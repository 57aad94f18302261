/* dmath.h: exp, log, sin and cos in double precision from IEEE basic operations alone.
 *
 * libm's last bit differs between systems, and a rotary angle or a scaling factor that differs by
 * one bit changes every logit behind it. These cost a little accuracy (relative error below 1e-14
 * in the stated ranges) and buy the same bits everywhere. For tables, not for inner loops. */
#ifndef BASE_DMATH_H
#define BASE_DMATH_H

double dmath_log(double x);                              /* x > 0, normal */
double dmath_exp(double x);                              /* |x| < 700 */
double dmath_pow(double base, double exponent);          /* base > 0 */
void dmath_sincos(double x, double *sin_x, double *cos_x); /* |x| < 2^30 */

#endif
