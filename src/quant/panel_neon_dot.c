/* panel_neon_dot.c: the panel kernels, built for NEON with the dot-product instructions. */
#include "quant/panel_simd_neon.h"

#define PANEL_NAME "neon_dot"
#define PANEL_TABLE panel_kernels_neon_dot
#include "quant/panel_body.h"
