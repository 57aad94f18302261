/* transcript.c: see transcript.h. */
#include "chat/transcript.h"

#include "base/mem.h"
#include "chat/text.h"
#include "json/json_write.h"

enum { MESSAGE_MAX_BYTES = 64 << 20 };

void transcript_init(transcript *t)
{
    *t = (transcript){0};
}

void transcript_fini(transcript *t)
{
    while (t->n_messages > 0) {
        transcript_drop_last(t);
    }
    mem_free(t->messages);
    *t = (transcript){0};
}

smoe_status transcript_add(transcript *t, const char *role, slice text, bool cut, smoe_err *err)
{
    if (t->n_messages == t->cap) {
        size_t cap = t->cap == 0 ? 16 : t->cap * 2;
        message *messages = mem_realloc(t->messages, cap * sizeof *messages);
        if (messages == NULL) {
            return err_nomem(err, "the conversation", cap * sizeof *messages);
        }
        t->messages = messages;
        t->cap = cap;
    }
    buf clean;
    buf_init(&clean, MESSAGE_MAX_BYTES);
    smoe_status status = text_scrub(text, &clean, err);
    size_t n_bytes = clean.len;
    char *owned = status == SMOE_OK ? buf_take(&clean) : NULL;
    buf_fini(&clean);
    if (owned == NULL) {
        return status != SMOE_OK ? status : err_nomem(err, "a message", 1);
    }
    t->messages[t->n_messages++] = (message){role, owned, n_bytes, cut};
    return SMOE_OK;
}

void transcript_drop_last(transcript *t)
{
    if (t->n_messages > 0) {
        mem_free(t->messages[--t->n_messages].text);
    }
}

void transcript_clear(transcript *t)
{
    size_t keep = t->n_messages > 0 && strcmp(t->messages[0].role, "system") == 0;
    while (t->n_messages > keep) {
        transcript_drop_last(t);
    }
}

smoe_status transcript_json(const transcript *t, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_array(&w);
    for (size_t i = 0; i < t->n_messages; i++) {
        const message *m = &t->messages[i];
        jw_begin_object(&w);
        jw_key(&w, "role");
        jw_cstr(&w, m->role);
        jw_key(&w, "content");
        jw_string(&w, slice_of(m->text, m->n_bytes));
        jw_end_object(&w);
    }
    jw_end_array(&w);
    return jw_finish(&w, err);
}
