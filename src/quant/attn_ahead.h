/* attn_ahead.h: how far ahead the kernels of attention ask for keys and values: one block of
 * attention (model/attention.h), which the same thread takes next. So memory works through the
 * whole of a block, not only while its keys are read. An address past the cache does nothing. */
#ifndef QUANT_ATTN_AHEAD_H
#define QUANT_ATTN_AHEAD_H

enum { ATTN_AHEAD = 256, ATTN_LINE = 64 }; /* positions; bytes of a request */

#endif
