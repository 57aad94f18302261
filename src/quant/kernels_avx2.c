/* kernels_avx2.c: the vector kernels, built for AVX2 with FMA and F16C. */
#include "quant/simd_avx2.h"

#define TILE_HEADS 4 /* of attention: accumulators that fit the registers */
#define KERNELS_NAME "avx2"
#define KERNELS_TABLE kernels_avx2
#include "quant/kernels_body.h"
