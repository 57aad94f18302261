/* The client against an engine that behaves, dies, hangs, floods and lies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "smoe/protocol.h"

static const char *fake_engine; /* argv[1] */
static int null_fd;             /* where the engine's complaints go */

static smoe_client *start(const char *mode, const char *arg)
{
    const char *argv[] = {fake_engine, mode, arg, NULL};
    smoe_client *c = NULL;
    smoe_err err;
    assert_int_equal(smoe_client_start(argv, null_fd, &c, &err), SMOE_OK);
    return c;
}

static void ask(smoe_client *c, const int32_t *ids, size_t n_ids)
{
    smoe_client_request request = {ids, n_ids, 1000, NULL};
    assert_int_equal(smoe_client_send(c, &request, NULL), SMOE_OK);
}

static void ask_small(smoe_client *c)
{
    static const int32_t ids[] = {104, 105};
    ask(c, ids, 2);
}

/* The next thing that is not a time-out; fails when nothing comes for 20 s. */
static smoe_status next(smoe_client *c, smoe_reply *reply, smoe_err *err)
{
    smoe_status status = smoe_client_next(c, 20000, reply, err);
    assert_false(status == SMOE_OK && reply->kind == SMOE_REPLY_TIMEOUT);
    return status;
}

static void reads_answer(smoe_client *c, const char *text)
{
    smoe_reply reply;
    smoe_err err = {0};
    for (; *text; text++) {
        assert_int_equal(next(c, &reply, &err), SMOE_OK);
        assert_int_equal(reply.kind, SMOE_REPLY_TOKEN);
        assert_int_equal(reply.id, *text);
    }
    assert_int_equal(next(c, &reply, &err), SMOE_OK);
    assert_int_equal(reply.kind, SMOE_REPLY_DONE);
}

static void talks(void **state)
{
    (void)state;
    smoe_client *c = start("echo", NULL);
    smoe_reply reply;
    assert_true(smoe_client_pid(c) > 0);
    for (int i = 0; i < 3; i++) {
        ask_small(c);
        reads_answer(c, "hi");
        assert_int_equal(smoe_client_send_reset(c, NULL), SMOE_OK);
        assert_int_equal(next(c, &reply, NULL), SMOE_OK);
        assert_int_equal(reply.kind, SMOE_REPLY_DONE);
        assert_string_equal(reply.fin, "");
    }
    assert_int_equal(smoe_client_next(c, 0, &reply, NULL), SMOE_OK);
    assert_int_equal(reply.kind, SMOE_REPLY_TIMEOUT);
    ask_small(c);
    assert_int_equal(next(c, &reply, NULL), SMOE_OK);
    assert_int_equal(next(c, &reply, NULL), SMOE_OK);
    assert_int_equal(next(c, &reply, NULL), SMOE_OK);
    assert_string_equal(reply.fin, "stop");
    assert_true(reply.n_generated == 2 && reply.n_prompt == 7 && reply.n_cached == 3);
    assert_true(reply.prefill_s == 0.0015 && reply.decode_s == 0.002 && reply.hit == 0.5);
    smoe_client_free(c);
}

static void dies(const char *mode, int exit_status, int n_tokens)
{
    smoe_client *c = start(mode, NULL);
    smoe_reply reply;
    smoe_err err;
    for (int round = 0; round < 2; round++) {
        ask_small(c);
        for (int i = 0; i < n_tokens; i++) {
            assert_int_equal(next(c, &reply, &err), SMOE_OK);
            assert_int_equal(reply.kind, SMOE_REPLY_TOKEN);
        }
        assert_int_equal(next(c, &reply, &err), SMOE_CHILD);
        assert_int_equal(smoe_client_exit_status(c), exit_status);
        assert_int_equal(next(c, &reply, &err), SMOE_CHILD); /* it stays dead */
        ask_small(c);                                        /* and sending does no harm */
        assert_int_equal(smoe_client_cancel(c, NULL), SMOE_OK);
        assert_int_equal(smoe_client_restart(c, &err), SMOE_OK);
        assert_int_equal(smoe_client_send_reset(c, NULL), SMOE_OK);
        assert_int_equal(next(c, &reply, &err), SMOE_OK);
    }
    smoe_client_free(c);
}

static void deaths(void **state)
{
    (void)state;
    dies("die", 3, 3);
    dies("die-silent", 4, 0);
    dies("crash", 128 + SIGKILL, 0);
    dies("half", 0, 0); /* "12" cut short is no token */
    dies("garbage", 128 + SIGTERM, 0);
    dies("close-stdin", 128 + SIGTERM, 0);
}

static void death_sentences(void **state)
{
    (void)state;
    smoe_reply reply;
    smoe_err err;
    smoe_client *c = start("garbage", NULL);
    ask_small(c);
    assert_int_equal(next(c, &reply, &err), SMOE_CHILD);
    assert_string_equal(
        err.text, "the engine printed \"Segmentation\", which is not the protocol; it was ended");
    smoe_client_free(c);
    const char *argv[] = {"/nonexistent/engine", NULL};
    assert_int_equal(smoe_client_start(argv, -1, &c, &err), SMOE_CHILD);
    assert_string_equal(err.text,
                        "/nonexistent/engine could not be started: No such file or directory");
}

static void idle_death(void **state)
{
    (void)state;
    smoe_client *c = start("echo", NULL);
    smoe_reply reply;
    kill(smoe_client_pid(c), SIGKILL);
    usleep(50000);
    ask_small(c); /* a broken pipe here must not raise SIGPIPE */
    assert_int_equal(next(c, &reply, NULL), SMOE_CHILD);
    assert_int_equal(smoe_client_exit_status(c), 128 + SIGKILL);
    smoe_client_free(c);
}

