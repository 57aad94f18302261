/* The grammar: every form of a request, every form of a reply, and garbage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "protocol/wire.h"
#include "protocol/wire_number.h"

static smoe_status parse_n(const char *text, size_t len, wire_request *r)
{
    /* A heap copy of the exact length lets the sanitizer see one byte too many. */
    char *copy = mem_alloc(len);
    smoe_err err = {0};
    memcpy(copy, text, len);
    smoe_status status = wire_parse_request(slice_of(copy, len), r, &err);
    mem_free(copy);
    assert_true(status == SMOE_OK || (err.code == status && err.text[0] != '\0'));
    return status;
}

static smoe_status parse(const char *text, wire_request *r)
{
    return parse_n(text, strlen(text), r);
}

static void good_requests(void **state)
{
    (void)state;
    wire_request r;
    wire_request_init(&r);
    assert_int_equal(parse("GEN 10 1,2,3", &r), SMOE_OK);
    assert_int_equal(r.verb, WIRE_GEN);
    assert_int_equal(r.max_tokens, 10);
    assert_int_equal(r.n_ids, 3);
    assert_int_equal(r.ids[2], 3);
    assert_false(r.has_temperature || r.has_top_p || r.has_top_k || r.has_rep_penalty ||
                 r.has_seed);

    assert_int_equal(
        parse("GEN 4294967295 t=0 p=0.5 k=7 r=1.25 s=18446744073709551615 0,2147483647\r", &r),
        SMOE_OK);
    assert_int_equal(r.max_tokens, UINT32_MAX);
    assert_true(r.has_temperature && r.temperature == 0);
    assert_true(r.has_top_p && r.top_p == 0.5f);
    assert_true(r.has_top_k && r.top_k == 7);
    assert_true(r.has_rep_penalty && r.rep_penalty == 1.25f);
    assert_true(r.has_seed && r.seed == UINT64_MAX);
    assert_int_equal(r.n_ids, 2);
    assert_int_equal(r.ids[1], INT32_MAX);

    assert_int_equal(
        parse("  GEN \t 5   x=a,b  temp=hot =  t=1e-5 k=99999999999999999999999 9 ", &r), SMOE_OK);
    assert_true(r.temperature == 1e-5f && r.top_k == 1024);
    assert_int_equal(r.n_ids, 1);
    assert_int_equal(parse("GEN 5 t=1 t=2 7", &r), SMOE_OK); /* the last one counts */
    assert_true(r.temperature == 2);
    assert_int_equal(parse("GEN 5 k=1025 007", &r), SMOE_OK);
    assert_true(r.top_k == 1024 && r.ids[0] == 7);
    assert_int_equal(parse("GEN 5 t=.5 p=1 r=+2.0e+0 7", &r), SMOE_OK);
    assert_true(r.temperature == 0.5f && r.rep_penalty == 2);

    assert_false(r.has_min_p || r.has_presence_penalty || r.has_frequency_penalty ||
                 r.has_logprobs);

    assert_int_equal(parse("GEN 5 min_p=0.05 presence_penalty=-2 frequency_penalty=1.5 "
                           "logprobs=20 min_q=x 7", &r), SMOE_OK);
    assert_true(r.has_min_p && r.min_p == 0.05f);
    assert_true(r.has_presence_penalty && r.presence_penalty == -2);
    assert_true(r.has_frequency_penalty && r.frequency_penalty == 1.5f);
    assert_true(r.has_logprobs && r.n_top_logprobs == 20);

    assert_int_equal(parse("RESET", &r), SMOE_OK);
    assert_int_equal(r.verb, WIRE_RESET);
    assert_int_equal(parse("CANCEL\r", &r), SMOE_OK);
    assert_int_equal(r.verb, WIRE_CANCEL);
    wire_request_fini(&r);
}

