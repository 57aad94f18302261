/* checksum.c: see checksum.h. */
#include "formats/checksum.h"

#include <string.h>

#include "base/map.h"

void checksum_init(checksum *c)
{
    c->chain = 0;
    c->n_pending = 0;
}

static void put_le64(unsigned char *out, uint64_t v)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (unsigned char)(v >> (8 * i));
    }
}

static void take_block(checksum *c, const void *block, size_t n_bytes)
{
    unsigned char link[16];
    put_le64(link, c->chain);
    put_le64(link + 8, hash_bytes(block, n_bytes));
    c->chain = hash_bytes(link, sizeof link);
}

void checksum_add(checksum *c, const void *data, size_t n_bytes)
{
    const unsigned char *p = data;
    while (n_bytes > 0) {
        if (c->n_pending == 0 && n_bytes >= CHECKSUM_BLOCK_BYTES) {
            take_block(c, p, CHECKSUM_BLOCK_BYTES);
            p += CHECKSUM_BLOCK_BYTES;
            n_bytes -= CHECKSUM_BLOCK_BYTES;
            continue;
        }
        size_t room = CHECKSUM_BLOCK_BYTES - c->n_pending;
        size_t n = n_bytes < room ? n_bytes : room;
        memcpy(c->pending + c->n_pending, p, n);
        c->n_pending += n;
        p += n;
        n_bytes -= n;
        if (c->n_pending == CHECKSUM_BLOCK_BYTES) {
            take_block(c, c->pending, CHECKSUM_BLOCK_BYTES);
            c->n_pending = 0;
        }
    }
}

uint64_t checksum_end(checksum *c)
{
    if (c->n_pending > 0) {
        take_block(c, c->pending, c->n_pending);
        c->n_pending = 0;
    }
    return c->chain;
}

void checksum_to_hex(uint64_t sum, char out[CHECKSUM_HEX])
{
    for (int i = 0; i < CHECKSUM_HEX; i++) {
        out[i] = "0123456789abcdef"[sum >> (60 - 4 * i) & 15];
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uint64_t checksum_from_list(slice list, size_t i)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < CHECKSUM_HEX; k++) {
        sum = sum << 4 | (uint64_t)hex_digit(list.data[i * CHECKSUM_HEX + k]);
    }
    return sum;
}

bool checksum_list_ok(slice list, size_t n)
{
    if (list.len / CHECKSUM_HEX != n || list.len % CHECKSUM_HEX != 0) {
        return false;
    }
    for (size_t i = 0; i < list.len; i++) {
        if (hex_digit(list.data[i]) < 0) {
            return false;
        }
    }
    return true;
}
