/* The server over a session of the test's own: replies, queueing, CANCEL, long lines, dying
 * clients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "protocol/serve.h"

/* ---- the session: echoes the ids; the first id chooses special behaviour ---- */

enum {
    ID_RUN = 1000,      /* generate until cancelled */
    ID_FAIL = 1001,     /* fail after two tokens */
    ID_SUFFIX = 1002,
    ID_OVERFLOW = 1003,
    ID_PREFILL = 1004,  /* report progress */
    N_VOCAB = 2000,
    N_CTX = 100,
};

struct smoe_session {
    int n_resets, n_requests;
    int n_idle;
    smoe_request last; /* ids not kept */
};

void smoe_session_reset(smoe_session *s)
{
    s->n_resets++;
}

static bool idle_has_more; /* set before a server starts */

int smoe_session_idle(smoe_session *s)
{
    s->n_idle++;
    return idle_has_more ? 1 : -1;
}

static smoe_status check(const smoe_request *r, smoe_err *err)
{
    for (size_t i = 0; i < r->n_ids; i++) {
        if (r->ids[i] >= N_VOCAB) {
            return err_set(err, SMOE_RANGE, "id %d is not in the vocabulary", r->ids[i]);
        }
    }
    if (r->max_tokens > N_CTX) {
        return err_set(err, SMOE_RANGE, "max_tokens %u is not in 1..%d", r->max_tokens, N_CTX);
    }
    if (r->ids[0] == ID_SUFFIX) {
        return err_set(err, SMOE_SUFFIX, "too many new ids");
    }
    return r->ids[0] == ID_OVERFLOW ? err_set(err, SMOE_OVERFLOW, "no room") : SMOE_OK;
}

smoe_status smoe_session_generate(smoe_session *s, const smoe_request *r, const smoe_events *e,
                                  smoe_result *result, smoe_err *err)
{
    s->n_requests++;
    s->last = *r;
    TRY(check(r, err));
    *result = (smoe_result){.fin = SMOE_FIN_STOP, .n_prompt = (uint32_t)r->n_ids, .n_cached = 1,
                            .prefill_ns = 1500000, .decode_ns = 2000000, .n_expert_acquires = 4,
                            .n_expert_hits = 3, .n_evictions = 2, .bytes_read = 70,
                            .read_ns = 250000, .n_guesses_wasted = 1, .n_prewarmed_wasted = 2};
    if (r->ids[0] == ID_PREFILL) {
        e->progress(e->ctx, 1, 2);
        e->progress(e->ctx, 2, 2);
    }
    for (size_t i = 0; i < r->n_ids || r->ids[0] == ID_RUN; i++) {
        if (e->cancelled(e->ctx)) {
            result->fin = SMOE_FIN_CANCEL;
            return SMOE_OK;
        }
        if (r->ids[0] == ID_FAIL && i == 2) {
            return err_set(err, SMOE_IO, "the disk is on fire");
        }
        if (i == r->max_tokens && r->ids[0] != ID_RUN) {
            result->fin = SMOE_FIN_LENGTH;
            return SMOE_OK;
        }
        if (!e->token(e->ctx, r->ids[i % r->n_ids])) {
            result->fin = SMOE_FIN_CANCEL;
            return SMOE_OK;
        }
        if (r->has_logprobs) {
            smoe_logprobs l = {.chosen = {r->ids[i % r->n_ids], -0.5}, .n_top = r->n_top_logprobs};
            for (uint32_t t = 0; t < l.n_top; t++) {
                l.top[t] = (smoe_logprob){(int32_t)t, -(double)t};
            }
            e->logprobs(e->ctx, &l);
        }
        result->n_generated++;
        if (r->ids[0] == ID_RUN) {
            usleep(1000);
        }
    }
    return SMOE_OK;
}

/* ---- a server in a thread, two pipes around it ---- */

typedef struct rig {
    smoe_session session;
    serve_options options;
    int to_server[2], from_server[2];
    pthread_t thread;
    smoe_status status;
    smoe_err err;
    char log[8192];
    int n_done;
} rig;

static void log_line(void *ctx, const char *sentence)
{
    rig *g = ctx;
    size_t n = strlen(g->log);
    snprintf(g->log + n, sizeof g->log - n, "%s\n", sentence);
}

static void count_done(void *ctx, const smoe_result *result)
{
    rig *g = ctx;
    assert_true(result->n_prompt > 0);
    g->n_done++;
}

