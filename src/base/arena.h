/* arena.h: many small allocations that live and die together (one arena per open file). */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/slice.h"

typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *head;
} arena;

void arena_init(arena *a);
void arena_fini(arena *a);
/* 16-byte aligned, zeroed; NULL when refused */
void *arena_alloc(arena *a, size_t n_bytes);
void *arena_array(arena *a, size_t n, size_t size);   /* the same, overflow-checked */
char *arena_strndup(arena *a, const char *s, size_t len);
slice arena_slice(arena *a, slice s);                 /* a copy; data NULL when refused */

#endif
