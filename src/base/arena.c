/* arena.c: see arena.h. Blocks of 64 KiB; anything larger gets a block of its own. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum { ARENA_BLOCK_BYTES = 64 * 1024, ARENA_ALIGN = 16 };

struct arena_block {
    arena_block *next;
    size_t used, size;
    _Alignas(ARENA_ALIGN) char data[];
};

void arena_init(arena *a)
{
    a->head = NULL;
}

void arena_fini(arena *a)
{
    while (a->head) {
        arena_block *next = a->head->next;
        mem_free(a->head);
        a->head = next;
    }
}

void *arena_alloc(arena *a, size_t n_bytes)
{
    if (n_bytes > SIZE_MAX - sizeof(arena_block) - ARENA_ALIGN) {
        return NULL;
    }
    size_t need = (n_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    arena_block *block = a->head;
    if (!block || block->size - block->used < need) {
        size_t size = need > ARENA_BLOCK_BYTES ? need : ARENA_BLOCK_BYTES;
        block = mem_alloc(sizeof *block + size);
        if (!block) {
            return NULL;
        }
        *block = (arena_block){.size = size};
        if (size > ARENA_BLOCK_BYTES && a->head) { /* keep filling the current block afterwards */
            block->next = a->head->next;
            a->head->next = block;
        } else {
            block->next = a->head;
            a->head = block;
        }
    }
    void *p = block->data + block->used;
    block->used += need;
    memset(p, 0, need);
    return p;
}

void *arena_array(arena *a, size_t n, size_t size)
{
    return size && n > SIZE_MAX / size ? NULL : arena_alloc(a, n * size);
}

char *arena_strndup(arena *a, const char *s, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;
    if (copy && len) {
        memcpy(copy, s, len);
    }
    return copy;
}

slice arena_slice(arena *a, slice s)
{
    return (slice){arena_strndup(a, s.data, s.len), s.len};
}
