/* heat.c: see heat.h. */
#include "cache/heat.h"

#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

enum {
    MEAN_MAX = 2048,
    VERSION = 1,
    LINEAGE_BYTES = 32,
    COUNTS_AT = 8 + 4 + 4 + 4 + LINEAGE_BYTES,
    HASH_BYTES = 8,
};

static const char magic[8] = {'s', 'm', 'o', 'e', 'h', 'e', 'a', 't'};

static uint32_t n_ids(const heat *h)
{
    return h->vault->n_layer * h->vault->n_expert;
}

static size_t file_bytes(const heat *h)
{
    return COUNTS_AT + sizeof(uint32_t) * n_ids(h) + HASH_BYTES;
}

smoe_status heat_init(heat *h, const vault *v, smoe_err *err)
{
    *h = (heat){.vault = v};
    h->sum_max = (uint64_t)MEAN_MAX * v->n_records;
    if (h->sum_max > UINT32_MAX) { /* a count is never more than the sum */
        h->sum_max = UINT32_MAX;
    }
    h->counts = mem_calloc(n_ids(h), sizeof *h->counts);
    return h->counts ? SMOE_OK
                     : err_nomem(err, "the history of experts", sizeof *h->counts * n_ids(h));
}

void heat_fini(heat *h)
{
    mem_free(h->counts);
    *h = (heat){0};
}

void heat_count(heat *h, uint32_t record)
{
    h->counts[record]++;
    h->is_changed = true;
    if (++h->sum < h->sum_max) {
        return;
    }
    h->sum = 0;
    for (uint32_t i = 0; i < n_ids(h); i++) {
        h->counts[i] /= 2;
        h->sum += h->counts[i];
    }
}

/* ---- the file ---- */

static void put_le(uint8_t *to, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) {
        to[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint64_t get_le(const uint8_t *from, int n_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) {
        value |= (uint64_t)from[i] << 8 * i;
    }
    return value;
}

/* The head that a file of this vault has; all of it is compared. */
static void make_head(const heat *h, uint8_t head[COUNTS_AT])
{
    memcpy(head, magic, sizeof magic);
    put_le(head + 8, VERSION, 4);
    put_le(head + 12, h->vault->n_layer, 4);
    put_le(head + 16, h->vault->n_expert, 4);
    memcpy(head + 20, h->vault->lineage, LINEAGE_BYTES);
}

static smoe_status check_file(const heat *h, const char *path, slice bytes, smoe_err *err)
{
    uint8_t head[COUNTS_AT];
    const uint8_t *data = (const uint8_t *)bytes.data;
    size_t n_hashed = bytes.len - HASH_BYTES;
    if (bytes.len < COUNTS_AT + HASH_BYTES || memcmp(data, magic, sizeof magic) != 0 ||
        get_le(data + n_hashed, HASH_BYTES) != hash_bytes(data, n_hashed)) {
        return err_set(err, SMOE_FORMAT, "%s is no history of experts, or a damaged one: its %zu "
                       "bytes do not match their checksum", path, bytes.len);
    }
    make_head(h, head);
    if (memcmp(data, head, sizeof head) != 0 || bytes.len != file_bytes(h)) {
        return err_set(err, SMOE_FORMAT, "%s is the history of another model: expected is version "
                       "%d for lineage %s, %u layers of %u experts; found version %u for %s "
                       "lineage, %u layers of %u",
                       path, VERSION, h->vault->lineage, h->vault->n_layer, h->vault->n_expert,
                       (unsigned)get_le(data + 8, 4),
                       memcmp(data + 20, head + 20, LINEAGE_BYTES) == 0 ? "this" : "another",
                       (unsigned)get_le(data + 12, 4), (unsigned)get_le(data + 16, 4));
    }
    return SMOE_OK;
}

static smoe_status take_counts(heat *h, const char *path, const uint8_t *data, smoe_err *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n_ids(h); i++) {
        uint64_t count = get_le(data + 4 * (size_t)i, 4);
        sum += count;
        if (sum >= h->sum_max || (count && !h->vault->record_offset[i])) {
            return err_set(err, SMOE_FORMAT, "%s holds a count that cannot be: %llu for expert %u "
                           "of layer %u", path, (unsigned long long)count,
                           i % h->vault->n_expert, i / h->vault->n_expert);
        }
    }
    for (uint32_t i = 0; i < n_ids(h); i++) {
        h->counts[i] = (uint32_t)get_le(data + 4 * (size_t)i, 4);
    }
    h->sum = sum;
    h->is_changed = false;
    return SMOE_OK;
}

smoe_status heat_load(heat *h, const char *path, smoe_err *err)
{
    smoe_status status;
    buf bytes;
    if (!file_exists(path)) {
        return SMOE_OK;
    }
    buf_init(&bytes, file_bytes(h) + 1);
    CHECK(file_slurp(path, file_bytes(h), &bytes, err));
    CHECK(check_file(h, path, buf_slice(&bytes), err));
    CHECK(take_counts(h, path, (const uint8_t *)bytes.data + COUNTS_AT, err));
out:
    buf_fini(&bytes);
    return status;
}

smoe_status heat_save(heat *h, const char *path, smoe_err *err)
{
    smoe_status status;
    file_writer w = FILE_WRITER_CLOSED;
    size_t n_bytes = file_bytes(h), n_hashed = n_bytes - HASH_BYTES;
    uint8_t *data = mem_alloc(n_bytes);
    if (!data) {
        return err_nomem(err, "the history of experts", n_bytes);
    }
    make_head(h, data);
    for (uint32_t i = 0; i < n_ids(h); i++) {
        put_le(data + COUNTS_AT + 4 * (size_t)i, h->counts[i], 4);
    }
    put_le(data + n_hashed, hash_bytes(data, n_hashed), HASH_BYTES);
    CHECK(file_create(&w, path, err));
    CHECK(file_write(&w, data, n_bytes, err));
    CHECK(file_commit(&w, err));
    h->is_changed = false;
out:
    file_abort(&w);
    mem_free(data);
    return status;
}