static void *serve_thread(void *arg)
{
    rig *g = arg;
    static const int32_t eos[1] = {0};
    smoe_engine_info info = {.n_ctx = N_CTX, .n_vocab = N_VOCAB, .eos_ids = eos, .n_ring = 5,
                             .record_bytes = 7, .scout_bytes = 11, .kv_bytes = 12,
                             .scratch_bytes = 13};
    g->status =
        serve_run(&g->session, &info, &g->options, g->to_server[0], g->from_server[1], &g->err);
    close(g->from_server[1]);
    return NULL;
}

static void rig_start(rig *g, size_t max_line_bytes)
{
    memset(g, 0, sizeof *g);
    g->options = (serve_options){.sampling = {.temperature = 0.6f, .top_p = 0.95f, .top_k = 50,
                                              .rep_penalty = 1.1f},
                                 .max_line_bytes = max_line_bytes,
                                 .log = log_line,
                                 .done = count_done,
                                 .log_ctx = g};
    assert_int_equal(pipe(g->to_server), 0);
    assert_int_equal(pipe(g->from_server), 0);
    assert_int_equal(pthread_create(&g->thread, NULL, serve_thread, g), 0);
}

static void send_text(rig *g, const char *text)
{
    size_t n = strlen(text);
    assert_int_equal(write(g->to_server[1], text, n), (ssize_t)n);
}

/* Reads until `text` has been seen; what was read is dropped. */
static void wait_for(rig *g, const char *text)
{
    char seen[65536];
    size_t n = 0;
    while (n < sizeof seen - 1) {
        ssize_t got = read(g->from_server[0], seen + n, 1);
        assert_true(got == 1);
        n++;
        seen[n] = '\0';
        if (n >= strlen(text) && strcmp(seen + n - strlen(text), text) == 0) {
            return;
        }
    }
    fail_msg("\"%s\" never came", text);
}

/* Closes the input, collects the rest of the output (owned), joins. */
static char *rig_finish(rig *g)
{
    size_t n = 0, cap = 1 << 22;
    char *out = malloc(cap);
    ssize_t got;
    close(g->to_server[1]);
    while ((got = read(g->from_server[0], out + n, cap - n - 1)) > 0) {
        n += (size_t)got;
    }
    out[n] = '\0';
    pthread_join(g->thread, NULL);
    close(g->to_server[0]);
    close(g->from_server[0]);
    return out;
}

static void expect(const char *input, const char *output)
{
    rig g;
    rig_start(&g, 0);
    send_text(&g, input);
    char *out = rig_finish(&g);
    assert_string_equal(out, output);
    assert_int_equal(g.status, SMOE_OK);
    free(out);
}

#define TIER                                                                                       \
    "lookups=4 hits=3 evicted=2 read=70 wasted=21 read_ms=0.250 mem=11,12,13,35 <<DONE>>\n"
#define STOP(n)                                                                                    \
    "fin=stop n=" #n " pp=" #n " pc=1 hit=0.7500 prefill_ms=1.500 decode_ms=2.000 " TIER

static void answers(void **state)
{
    (void)state;
    expect("", "");
    expect("GEN 10 5,6,7\n", "5 6 7 \n" STOP(3));
    expect("GEN 2 5,6,7\r\n", "5 6 \nfin=length n=2 pp=3 pc=1 hit=0.7500 prefill_ms=1.500 "
                              "decode_ms=2.000 " TIER);
    expect("RESET\n", "<<DONE>>\n");
    expect("CANCEL\n", ""); /* nothing runs: nothing to say */
    expect("CANCEL\nGEN 10 5\nCANCEL\r\n\nRESET\n",
           "fin=cancel n=0 pp=1 pc=1 hit=0.7500 prefill_ms=1.500 "
           "decode_ms=2.000 " TIER "<<ERR bad_request>>\n<<DONE>>\n");
    expect("GEN 10 1004,9\n", "pf=1/2\npf=2/2\n1004 9 \n" STOP(2));
    expect("GEN 10\n", "<<ERR empty_suffix>>\n");
    expect("GEN 10 1002\n", "<<ERR suffix_too_long>>\n");
    expect("GEN 10 1003\n", "<<ERR ctx_overflow>>\n");
    expect("GEN 10 1001,2,3,4\nGEN 1 7\n", "1001 2 \n<<ERR internal>>\n7 \n" STOP(1));
    expect("GEN 10 2000\n", "<<ERR bad_request>>\n");
    expect("GEN 101 1\n", "<<ERR bad_request>>\n");
    expect("GEN -5 1\nHELLO\nGEN 99999999999 1\nGEN 1 t=x 1\n",
           "<<ERR bad_request>>\n<<ERR bad_request>>\n<<ERR bad_request>>\n<<ERR bad_request>>\n");
    expect("GEN 10 logprobs=0 5,6\n", "5 lp=-0.500000 6 lp=-0.500000 \n" STOP(2));
    expect("GEN 10 logprobs=2 5\n", "5 lp=-0.500000,0:0.000000,1:-1.000000 \n" STOP(1));
    /* Cut short: never answered as if it were whole. */
    expect("GEN 10 1,2", "<<ERR bad_request>>\n");
}

