/* transcript.c: see transcript.h. */
#include "chat/transcript.h"

#include <stdio.h>

#include "base/mem.h"
#include "chat/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { MESSAGE_MAX_BYTES = 64 << 20 };

static const char *const roles[] = {"system", "user", "assistant"};

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

static smoe_status reserve_one(transcript *t, smoe_err *err)
{
    if (t->n_messages < t->cap) {
        return SMOE_OK;
    }
    size_t cap = t->cap == 0 ? 16 : t->cap * 2;
    message *messages = mem_realloc(t->messages, cap * sizeof *messages);
    if (messages == NULL) {
        return err_nomem(err, "the conversation", cap * sizeof *messages);
    }
    t->messages = messages;
    t->cap = cap;
    return SMOE_OK;
}

/* Well-formed and NUL-terminated, owned by the caller. */
static smoe_status clean_copy(slice text, char **out, size_t *n_bytes, smoe_err *err)
{
    buf clean;
    buf_init(&clean, MESSAGE_MAX_BYTES);
    smoe_status status = text_scrub(text, &clean, err);
    *n_bytes = clean.len;
    *out = status == SMOE_OK ? buf_take(&clean) : NULL;
    buf_fini(&clean);
    return status != SMOE_OK ? status : *out == NULL ? err_nomem(err, "a message", 1) : SMOE_OK;
}

smoe_status transcript_add(transcript *t, const char *role, slice text, smoe_err *err)
{
    message m = {.role = role};
    TRY(reserve_one(t, err));
    TRY(clean_copy(text, &m.text, &m.n_bytes, err));
    t->messages[t->n_messages++] = m;
    return SMOE_OK;
}

smoe_status transcript_add_answer(transcript *t, slice text, slice reasoning, bool cut,
                                  smoe_err *err)
{
    char *thought = NULL;
    size_t n_bytes;
    if (reasoning.len > 0) {
        TRY(clean_copy(reasoning, &thought, &n_bytes, err));
    }
    smoe_status status = transcript_add(t, "assistant", text, err);
    if (status != SMOE_OK) {
        mem_free(thought);
        return status;
    }
    t->messages[t->n_messages - 1].reasoning = thought;
    t->messages[t->n_messages - 1].cut = cut;
    return SMOE_OK;
}

static void drop_at(transcript *t, size_t i)
{
    mem_free(t->messages[i].text);
    mem_free(t->messages[i].reasoning);
    t->n_messages--;
    memmove(&t->messages[i], &t->messages[i + 1], (t->n_messages - i) * sizeof *t->messages);
}

bool transcript_has_system(const transcript *t)
{
    return t->n_messages > 0 && strcmp(t->messages[0].role, "system") == 0;
}

smoe_status transcript_set_system(transcript *t, slice text, smoe_err *err)
{
    if (text.len > 0) {
        TRY(transcript_add(t, "system", text, err));
        message m = t->messages[t->n_messages - 1];
        memmove(&t->messages[1], &t->messages[0], (t->n_messages - 1) * sizeof m);
        t->messages[0] = m;
        if (t->n_messages > 1 && strcmp(t->messages[1].role, "system") == 0) {
            drop_at(t, 1);
        }
    } else if (transcript_has_system(t)) {
        drop_at(t, 0);
    }
    return SMOE_OK;
}

void transcript_drop_last(transcript *t)
{
    if (t->n_messages > 0) {
        drop_at(t, t->n_messages - 1);
    }
}

bool transcript_drop_first_turn(transcript *t)
{
    size_t first = transcript_has_system(t), next = first + 1;
    while (next < t->n_messages && strcmp(t->messages[next].role, "user") != 0) {
        next++;
    }
    if (next >= t->n_messages) {
        return false;
    }
    for (; next > first; next--) {
        drop_at(t, first);
    }
    return true;
}

