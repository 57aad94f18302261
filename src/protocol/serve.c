/* serve.c: see serve.h. One thread: while the session generates, its `cancelled` event reads what
 * has arrived, so that CANCEL acts at once while other requests wait their turn. */
#include "protocol/serve.h"

#include <errno.h>

#include "protocol/lines.h"
#include "protocol/pipe_io.h"
#include "protocol/wire.h"

typedef struct server {
    smoe_session *session;
    const smoe_engine_info *info;
    const serve_options *options;
    lines in;
    int out_fd;
    wire_request request;
    bool cancel;        /* CANCEL was read while this request ran */
    bool mid_line;      /* ids were printed and the line is open */
    bool client_gone;
    smoe_status broken; /* input or output failed: the loop ends after this request */
    smoe_err broken_err;
} server;

static void server_log(const server *s, const char *sentence)
{
    if (s->options->log != NULL) {
        s->options->log(s->options->log_ctx, sentence);
    }
}

/* One write per piece: a reader sees each token as soon as there is one. */
static void emit(server *s, const char *piece, size_t n_bytes)
{
    if (s->client_gone || s->broken != SMOE_OK) {
        return;
    }
    if (!pipe_write_all(s->out_fd, piece, n_bytes)) {
        if (errno == EPIPE) {
            s->client_gone = true;
        } else {
            s->broken = err_errno(&s->broken_err, SMOE_IO, "writing a reply failed");
        }
    }
}

/* A line of its own: ends the line of ids first, in the same write. */
static void emit_line(server *s, const char *line, size_t n_bytes)
{
    char piece[WIRE_PIECE_BYTES + 1];
    size_t n = 0;
    if (s->mid_line) {
        piece[n++] = '\n';
        s->mid_line = false;
    }
    memcpy(piece + n, line, n_bytes);
    emit(s, piece, n + n_bytes);
}

static void emit_error(server *s, smoe_status status, const char *sentence)
{
    char line[WIRE_PIECE_BYTES];
    server_log(s, sentence);
    emit_line(s, line, wire_format_error(line, sizeof line, wire_error_name(status)));
}

static bool on_token(void *ctx, int32_t id)
{
    server *s = ctx;
    char piece[WIRE_PIECE_BYTES];
    s->mid_line = true;
    emit(s, piece, wire_format_token(piece, sizeof piece, id));
    return !s->client_gone && s->broken == SMOE_OK;
}

static void on_logprobs(void *ctx, const smoe_logprobs *logprobs)
{
    char piece[WIRE_PIECE_BYTES];
    emit(ctx, piece, wire_format_logprobs(piece, sizeof piece, logprobs));
}

static void on_progress(void *ctx, size_t done, size_t total)
{
    char line[WIRE_PIECE_BYTES];
    emit_line(ctx, line, wire_format_progress(line, sizeof line, done, total));
}

static bool take_cancel(void *ctx, slice line)
{
    server *s = ctx;
    if (!wire_is_cancel(line)) {
        return false;
    }
    s->cancel = true;
    return true;
}

static bool on_cancelled(void *ctx)
{
    server *s = ctx;
    bool progress = true;
    while (progress && !s->in.eof && s->broken == SMOE_OK && pipe_readable(s->in.fd, 0)) {
        smoe_status status = lines_fill(&s->in, &progress, &s->broken_err);
        if (status != SMOE_OK) {
            s->broken = status;
        }
    }
    lines_scan(&s->in, take_cancel, s);
    return s->cancel || s->client_gone || s->broken != SMOE_OK;
}

static smoe_sampling sampling_of(const server *s)
{
    const wire_request *r = &s->request;
    smoe_sampling sampling = s->options->sampling;
    if (r->has_temperature) {
        sampling.temperature = r->temperature;
    }
    if (r->has_top_p) {
        sampling.top_p = r->top_p;
    }
    if (r->has_top_k) {
        sampling.top_k = r->top_k;
    }
    if (r->has_rep_penalty) {
        sampling.rep_penalty = r->rep_penalty;
    }
    if (r->has_min_p) {
        sampling.min_p = r->min_p;
    }
    if (r->has_presence_penalty) {
        sampling.presence_penalty = r->presence_penalty;
    }
    if (r->has_frequency_penalty) {
        sampling.frequency_penalty = r->frequency_penalty;
    }
    return sampling;
}

static const char *fin_name(smoe_fin fin)
{
    return fin == SMOE_FIN_STOP ? "stop" : fin == SMOE_FIN_LENGTH ? "length" : "cancel";
}

