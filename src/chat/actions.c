/* actions.c: what the commands do. */
#include <stdio.h>

#include "base/file.h"
#include "chat/console.h"

enum { EXPORT_MAX_BYTES = 512 << 20, COMPACT_PART = 2 };

static void say(console *c, const smoe_err *err)
{
    render_notice(&c->render, "[%s]", err->text);
}

static void show_history(console *c)
{
    if (c->transcript.n_messages == 0) {
        render_notice(&c->render, "[nothing has been said yet]");
    }
    for (size_t i = 0; i < c->transcript.n_messages; i++) {
        const message *m = &c->transcript.messages[i];
        render_notice(&c->render, "%s%s:", m->role, m->cut ? " (cut short)" : "");
        if (m->reasoning && c->show_reasoning) {
            render_quote(&c->render, slice_from(m->reasoning));
        }
        render_quote(&c->render, slice_of(m->text, m->n_bytes));
    }
}

static void set_system(console *c, slice text)
{
    smoe_err err = {0};
    if (text.len == 0) {
        bool has = transcript_has_system(&c->transcript);
        render_notice(&c->render, has ? "system message:" : "[there is no system message]");
        render_quote(&c->render, has ? slice_of(c->transcript.messages[0].text,
                                                c->transcript.messages[0].n_bytes)
                                     : (slice){0});
        return;
    }
    if (slice_is(text, "-")) {
        text.len = 0; /* none */
    }
    if (transcript_set_system(&c->transcript, text, &err) != SMOE_OK) {
        say(c, &err);
        return;
    }
    console_save(c, true);
    render_notice(&c->render, text.len ? "[the system message is set]"
                                       : "[there is no system message now]");
}

static void attach(console *c, slice argument)
{
    smoe_err err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%.*s", SLICE_ARG(argument));
    if (console_attach(c, path, &err) != SMOE_OK) {
        say(c, &err);
        return;
    }
    render_notice(&c->render, "[%s goes with the next message]", path);
}

/* The last answer goes, its question stays. False: there is no question. */
static bool drop_answer(console *c)
{
    if (transcript_last(&c->transcript, "assistant")) {
        transcript_drop_last(&c->transcript);
    }
    if (transcript_last(&c->transcript, "user")) {
        return true;
    }
    render_notice(&c->render, "[there is no question yet]");
    return false;
}

static enum next retry(console *c)
{
    if (!drop_answer(c)) {
        return NEXT_LINE;
    }
    console_save(c, true);
    return turn_again(c) ? NEXT_LINE : NEXT_INTERRUPTED;
}

static void edit(console *c)
{
    if (!line_edit_can_offer(c->input)) {
        render_notice(&c->render, "[/edit needs a terminal that can edit lines]");
        return;
    }
    if (!drop_answer(c)) {
        return;
    }
    const message *m = transcript_last(&c->transcript, "user");
    buf_clear(&c->offered);
    buf_append(&c->offered, m->text, m->n_bytes, NULL);
    transcript_drop_last(&c->transcript);
    console_save(c, true);
}

static void undo(console *c)
{
    if (drop_answer(c)) {
        transcript_drop_last(&c->transcript);
        console_save(c, true);
        render_notice(&c->render, "[the last question and its answer are forgotten]");
    }
}

static void set(console *c, slice argument)
{
    smoe_err err = {0};
    buf text;
    buf_init(&text, 4096);
    if (argument.len > 0 && settings_set(&c->settings, argument, &err) != SMOE_OK) {
        say(c, &err);
    } else if (settings_list(&c->settings, &text, &err) == SMOE_OK) {
        render_quote(&c->render, buf_slice(&text));
    }
    buf_fini(&text);
}

static void stats(console *c)
{
    const session_figures *f = &c->figures;
    render_notice(&c->render, "[%llu answer%s, %llu tokens generated, %.1f tok/s]",
                  (unsigned long long)f->n_answers, f->n_answers == 1 ? "" : "s",
                  (unsigned long long)f->n_generated,
                  f->decode_s > 0 ? (double)f->n_generated / f->decode_s : 0.0);
    render_notice(&c->render, "[%llu prompt tokens, %llu of them still known, the others at %.0f "
                  "tok/s]", (unsigned long long)f->n_prompt, (unsigned long long)f->n_cached,
                  f->prefill_s > 0 ? (double)(f->n_prompt - f->n_cached) / f->prefill_s : 0.0);
}

