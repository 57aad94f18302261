/* instrument.h: what a request cost and where its experts came from, as one line on stderr. */
#ifndef APP_INSTRUMENT_H
#define APP_INSTRUMENT_H

#include <stdbool.h>

#include "base/err.h"
#include "smoe/engine.h"

typedef struct instrument {
    bool is_on, is_json;
    uint64_t record_bytes;
} instrument;

/* The value of --instrument: NULL = off, "" = for people, "json". SMOE_USAGE for any other. */
smoe_status instrument_parse(const char *text, instrument *out, smoe_err *err);
void instrument_line(const instrument *in, const smoe_result *r);

#endif
