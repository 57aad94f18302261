/* map.c: see map.h. Linear probing, at most half full. */
#include "base/map.h"

#include <xxhash.h>

#include "base/mem.h"

uint64_t hash_bytes(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

void map_init(map *m)
{
    *m = (map){0};
}

void map_fini(map *m)
{
    mem_free(m->entries);
    *m = (map){0};
}

/* The slot of key, or the free slot where it belongs. n_slots > 0. */
static map_entry *find_slot(const map *m, slice key, uint64_t hash)
{
    size_t mask = m->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        map_entry *e = &m->entries[i];
        if (!e->key.data || (e->hash == hash && slice_eq(e->key, key))) {
            return e;
        }
    }
}

bool map_reserve(map *m, size_t n_entries)
{
    size_t n_slots = m->n_slots ? m->n_slots : 16;
    while (n_slots / 2 < n_entries) {
        if (n_slots > SIZE_MAX / 2 / sizeof(map_entry)) {
            return false;
        }
        n_slots *= 2;
    }
    if (n_slots == m->n_slots) {
        return true;
    }
    map grown = {.entries = mem_calloc(n_slots, sizeof(map_entry)), .n_slots = n_slots};
    if (!grown.entries) {
        return false;
    }
    for (size_t i = 0; i < m->n_slots; i++) {
        if (m->entries[i].key.data) {
            *find_slot(&grown, m->entries[i].key, m->entries[i].hash) = m->entries[i];
        }
    }
    grown.n_entries = m->n_entries;
    mem_free(m->entries);
    *m = grown;
    return true;
}

bool map_put(map *m, slice key, uint64_t value)
{
    if (!map_reserve(m, m->n_entries + 1)) {
        return false;
    }
    if (!key.data) {
        key.data = "";
    }
    uint64_t hash = hash_bytes(key.data, key.len);
    map_entry *e = find_slot(m, key, hash);
    m->n_entries += e->key.data == NULL;
    *e = (map_entry){key, hash, value};
    return true;
}

bool map_get(const map *m, slice key, uint64_t *value)
{
    if (m->n_slots == 0) {
        return false;
    }
    const map_entry *e = find_slot(m, key, hash_bytes(key.len ? key.data : "", key.len));
    if (!e->key.data) {
        return false;
    }
    *value = e->value;
    return true;
}
