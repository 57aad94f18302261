/* safetensors.h: reading one safetensors file: header, metadata, tensor table. Tensor data stays on
 * disk; callers read it by absolute offset.
 *
 * File: u64 little-endian header length n; n bytes of JSON; then data. Every tensor's data_offsets
 * are relative to 8 + n. Refused: header longer than the file (or than 256 MiB), overlapping or
 * out-of-range offsets, a size that does not match shape x dtype, duplicate names. */
#ifndef FORMATS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_H

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "formats/dtype.h"

enum { TENSOR_MAX_DIMS = 8 };

/* For "%.*s": a name out of a file, cut so that a long one leaves room for the facts. */
#define NAME_ARG(s) (int)((s).len < 120 ? (s).len : 120), (s).data

typedef struct tensor_info {
    slice name;
    dtype type;            /* F32 F16 BF16 U8 I8; DTYPE_OTHER for the rest, refused only on use */
    slice type_name;       /* the file's own spelling */
    uint32_t n_dims;
    uint64_t shape[TENSOR_MAX_DIMS];
    uint64_t offset;       /* absolute in the file */
    uint64_t n_bytes;
} tensor_info;

typedef struct safetensors {
    file file;
    arena arena;
    tensor_info *tensors;  /* in order of offset */
    size_t n_tensors;
    slice *meta;           /* key, value, key, value, ... */
    size_t n_meta;
    map by_name;           /* -> index into tensors */
    uint64_t data_offset;
} safetensors;

smoe_status safetensors_open(safetensors *st, const char *path, smoe_err *err);
void safetensors_close(safetensors *st);
const tensor_info *safetensors_find(const safetensors *st, slice name);      /* NULL when absent */
bool safetensors_meta(const safetensors *st, const char *key, slice *value); /* false when absent */

#endif
