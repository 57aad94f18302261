/* quant.h: ggml's block types, bit for bit: quantise a row, dequantise a row. These are the scalar
 * references; kernels.h has the fast forms and must equal them. */
#ifndef QUANT_QUANT_H
#define QUANT_QUANT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/dtype.h"

/* n is a multiple of the type's block; blocks may start at any address. F16 and BF16 round to
 * nearest even. A block with a weight that is not finite decodes to NaN throughout. Ask
 * quant_supported first: of another type nothing is written by the first and NaN by the second. */
void quantize_row_ref(dtype type, const float *x, void *y, int64_t n);
void dequantize_row_ref(dtype type, const void *x, float *y, int64_t n);
bool quant_supported(dtype type); /* both directions exist */

float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float f);
float bf16_to_f32(uint16_t h);
uint16_t bf16_from_f32(float f);

#endif