void transcript_clear(transcript *t)
{
    size_t keep = transcript_has_system(t);
    while (t->n_messages > keep) {
        transcript_drop_last(t);
    }
}

const message *transcript_last(const transcript *t, const char *role)
{
    const message *m = t->n_messages > 0 ? &t->messages[t->n_messages - 1] : NULL;
    return m && strcmp(m->role, role) == 0 ? m : NULL;
}

static void put_message(json_writer *w, const message *m, bool for_file)
{
    jw_begin_object(w);
    jw_key(w, "role");
    jw_cstr(w, m->role);
    jw_key(w, "content");
    jw_string(w, slice_of(m->text, m->n_bytes));
    if (m->reasoning != NULL) {
        jw_key(w, "reasoning_content");
        jw_cstr(w, m->reasoning);
    }
    if (for_file && m->cut) {
        jw_key(w, "cut");
        jw_bool(w, true);
    }
    jw_end_object(w);
}

smoe_status transcript_json(const transcript *t, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_array(&w);
    for (size_t i = 0; i < t->n_messages; i++) {
        put_message(&w, &t->messages[i], false);
    }
    jw_end_array(&w);
    return jw_finish(&w, err);
}

smoe_status transcript_line(const message *m, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    put_message(&w, m, true);
    TRY(jw_finish(&w, err));
    return buf_putc(out, '\n', err);
}

static smoe_status read_message(transcript *t, const json_value *v, const char *what, size_t line,
                                smoe_err *err)
{
    slice role, text = {0}, reasoning = {0};
    bool cut = false;
    if (!jr_string(jr_get(v, "role"), &role)) {
        return SMOE_OK; /* a line about the conversation, not of it */
    }
    if (!jr_string(jr_get(v, "content"), &text)) {
        return err_set(err, SMOE_FORMAT, "%s, line %zu: a message needs a content that is a text",
                       what, line);
    }
    jr_string(jr_get(v, "reasoning_content"), &reasoning);
    jr_bool(jr_get(v, "cut"), &cut);
    if (slice_is(role, "assistant")) {
        return transcript_add_answer(t, text, reasoning, cut, err);
    }
    for (size_t i = 0; i < 2; i++) {
        if (slice_is(role, roles[i])) {
            return transcript_add(t, roles[i], text, err);
        }
    }
    return err_set(err, SMOE_FORMAT,
                   "%s, line %zu: the role \"%.*s\" is none of system, user and assistant", what,
                   line, SLICE_ARG(role));
}

smoe_status transcript_read_lines(transcript *t, slice lines, const char *what, smoe_err *err)
{
    for (size_t line = 1; lines.len > 0; line++) {
        const char *end = memchr(lines.data, '\n', lines.len);
        slice one = {lines.data, end ? (size_t)(end - lines.data) : lines.len};
        json_value *v = NULL;
        if (one.len > 0) {
            char name[512];
            snprintf(name, sizeof name, "%s, line %zu", what, line);
            smoe_err unread = {0};
            if (jr_parse(one, name, &v, &unread) != SMOE_OK) {
                if (end == NULL && line > 1) {
                    break; /* its writer was killed */
                }
                return err_set(err, unread.code, "%s", unread.text);
            }
            smoe_status status = read_message(t, v, what, line, err);
            jr_free(v);
            TRY(status);
        }
        lines.data += one.len + (end != NULL);
        lines.len -= one.len + (end != NULL);
    }
    return SMOE_OK;
}

smoe_status transcript_markdown(const transcript *t, buf *out, smoe_err *err)
{
    for (size_t i = 0; i < t->n_messages; i++) {
        const message *m = &t->messages[i];
        TRY(buf_printf(out, err, "%s## %s%s\n\n", i > 0 ? "\n" : "", m->role,
                       m->cut ? " (cut short)" : ""));
        TRY(buf_append(out, m->text, m->n_bytes, err));
        TRY(buf_putc(out, '\n', err));
    }
    return SMOE_OK;
}
