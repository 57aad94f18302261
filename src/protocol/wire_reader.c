/* wire_reader.c: the reply stream, field by field. A field counts only once the white space after
 * it has arrived: a number that a dying engine cut short is never taken for a token. */
#include "protocol/wire.h"

#include "protocol/wire_number.h"

static smoe_reply reply_blank(void)
{
    return (smoe_reply){.prefill_s = -1, .decode_s = -1, .hit = -1};
}

void wire_reader_init(wire_reader *r)
{
    memset(r, 0, sizeof *r);
    r->reply = reply_blank();
}

static smoe_status not_protocol(slice field, smoe_err *err)
{
    char shown[41];
    size_t n = field.len < sizeof shown - 1 ? field.len : sizeof shown - 1;
    for (size_t i = 0; i < n; i++) {
        shown[i] = field.data[i] >= 0x20 && field.data[i] < 0x7f ? field.data[i] : '?';
    }
    shown[n] = '\0';
    return err_set(err, SMOE_FORMAT, "the engine printed \"%s\", which is not the protocol", shown);
}

static bool copy_word(slice s, char *out, size_t size)
{
    if (s.len == 0 || s.len >= size) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        bool ok = (s.data[i] >= 'a' && s.data[i] <= 'z') || s.data[i] == '_';
        if (!ok) {
            return false;
        }
    }
    memcpy(out, s.data, s.len);
    out[s.len] = '\0';
    return true;
}

static bool parse_seconds(slice ms, double *out)
{
    double value;
    if (!wire_double(ms, &value) || value < 0) {
        return false;
    }
    *out = value / 1000.0;
    return true;
}

static bool parse_fraction(slice s, smoe_reply *reply)
{
    const char *slash = memchr(s.data, '/', s.len);
    if (slash == NULL) {
        return false;
    }
    size_t n = (size_t)(slash - s.data);
    return wire_uint(slice_of(s.data, n), UINT64_MAX, &reply->done) &&
           wire_uint(slice_of(slash + 1, s.len - n - 1), UINT64_MAX, &reply->total);
}

static bool parse_logprob(slice s, double *out)
{
    return wire_double(s, out) && *out <= 0;
}

/* Takes what stands before the next comma off the front of *s. */
static slice take_item(slice *s)
{
    const char *comma = memchr(s->data, ',', s->len);
    slice item = {s->data, comma != NULL ? (size_t)(comma - s->data) : s->len};
    size_t n = item.len + (comma != NULL);
    *s = (slice){s->data + n, s->len - n};
    return item;
}

/* <chosen>,<id>:<logprob>,... */
static bool parse_logprobs(slice s, smoe_logprobs *out)
{
    if (slice_ends(s, slice_from(",")) || !parse_logprob(take_item(&s), &out->chosen.logprob)) {
        return false;
    }
    while (s.len > 0) {
        slice item = take_item(&s);
        const char *colon = memchr(item.data, ':', item.len);
        size_t n = colon != NULL ? (size_t)(colon - item.data) : item.len;
        uint64_t id;
        if (colon == NULL || out->n_top == SMOE_MAX_TOP_LOGPROBS ||
            !wire_uint(slice_of(item.data, n), INT32_MAX, &id) ||
            !parse_logprob(slice_of(colon + 1, item.len - n - 1), &out->top[out->n_top].logprob)) {
            return false;
        }
        out->top[out->n_top++].id = (int32_t)id;
    }
    return true;
}

/* "scout,kv,scratch,ring" in bytes. */
static bool parse_memory(slice value, smoe_expert_tier *t)
{
    uint64_t *parts[] = {&t->scout_bytes, &t->kv_bytes, &t->scratch_bytes, &t->ring_bytes};
    for (int i = 0; i < 4; i++) {
        const char *comma = i < 3 ? memchr(value.data, ',', value.len) : value.data + value.len;
        size_t n = comma ? (size_t)(comma - value.data) : 0;
        if (!comma || !wire_uint(slice_of(value.data, n), UINT64_MAX, parts[i])) {
            return false;
        }
        value = i < 3 ? slice_of(comma + 1, value.len - n - 1) : value;
    }
    t->is_known = true;
    return true;
}

/* A known key with an unreadable value is not the protocol; an unknown key is somebody's extension.
 */