static void bad_requests(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", " ", "\r", "gen 1 1", "GENX 1 1", "GEN", "GEN ", "GEN x 1", "GEN 0 1", "GEN -1 1",
        "GEN +1 1", "GEN 1.0 1", "GEN 4294967296 1", "GEN 99999999999999999999 1", "GEN 1,2,3",
        "GEN 0x10 1", "GEN 1 a", "GEN 1 -1", "GEN 1 1,", "GEN 1 ,1", "GEN 1 ,", "GEN 1 1,,2",
        "GEN 1 1, 2", "GEN 1 1 ,2", "GEN 1 1 2", "GEN 1 2147483648", "GEN 1 1,99999999999999999999",
        "GEN 1 1;2", "GEN 1 1.5", "GEN 1 1\r2", "GEN 1 0x1", "GEN 1 1,2 t=0", "GEN 1 1\r\r",
        "GEN 1 t= 1", "GEN 1 t=abc 1", "GEN 1 t=-1 1", "GEN 1 t=nan 1", "GEN 1 t=inf 1",
        "GEN 1 t=1e39 1", "GEN 1 t=1e999 1", "GEN 1 t=0x1 1", "GEN 1 t=1. 1x", "GEN 1 t=1,5 1",
        "GEN 1 t=. 1", "GEN 1 t=e5 1", "GEN 1 t=1e 1", "GEN 1 t=1e+ 1", "GEN 1 t=- 1",
        "GEN 1 t==1 1",
        "GEN 1 t=1111111111111111111111111111111111111111111111111111111111111111 1", "GEN 1 p=2 1",
        "GEN 1 p=-0.1 1", "GEN 1 p= 1", "GEN 1 p=1.0001 1", "GEN 1 k=0 1", "GEN 1 k=-1 1",
        "GEN 1 k=1.5 1", "GEN 1 k= 1", "GEN 1 k=x 1", "GEN 1 r=0 1", "GEN 1 r=-1 1",
        "GEN 1 r=nan 1", "GEN 1 r= 1", "GEN 1 r=1e-60 1", "GEN 1 s=-1 1",
        "GEN 1 s=18446744073709551616 1", "GEN 1 s= 1", "GEN 1 s=1.0 1", "RESET now",
        "GEN 1 min_p=1.1 1", "GEN 1 min_p=-0.1 1", "GEN 1 min_p= 1", "GEN 1 presence_penalty=2.1 1",
        "GEN 1 presence_penalty=x 1", "GEN 1 frequency_penalty=-2.1 1", "GEN 1 logprobs=21 1",
        "GEN 1 logprobs= 1", "GEN 1 logprobs=-1 1", "CANCEL 1",
        "reset", "RESET,", "DONE", "<<DONE>>", "32 386",
    };
    wire_request r;
    wire_request_init(&r);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse(bad[i], &r) != SMOE_RANGE) {
            fail_msg("\"%s\" was not refused", bad[i]);
        }
    }
    assert_int_equal(parse_n("GEN 1 1\0002", 10, &r), SMOE_RANGE);
    assert_int_equal(parse_n("GEN\0 1 1", 8, &r), SMOE_RANGE);
    static const char *const empty[] = {"GEN 10", "GEN 10 ", "GEN 10\r", "GEN 10 t=0",
                                        "GEN 10 t=0 x=1 \t"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        assert_int_equal(parse(empty[i], &r), SMOE_EMPTY);
        assert_string_equal(wire_error_name(SMOE_EMPTY), "empty_suffix");
    }
    wire_request_fini(&r);
}

static void many_ids_and_no_memory(void **state)
{
    (void)state;
    buf line;
    wire_request r;
    buf_init(&line, 1 << 20);
    wire_request_init(&r);
    int32_t ids[5000];
    for (int i = 0; i < 5000; i++) {
        ids[i] = i * 400000;
    }
    smoe_client_request request = {ids, 5000, 77, "t=0 s=7"};
    assert_int_equal(wire_format_gen(&line, &request, NULL), SMOE_OK);
    assert_int_equal(line.data[line.len - 1], '\n');
    int n_refused = 0;
    for (uint64_t nth = 1;; nth++) {
        wire_request fresh;
        wire_request_init(&fresh);
        mem_fail_nth(nth);
        smoe_status status = wire_parse_request(slice_of(line.data, line.len - 1), &fresh, NULL);
        mem_fail_nth(0);
        wire_request_fini(&fresh);
        if (status == SMOE_OK) {
            break;
        }
        assert_int_equal(status, SMOE_NOMEM);
        assert_string_equal(wire_error_name(status), "internal");
        n_refused++;
    }
    assert_true(n_refused > 0);
    assert_int_equal(parse_n(line.data, line.len - 1, &r), SMOE_OK);
    assert_int_equal(r.max_tokens, 77);
    assert_true(r.has_seed && r.seed == 7 && r.temperature == 0);
    assert_int_equal(r.n_ids, 5000);
    assert_memory_equal(r.ids, ids, sizeof ids);

    request.overrides = "t=0\nRESET";
    assert_int_equal(wire_format_gen(&line, &request, NULL), SMOE_RANGE);
    request.overrides = "5";
    assert_int_equal(wire_format_gen(&line, &request, NULL), SMOE_RANGE);
    wire_request_fini(&r);
    buf_fini(&line);
}

