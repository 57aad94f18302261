/* args.h: arguments that more than one program or command takes. */
#ifndef APP_ARGS_H
#define APP_ARGS_H

#include "base/err.h"
#include "formats/dtype.h"
#include "smoe/engine.h"
#include "smoe/tokenizer.h"

/* "1,2,3" -> ids, appended; SMOE_USAGE names the flag. */
smoe_status args_parse_ids(const char *text, const char *flag, smoe_ids *ids, smoe_err *err);

/* A type of weights, "q4_K"; NULL leaves *type as it is. SMOE_USAGE names flag and types. */
#define ARGS_WEIGHT_TYPES "f32 f16 bf16 q8_0 q6_K q5_K q4_K q4_0 q3_K q2_K"
smoe_status args_parse_weight_type(const char *text, const char *flag, dtype *type, smoe_err *err);

/* "f16" or "f32"; NULL leaves *type as it is. */
smoe_status args_parse_kv_type(const char *text, smoe_kv_type *type, smoe_err *err);

#endif
