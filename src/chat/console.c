/* console.c: the session: an engine, a transcript, and lines until there are no more. */
#include "chat/console.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "chat/interrupt.h"

enum { ANSWER_MAX_BYTES = 64 << 20, ATTACH_MAX_BYTES = 16 << 20 };

static const uint64_t second_ns = 1000000000u;

enum ctrl_c console_interrupts(console *c)
{
    unsigned n = interrupt_count() - c->interrupts_seen;
    if (n == 0) {
        return CTRL_C_NONE;
    }
    uint64_t now = clock_ns();
    bool soon = c->interrupt_ns != 0 && now - c->interrupt_ns < second_ns;
    c->interrupts_seen += n;
    c->interrupt_ns = now;
    return n > 1 || soon || interrupt_ended_by() ? CTRL_C_LEAVE : CTRL_C_STOP;
}

void console_engine_died(console *c, const char *how, bool restarting)
{
    render_notice(&c->render, "[engine %s%s]", how, restarting ? " - restarting" : "");
    render_quote(&c->render, engine_log_tail(&c->log));
    engine_log_mark(&c->log);
}

void console_save(console *c, bool rewrite)
{
    smoe_err err = {0};
    smoe_status status = rewrite ? saved_rewrite(&c->saved, &c->transcript, &err)
                                 : saved_grow(&c->saved, &c->transcript, &err);
    if (status != SMOE_OK) {
        render_notice(&c->render, "[this conversation is not saved: %s]", err.text);
        c->saved.dir = NULL; /* said once */
    }
}

smoe_status console_attach(console *c, const char *path, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    buf text;
    buf_init(&text, ATTACH_MAX_BYTES);
    if (strcmp(path, "-") == 0) {
        char piece[65536];
        for (ssize_t n; (n = read(c->options->in_fd, piece, sizeof piece)) != 0;) {
            if (n < 0 && errno != EINTR) {
                CHECK(err_errno(err, SMOE_IO, "the input cannot be read"));
            }
            CHECK(buf_append(&text, piece, n > 0 ? (size_t)n : 0, err));
        }
    } else {
        CHECK(file_slurp(path, ATTACH_MAX_BYTES, &text, err));
        CHECK(buf_printf(&c->attached, err, "%s:\n", path));
    }
    if (text.len > 0 && memchr(text.data, '\0', text.len)) {
        buf_clear(&c->attached);
        CHECK(err_set(err, SMOE_FORMAT, "%s holds zero bytes: it is not a text file", path));
    }
    CHECK(buf_append_slice(&c->attached, buf_slice(&text), err));
    CHECK(buf_puts(&c->attached, "\n\n", err));
out:
    buf_fini(&text);
    return status;
}

/* A whole message: a command, or something to say. */
static enum next handle_message(console *c, slice line, bool single)
{
    smoe_err err = {0};
    slice text = line;
    enum command command = single ? command_parse(line, &text, &err) : COMMAND_NONE;
    if (command == COMMAND_WRONG) {
        render_notice(&c->render, "[%s]", err.text);
        return NEXT_LINE;
    }
    if (command != COMMAND_NONE) {
        return action_run(c, command, text);
    }
    bool blank = true;
    for (size_t i = 0; i < text.len && blank; i++) {
        blank = text.data[i] == ' ' || text.data[i] == '\t' || text.data[i] == '\n';
    }
    return blank || turn_run(c, text) ? NEXT_LINE : NEXT_INTERRUPTED;
}

static enum next handle_line(console *c, slice line)
{
    smoe_err err = {0};
    bool done = false;
    enum next next = NEXT_LINE;
    if (compose_push(&c->compose, line, &done, &err) != SMOE_OK) {
        render_notice(&c->render, "[this message cannot be sent: %s]", err.text);
        c->n_turns++;
        c->n_failed++;
        done = false;
        compose_clear(&c->compose);
    }
    if (done) {
        next = handle_message(c, buf_slice(&c->compose.text), c->compose.single);
        compose_clear(&c->compose);
    }
    return next;
}