static void cancel_lines(void **state)
{
    (void)state;
    assert_true(wire_is_cancel(slice_from("CANCEL")));
    assert_true(wire_is_cancel(slice_from(" CANCEL \r")));
    assert_false(wire_is_cancel(slice_from("CANCEL x")));
    assert_false(wire_is_cancel(slice_from("CANCELX")));
    assert_false(wire_is_cancel(slice_from("")));
}

static size_t write_tier(char *out, size_t size, const smoe_expert_tier *t)
{
    return !t->is_known
               ? 0
               : (size_t)snprintf(out, size, "tier %u %u %u %u %u %g %u %u %u %u;",
                                  (unsigned)t->n_lookups, (unsigned)t->n_hits,
                                  (unsigned)t->n_evictions, (unsigned)t->bytes_read,
                                  (unsigned)t->bytes_wasted, t->read_s, (unsigned)t->scout_bytes,
                                  (unsigned)t->kv_bytes, (unsigned)t->scratch_bytes,
                                  (unsigned)t->ring_bytes);
}

/* Reads a whole stream in pieces of `step` bytes; events as text. */
static smoe_status read_all(const char *stream, size_t step, char *out, size_t size)
{
    wire_reader r;
    size_t n = strlen(stream), used = 0;
    out[0] = '\0';
    wire_reader_init(&r);
    for (size_t at = 0; at < n; at += step) {
        slice piece = {stream + at, n - at < step ? n - at : step};
        while (piece.len > 0) {
            bool got;
            smoe_reply e;
            smoe_err err;
            smoe_status status = wire_reader_next(&r, &piece, &got, &e, &err);
            if (status != SMOE_OK) {
                return status;
            }
            if (!got) {
                continue;
            }
            char *to = out + used;
            switch (e.kind) {
            case SMOE_REPLY_LOGPROBS:
                used += (size_t)snprintf(to, size - used, "%d=%g", e.logprobs.chosen.id,
                                         e.logprobs.chosen.logprob);
                for (uint32_t t = 0; t < e.logprobs.n_top; t++) {
                    used += (size_t)snprintf(out + used, size - used, " %d=%g",
                                             e.logprobs.top[t].id, e.logprobs.top[t].logprob);
                }
                used += (size_t)snprintf(out + used, size - used, ";");
                break;
            case SMOE_REPLY_TOKEN:
                used += (size_t)snprintf(to, size - used, "%d;", e.id);
                break;
            case SMOE_REPLY_PROGRESS:
                used += (size_t)snprintf(to, size - used, "%llu of %llu;",
                                         (unsigned long long)e.done, (unsigned long long)e.total);
                break;
            case SMOE_REPLY_DONE:
                used += (size_t)snprintf(
                    to, size - used, "done %s %llu %llu %llu %g %g %g;", e.fin,
                    (unsigned long long)e.n_generated, (unsigned long long)e.n_prompt,
                    (unsigned long long)e.n_cached, e.hit, e.prefill_s, e.decode_s);
                used += write_tier(out + used, size - used, &e.tier);
                break;
            default:
                used += (size_t)snprintf(to, size - used, "error %s;", e.error);
            }
        }
    }
    return SMOE_OK;
}

