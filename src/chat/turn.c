/* turn.c: one turn: the whole conversation goes to the engine, one answer comes back; an engine
 * that dies on the way is replaced and asked once more. */
#include <stdio.h>

#include "base/clock.h"
#include "chat/console.h"

enum { MESSAGES_MAX_BYTES = 256 << 20, DEFAULT_STOP_TIMEOUT_MS = 10000 };

enum ask_end {
    ASK_ANSWERED,
    ASK_STOPPED, /* by Ctrl-C */
    ASK_REFUSED, /* <<ERR ...>>, explained */
    ASK_DIED,
    ASK_HUNG,    /* did not react to CANCEL */
    ASK_LEAVE,
};

static bool check_interrupts(console *c, ask *a)
{
    switch (console_interrupts(c)) {
    case CTRL_C_NONE:
        return true;
    case CTRL_C_STOP:
        if (a->cancel_ns == 0) {
            a->cancel_ns = clock_ns();
            smoe_client_cancel(c->client, NULL);
        }
        return true;
    case CTRL_C_LEAVE:
        break;
    }
    return false;
}

static bool hangs(const console *c, const ask *a)
{
    uint32_t ms = c->options->stop_timeout_ms;
    ms = ms != 0 ? ms : DEFAULT_STOP_TIMEOUT_MS;
    return a->cancel_ns != 0 && clock_ns() - a->cancel_ns > (uint64_t)ms * 1000000u;
}

static smoe_status send_request(console *c, smoe_err *err)
{
    uint32_t n_ctx = c->options->n_ctx;
    uint32_t left = c->ids.len < n_ctx ? n_ctx - (uint32_t)c->ids.len : 1;
    uint32_t max = c->settings.max_tokens ? c->settings.max_tokens : c->options->max_tokens;
    char overrides[512];
    settings_overrides(&c->settings, overrides, sizeof overrides);
    smoe_client_request request = {
        .ids = c->ids.data,
        .n_ids = c->ids.len,
        .max_tokens = max != 0 && max < left ? max : left,
        .overrides = *overrides ? overrides : NULL,
    };
    engine_log_mark(&c->log);
    return smoe_client_send(c->client, &request, err);
}

/* The request is over. */
static enum ask_end end_of(console *c, ask *a, const smoe_reply *reply)
{
    if (reply->kind == SMOE_REPLY_ERROR) {
        report_refusal(c, reply);
        if (c->options->json) {
            report_json_error(c, reply->error);
        }
        return ASK_REFUSED;
    }
    answer_finish(a);
    render_answer_end(&c->render);
    report_figures(c, a, reply);
    if (c->options->json) {
        report_json(c, a, reply);
    }
    return strcmp(reply->fin, "cancel") == 0 ? ASK_STOPPED : ASK_ANSWERED;
}

static enum ask_end ask_once(console *c, smoe_err *err)
{
    ask a;
    smoe_reply reply, progress = {0};
    answer_begin(&a, c);
    smoe_status status = send_request(c, err);
    if (status != SMOE_OK) {
        render_notice(&c->render, "[%s]", err->text);
        return ASK_REFUSED;
    }
    while (true) {
        if (!check_interrupts(c, &a)) {
            return ASK_LEAVE;
        }
        if (hangs(c, &a)) {
            return ASK_HUNG;
        }
        if (c->render.broken_errno != 0) {
            return ASK_LEAVE; /* nobody reads the answers any more */
        }
        if (smoe_client_next(c->client, WAIT_SLICE_MS, &reply, err) != SMOE_OK) {
            return ASK_DIED;
        }
        a.heard_ns = reply.kind == SMOE_REPLY_TIMEOUT ? a.heard_ns : clock_ns();
        switch (reply.kind) {
        case SMOE_REPLY_TOKEN:
            answer_token(&a, reply.id);
            break;
        case SMOE_REPLY_LOGPROBS: /* nobody asked */
            break;
        case SMOE_REPLY_PROGRESS:
            progress = reply;
            report_waiting(c, &a, &progress);
            break;
        case SMOE_REPLY_TIMEOUT:
            report_silence(c, &a);
            report_waiting(c, &a, &progress);
            break;
        case SMOE_REPLY_DONE:
        case SMOE_REPLY_ERROR:
            return end_of(c, &a, &reply);
        }
    }
}

static bool restart(console *c, smoe_err *err)
{
    c->engine_down = smoe_client_restart(c->client, err) != SMOE_OK;
    if (c->engine_down) {
        render_notice(&c->render, "[%s]", err->text);
    }
    return !c->engine_down;
}

