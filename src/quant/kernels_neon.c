/* kernels_neon.c: the vector kernels, built for NEON, the baseline of ARMv8-A. */
#include "quant/simd_neon.h"

#define TILE_HEADS 4 /* of attention: accumulators that fit the registers */
#define KERNELS_NAME "neon"
#define KERNELS_TABLE kernels_neon
#include "quant/kernels_body.h"
