/* args.h: arguments that more than one program or command takes. */
#ifndef APP_ARGS_H
#define APP_ARGS_H

#include "base/err.h"
#include "smoe/engine.h"
#include "smoe/tokenizer.h"

/* "1,2,3" -> ids, appended; SMOE_USAGE names the flag. */
smoe_status args_parse_ids(const char *text, const char *flag, smoe_ids *ids, smoe_err *err);

/* "f16" or "f32"; NULL leaves *type as it is. */
smoe_status args_parse_kv_type(const char *text, smoe_kv_type *type, smoe_err *err);

#endif
