/* wire.c: requests, and the spelling of replies. The reply reader is in wire_reader.c. */
#include "protocol/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "protocol/wire_number.h"

void wire_request_init(wire_request *r)
{
    memset(r, 0, sizeof *r);
}

void wire_request_fini(wire_request *r)
{
    mem_free(r->ids);
    memset(r, 0, sizeof *r);
}

/* Takes the next field (a run without blanks) off the front of *rest; an empty one at the end. */
static slice take_field(slice *rest)
{
    while (rest->len > 0 && (*rest->data == ' ' || *rest->data == '\t')) {
        rest->data++;
        rest->len--;
    }
    slice field = {rest->data, 0};
    while (field.len < rest->len && rest->data[field.len] != ' ' && rest->data[field.len] != '\t') {
        field.len++;
    }
    rest->data += field.len;
    rest->len -= field.len;
    return field;
}

static slice trim_line(slice line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\r') {
        line.len--;
    }
    return line;
}

/* A field for a message: short, and without bytes that would upset a terminal or a log. */
typedef struct shown {
    char text[48];
} shown;

static shown show(slice s)
{
    shown out;
    size_t n = s.len < 40 ? s.len : 40;
    for (size_t i = 0; i < n; i++) {
        out.text[i] = s.data[i] >= 0x20 && s.data[i] < 0x7f ? s.data[i] : '?';
    }
    memcpy(out.text + n, s.len > n ? "..." : "", s.len > n ? 4 : 1);
    return out;
}

static smoe_status push_id(wire_request *r, int32_t id, smoe_err *err)
{
    if (r->n_ids == r->cap_ids) {
        size_t cap = r->cap_ids == 0 ? 1024 : r->cap_ids * 2;
        int32_t *ids = mem_realloc(r->ids, cap * sizeof *ids);
        if (ids == NULL) {
            return err_nomem(err, "the ids of a request", cap * sizeof *ids);
        }
        r->ids = ids;
        r->cap_ids = cap;
    }
    r->ids[r->n_ids++] = id;
    return SMOE_OK;
}

static smoe_status parse_ids(slice list, wire_request *r, smoe_err *err)
{
    while (true) {
        const char *comma = memchr(list.data, ',', list.len);
        slice item = {list.data, comma != NULL ? (size_t)(comma - list.data) : list.len};
        uint64_t id;
        if (!wire_uint(item, INT32_MAX, &id)) {
            return err_set(err, SMOE_RANGE,
                           "id %zu of the request is \"%s\", expected a number from 0 to %d",
                           r->n_ids, show(item).text, INT32_MAX);
        }
        TRY(push_id(r, (int32_t)id, err));
        if (comma == NULL) {
            return SMOE_OK;
        }
        list.data += item.len + 1;
        list.len -= item.len + 1;
    }
}

static smoe_status bad_override(slice field, const char *expected, smoe_err *err)
{
    return err_set(err, SMOE_RANGE, "the request says \"%s\", expected %s", show(field).text,
                   expected);
}

static smoe_status parse_penalty(slice field, slice value, bool *has, float *out, smoe_err *err)
{
    *has = true;
    if (!wire_float(value, out) || *out < -2 || *out > 2) {
        return bad_override(field, "a penalty from -2 to 2", err);
    }
    return SMOE_OK;
}

/* Keys of several letters; an unknown key is ignored whatever its value. */
static smoe_status parse_long_override(slice field, wire_request *r, smoe_err *err)
{
    size_t n_key = (size_t)((const char *)memchr(field.data, '=', field.len) - field.data);
    slice key = {field.data, n_key}, value = {field.data + n_key + 1, field.len - n_key - 1};
    uint64_t n;
    if (slice_is(key, "min_p")) {
        r->has_min_p = true;
        if (!wire_float(value, &r->min_p) || r->min_p < 0 || r->min_p > 1) {
            return bad_override(field, "min_p= and a number from 0 to 1", err);
        }
    } else if (slice_is(key, "presence_penalty")) {
        return parse_penalty(field, value, &r->has_presence_penalty, &r->presence_penalty, err);
    } else if (slice_is(key, "frequency_penalty")) {
        return parse_penalty(field, value, &r->has_frequency_penalty, &r->frequency_penalty, err);
    } else if (slice_is(key, "logprobs")) {
        r->has_logprobs = true;
        if (!wire_uint(value, SMOE_MAX_TOP_LOGPROBS, &n)) {
            return bad_override(field, "logprobs= and a whole number from 0 to 20", err);
        }
        r->n_top_logprobs = (uint32_t)n;
    }
    return SMOE_OK;
}

