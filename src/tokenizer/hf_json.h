/* hf_json.h: what the readers of tokenizer.json share. Whatever the file asks for and is not known
 * is refused by name: a tokenizer that is nearly right gives wrong answers without a word. */
#ifndef TOKENIZER_HF_JSON_H
#define TOKENIZER_HF_JSON_H

#include "json/json_read.h"
#include "tokenizer/tokenizer_parts.h"

enum { HF_MAX_NESTED_SEQUENCES = 8 };

/* At most 48 bytes of a text, whole characters, for messages. */
slice hf_clip(slice s);
/* "tokenizer.json: <where> is <value>; supported: <supported>". */
smoe_status hf_refuse(smoe_err *err, const char *where, const json_value *v, const char *supported);
/* Every key of the object must be among the known ones (a NULL-terminated list). */
smoe_status hf_only_keys(const json_value *object, const char *where, const char *const *known,
                         smoe_err *err);
bool hf_type_is(const json_value *object, const char *type);
/* A boolean; when the key is absent it keeps the value it has. */
smoe_status hf_read_flag(const json_value *object, const char *where, const char *key, bool *out,
                         smoe_err *err);
/* null, absent or "". */
bool hf_is_nothing(const json_value *v);

/* The file's "normalizer". */
smoe_status hf_read_normalizer(normalizer *n, const json_value *v, smoe_err *err);
/* The file's "pre_tokenizer". *is_byte_level: it ends in ByteLevel, so that words are bytes. */
smoe_status hf_read_pre_tokenizer(pretokenizer *p, const json_value *v, bool *is_byte_level,
                                  smoe_err *err);
/* A Metaspace of either; the caller frees out->pattern, which is NULL where it does not cut. */
smoe_status hf_read_metaspace(const json_value *v, const char *where, pretokenize_stage *out,
                              smoe_err *err);
/* The file's "decoder": after all tokens are there, sets what they decode to. */
smoe_status hf_read_decoder(smoe_tokenizer *tok, const json_value *v, smoe_err *err);

#endif
