/* vault_write.h: declaring a vault's or a scout's header (vault.h has the format), for everybody
 * who writes one. Tensors are declared before safetensors_writer_begin; values that are known only
 * at the end get room here and their text later, by safetensors_writer_meta again. */
#ifndef FORMATS_VAULT_WRITE_H
#define FORMATS_VAULT_WRITE_H

#include "formats/safetensors_write.h"
#include "formats/vault.h"
#include "json/json_write.h"

/* Version, kind ("vault" or "scout"), architecture, lineage (NULL: room for it), and room for
 * n_sums checksums. */
smoe_status vault_write_common(safetensors_writer *w, const char *kind, const char *arch,
                               const char *lineage, size_t n_sums, smoe_err *err);

/* smoe.record, and one tensor of record_bytes for every expert of every sparse layer. */
smoe_status vault_write_records(safetensors_writer *w, const model_config *cfg,
                                const matrix_layout *gate, const matrix_layout *up,
                                const matrix_layout *down, uint64_t record_bytes, smoe_err *err);

/* A dense tensor; a quantised one as the bytes of whole panels, with its entry in `types`, the open
 * object that becomes smoe.types. */
smoe_status scout_write_tensor(safetensors_writer *w, json_writer *types, const dense_tensor *t,
                               dtype type, smoe_err *err);

#endif
