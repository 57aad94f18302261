/* console.c: the session: an engine, a transcript, and lines until there are no more. */
#include "chat/console.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "chat/commands.h"
#include "chat/interrupt.h"

enum { ANSWER_MAX_BYTES = 64 << 20 };

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
    return n > 1 || soon ? CTRL_C_LEAVE : CTRL_C_STOP;
}

void console_engine_died(console *c, const char *how, bool restarting)
{
    render_notice(&c->render, "[engine %s%s]", how, restarting ? " - restarting" : "");
    render_quote(&c->render, engine_log_tail(&c->log));
    engine_log_mark(&c->log);
}

static void show_history(console *c)
{
    if (c->transcript.n_messages == 0) {
        render_notice(&c->render, "[nothing has been said yet]");
    }
    for (size_t i = 0; i < c->transcript.n_messages; i++) {
        const message *m = &c->transcript.messages[i];
        render_notice(&c->render, "%s%s:", m->role, m->cut ? " (cut short)" : "");
        render_quote(&c->render, slice_of(m->text, m->n_bytes));
    }
}

enum next { NEXT_LINE, NEXT_QUIT, NEXT_INTERRUPTED };

static enum next handle_line(console *c, slice line)
{
    slice text;
    switch (command_parse(line, &text)) {
    case COMMAND_NONE:
        break;
    case COMMAND_HELP:
        render_quote(&c->render, slice_from(command_help));
        return NEXT_LINE;
    case COMMAND_HISTORY:
        show_history(c);
        return NEXT_LINE;
    case COMMAND_RESET:
        transcript_clear(&c->transcript);
        render_notice(&c->render, "[a new conversation]");
        return NEXT_LINE;
    case COMMAND_QUIT:
        return NEXT_QUIT;
    case COMMAND_UNKNOWN:
        render_notice(&c->render,
                      "[there is no such command; /help lists them, and //... says /...]");
        return NEXT_LINE;
    }
    bool blank = true;
    for (size_t i = 0; i < text.len && blank; i++) {
        blank = text.data[i] == ' ' || text.data[i] == '\t';
    }
    return blank || turn_run(c, text) ? NEXT_LINE : NEXT_INTERRUPTED;
}

/* A Ctrl-C at the prompt: the first says how to leave, the next one leaves. */
static enum next handle_interrupt(console *c, bool was_empty, bool *hinted)
{
    if (console_interrupts(c) == CTRL_C_LEAVE || (was_empty && *hinted)) {
        return NEXT_INTERRUPTED;
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
    enum line_event event = line_edit_read(c->input, "> ", c->interrupts_seen, &line, err);
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
    while (next == NEXT_LINE && c->render.broken_errno == 0) {
        next = step(c, &hinted, &status, err);
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
    if (status == SMOE_OK && !c->terminal && c->n_failed > 0) {
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

static smoe_status open_session(console *c, smoe_err *err)
{
    const chat_options *o = c->options;
    if (o->system_text != NULL) {
        TRY(transcript_add(&c->transcript, "system", slice_from(o->system_text), false, err));
    }
    TRY(start_engine(c, err));
    if (c->terminal) {
        render_notice(&c->render, "[%s, %u tokens of context; /help lists the commands]", o->title,
                      o->n_ctx);
    }
    return line_edit_new(o->in_fd, o->out_fd, c->terminal, !o->dumb, &c->input, err);
}

smoe_status chat_run(const chat_options *options, smoe_err *err)
{
    console c = {.options = options, .log = {.fd = -1}};
    c.terminal = isatty(options->in_fd) && isatty(options->out_fd);
    transcript_init(&c.transcript);
    render_init(&c.render, options->out_fd, options->err_fd, c.terminal, options->dumb,
                options->color);
    buf_init(&c.answer, ANSWER_MAX_BYTES);
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
    line_edit_free(c.input);
    if (c.client != NULL) {
        smoe_client_cancel(c.client, NULL); /* what may still run need not be waited for */
        smoe_client_free(c.client);
    }
    if (c.terminal) {
        interrupt_restore();
    }
    engine_log_close(&c.log);
    smoe_ids_free(&c.ids);
    buf_fini(&c.answer);
    render_fini(&c.render);
    transcript_fini(&c.transcript);
    return status;
}
