/* transcript.h: the conversation so far, as the chat template wants it. */
#ifndef CHAT_TRANSCRIPT_H
#define CHAT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct message {
    const char *role; /* a literal: "system" "user" "assistant" */
    char *text;       /* owned; well-formed UTF-8 */
    size_t n_bytes;
    bool cut;         /* the answer was stopped before its end */
} message;

typedef struct transcript {
    message *messages;
    size_t n_messages, cap;
} transcript;

void transcript_init(transcript *t);
void transcript_fini(transcript *t);
/* Malformed UTF-8 in text becomes U+FFFD. On failure nothing is added. */
smoe_status transcript_add(transcript *t, const char *role, slice text, bool cut, smoe_err *err);
void transcript_drop_last(transcript *t);
void transcript_clear(transcript *t); /* keeps a system message at the front */
/* Appends [{"role":...,"content":...},...]. */
smoe_status transcript_json(const transcript *t, buf *out, smoe_err *err);

#endif
