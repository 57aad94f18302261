/* trace.c: see trace.h. */
#include "bench/trace.h"

#include <string.h>

#include "base/file.h"
#include "formats/model_config.h"

enum { VERSION = 1, HEADER_BYTES = 64, NO_LINEAGE_DIGITS = 32 };
static const char MAGIC[8] = "smoetrce";
#define MAX_TRACE_BYTES (UINT64_C(1) << 30)

static size_t token_experts(const trace_shape *s)
{
    return (size_t)s->n_layer * s->n_used;
}

void trace_init(trace *t, const trace_shape *shape, const char *lineage)
{
    *t = (trace){.shape = *shape};
    buf_init(&t->passes, MAX_TRACE_BYTES);
    buf_init(&t->experts, MAX_TRACE_BYTES);
    memset(t->lineage, '0', NO_LINEAGE_DIGITS);
    if (lineage) {
        memcpy(t->lineage, lineage, NO_LINEAGE_DIGITS);
    }
}

void trace_fini(trace *t)
{
    buf_fini(&t->passes);
    buf_fini(&t->experts);
}

smoe_status trace_add_pass(trace *t, uint32_t n_tokens, smoe_err *err)
{
    size_t n_bytes = n_tokens * token_experts(&t->shape) * sizeof(uint16_t);
    TRY(buf_reserve(&t->experts, n_bytes, err));
    TRY(buf_append(&t->passes, &n_tokens, sizeof n_tokens, err));
    memset(t->experts.data + t->experts.len, 0, n_bytes);
    t->experts.len += n_bytes;
    t->n_tokens += n_tokens;
    t->n_passes++;
    return SMOE_OK;
}

uint32_t trace_pass_tokens(const trace *t, uint64_t pass)
{
    return ((const uint32_t *)(const void *)t->passes.data)[pass];
}

uint16_t *trace_at(const trace *t, uint64_t token, uint32_t layer)
{
    uint16_t *all = (uint16_t *)(void *)t->experts.data;
    return all + token * token_experts(&t->shape) + (size_t)layer * t->shape.n_used;
}

/* ---- reading ---- */

static uint32_t get_u32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static smoe_status read_header(slice data, const char *path, trace *t, smoe_err *err)
{
    char lineage[NO_LINEAGE_DIGITS + 1] = {0};
    if (data.len < HEADER_BYTES || memcmp(data.data, MAGIC, sizeof MAGIC) != 0) {
        return err_set(err, SMOE_FORMAT, "%s is no trace: it does not begin with \"%.8s\"", path,
                       MAGIC);
    }
    if (get_u32(data.data + 8) != VERSION) {
        return err_set(err, SMOE_FORMAT, "%s is a trace of version %u; this program reads %d",
                       path, get_u32(data.data + 8), VERSION);
    }
    trace_shape s = {get_u32(data.data + 12), get_u32(data.data + 16), get_u32(data.data + 20)};
    if (s.n_layer < 1 || s.n_layer > MODEL_MAX_LAYERS || s.n_expert < 1 ||
        s.n_expert > MODEL_MAX_EXPERTS || s.n_used < 1 || s.n_used > s.n_expert) {
        return err_set(err, SMOE_FORMAT,
                       "%s: %u layers with %u of %u experts is no shape of a model; expected are "
                       "1 to %d layers and at most %d experts",
                       path, s.n_layer, s.n_used, s.n_expert, MODEL_MAX_LAYERS, MODEL_MAX_EXPERTS);
    }
    memcpy(lineage, data.data + 24, NO_LINEAGE_DIGITS);
    if (strspn(lineage, "0123456789abcdef") != NO_LINEAGE_DIGITS) {
        return err_set(err, SMOE_FORMAT, "%s: its lineage is not %d hex digits", path,
                       NO_LINEAGE_DIGITS);
    }
    trace_init(t, &s, lineage);
    return SMOE_OK;
}