static smoe_status parse_override(slice field, wire_request *r, smoe_err *err)
{
    if (field.len < 2 || field.data[1] != '=') {
        return parse_long_override(field, r, err);
    }
    slice value = {field.data + 2, field.len - 2};
    uint64_t n;
    switch (field.data[0]) {
    case 't':
        r->has_temperature = true;
        if (!wire_float(value, &r->temperature) || r->temperature < 0) {
            return bad_override(field, "t= and a finite temperature of 0 or more", err);
        }
        break;
    case 'p':
        r->has_top_p = true;
        if (!wire_float(value, &r->top_p) || r->top_p < 0 || r->top_p > 1) {
            return bad_override(field, "p= and a number from 0 to 1", err);
        }
        break;
    case 'k':
        r->has_top_k = true;
        if (!wire_uint_capped(value, WIRE_TOP_K_MAX, &n) || n == 0) {
            return bad_override(field, "k= and a whole number of 1 or more", err);
        }
        r->top_k = (uint32_t)n;
        break;
    case 'r':
        r->has_rep_penalty = true;
        if (!wire_float(value, &r->rep_penalty) || !(r->rep_penalty > 0)) {
            return bad_override(field, "r= and a finite penalty above 0", err);
        }
        break;
    case 's':
        r->has_seed = true;
        if (!wire_uint(value, UINT64_MAX, &r->seed)) {
            return bad_override(field, "s= and a whole number below 2^64", err);
        }
        break;
    default:
        break;
    }
    return SMOE_OK;
}

static smoe_status parse_gen(slice rest, wire_request *r, smoe_err *err)
{
    slice max_tokens = take_field(&rest);
    uint64_t n;
    if (!wire_uint(max_tokens, UINT32_MAX, &n) || n == 0) {
        return err_set(err, SMOE_RANGE,
                       "GEN says max_tokens \"%s\", expected a whole number of 1 or more",
                       show(max_tokens).text);
    }
    r->verb = WIRE_GEN;
    r->max_tokens = (uint32_t)n;
    slice field = take_field(&rest);
    while (field.len > 0 && memchr(field.data, '=', field.len) != NULL) {
        TRY(parse_override(field, r, err));
        field = take_field(&rest);
    }
    if (field.len == 0) {
        return err_set(err, SMOE_EMPTY, "GEN names no ids, expected <id0>,<id1>,... at its end");
    }
    slice extra = take_field(&rest);
    if (extra.len > 0) {
        return err_set(err, SMOE_RANGE,
                       "\"%s\" follows the id list, which ends the line and holds no blanks",
                       show(extra).text);
    }
    return parse_ids(field, r, err);
}

smoe_status wire_parse_request(slice line, wire_request *r, smoe_err *err)
{
    wire_request fresh = {.ids = r->ids, .cap_ids = r->cap_ids};
    *r = fresh;
    slice rest = trim_line(line);
    slice verb = take_field(&rest);
    if (slice_is(verb, "GEN")) {
        return parse_gen(rest, r, err);
    }
    bool is_reset = slice_is(verb, "RESET");
    if (!is_reset && !slice_is(verb, "CANCEL")) {
        return err_set(err, SMOE_RANGE, "a line starts with \"%s\", expected GEN, RESET or CANCEL",
                       show(verb).text);
    }
    slice extra = take_field(&rest);
    if (extra.len > 0) {
        return err_set(err, SMOE_RANGE, "\"%s\" follows %s, which takes no arguments",
                       show(extra).text, is_reset ? "RESET" : "CANCEL");
    }
    r->verb = is_reset ? WIRE_RESET : WIRE_CANCEL;
    return SMOE_OK;
}

bool wire_is_cancel(slice line)
{
    slice rest = trim_line(line);
    return slice_is(take_field(&rest), "CANCEL") && take_field(&rest).len == 0;
}

const char *wire_error_name(smoe_status status)
{
    switch (status) {
    case SMOE_RANGE:
        return "bad_request";
    case SMOE_EMPTY:
        return "empty_suffix";
    case SMOE_OVERFLOW:
        return "ctx_overflow";
    case SMOE_SUFFIX:
        return "suffix_too_long";
    default:
        return "internal";
    }
}

