/* kernels_avx2.c: the vector kernels, built for AVX2 with FMA and F16C. */
#include "quant/simd_avx2.h"

/* of attention: sums that fit the registers */
#define TILE_ROWS 4
#define TILE_STRIPES 1
#define KERNELS_NAME "avx2"
#define KERNELS_TABLE kernels_avx2
#include "quant/kernels_body.h"
