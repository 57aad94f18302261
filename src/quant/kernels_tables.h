/* kernels_tables.h: the tables that dispatch.c chooses from. Only that file reads them: calling
 * into one that this CPU lacks is an illegal instruction. */
#ifndef QUANT_KERNELS_TABLES_H
#define QUANT_KERNELS_TABLES_H

#include "quant/kernels.h"

extern const kernels kernels_scalar;
#if defined(__x86_64__)
extern const kernels kernels_avx2;
extern const kernels kernels_avx512;
#elif defined(__aarch64__)
extern const kernels kernels_neon;
#endif

#endif
