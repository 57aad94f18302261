/* panel_neon.c: the panel kernels, built for NEON, the baseline of ARMv8-A. */
#include "quant/panel_simd_neon.h"

#define PANEL_NAME "neon"
#define PANEL_TABLE panel_kernels_neon
#include "quant/panel_body.h"
