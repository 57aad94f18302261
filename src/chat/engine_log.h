/* engine_log.h: what the engine says on its stderr, kept aside and shown only when it matters. It
 * lies in a nameless temporary file: a pipe would have to be drained or would stop the engine. */
#ifndef CHAT_ENGINE_LOG_H
#define CHAT_ENGINE_LOG_H

#include <stdint.h>

#include "base/slice.h"

enum { ENGINE_LOG_TAIL_BYTES = 4096 };

typedef struct engine_log {
    int fd; /* for the child's stderr; -1 = there is none, the child inherits ours */
    uint64_t mark;
    char tail[ENGINE_LOG_TAIL_BYTES];
} engine_log;

void engine_log_open(engine_log *l);
void engine_log_close(engine_log *l);
/* From here on counts for the next tail; also keeps the file small. */
void engine_log_mark(engine_log *l);
/* The last whole lines since the mark, at most ENGINE_LOG_TAIL_BYTES; borrowed until the next call.
 */
slice engine_log_tail(engine_log *l);

#endif
