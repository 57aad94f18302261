/* kernels_avx512.c: the vector kernels, built for AVX-512 (F, BW, DQ, VL) with FMA and F16C. */
#include "quant/simd_avx512.h"

/* of attention: sums that fit the registers */
#define TILE_ROWS 8
#define TILE_STRIPES 2
#define KERNELS_NAME "avx512"
#define KERNELS_TABLE kernels_avx512
#include "quant/kernels_body.h"