static smoe_status check_choice(const trace *t, uint64_t token, const uint16_t *experts,
                                const char *path, smoe_err *err)
{
    uint64_t seen[MODEL_MAX_EXPERTS / 64] = {0};
    for (uint32_t i = 0; i < t->shape.n_used; i++) {
        uint32_t e = experts[i];
        if (e >= t->shape.n_expert || (seen[e / 64] >> e % 64 & 1)) {
            return err_set(err, SMOE_FORMAT, "%s: token %llu chooses expert %u, which %s", path,
                           (unsigned long long)token, e,
                           e < t->shape.n_expert ? "it has chosen already" : "does not exist");
        }
        seen[e / 64] |= UINT64_C(1) << e % 64;
    }
    return SMOE_OK;
}

/* The pass that begins at *at, which is moved behind it. */
static smoe_status read_pass(slice data, size_t *at, const char *path, trace *t, smoe_err *err)
{
    size_t n_token = token_experts(&t->shape), left = data.len - *at;
    uint32_t n = left >= 4 ? get_u32(data.data + *at) : 0;
    if (n == 0 || (left - 4) / (n_token * 2) < n) {
        return err_set(err, SMOE_FORMAT,
                       "%s: the pass at byte %zu is not complete; the file was cut short", path,
                       *at);
    }
    const uint8_t *p = (const uint8_t *)data.data + *at + 4;
    uint64_t token = t->n_tokens;
    *at += 4 + n * n_token * 2;
    TRY(trace_add_pass(t, n, err));
    for (; token < t->n_tokens; token++) {
        for (uint32_t layer = 0; layer < t->shape.n_layer; layer++) {
            uint16_t *experts = trace_at(t, token, layer);
            for (uint32_t k = 0; k < t->shape.n_used; k++, p += 2) {
                experts[k] = (uint16_t)(p[0] | p[1] << 8);
            }
            TRY(check_choice(t, token, experts, path, err));
        }
    }
    return SMOE_OK;
}

smoe_status trace_read(const char *path, trace *t, smoe_err *err)
{
    smoe_status status;
    buf data;
    size_t at = HEADER_BYTES;
    *t = (trace){0};
    buf_init(&data, MAX_TRACE_BYTES);
    CHECK(file_slurp(path, MAX_TRACE_BYTES, &data, err));
    CHECK(read_header(buf_slice(&data), path, t, err));
    do {
        CHECK(read_pass(buf_slice(&data), &at, path, t, err));
    } while (at < data.len);
out:
    buf_fini(&data);
    if (status != SMOE_OK) {
        trace_fini(t);
    }
    return status;
}

/* ---- writing ---- */

static void put_u32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (char)(v >> 8 * i);
    }
}

static smoe_status write_pass(file_writer *w, const trace *t, uint64_t token, uint32_t n,
                              smoe_err *err)
{
    char bytes[4096];
    size_t n_bytes = 4;
    const uint16_t *experts = trace_at(t, token, 0);
    put_u32(bytes, n);
    for (size_t i = 0; i < n * token_experts(&t->shape); i++) {
        bytes[n_bytes++] = (char)experts[i];
        bytes[n_bytes++] = (char)(experts[i] >> 8);
        if (n_bytes == sizeof bytes) {
            TRY(file_write(w, bytes, n_bytes, err));
            n_bytes = 0;
        }
    }
    return file_write(w, bytes, n_bytes, err);
}

smoe_status trace_write(const trace *t, const char *path, smoe_err *err)
{
    smoe_status status;
    file_writer w = FILE_WRITER_CLOSED;
    char header[HEADER_BYTES] = {0};
    uint64_t token = 0;
    if (t->n_tokens == 0) {
        return err_set(err, SMOE_RANGE, "no token was computed, so %s would be empty", path);
    }
    memcpy(header, MAGIC, sizeof MAGIC);
    put_u32(header + 8, VERSION);
    put_u32(header + 12, t->shape.n_layer);
    put_u32(header + 16, t->shape.n_expert);
    put_u32(header + 20, t->shape.n_used);
    memcpy(header + 24, t->lineage, NO_LINEAGE_DIGITS);
    CHECK(file_create(&w, path, err));
    CHECK(file_write(&w, header, sizeof header, err));
    for (uint64_t i = 0; i < t->n_passes; i++) {
        CHECK(write_pass(&w, t, token, trace_pass_tokens(t, i), err));
        token += trace_pass_tokens(t, i);
    }
    CHECK(file_commit(&w, err));
out:
    file_abort(&w);
    return status;
}
