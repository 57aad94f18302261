/* read_file.h: a file whose every byte says where it is, and aligned memory to read it into, for
 * tests of asynchronous reads. */
#ifndef SUPPORT_READ_FILE_H
#define SUPPORT_READ_FILE_H

#include "test.h"

#include "base/file.h"
#include "base/mem.h"
#include "cache/aio.h"

enum { BLOCK = AIO_ALIGN, WATCHDOG_S = 120 };

struct read_file {
    char dir[64], path[128];
    file f;
    uint32_t n_blocks;
    uint8_t *memory; /* [n_blocks * BLOCK] */
};

/* No two blocks are alike, nor two neighbouring positions. */
static inline uint8_t read_file_byte(uint64_t position)
{
    return (uint8_t)(position * 7 + (position >> 8) * 31 + (position >> 14) * 5);
}

static inline void read_file_make(struct read_file *r, uint32_t n_blocks)
{
    smoe_err err;
    static uint8_t block[BLOCK];
    alarm(WATCHDOG_S); /* a read that hangs ends the test */
    *r = (struct read_file){.n_blocks = n_blocks};
    test_dir_make(r->dir);
    snprintf(r->path, sizeof r->path, "%s/records", r->dir);
    FILE *out = fopen(r->path, "w");
    assert_non_null(out);
    for (uint64_t b = 0; b < n_blocks; b++) {
        for (uint64_t i = 0; i < BLOCK; i++) {
            block[i] = read_file_byte(b * BLOCK + i);
        }
        assert_int_equal(fwrite(block, 1, BLOCK, out), BLOCK);
    }
    assert_int_equal(fclose(out), 0);
    ASSERT_OK(file_open(&r->f, r->path, &err), &err);
    r->memory = mem_pages_alloc((size_t)n_blocks * BLOCK);
    assert_non_null(r->memory);
}

static inline void read_file_remove(struct read_file *r)
{
    file_close(&r->f);
    mem_pages_free(r->memory, (size_t)r->n_blocks * BLOCK);
    test_dir_remove(r->dir);
    alarm(0);
}

/* n_blocks at block `from` of the file, into the same place of memory; the tag is `from`. */
static inline aio_read read_file_read(const struct read_file *r, uint32_t from, uint32_t n_blocks)
{
    return (aio_read){(uint64_t)from * BLOCK, r->memory + (size_t)from * BLOCK, n_blocks * BLOCK,
                      from};
}

static inline bool read_file_is_right(const struct read_file *r, uint32_t from, uint32_t n_blocks)
{
    for (uint64_t i = (uint64_t)from * BLOCK; i < (uint64_t)(from + n_blocks) * BLOCK; i++) {
        if (r->memory[i] != read_file_byte(i)) {
            return false;
        }
    }
    return true;
}

static inline void read_file_forget(struct read_file *r)
{
    memset(r->memory, 0xee, (size_t)r->n_blocks * BLOCK);
}

#endif
