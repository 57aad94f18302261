/* panel_avx512.c: the panel kernels, built for AVX-512 (F, BW, DQ, VL, VNNI). */
#include "quant/panel_simd_avx512.h"

#define PANEL_NAME "avx512"
#define PANEL_TABLE panel_kernels_avx512
#include "quant/panel_body.h"
