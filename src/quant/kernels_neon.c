/* kernels_neon.c: the vector kernels, built for NEON, the baseline of ARMv8-A. */
#include "quant/simd_neon.h"

/* of attention: sums that fit the registers */
#define TILE_ROWS 4
#define TILE_STRIPES 1
#define KERNELS_NAME "neon"
#define KERNELS_TABLE kernels_neon
#include "quant/kernels_body.h"