/* The session gets the time in which nothing is asked, as long as it wants more, and not while a
 * request waits. */
static void idle_time(void **state)
{
    (void)state;
    rig g;
    rig_start(&g, 0);
    send_text(&g, "GEN 9 5\nGEN 9 6\nGEN 9 7\n");
    wait_for(&g, "7 \n");
    wait_for(&g, "<<DONE>>\n");
    char *out = rig_finish(&g);
    assert_true(g.session.n_idle <= 2); /* before the first line and after the last one */
    free(out);

    idle_has_more = true;
    rig_start(&g, 0);
    for (int i = 0; i < 5; i++) {
        usleep(5000);
        send_text(&g, "GEN 9 5\n");
        wait_for(&g, "<<DONE>>\n");
    }
    usleep(20000);
    out = rig_finish(&g);
    assert_int_equal(g.session.n_requests, 5);
    assert_true(g.session.n_idle >= 5);
    free(out);
    idle_has_more = false;
}

static void overrides_and_log(void **state)
{
    (void)state;
    rig g;
    rig_start(&g, 0);
    send_text(&g, "GEN 10 t=0 k=2000 s=9 5\n");
    wait_for(&g, "<<DONE>>\n");
    assert_true(g.session.last.sampling.temperature == 0);
    assert_true(g.session.last.sampling.top_p == 0.95f);
    assert_int_equal(g.session.last.sampling.top_k, 1024);
    assert_true(g.session.last.has_seed && g.session.last.seed == 9);
    send_text(&g, "GEN 10 p=0.5 r=2 5\n");
    wait_for(&g, "<<DONE>>\n");
    assert_true(g.session.last.sampling.temperature == 0.6f); /* overrides hold for one request */
    assert_true(g.session.last.sampling.top_p == 0.5f && g.session.last.sampling.rep_penalty == 2);
    assert_false(g.session.last.has_seed || g.session.last.has_logprobs);
    send_text(&g, "GEN 10 min_p=0.1 presence_penalty=-1 frequency_penalty=2 5\n");
    wait_for(&g, "<<DONE>>\n");
    assert_true(g.session.last.sampling.min_p == 0.1f);
    assert_true(g.session.last.sampling.presence_penalty == -1);
    assert_true(g.session.last.sampling.frequency_penalty == 2);
    send_text(&g, "GEN 1 1001,1,1\nGEN x\n");
    free(rig_finish(&g));
    assert_int_equal(g.n_done, 4);
    assert_string_equal(g.log, "GEN says max_tokens \"x\", expected a whole number of 1 or more\n");
}

static void cancel(void **state)
{
    (void)state;
    rig g;
    rig_start(&g, 0);
    for (int i = 0; i < 5; i++) {
        send_text(&g, "GEN 10 1000\n");
        wait_for(&g, "1000 1000 ");
        /* Half a line does nothing; requests behind it wait; CANCEL jumps the queue. */
        send_text(&g, "GEN 5 7\nRESET\nCAN");
        wait_for(&g, "1000 1000 ");
        send_text(&g, "CEL\n");
        wait_for(&g, "\nfin=cancel");
        wait_for(&g, "<<DONE>>\n7 \nfin=stop n=1");
        wait_for(&g, "<<DONE>>\n<<DONE>>\n");
    }
    char *out = rig_finish(&g);
    assert_string_equal(out, "");
    assert_int_equal(g.session.n_resets, 5);
    free(out);
}

static void long_lines(void **state)
{
    (void)state;
    static const size_t lengths[] = {199, 200, 201, 399, 400, 5000, 1 << 18};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        rig g;
        rig_start(&g, 200);
        char *line = malloc(lengths[i] + 2);
        memset(line, '1', lengths[i]);
        line[lengths[i]] = '\n';
        line[lengths[i] + 1] = '\0';
        send_text(&g, "GEN 1 5\n");
        size_t sent = 0;
        while (sent < lengths[i] + 1) { /* the server reads as we write */
            ssize_t n = write(g.to_server[1], line + sent, lengths[i] + 1 - sent);
            assert_true(n > 0);
            sent += (size_t)n;
        }
        send_text(&g, "GEN 1 6\n");
        char *out = rig_finish(&g);
        assert_string_equal(out, "5 \n" STOP(1) "<<ERR bad_request>>\n6 \n" STOP(1));
        assert_int_equal(strstr(g.log, "longer than") != NULL, lengths[i] > 199);
        free(out);
        free(line);
    }
    rig g;
    rig_start(&g, 200);
    char line[300];
    memset(line, 'x', sizeof line);
    line[299] = '\0';
    send_text(&g, line); /* too long, and the input ends inside it */
    char *out = rig_finish(&g);
    assert_string_equal(out, "<<ERR bad_request>>\n");
    free(out);
}

