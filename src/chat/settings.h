/* settings.h: what a person changes about the sampling while the conversation runs. */
#ifndef CHAT_SETTINGS_H
#define CHAT_SETTINGS_H

#include <stdint.h>

#include "base/buf.h"

enum { N_SETTINGS = 9, SETTING_TEXT = 32 };

typedef struct settings {
    char values[N_SETTINGS][SETTING_TEXT]; /* as given; "" = the engine's own */
    uint32_t max_tokens;                   /* 0 = as started */
} settings;

/* "temperature 0.2", "seed default". SMOE_USAGE says what is possible. */
smoe_status settings_set(settings *s, slice name_and_value, smoe_err *err);
/* One line per setting. */
smoe_status settings_list(const settings *s, buf *out, smoe_err *err);
/* The overrides of a request: "t=0.2 k=40", or "". */
void settings_overrides(const settings *s, char *out, size_t size);

#endif
