/* safetensors_write.h: writing one safetensors file front to back.
 *
 * Declare metadata and tensors, begin, append the data in the declared order, finish. The header's
 * size is fixed at begin; metadata that is known only afterwards (checksums) is declared with a
 * value of the same length and set before finish. Nothing stands under the final name before finish
 * returns OK. */
#ifndef FORMATS_SAFETENSORS_WRITE_H
#define FORMATS_SAFETENSORS_WRITE_H

#include "base/arena.h"
#include "base/file.h"
#include "formats/safetensors.h"

typedef struct safetensors_writer {
    file_writer out;
    arena arena;
    tensor_info *tensors; /* offset: from the start of the data */
    size_t n_tensors, cap_tensors;
    slice *meta; /* key, value, ... */
    size_t n_meta, cap_meta;
    uint64_t data_bytes;
    uint64_t header_bytes; /* of the whole prefix: length, JSON and padding */
    bool sealed;
} safetensors_writer;

void safetensors_writer_init(safetensors_writer *w);
/* Releases everything; removes an unfinished file. Safe after finish. */
void safetensors_writer_fini(safetensors_writer *w);

/* Sets or replaces. */
smoe_status safetensors_writer_meta(safetensors_writer *w, const char *key, slice value,
                                    smoe_err *err);
/* The next tensor: type_name is safetensors' ("U8"), name must be new. */
smoe_status safetensors_writer_add(safetensors_writer *w, slice name, const char *type_name,
                                   const uint64_t *shape, uint32_t n_dims, uint64_t n_bytes,
                                   smoe_err *err);
/* Creates the file; data will start at a multiple of align. */
smoe_status safetensors_writer_begin(safetensors_writer *w, const char *path, uint64_t align,
                                     smoe_err *err);
smoe_status safetensors_writer_append(safetensors_writer *w, const void *data, uint64_t n_bytes,
                                      smoe_err *err);
/* Writes the final header and flushes all to disk; what can still fail after it is the rename. Call
 * it on every file of a set before finishing the first one. */
smoe_status safetensors_writer_seal(safetensors_writer *w, smoe_err *err);
/* Seals if that was not done, and renames. */
smoe_status safetensors_writer_finish(safetensors_writer *w, smoe_err *err);

#endif
