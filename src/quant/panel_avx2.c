/* panel_avx2.c: the panel kernels, built for AVX2 with FMA and F16C. */
#include "quant/panel_simd_avx2.h"

#define PANEL_NAME "avx2"
#define PANEL_TABLE panel_kernels_avx2
#include "quant/panel_body.h"
