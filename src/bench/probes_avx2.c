/* probes_avx2.c: the limits of AVX2: the byte multiply and the 16-bit addition that no kernel can
 * do without. */
#include <immintrin.h>

typedef __m256i vec;
typedef __m256 fvec;

static inline vec vec_zero(void) { return _mm256_setzero_si256(); }
static inline vec vec_xor_load(vec a, const void *p)
{
    return _mm256_xor_si256(a, _mm256_loadu_si256(p));
}
static inline vec vec_dot(vec a, vec w, vec x)
{
    __asm__ volatile("" : "+x"(w)); /* every product anew */
    return _mm256_add_epi16(a, _mm256_maddubs_epi16(w, x));
}
static inline fvec fvec_zero(void) { return _mm256_setzero_ps(); }
static inline fvec fvec_fma(fvec a, fvec w, fvec x) { return _mm256_fmadd_ps(w, x, a); }

#define KEEP_IN(v) "+x"(v)
#define PROBES_ISA "avx2"
#define PROBES_TABLE probes_avx2
#include "bench/probes_body.h"
