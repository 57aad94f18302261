/* probes_avx512.c: the limits of AVX-512 with VNNI. */
#include <immintrin.h>

typedef __m512i vec;
typedef __m512 fvec;

static inline vec vec_zero(void) { return _mm512_setzero_si512(); }
static inline vec vec_xor_load(vec a, const void *p)
{
    return _mm512_xor_si512(a, _mm512_loadu_si512(p));
}
static inline vec vec_dot(vec a, vec w, vec x) { return _mm512_dpbusd_epi32(a, w, x); }
static inline fvec fvec_zero(void) { return _mm512_setzero_ps(); }
static inline fvec fvec_fma(fvec a, fvec w, fvec x) { return _mm512_fmadd_ps(w, x, a); }

#define KEEP_IN(v) "+v"(v)
#define PROBES_ISA "avx512"
#define PROBES_TABLE probes_avx512
#include "bench/probes_body.h"
