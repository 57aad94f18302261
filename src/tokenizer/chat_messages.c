/* chat_messages.c: see chat_messages.h. */
#include "tokenizer/chat_messages.h"

#include "json/json_write.h"

static const char reasoning_key[] = "reasoning_content", thinking_key[] = "thinking";

/* The message's reasoning under the first of its names that has a value, or NULL. */
static const json_value *reasoning_of(const json_value *message)
{
    const char *const names[] = {reasoning_key, thinking_key, "reasoning"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_value *v = jr_get(message, names[i]);
        if (!jr_is_null(v)) {
            return v;
        }
    }
    return NULL;
}

/* A template may list a message's keys, so their order counts: added names come first and last. */
static void put_message(json_writer *w, const json_value *message)
{
    const json_value *reasoning = reasoning_of(message);
    bool has_thinking = !jr_is_null(jr_get(message, thinking_key));
    bool has_reasoning = !jr_is_null(jr_get(message, reasoning_key));
    jw_begin_object(w);
    if (reasoning) {
        jw_key(w, thinking_key);
        jw_value(w, has_thinking ? jr_get(message, thinking_key) : reasoning);
    }
    for (void *it = jr_iter(message); it; it = jr_next(message, it)) {
        if (!jr_is_null(jr_iter_value(it)) && !slice_is(jr_iter_key(it), thinking_key)) {
            jw_key_slice(w, jr_iter_key(it));
            jw_value(w, jr_iter_value(it));
        }
    }
    if (reasoning && !has_reasoning) {
        jw_key(w, reasoning_key);
        jw_value(w, reasoning);
    }
    jw_end_object(w);
}

smoe_status chat_messages_write(const json_value *messages, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_array(&w);
    for (size_t i = 0; i < jr_len(messages); i++) {
        const json_value *message = jr_at(messages, i);
        if (jr_kind(message) != JSON_KIND_OBJECT) {
            return err_set(err, SMOE_FORMAT,
                           "message %zu must be a JSON object with a role and a content, found %s",
                           i, jr_kind_name(message));
        }
        put_message(&w, message);
    }
    jw_end_array(&w);
    return jw_finish(&w, err);
}
