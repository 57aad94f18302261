/* map.h: an open-addressing hash map from byte strings to uint64. Keys are borrowed and must
 * outlive the map (keep them in an arena). No deletion: nobody needs it. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct map_entry {
    slice key; /* data NULL = free */
    uint64_t hash;
    uint64_t value;
} map_entry;

typedef struct map {
    map_entry *entries;
    size_t n_entries;
    size_t n_slots; /* power of two, or 0 */
} map;

void map_init(map *m);
void map_fini(map *m);
bool map_reserve(map *m, size_t n_entries);            /* false when memory is refused */
bool map_put(map *m, slice key, uint64_t value);       /* replaces; false when memory is refused */
bool map_get(const map *m, slice key, uint64_t *value);
uint64_t hash_bytes(const void *data, size_t len);     /* XXH3-64; also the record checksum */

#endif