static void count_tokens(console *c, slice text)
{
    smoe_err err = {0};
    smoe_status status;
    if (text.len > 0) {
        c->ids.len = 0;
        status = smoe_tokenizer_encode(smoe_chat_format_tokenizer(c->options->format), text.data,
                                       text.len, &c->ids, &err);
    } else {
        status = turn_encode(c, &err);
    }
    if (status != SMOE_OK) {
        say(c, &err);
        return;
    }
    if (text.len > 0) {
        render_notice(&c->render, "[%zu token%s]", c->ids.len, c->ids.len == 1 ? "" : "s");
    } else {
        render_notice(&c->render, "[%zu of %u tokens of context]", c->ids.len, c->options->n_ctx);
    }
}

static void compact(console *c)
{
    smoe_err err = {0};
    size_t n_dropped = 0;
    smoe_status status = turn_encode(c, &err);
    while (status == SMOE_OK && c->ids.len > c->options->n_ctx / COMPACT_PART &&
           transcript_drop_first_turn(&c->transcript)) {
        n_dropped++;
        status = turn_encode(c, &err);
    }
    if (status != SMOE_OK) {
        say(c, &err);
    }
    if (n_dropped > 0) {
        console_save(c, true);
    }
    render_notice(&c->render, "[%zu turn%s dropped, %zu of %u tokens are in use]", n_dropped,
                  n_dropped == 1 ? "" : "s", c->ids.len, c->options->n_ctx);
}

static smoe_status write_conversation(const console *c, const char *path, bool to_read,
                                      smoe_err *err)
{
    smoe_status status = SMOE_OK;
    buf text;
    buf_init(&text, EXPORT_MAX_BYTES);
    if (to_read) {
        CHECK(transcript_markdown(&c->transcript, &text, err));
    }
    for (size_t i = 0; !to_read && i < c->transcript.n_messages; i++) {
        CHECK(transcript_line(&c->transcript.messages[i], &text, err));
    }
    CHECK(saved_export(path, buf_slice(&text), err));
out:
    buf_fini(&text);
    return status;
}

static void export_to(console *c, slice argument, bool to_read)
{
    smoe_err err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%.*s", SLICE_ARG(argument));
    if (write_conversation(c, path, to_read, &err) != SMOE_OK) {
        say(c, &err);
        return;
    }
    render_notice(&c->render, "[%zu messages written to %s]", c->transcript.n_messages, path);
}

static smoe_status read_conversation(console *c, const char *path, smoe_err *err)
{
    smoe_status status;
    transcript loaded;
    buf text;
    transcript_init(&loaded);
    buf_init(&text, EXPORT_MAX_BYTES);
    CHECK(file_slurp(path, EXPORT_MAX_BYTES, &text, err));
    CHECK(transcript_read_lines(&loaded, buf_slice(&text), path, err));
    transcript before = c->transcript;
    c->transcript = loaded;
    loaded = before;
    saved_forget(&c->saved);
    console_save(c, false);
out:
    transcript_fini(&loaded);
    buf_fini(&text);
    return status;
}

static void load(console *c, slice argument)
{
    smoe_err err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%.*s", SLICE_ARG(argument));
    if (read_conversation(c, path, &err) != SMOE_OK) {
        say(c, &err);
        return;
    }
    render_notice(&c->render, "[%zu messages read]", c->transcript.n_messages);
}

static void reset(console *c)
{
    transcript_clear(&c->transcript);
    saved_forget(&c->saved);
    buf_clear(&c->attached);
    render_notice(&c->render, "[a new conversation]");
}

enum next action_run(console *c, enum command command, slice argument)
{
    switch (command) {
    case COMMAND_HELP:
        render_quote(&c->render, slice_from(command_help));
        break;
    case COMMAND_HISTORY:
        show_history(c);
        break;
    case COMMAND_SYSTEM:
        set_system(c, argument);
        break;
    case COMMAND_FILE:
        attach(c, argument);
        break;
    case COMMAND_RETRY:
        return retry(c);
    case COMMAND_EDIT:
        edit(c);
        break;
    case COMMAND_UNDO:
        undo(c);
        break;
    case COMMAND_THINK:
        c->show_reasoning = !c->show_reasoning;
        render_notice(&c->render, c->show_reasoning ? "[reasoning is shown]"
                                                    : "[reasoning is folded]");
        break;
    case COMMAND_SET:
        set(c, argument);
        break;
    case COMMAND_STATS:
        stats(c);
        break;
    case COMMAND_TOKENS:
        count_tokens(c, argument);
        break;
    case COMMAND_COMPACT:
        compact(c);
        break;
    case COMMAND_SAVE:
    case COMMAND_EXPORT:
        export_to(c, argument, command == COMMAND_EXPORT);
        break;
    case COMMAND_LOAD:
        load(c, argument);
        break;
    case COMMAND_RESET:
        reset(c);
        break;
    case COMMAND_QUIT:
        return NEXT_QUIT;
    case COMMAND_NONE:
    case COMMAND_WRONG:
        break;
    }
    return NEXT_LINE;
}