static void hangs(void **state)
{
    (void)state;
    smoe_client *c = start("hang", NULL);
    smoe_reply reply;
    ask_small(c);
    uint64_t start_ns = clock_ns();
    assert_int_equal(smoe_client_next(c, 100, &reply, NULL), SMOE_OK);
    assert_int_equal(reply.kind, SMOE_REPLY_TIMEOUT);
    assert_true(clock_ns() - start_ns >= 100000000u);
    assert_int_equal(smoe_client_restart(c, NULL), SMOE_OK);
    smoe_client_free(c); /* nothing asked: it leaves by itself */
    c = start("hang-term", NULL);
    assert_int_equal(smoe_client_send_reset(c, NULL), SMOE_OK);
    assert_int_equal(next(c, &reply, NULL), SMOE_OK); /* it runs, so it ignores SIGTERM by now */
    ask_small(c);
    pid_t pid = smoe_client_pid(c);
    smoe_client_free(c);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void cancels(void **state)
{
    (void)state;
    smoe_client *c = start("slow", "x");
    smoe_reply reply;
    ask_small(c);
    assert_int_equal(next(c, &reply, NULL), SMOE_OK);
    assert_int_equal(smoe_client_cancel(c, NULL), SMOE_OK);
    while (reply.kind == SMOE_REPLY_TOKEN) {
        assert_int_equal(next(c, &reply, NULL), SMOE_OK);
    }
    assert_int_equal(reply.kind, SMOE_REPLY_DONE);
    assert_string_equal(reply.fin, "cancel");
    smoe_client_free(c);
}

/* A request of 2 MB while the engine prints 8 MB before it reads: neither waits for the other. */
static void both_directions(void **state)
{
    (void)state;
    smoe_client *c = start("flood", NULL);
    smoe_reply reply;
    size_t n_ids = 300000, n_echoed = 0, n_flood = 0;
    int32_t *ids = malloc(n_ids * sizeof *ids);
    for (size_t i = 0; i < n_ids; i++) {
        ids[i] = (int32_t)(i + 1000000);
    }
    ask(c, ids, n_ids);
    do {
        assert_int_equal(next(c, &reply, NULL), SMOE_OK);
        n_flood += reply.kind == SMOE_REPLY_TOKEN;
    } while (reply.kind == SMOE_REPLY_TOKEN);
    assert_int_equal(n_flood, 1 << 20);
    do {
        assert_int_equal(next(c, &reply, NULL), SMOE_OK);
        if (reply.kind == SMOE_REPLY_TOKEN) {
            assert_int_equal(reply.id, ids[n_echoed]);
            n_echoed++;
        }
    } while (reply.kind == SMOE_REPLY_TOKEN);
    assert_int_equal(n_echoed, n_ids);
    free(ids);
    smoe_client_free(c);
}

static void on_alarm(int sig)
{
    (void)sig;
}

static void signals_are_noticed(void **state)
{
    (void)state;
    smoe_client *c = start("hang", NULL);
    smoe_reply reply;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {.it_value = {0, 100000}};
    uint64_t start_ns = clock_ns();
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_int_equal(smoe_client_next(c, -1, &reply, NULL), SMOE_OK);
    assert_int_equal(reply.kind, SMOE_REPLY_TIMEOUT);
    assert_true(clock_ns() - start_ns < 10000000000u);
    smoe_client_free(c);
}

static void keeps_stderr_and_descriptors(void **state)
{
    (void)state;
    char path[] = "/tmp/test_client.XXXXXX", text[256] = "";
    int fd = mkstemp(path);
    unlink(path);
    const char *argv[] = {fake_engine, "die", NULL};
    smoe_client *c = NULL;
    smoe_reply reply;
    int before = dup(0);
    close(before);
    assert_int_equal(smoe_client_start(argv, fd, &c, NULL), SMOE_OK);
    ask_small(c);
    while (next(c, &reply, NULL) == SMOE_OK) {
    }
    smoe_client_free(c);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "fake_engine: something broke\n");
    int after = dup(0);
    close(after);
    assert_int_equal(before, after); /* no descriptor was left open */
    close(fd);
}

static void refused_memory(void **state)
{
    (void)state;
    const char *argv[] = {fake_engine, "echo", NULL};
    smoe_client *c = NULL;
    static const int32_t ids[2000] = {1};
    smoe_client_request request = {ids, 2000, 5, "t=0"};
    int n_refused = 0;
    for (uint64_t nth = 1;; nth++) {
        mem_fail_nth(nth);
        smoe_status status = smoe_client_start(argv, -1, &c, NULL);
        if (status == SMOE_OK) {
            status = smoe_client_send(c, &request, NULL);
            mem_fail_nth(0);
            smoe_client_free(c);
        }
        mem_fail_nth(0);
        if (status == SMOE_OK) {
            break;
        }
        assert_int_equal(status, SMOE_NOMEM);
        n_refused++;
    }
    assert_true(n_refused > 4);
    c = start("echo", NULL);
    mem_fail_nth(1);
    assert_int_equal(smoe_client_send(c, &request, NULL), SMOE_NOMEM);
    mem_fail_nth(0);
    ask_small(c); /* the half-made line is gone */
    reads_answer(c, "hi");
    smoe_client_free(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(talks),       cmocka_unit_test(deaths),
        cmocka_unit_test(death_sentences), cmocka_unit_test(idle_death),
        cmocka_unit_test(hangs),       cmocka_unit_test(cancels),
        cmocka_unit_test(both_directions), cmocka_unit_test(signals_are_noticed),
        cmocka_unit_test(keeps_stderr_and_descriptors), cmocka_unit_test(refused_memory),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: test_client FAKE_ENGINE\n");
        return 2;
    }
    fake_engine = argv[1];
    null_fd = open("/dev/null", O_WRONLY);
    return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