static void good_replies(void **state)
{
    (void)state;
    static const struct {
        const char *stream, *events;
    } cases[] = {
        {"32 386 12735 \n<<DONE>>\n", "32;386;12735;done  0 0 0 -1 -1 -1;"},
        {"pf=5/10\npf=10/10\n1 \nfin=stop n=1 pp=9 pc=4 hit=0.25 prefill_ms=1500 decode_ms=0.5 "
         "new=x "
         "<<DONE>>\n2 <<DONE>>\n",
         "5 of 10;10 of 10;1;done stop 1 9 4 0.25 1.5 0.0005;2;done  0 0 0 -1 -1 -1;"},
        {"<<ERR bad_request>>\n<<DONE>>\n", "error bad_request;done  0 0 0 -1 -1 -1;"},
        {"7 \n<<ERR internal>>\r\n", "7;error internal;"},
        {"0 2147483647 =5 <<DONE>> ", "0;2147483647;done  0 0 0 -1 -1 -1;"},
        {"7 lp=-0.5 8 lp=0,8:0,9:-12.25 <<DONE>>\n",
         "7;7=-0.5;8;8=0 8=0 9=-12.25;done  0 0 0 -1 -1 -1;"},
        {"12", ""}, /* not a token until it is over */
    };
    char events[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t step = 1; step < 9; step++) {
            assert_int_equal(read_all(cases[i].stream, step, events, sizeof events), SMOE_OK);
            assert_string_equal(events, cases[i].events);
        }
        assert_int_equal(read_all(cases[i].stream, 4096, events, sizeof events), SMOE_OK);
        assert_string_equal(events, cases[i].events);
    }
}

static void bad_replies(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "hello ", "-1 ", "2147483648 ", "1,2 ", "<<DONE>>x ", "<<done>> ", "<<ERR internal ",
        "<<ERR >> ", "<<ERR In>> ", "<<ERR abcdefghijklmnopqrstuvwxyzabcdefghij>> ", "<<ERR>> ",
        "fin=abcdefghijklmnopq ", "fin= ", "pf=1 ", "pf=/ ", "pf=1/ ", "pf=-1/2 ", "n=x ", "n=-1 ",
        "mem=1,2,3 ", "mem=1,2,3,4,5 ", "mem=,1,2,3 ", "read=-1 ",
        "hit=nan ", "decode_ms=-1 ", "prefill_ms=1e ",
        "lp= ", "lp=x ", "lp=1 ", "lp=-1, ", "lp=-1,5 ", "lp=-1,5: ", "lp=-1,5:1 ", "lp=-1,-5:-1 ",
        "lp=-1,,5:-1 ",
        "lp=0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0,1:0 ",
    };
    char events[512], field[WIRE_FIELD_BYTES + 3];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (read_all(bad[i], 3, events, sizeof events) != SMOE_FORMAT) {
            fail_msg("\"%s\" was taken for the protocol", bad[i]);
        }
    }
    memset(field, '=', sizeof field);
    memcpy(field + WIRE_FIELD_BYTES, " ", 2);
    assert_int_equal(read_all(field, 3, events, sizeof events), SMOE_OK); /* an unknown key */
    memcpy(field + WIRE_FIELD_BYTES, "= ", 3);
    assert_int_equal(read_all(field, 3, events, sizeof events), SMOE_FORMAT); /* too long */
}

