/* checksum.h: a 64-bit checksum of bytes that arrive in pieces of any size, in constant memory.
 *
 * Definition: c = 0; for every consecutive block of 16 KiB (the last may be shorter)
 * c = XXH3-64(le64(c) || le64(XXH3-64(block))). Made for detecting damage, not for security. */
#ifndef FORMATS_CHECKSUM_H
#define FORMATS_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { CHECKSUM_BLOCK_BYTES = 16384, CHECKSUM_HEX = 16 };

typedef struct checksum {
    uint64_t chain;
    size_t n_pending;
    unsigned char pending[CHECKSUM_BLOCK_BYTES];
} checksum;

void checksum_init(checksum *c);
void checksum_add(checksum *c, const void *data, size_t n_bytes);
uint64_t checksum_end(checksum *c);

/* 16 lower-case hex digits, no NUL. */
void checksum_to_hex(uint64_t sum, char out[CHECKSUM_HEX]);
/* Of exactly n * 16 lower-case hex digits, the i-th sum; see checksum_list_ok. */
uint64_t checksum_from_list(slice list, size_t i);
bool checksum_list_ok(slice list, size_t n);

#endif