/* Asks; after a death asks once more. What was shown of the first answer stays on the screen, but
 * only the second one counts. */
static enum ask_end ask_twice(console *c, smoe_err *err)
{
    for (int attempt = 0;; attempt++) {
        if (c->engine_down && !restart(c, err)) {
            buf_clear(&c->answer);
            buf_clear(&c->reasoning);
            return ASK_REFUSED;
        }
        enum ask_end end = ask_once(c, err);
        if (end != ASK_DIED && end != ASK_HUNG) {
            return end;
        }
        char how[64] = "does not stop";
        if (end == ASK_DIED) {
            snprintf(how, sizeof how, "died (exit %d)", smoe_client_exit_status(c->client));
        }
        bool again = end == ASK_DIED && attempt == 0;
        bool restarting = again || end == ASK_HUNG;
        c->engine_down = true;
        if (c->render.answer_open) {
            render_answer_end(&c->render);
        }
        console_engine_died(c, how, restarting);
        if (!again) {
            if (restarting) {
                restart(c, err);
            }
            return end;
        }
        if (c->answer.len > 0) {
            render_notice(&c->render, "[the answer starts again from its beginning]");
        }
    }
}

smoe_status turn_encode(console *c, smoe_err *err)
{
    static const char *const extras[] = {[CHAT_THINK_ON] = "{\"enable_thinking\":true}",
                                         [CHAT_THINK_OFF] = "{\"enable_thinking\":false}"};
    buf json;
    buf_init(&json, MESSAGES_MAX_BYTES);
    c->ids.len = 0;
    smoe_status status = transcript_json(&c->transcript, &json, err);
    if (status == SMOE_OK) {
        status = smoe_chat_format_encode(c->options->format, json.data, json.len,
                                         extras[c->options->think], &c->ids, err);
    }
    buf_fini(&json);
    return status;
}

/* The answer joins the question in the transcript, or the question leaves it. */
static void keep_or_drop(console *c, enum ask_end end)
{
    smoe_err err;
    bool said_something = c->answer.len > 0 || c->reasoning.len > 0;
    if (end == ASK_ANSWERED || said_something) {
        if (transcript_add_answer(&c->transcript, buf_slice(&c->answer), buf_slice(&c->reasoning),
                                  end != ASK_ANSWERED, &err) == SMOE_OK) {
            console_save(c, false);
            return;
        }
        render_notice(&c->render, "[%s]", err.text);
    }
    transcript_drop_last(&c->transcript);
    console_save(c, true);
}

static void explain_unsent(console *c, const smoe_err *err)
{
    c->n_failed++;
    render_notice(&c->render, "[this message cannot be sent: %s]", err->text);
    if (c->options->json) {
        report_json_error(c, err->text);
    }
}

bool turn_again(console *c)
{
    smoe_err err = {0};
    c->n_turns++;
    if (turn_encode(c, &err) != SMOE_OK) {
        transcript_drop_last(&c->transcript);
        explain_unsent(c, &err);
        return true;
    }
    console_save(c, false);
    enum ask_end end = ask_twice(c, &err);
    if (c->render.answer_open) {
        render_answer_end(&c->render);
    }
    if (end == ASK_LEAVE) { /* what was said is kept; else the question waits for an answer */
        if (c->answer.len > 0 || c->reasoning.len > 0) {
            keep_or_drop(c, end);
        }
        return false;
    }
    bool failed = end != ASK_ANSWERED && end != ASK_STOPPED;
    if (failed && end != ASK_REFUSED && c->options->json) {
        report_json_error(c, "the engine died");
    }
    keep_or_drop(c, end);
    c->n_failed += failed;
    return true;
}

/* What was attached goes before the message. */
static smoe_status add_message(console *c, slice text, smoe_err *err)
{
    if (transcript_last(&c->transcript, "user")) { /* a question that was never answered */
        transcript_drop_last(&c->transcript);
        console_save(c, true);
    }
    if (c->attached.len == 0) {
        return transcript_add(&c->transcript, "user", text, err);
    }
    TRY(buf_append_slice(&c->attached, text, err));
    TRY(transcript_add(&c->transcript, "user", buf_slice(&c->attached), err));
    buf_clear(&c->attached);
    return SMOE_OK;
}

bool turn_run(console *c, slice text)
{
    smoe_err err = {0};
    if (add_message(c, text, &err) != SMOE_OK) {
        c->n_turns++;
        explain_unsent(c, &err);
        return true;
    }
    return turn_again(c);
}
