/* read_tokenizer.h: the tokenizer out of a scout; for both programs. */
#ifndef APP_READ_TOKENIZER_H
#define APP_READ_TOKENIZER_H

#include "formats/vault.h"
#include "smoe/tokenizer.h"

/* The compiled form if it is there and fits, else tokenizer.json. The caller owns *out. */
smoe_status app_read_tokenizer(const scout *s, smoe_tokenizer **out, smoe_err *err);

#endif