/* More queued requests than the buffer holds: the sender waits, none is lost. */
static void back_pressure(void **state)
{
    (void)state;
    rig g;
    char line[32];
    rig_start(&g, 100);
    for (int i = 0; i < 2000; i++) {
        snprintf(line, sizeof line, "GEN 1 %d\n", i % 1000);
        send_text(&g, line);
        if (i % 50 == 49) {
            snprintf(line, sizeof line, "%d \nfin=", i % 1000);
            wait_for(&g, line);
        }
    }
    char *out = rig_finish(&g);
    assert_non_null(strstr(out, "<<DONE>>\n"));
    assert_int_equal(g.session.n_requests, 2000);
    free(out);
}

static void client_goes_away(void **state)
{
    (void)state;
    rig g;
    rig_start(&g, 0);
    send_text(&g, "GEN 10 1000\n");
    wait_for(&g, "1000 ");
    close(g.from_server[0]);
    pthread_join(g.thread, NULL); /* SIGPIPE would have ended the test */
    assert_int_equal(g.status, SMOE_OK);
    close(g.to_server[0]);
    close(g.to_server[1]);

    /* The input ends while a request runs: it is answered. */
    rig_start(&g, 0);
    send_text(&g, "GEN 10 5,6\nGEN 10 7\n");
    char *out = rig_finish(&g);
    assert_string_equal(out, "5 6 \n" STOP(2) "7 \n" STOP(1));
    free(out);
}

static void unusable_descriptors(void **state)
{
    (void)state;
    smoe_session session = {0};
    smoe_engine_info info = {.n_ctx = N_CTX};
    serve_options options = {.sampling = {0}};
    smoe_err err = {0};
    int p[2];
    assert_int_equal(serve_run(&session, &info, &options, 999, 1, &err), SMOE_IO);
    assert_non_null(strstr(err.text, "reading requests failed"));
    assert_int_equal(pipe(p), 0);
    assert_int_equal(write(p[1], "RESET\n", 6), 6);
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(serve_run(&session, &info, &options, p[0], full, &err), SMOE_IO);
    assert_non_null(strstr(err.text, "writing a reply failed"));
    assert_int_equal(write(p[1], "RESET\n", 6), 6);
    mem_fail_nth(1);
    assert_int_equal(serve_run(&session, &info, &options, p[0], 1, &err), SMOE_NOMEM);
    mem_fail_nth(0);
    close(full);
    close(p[0]);
    close(p[1]);
}

/* Random lines in random pieces: as many terminal lines as lines that are not CANCEL. */
static void random_histories(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "GEN 5 1,2,3\n", "GEN 5 1001,1,1\n", "RESET\n", "GEN\n", "CANCEL\n", "\n", "junk \xff\n",
        "GEN 9 1004,4\n", "GEN 3 t=0 s=1 4,5\n", "GEN 1 t=y 1\n", "GEN 5\n",
    };
    rng random = {7};
    for (int round = 0; round < 60; round++) {
        rig g;
        char input[4096] = "";
        size_t n_terminal = 0;
        for (int i = 0; i < 60; i++) {
            size_t pick = rng_next(&random) % (sizeof lines / sizeof lines[0]);
            strcat(input, lines[pick]);
            n_terminal += pick != 4;
        }
        rig_start(&g, 64 + rng_next(&random) % 200);
        for (size_t at = 0, n = strlen(input); at < n;) {
            size_t step = 1 + rng_next(&random) % 40;
            step = step < n - at ? step : n - at;
            assert_int_equal(write(g.to_server[1], input + at, step), (ssize_t)step);
            at += step;
        }
        char *out = rig_finish(&g);
        size_t seen = 0;
        for (char *at = out; (at = strpbrk(at, "<")) != NULL; at += 2) {
            seen += strncmp(at, "<<DONE>>\n", 9) == 0 || strncmp(at, "<<ERR ", 6) == 0;
        }
        assert_int_equal(seen, n_terminal);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),          cmocka_unit_test(overrides_and_log),
        cmocka_unit_test(idle_time),
        cmocka_unit_test(cancel),           cmocka_unit_test(long_lines),
        cmocka_unit_test(back_pressure),    cmocka_unit_test(client_goes_away),
        cmocka_unit_test(unusable_descriptors), cmocka_unit_test(random_histories),
    };
    return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
