/* vault.h: the file of routed experts (<stem>.smoe) and the scout (<stem>.scout.safetensors).
 *
 * A vault is a safetensors file: header padded with spaces so that data starts on a 16 KiB
 * boundary, and one U8 tensor "blk.<layer>.exp.<expert>" per record, each a multiple of 16 KiB.
 * Records follow each other by layer, then expert. A record holds gate, up and down of one expert:
 *
 *   gate  [n_ff_exp, n_embd]   at gate.offset
 *   up    [n_ff_exp, n_embd]   at up.offset
 *   down  [n_embd, n_ff_exp]   at down.offset
 *   zero padding to a multiple of 16 KiB
 *
 * Offsets within a record are multiples of 64 bytes.
 *
 * A matrix [rows, cols] of a plain type (f32, f16, bf16) lies row by row. One of a quantised type
 * is ceil(rows / 16) panels: 16 rows each, their blocks interleaved as quant/panel.h says; the rows
 * missing in the last panel are zero bytes. So it has ceil(rows / 16) * 16 * row bytes, in a record
 * as in the scout, where its U8 tensor has the shape [ceil(rows / 16) * 16, row bytes]. "shape" in
 * the metadata is always that of the matrix itself. `smoe inspect --export` gives standard rows.
 *
 * Metadata (strings):
 *   smoe.format_version  "2"; version 1 had no panels and is refused
 *   smoe.kind            "vault" | "scout"
 *   smoe.architecture    "qwen3_moe"
 *   smoe.lineage         32 hex digits, shared by vault and scout
 *   smoe.record          JSON {"gate":{"type":"q4_K","shape":[r,c],"offset":0},"up":...,"down":...}
 *   smoe.checksums       16 hex digits (XXH3-64) per record, concatenated in record order
 * and in the scout instead of the last two:
 *   smoe.types           JSON {"<tensor>":{"type":"q8_0","shape":[r,c]}} for block-typed tensors
 *   smoe.checksums       16 hex digits (checksum.h) per tensor, concatenated in order of offset
 *   smoe.eos_ids, smoe.penalty_exempt_ids   JSON arrays
 * Scout U8 tensors "file/config.json", "file/tokenizer.json", "file/tokenizer_config.json",
 * "file/generation_config.json", ("file/chat_template.jinja") hold those files byte for byte;
 * "file/tokenizer.compiled", which may be missing, is made from tokenizer.json; its layout is in
 * tokenizer/compiled.h. */
#ifndef FORMATS_VAULT_H
#define FORMATS_VAULT_H

#include "formats/model_config.h"
#include "formats/safetensors.h"

#define SCOUT_COMPILED_TOKENIZER "tokenizer.compiled"

enum { VAULT_ALIGN = 16384, VAULT_FORMAT_VERSION = 2, VAULT_MATRIX_ALIGN = 64 };

typedef struct matrix_layout {
    dtype type;
    uint64_t rows, cols;
    uint64_t offset; /* bytes from the start of the record */
} matrix_layout;

typedef struct vault {
    safetensors st;
    char lineage[33];
    matrix_layout gate, up, down;
    uint64_t record_bytes;       /* every record of a vault has this size */
    uint32_t n_layer, n_expert;  /* n_layer counts all layers; dense ones have no records */
    size_t n_records;
    uint64_t *record_offset;     /* [n_layer * n_expert], absolute; 0 = none */
    uint64_t *record_checksum;   /* [n_layer * n_expert] */
} vault;

typedef struct scout_tensor {
    dtype type;
    uint32_t n_dims;
    uint64_t rows, cols;
    uint64_t offset, n_bytes;
} scout_tensor;

typedef struct scout {
    safetensors st;
    char lineage[33];
    model_config config;
    struct json_t *types;        /* parsed smoe.types; owned */
    int32_t *eos_ids;
    size_t n_eos_ids;
    int32_t *penalty_exempt_ids;
    size_t n_penalty_exempt_ids;
    slice checksums;             /* 16 hex digits per tensor of st, in its order */
} scout;

smoe_status vault_open(vault *v, const char *path, smoe_err *err);
void vault_close(vault *v);
smoe_status scout_open(scout *s, const char *path, smoe_err *err);
void scout_close(scout *s);
/* Same lineage, every record of every sparse layer there, record shapes as in the config. */
smoe_status vault_check_pair(const vault *v, const scout *s, smoe_err *err);
/* The tensor's type, shape and place; SMOE_FORMAT when it is absent. scout_open has checked that
 * every dense tensor of s->config is there, with its shape. */
smoe_status scout_find(const scout *s, slice name, scout_tensor *out, smoe_err *err);
/* Reads a whole tensor (n_bytes of scout_find) into data and checks its checksum. */
smoe_status scout_read_tensor(const scout *s, slice name, void *data, smoe_err *err);
/* Reads st.tensors[i] in pieces and checks its checksum; for smoe inspect --verify. */
smoe_status scout_check_tensor(const scout *s, size_t i, smoe_err *err);
/* Bytes of an embedded file ("tokenizer.json"), appended to out; SMOE_FORMAT when absent. */
smoe_status scout_read_file(const scout *s, const char *name, buf *out, smoe_err *err);
bool scout_has_file(const scout *s, const char *name);
/* The checksum of an embedded file as the scout lists it, 0 when it has none. */
uint64_t scout_file_checksum(const scout *s, const char *name);
/* Reads one record (record_bytes into data) and checks its checksum. */
smoe_status vault_read_record(const vault *v, uint32_t layer, uint32_t expert, void *data,
                              smoe_err *err);
smoe_status vault_check_record(const vault *v, uint32_t layer, uint32_t expert, const void *data,
                               smoe_err *err);
/* "blk.LAYER.exp.EXPERT.gate", ".up" or ".down" -> where it is; false when it has not that form.
 * The record need not be there. */
bool vault_parse_matrix_name(const vault *v, slice name, uint32_t *layer, uint32_t *expert,
                             const matrix_layout **layout);

/* MODEL as people type it -> the two paths (owned by the caller, mem_free). Accepted: a stem
 * ("dir/name"), either file, or a directory that holds exactly one pair. */
smoe_status model_find(const char *model, char **vault_path, char **scout_path, smoe_err *err);

#endif