/* snprintf's count is what it wanted to write; a caller needs what is there. */
static size_t written(int n, size_t size)
{
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

size_t wire_format_token(char *out, size_t size, int32_t id)
{
    return written(snprintf(out, size, "%" PRId32 " ", id), size);
}

/* Six decimals in integer arithmetic, as below. */
static size_t put_logprob(char *out, size_t size, double logprob)
{
    uint64_t micro = (uint64_t)(-logprob * 1e6 + 0.5);
    return written(snprintf(out, size, "%s%" PRIu64 ".%06" PRIu64, micro > 0 ? "-" : "",
                            micro / 1000000, micro % 1000000), size);
}

size_t wire_format_logprobs(char *out, size_t size, const smoe_logprobs *logprobs)
{
    size_t n = written(snprintf(out, size, "lp="), size);
    n += put_logprob(out + n, size - n, logprobs->chosen.logprob);
    for (uint32_t i = 0; i < logprobs->n_top; i++) {
        const smoe_logprob *top = &logprobs->top[i];
        n += written(snprintf(out + n, size - n, ",%" PRId32 ":", top->id), size - n);
        n += put_logprob(out + n, size - n, top->logprob);
    }
    return n + written(snprintf(out + n, size - n, " "), size - n);
}

size_t wire_format_progress(char *out, size_t size, uint64_t done, uint64_t total)
{
    return written(snprintf(out, size, "pf=%" PRIu64 "/%" PRIu64 "\n", done, total), size);
}

/* Milliseconds with three decimals in integer arithmetic: no locale can turn the point into a
 * comma. */
#define MS_FORMAT "%" PRIu64 ".%03" PRIu64
#define MS_ARGS(ns) (ns) / 1000000, (ns) / 1000 % 1000

size_t wire_format_done(char *out, size_t size, const wire_counters *c)
{
    char hit[32] = "";
    if (c->n_acquires > 0) {
        double share = (double)c->n_hits / (double)c->n_acquires;
        unsigned per_10000 = (unsigned)(share * 10000.0);
        snprintf(hit, sizeof hit, " hit=%u.%04u", per_10000 / 10000, per_10000 % 10000);
    }
    return written(snprintf(out, size,
                            "fin=%s n=%" PRIu64 " pp=%" PRIu64 " pc=%" PRIu64
                            "%s prefill_ms=" MS_FORMAT " decode_ms=" MS_FORMAT
                            " lookups=%" PRIu64 " hits=%" PRIu64 " evicted=%" PRIu64
                            " read=%" PRIu64 " wasted=%" PRIu64 " read_ms=" MS_FORMAT
                            " mem=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 " <<DONE>>\n",
                            c->fin, c->n_generated, c->n_prompt, c->n_cached, hit,
                            MS_ARGS(c->prefill_ns), MS_ARGS(c->decode_ns), c->n_acquires,
                            c->n_hits, c->n_evictions, c->bytes_read, c->bytes_wasted,
                            MS_ARGS(c->read_ns), c->scout_bytes, c->kv_bytes, c->scratch_bytes,
                            c->ring_bytes),
                   size);
}

size_t wire_format_error(char *out, size_t size, const char *name)
{
    return written(snprintf(out, size, "<<ERR %s>>\n", name), size);
}

smoe_status wire_format_gen(buf *out, const smoe_client_request *request, smoe_err *err)
{
    const char *overrides = request->overrides != NULL ? request->overrides : "";
    if (strpbrk(overrides, "\r\n") != NULL) {
        return err_set(err, SMOE_RANGE, "the overrides of a request hold a line break");
    }
    slice rest = slice_from(overrides);
    for (slice f = take_field(&rest); f.len > 0; f = take_field(&rest)) {
        if (memchr(f.data, '=', f.len) == NULL) {
            return err_set(err, SMOE_RANGE, "the override \"%s\" has no '=', expected key=value",
                           show(f).text);
        }
    }
    TRY(buf_printf(out, err, "GEN %" PRIu32 "%s%s", request->max_tokens, *overrides ? " " : "",
                   overrides));
    for (size_t i = 0; i < request->n_ids; i++) {
        char piece[16];
        int n = snprintf(piece, sizeof piece, "%c%" PRId32, i == 0 ? ' ' : ',', request->ids[i]);
        TRY(buf_append(out, piece, (size_t)n, err));
    }
    return buf_putc(out, '\n', err);
}
