/* chat_messages.h: what a template sees of a conversation. */
#ifndef TOKENIZER_CHAT_MESSAGES_H
#define TOKENIZER_CHAT_MESSAGES_H

#include "base/buf.h"
#include "json/json_read.h"

/* Appends the messages (an array of objects, else SMOE_FORMAT with the place) as transformers 5
 * hands them to a template: without the keys whose value is null, and with a message's reasoning,
 * whether it is called reasoning_content, thinking or reasoning, as reasoning_content and as
 * thinking. */
smoe_status chat_messages_write(const json_value *messages, buf *out, smoe_err *err);

#endif
