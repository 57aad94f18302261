/* panel_tables.h: what the panel files share. Only dispatch.c reads the tables: calling into
 * one that this CPU lacks is an illegal instruction. */
#ifndef QUANT_PANEL_TABLES_H
#define QUANT_PANEL_TABLES_H

#include "quant/panel.h"

extern const panel_kernels panel_kernels_scalar;
#if defined(__x86_64__)
extern const panel_kernels panel_kernels_avx2;
extern const panel_kernels panel_kernels_avx2_vnni;
extern const panel_kernels panel_kernels_avx512;
#elif defined(__aarch64__)
extern const panel_kernels panel_kernels_neon;
extern const panel_kernels panel_kernels_neon_dot;
#endif

/* Standard blocks first .. first + n - 1 of one row of a panel, for the scalar kernels. */
void panel_take_blocks(dtype type, const uint8_t *panel, int lane, int64_t first, int64_t n,
                       uint8_t *blocks);

#endif