static void generate(server *s)
{
    smoe_request request = {
        .ids = s->request.ids,
        .n_ids = s->request.n_ids,
        .max_tokens = s->request.max_tokens,
        .sampling = sampling_of(s),
        .has_seed = s->request.has_seed,
        .seed = s->request.seed,
        .has_logprobs = s->request.has_logprobs,
        .n_top_logprobs = s->request.n_top_logprobs,
    };
    smoe_events events = {s, on_token, on_progress, on_cancelled, on_logprobs};
    smoe_result result = {0};
    smoe_err err = {0};
    s->cancel = false;
    smoe_status status = smoe_session_generate(s->session, &request, &events, &result, &err);
    if (status != SMOE_OK) {
        emit_error(s, status, err.text);
        return;
    }
    const smoe_engine_info *info = s->info;
    wire_counters counters = {
        .fin = fin_name(result.fin),
        .n_generated = result.n_generated,
        .n_prompt = result.n_prompt,
        .n_cached = result.n_cached,
        .n_acquires = result.n_expert_acquires,
        .n_hits = result.n_expert_hits,
        .prefill_ns = result.prefill_ns,
        .decode_ns = result.decode_ns,
        .n_evictions = result.n_evictions,
        .bytes_read = result.bytes_read,
        .bytes_wasted = (result.n_guesses_wasted + result.n_prewarmed_wasted) * info->record_bytes,
        .read_ns = result.read_ns,
        .scout_bytes = info->scout_bytes,
        .kv_bytes = info->kv_bytes,
        .scratch_bytes = info->scratch_bytes,
        .ring_bytes = info->n_ring * info->record_bytes,
    };
    char line[WIRE_PIECE_BYTES];
    emit_line(s, line, wire_format_done(line, sizeof line, &counters));
    if (s->options->done != NULL) {
        s->options->done(s->options->log_ctx, &result);
    }
}

static void answer(server *s, slice line)
{
    smoe_err err = {0};
    smoe_status status = wire_parse_request(line, &s->request, &err);
    if (status != SMOE_OK) {
        emit_error(s, status, err.text);
        return;
    }
    switch (s->request.verb) {
    case WIRE_GEN:
        generate(s);
        break;
    case WIRE_RESET:
        smoe_session_reset(s->session);
        emit_line(s, "<<DONE>>\n", strlen("<<DONE>>\n"));
        break;
    case WIRE_CANCEL:
        break; /* nothing runs: it came too late, and its request has had its terminal line */
    }
}

/* The loop has handed out every complete line. Waits for more input, or until the session, which
 * gets the time in which there is none, wants more of it. */
static void wait_for_input(server *s)
{
    bool progress;
    if (!pipe_readable(s->in.fd, 0) &&
        !pipe_readable(s->in.fd, smoe_session_idle(s->session))) {
        return;
    }
    smoe_status status = lines_fill(&s->in, &progress, &s->broken_err);
    if (status != SMOE_OK) {
        s->broken = status;
    }
}

static void serve_loop(server *s)
{
    while (!s->client_gone && s->broken == SMOE_OK) {
        slice line;
        switch (lines_next(&s->in, &line)) {
        case LINES_NONE:
            wait_for_input(s);
            break;
        case LINES_LINE:
            answer(s, line);
            break;
        case LINES_TOO_LONG: {
            smoe_err err;
            smoe_status status = err_set(&err, SMOE_RANGE,
                                         "a request line is longer than the %zu bytes that this "
                                         "context can need; it was skipped",
                                         s->in.max);
            emit_error(s, status, err.text);
            break;
        }
        case LINES_CUT:
            emit_error(s, SMOE_RANGE,
                       "the input ended inside a line; a request cut short is not answered");
            break;
        case LINES_END:
            return;
        }
    }
}

smoe_status serve_run(smoe_session *session, const smoe_engine_info *info,
                      const serve_options *options, int in_fd, int out_fd, smoe_err *err)
{
    size_t max = options->max_line_bytes;
    if (max == 0) {
        max = 16 * (size_t)info->n_ctx + 4096;
        max = max < 1024 * 1024 ? 1024 * 1024 : max;
    }
    server s = {.session = session, .info = info, .options = options, .out_fd = out_fd};
    lines_init(&s.in, in_fd, max);
    wire_request_init(&s.request);
    serve_loop(&s);
    wire_request_fini(&s.request);
    lines_fini(&s.in);
    if (s.broken != SMOE_OK && err != NULL) {
        *err = s.broken_err;
    }
    return s.broken;
}