/* A Ctrl-C at the prompt: the first says how to leave, the next one leaves. */
static enum next handle_interrupt(console *c, bool was_empty, bool *hinted)
{
    if (console_interrupts(c) == CTRL_C_LEAVE || (was_empty && *hinted)) {
        return NEXT_INTERRUPTED;
    }
    if (c->compose.state != COMPOSE_EMPTY) {
        compose_clear(&c->compose);
        render_notice(&c->render, "[the lines so far are dropped]");
        return NEXT_LINE;
    }
    if (was_empty) {
        render_notice(&c->render, "[Ctrl-C again, Ctrl-D or /quit leaves]");
        *hinted = true;
    }
    return NEXT_LINE;
}

/* Reads one line and does what it says. *status is set when that fails. */
static enum next step(console *c, bool *hinted, smoe_status *status, smoe_err *err)
{
    slice line;
    const char *prompt = c->compose.state == COMPOSE_EMPTY ? "> " : ". ";
    const char *offered = c->offered.len > 0 ? c->offered.data : NULL;
    enum line_event event =
        line_edit_read(c->input, prompt, offered, c->interrupts_seen, &line, err);
    buf_clear(&c->offered);
    switch (event) {
    case LINE_TEXT:
        *hinted = false;
        return handle_line(c, line);
    case LINE_INTERRUPT:
    case LINE_INTERRUPT_TYPED:
        return handle_interrupt(c, event == LINE_INTERRUPT, hinted);
    case LINE_TOO_LONG:
        c->n_turns++;
        c->n_failed++;
        render_notice(&c->render, "[a line longer than %d MiB was skipped]", LINE_MAX_BYTES >> 20);
        return NEXT_LINE;
    case LINE_END:
        if (interrupt_ended_by()) {
            return NEXT_INTERRUPTED;
        }
        if (compose_finish(&c->compose)) { /* a message that its input did not end */
            handle_message(c, buf_slice(&c->compose.text), false);
        }
        render_leave(&c->render);
        return NEXT_QUIT;
    case LINE_FAILED:
        break;
    }
    *status = SMOE_IO;
    return NEXT_QUIT;
}

static smoe_status session(console *c, smoe_err *err)
{
    bool hinted = false;
    smoe_status status = SMOE_OK;
    enum next next = NEXT_LINE;
    if (c->options->prompt != NULL) {
        next = turn_run(c, slice_from(c->options->prompt)) ? NEXT_QUIT : NEXT_INTERRUPTED;
    }
    while (next == NEXT_LINE && c->render.broken_errno == 0) {
        next = step(c, &hinted, &status, err);
    }
    if (c->render.broken_errno == EIO && c->terminal) {
        interrupt_hang_up();
    }
    if (interrupt_ended_by()) {
        return err_set(err, SMOE_CANCELLED, "ended by signal %d", interrupt_ended_by());
    }
    if (c->render.broken_errno == EPIPE) {
        return SMOE_OK; /* whoever read the answers has had enough */
    }
    if (c->render.broken_errno != 0) {
        errno = c->render.broken_errno;
        return err_errno(err, SMOE_IO, "the answers cannot be written");
    }
    if (next == NEXT_INTERRUPTED) {
        return err_set(err, SMOE_CANCELLED, "interrupted");
    }
    bool scripted = !c->terminal || c->options->prompt != NULL;
    if (status == SMOE_OK && scripted && c->n_failed > 0) {
        return err_set(err, SMOE_INTERNAL, "%zu of %zu turns failed", c->n_failed, c->n_turns);
    }
    return status;
}

/* The first request is one that costs nothing: its answer means that the model is loaded. */
static smoe_status start_engine(console *c, smoe_err *err)
{
    uint64_t start = clock_ns();
    smoe_reply reply = {.kind = SMOE_REPLY_TIMEOUT};
    TRY(smoe_client_start(c->options->engine_argv, c->log.fd, &c->client, err));
    smoe_status status = smoe_client_send_reset(c->client, err);
    while (status == SMOE_OK && reply.kind != SMOE_REPLY_DONE && reply.kind != SMOE_REPLY_ERROR) {
        if (clock_ns() - start > second_ns / 2) {
            render_transient(&c->render, "[loading %s, %u s]", c->options->title,
                             (unsigned)((clock_ns() - start) / second_ns));
        }
        if (console_interrupts(c) != CTRL_C_NONE) {
            return err_set(err, SMOE_CANCELLED, "interrupted");
        }
        status = smoe_client_next(c->client, WAIT_SLICE_MS, &reply, err);
    }
    render_transient_end(&c->render);
    if (status == SMOE_CHILD) {
        render_quote(&c->render, engine_log_tail(&c->log));
        return err_set(err, SMOE_CHILD, "the engine did not start (exit %d)",
                       smoe_client_exit_status(c->client));
    }
    return status;
}