static bool counter(wire_reader *r, slice key, slice value)
{
    smoe_reply *c = &r->reply;
    const struct {
        const char *key;
        uint64_t *count; /* or, when NULL: */
        double *seconds;
    } known[] = {
        {"n", &c->n_generated, NULL},
        {"pp", &c->n_prompt, NULL},
        {"pc", &c->n_cached, NULL},
        {"prefill_ms", NULL, &c->prefill_s},
        {"decode_ms", NULL, &c->decode_s},
        {"lookups", &c->tier.n_lookups, NULL},
        {"hits", &c->tier.n_hits, NULL},
        {"evicted", &c->tier.n_evictions, NULL},
        {"read", &c->tier.bytes_read, NULL},
        {"wasted", &c->tier.bytes_wasted, NULL},
        {"read_ms", NULL, &c->tier.read_s},
    };
    if (slice_is(key, "fin")) {
        return copy_word(value, c->fin, sizeof c->fin);
    }
    if (slice_is(key, "hit")) {
        return wire_double(value, &c->hit);
    }
    if (slice_is(key, "mem")) {
        return parse_memory(value, &c->tier);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (slice_is(key, known[i].key)) {
            return known[i].count ? wire_uint(value, UINT64_MAX, known[i].count)
                                  : parse_seconds(value, known[i].seconds);
        }
    }
    return true;
}

static void finish(wire_reader *r, enum smoe_reply_kind kind, smoe_reply *reply)
{
    r->reply.kind = kind;
    *reply = r->reply;
    r->reply = reply_blank();
    r->in_error = false;
}

/* One complete field; *got when it makes an event. */
static smoe_status take(wire_reader *r, slice field, bool *got, smoe_reply *reply, smoe_err *err)
{
    *got = true;
    if (r->in_error) {
        if (!slice_ends(field, slice_from(">>")) ||
            !copy_word(slice_of(field.data, field.len - 2), r->reply.error,
                       sizeof r->reply.error)) {
            return not_protocol(field, err);
        }
        finish(r, SMOE_REPLY_ERROR, reply);
        return SMOE_OK;
    }
    if (slice_is(field, "<<DONE>>")) {
        finish(r, SMOE_REPLY_DONE, reply);
        return SMOE_OK;
    }
    uint64_t id;
    if (wire_uint(field, INT32_MAX, &id)) {
        *reply = reply_blank();
        reply->kind = SMOE_REPLY_TOKEN;
        reply->id = r->last_id = (int32_t)id;
        return SMOE_OK;
    }
    *got = false;
    if (slice_is(field, "<<ERR")) {
        r->in_error = true;
        return SMOE_OK;
    }
    const char *equals = memchr(field.data, '=', field.len);
    if (equals == NULL) {
        return not_protocol(field, err);
    }
    slice key = {field.data, (size_t)(equals - field.data)};
    slice value = {equals + 1, field.len - key.len - 1};
    if (slice_is(key, "pf")) {
        *reply = reply_blank();
        reply->kind = SMOE_REPLY_PROGRESS;
        *got = true;
        return parse_fraction(value, reply) ? SMOE_OK : not_protocol(field, err);
    }
    if (slice_is(key, "lp")) {
        *reply = reply_blank();
        reply->kind = SMOE_REPLY_LOGPROBS;
        reply->logprobs.chosen.id = r->last_id;
        *got = true;
        return parse_logprobs(value, &reply->logprobs) ? SMOE_OK : not_protocol(field, err);
    }
    return counter(r, key, value) ? SMOE_OK : not_protocol(field, err);
}

smoe_status wire_reader_next(wire_reader *r, slice *bytes, bool *got, smoe_reply *reply,
                             smoe_err *err)
{
    *got = false;
    while (bytes->len > 0 && !*got) {
        char c = *bytes->data++;
        bytes->len--;
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
            if (r->n_field == sizeof r->field) {
                return not_protocol(slice_of(r->field, r->n_field), err);
            }
            r->field[r->n_field++] = c;
        } else if (r->n_field > 0) {
            slice field = {r->field, r->n_field};
            r->n_field = 0;
            TRY(take(r, field, got, reply, err));
        }
    }
    return SMOE_OK;
}
