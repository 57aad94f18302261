/* panel_avx2_vnni.c: the panel kernels, built for AVX2 with the 256-bit form of VNNI (AVX-VNNI),
 * which processors without AVX-512 have. */
#include "quant/panel_simd_avx2.h"

#define PANEL_NAME "avx2_vnni"
#define PANEL_TABLE panel_kernels_avx2_vnni
#include "quant/panel_body.h"