static smoe_status resume(console *c, smoe_err *err)
{
    char note[256];
    TRY(saved_continue(&c->saved, &c->transcript, note, sizeof note, err));
    if (c->terminal) {
        render_notice(&c->render, "[going on after %zu messages%s%s; /history shows them]",
                      c->transcript.n_messages, *note ? ": " : "", note);
    }
    if (c->terminal && transcript_last(&c->transcript, "user")) {
        render_notice(&c->render, "[the last question was not answered: /retry asks it again]");
    }
    return SMOE_OK;
}

static smoe_status open_session(console *c, smoe_err *err)
{
    const chat_options *o = c->options;
    if (o->resume) {
        TRY(resume(c, err));
    }
    if (o->system_text != NULL) {
        TRY(transcript_set_system(&c->transcript, slice_from(o->system_text), err));
    }
    if (o->file_path != NULL) {
        TRY(console_attach(c, o->file_path, err));
    }
    TRY(start_engine(c, err));
    if (o->prompt != NULL) {
        return SMOE_OK;
    }
    if (c->terminal) {
        render_notice(&c->render, "[%s, %u tokens of context; /help lists the commands]", o->title,
                      o->n_ctx);
    }
    return line_edit_new(o->in_fd, o->out_fd, c->terminal, !o->dumb, &c->input, err);
}

static void console_init(console *c, const chat_options *o)
{
    const smoe_tokenizer *tok = smoe_chat_format_tokenizer(o->format);
    *c = (console){.options = o, .log = {.fd = -1}};
    /* One question, or answers for a program: nobody types, though somebody may watch. */
    bool watched = isatty(o->out_fd) && !o->json;
    c->terminal = watched && (o->prompt != NULL || isatty(o->in_fd));
    c->has_think_tags = smoe_tokenizer_find(tok, "</think>", 8) >= 0;
    transcript_init(&c->transcript);
    saved_init(&c->saved, o->state_dir, o->title, o->lineage);
    compose_init(&c->compose);
    render_init(&c->render, o->out_fd, o->err_fd, c->terminal, o->dumb, o->color);
    c->render.silent = o->json;
    buf_init(&c->answer, ANSWER_MAX_BYTES);
    buf_init(&c->reasoning, ANSWER_MAX_BYTES);
    buf_init(&c->attached, 2u * ATTACH_MAX_BYTES);
    buf_init(&c->offered, ANSWER_MAX_BYTES);
}

static void console_fini(console *c)
{
    line_edit_free(c->input);
    if (c->client != NULL) {
        smoe_client_cancel(c->client, NULL); /* what may still run need not be waited for */
        smoe_client_free(c->client);
    }
    engine_log_close(&c->log);
    smoe_ids_free(&c->ids);
    buf_fini(&c->answer);
    buf_fini(&c->reasoning);
    buf_fini(&c->attached);
    buf_fini(&c->offered);
    compose_fini(&c->compose);
    saved_fini(&c->saved);
    render_fini(&c->render);
    transcript_fini(&c->transcript);
}

smoe_status chat_run(const chat_options *options, int *signal, smoe_err *err)
{
    console c;
    console_init(&c, options);
    if (!options->verbose) {
        engine_log_open(&c.log);
    }
    if (c.terminal) {
        interrupt_catch();
    }
    c.interrupts_seen = interrupt_count();
    smoe_status status = open_session(&c, err);
    if (status == SMOE_OK) {
        status = session(&c, err);
    }
    bool caught = c.terminal;
    console_fini(&c);
    *signal = status == SMOE_CANCELLED ? (interrupt_ended_by() ? interrupt_ended_by() : SIGINT) : 0;
    if (caught) {
        interrupt_restore();
    }
    return status;
}
