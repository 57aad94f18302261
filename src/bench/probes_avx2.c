/* probes_avx2.c: the limits of AVX2: the byte multiply and the 16-bit addition that no kernel can
 * do without; built a second time with AVX-VNNI, which has both and more in one. */
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
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(a, w, x);
#else
    __asm__ volatile("" : "+x"(w)); /* every product anew */
    return _mm256_add_epi16(a, _mm256_maddubs_epi16(w, x));
#endif
}
static inline fvec fvec_zero(void) { return _mm256_setzero_ps(); }
static inline fvec fvec_fma(fvec a, fvec w, fvec x) { return _mm256_fmadd_ps(w, x, a); }

#define KEEP_IN(v) "+x"(v)
#if defined(__AVXVNNI__)
#define PROBES_ISA "avx2_vnni"
#define PROBES_TABLE probes_avx2_vnni
#else
#define PROBES_ISA "avx2"
#define PROBES_TABLE probes_avx2
#endif
#include "bench/probes_body.h"
