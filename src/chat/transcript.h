/* transcript.h: the conversation so far, as the chat template wants it and as files keep it. */
#ifndef CHAT_TRANSCRIPT_H
#define CHAT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct message {
    const char *role; /* a literal: "system" "user" "assistant" */
    char *text;       /* owned; well-formed UTF-8 */
    size_t n_bytes;
    char *reasoning;  /* owned; what came before the answer, or NULL */
    bool cut;         /* the answer was stopped before its end */
} message;

typedef struct transcript {
    message *messages;
    size_t n_messages, cap;
} transcript;

void transcript_init(transcript *t);
void transcript_fini(transcript *t);
/* Malformed UTF-8 becomes U+FFFD. On failure nothing is added. */
smoe_status transcript_add(transcript *t, const char *role, slice text, smoe_err *err);
smoe_status transcript_add_answer(transcript *t, slice text, slice reasoning, bool cut,
                                  smoe_err *err);
/* The system message at the front: replaced, added, or (text empty) removed. */
smoe_status transcript_set_system(transcript *t, slice text, smoe_err *err);
bool transcript_has_system(const transcript *t);
void transcript_drop_last(transcript *t);
/* The oldest question and its answer; false when there is no later one. */
bool transcript_drop_first_turn(transcript *t);
void transcript_clear(transcript *t); /* keeps a system message at the front */
/* The last message if it is of that role, else NULL. */
const message *transcript_last(const transcript *t, const char *role);

/* Appends [{"role":...,"content":...},...], reasoning as reasoning_content. */
smoe_status transcript_json(const transcript *t, buf *out, smoe_err *err);
/* One message as one line of JSON; also says "cut":true. */
smoe_status transcript_line(const message *m, buf *out, smoe_err *err);
/* Adds the messages of such lines. Lines without a role are skipped, and so
 * is an unfinished last one. SMOE_FORMAT names the line. */
smoe_status transcript_read_lines(transcript *t, slice lines, const char *what, smoe_err *err);
/* For people: a heading per message. */
smoe_status transcript_markdown(const transcript *t, buf *out, smoe_err *err);

#endif