static void replies_read_back(void **state)
{
    (void)state;
    char line[WIRE_PIECE_BYTES], events[512];
    wire_counters c = {"length", 5, 20, 15, 1000, 987, 1234567, 2000000000u,
                       1, 2, 3, 4500000, 6, 7, 8, 9};
    size_t n = wire_format_done(line, sizeof line, &c);
    assert_int_equal(n, strlen(line));
    assert_string_equal(line, "fin=length n=5 pp=20 pc=15 hit=0.9870 prefill_ms=1.234 "
                              "decode_ms=2000.000 lookups=1000 hits=987 evicted=1 read=2 wasted=3 "
                              "read_ms=4.500 mem=6,7,8,9 <<DONE>>\n");
    assert_int_equal(read_all(line, 7, events, sizeof events), SMOE_OK);
    assert_string_equal(events, "done length 5 20 15 0.987 0.001234 2;"
                                "tier 1000 987 1 2 3 0.0045 6 7 8 9;");
    wire_counters most = {"cancel", UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                          UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                          UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    n = wire_format_done(line, sizeof line, &most);
    assert_int_equal(n, strlen(line));
    assert_true(n < WIRE_PIECE_BYTES - 1);
    assert_int_equal(wire_format_token(line, sizeof line, INT32_MAX), 11);
    assert_string_equal(line, "2147483647 ");
    smoe_logprobs widest = {.chosen = {1, -9999}, .n_top = SMOE_MAX_TOP_LOGPROBS};
    for (uint32_t t = 0; t < SMOE_MAX_TOP_LOGPROBS; t++) {
        widest.top[t] = (smoe_logprob){INT32_MAX, -9999};
    }
    n = wire_format_logprobs(line, sizeof line, &widest);
    assert_true(n == strlen(line) && n < WIRE_PIECE_BYTES - 1 && n - 1 <= WIRE_FIELD_BYTES);
    assert_int_equal(read_all(line, 7, events, sizeof events), SMOE_OK);
    smoe_logprobs small = {.chosen = {1, -1e-7}, .n_top = 1, .top = {{3, -1.2345678}}};
    wire_format_logprobs(line, sizeof line, &small);
    assert_string_equal(line, "lp=0.000000,3:-1.234568 ");
    wire_format_progress(line, sizeof line, 3, 9);
    assert_string_equal(line, "pf=3/9\n");
    wire_format_error(line, sizeof line, wire_error_name(SMOE_SUFFIX));
    assert_string_equal(line, "<<ERR suffix_too_long>>\n");
    assert_string_equal(wire_error_name(SMOE_OVERFLOW), "ctx_overflow");
    assert_string_equal(wire_error_name(SMOE_RANGE), "bad_request");
    assert_string_equal(wire_error_name(SMOE_IO), "internal");
}

/* Pieces of the grammar and noise, glued at random: never a crash, and never a good answer to a
 * line that does not start with a verb. */
static void garbage(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "GEN", "RESET", "CANCEL", " ", " ", " ", "\t", "\r", "1", "42", "-", ",", ",", "=", "t=",
        "p=0.5", "k=5", "r=1", "s=9", "x=", "1,2,3", "e", ".", "nan", "\xff", "<<DONE>>", "<<ERR",
        "internal>>", "pf=1/2", "fin=stop", "\n", "99999999999999999999",
    };
    rng random = {20240229};
    wire_request r;
    wire_request_init(&r);
    for (int i = 0; i < 200000; i++) {
        char text[512];
        size_t n = 0, n_pieces = rng_next(&random) % 12;
        for (size_t j = 0; j < n_pieces; j++) {
            const char *piece = pieces[rng_next(&random) % (sizeof pieces / sizeof pieces[0])];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        if (n > 0 && rng_next(&random) % 4 == 0) {
            text[rng_next(&random) % n] = (char)rng_next(&random);
        }
        wire_request_fini(&r);
        smoe_status status = parse_n(text, n, &r);
        assert_true(status == SMOE_OK || status == SMOE_RANGE || status == SMOE_EMPTY);
        if (status == SMOE_OK && r.verb == WIRE_GEN) {
            assert_true(r.max_tokens > 0 && r.n_ids > 0);
            assert_true(!r.has_top_p || (r.top_p >= 0 && r.top_p <= 1));
            assert_true(!r.has_top_k || (r.top_k >= 1 && r.top_k <= 1024));
        }
        wire_reader reader;
        slice bytes = {text, n};
        bool got;
        smoe_reply reply;
        wire_reader_init(&reader);
        while (bytes.len > 0 && wire_reader_next(&reader, &bytes, &got, &reply, NULL) == SMOE_OK) {
        }
    }
    wire_request_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests),    cmocka_unit_test(bad_requests),
        cmocka_unit_test(many_ids_and_no_memory), cmocka_unit_test(cancel_lines),
        cmocka_unit_test(good_replies),     cmocka_unit_test(bad_replies),
        cmocka_unit_test(replies_read_back), cmocka_unit_test(garbage),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
