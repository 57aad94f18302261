/* kernels_neon.c: the vector kernels, built for NEON, the baseline of ARMv8-A. */
#include "quant/simd_neon.h"

#define KERNELS_NAME "neon"
#define KERNELS_TABLE kernels_neon
#include "quant/kernels_body.h"
