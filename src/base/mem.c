/* mem.c: see mem.h. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic uint64_t n_allocs;
static _Atomic uint64_t n_until_failure; /* 0 = off */

/* Counts one allocation; true when this is the one that a test wants refused. */
static bool refused(void)
{
    atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
    if (atomic_load_explicit(&n_until_failure, memory_order_relaxed) == 0) {
        return false;
    }
    return atomic_fetch_sub_explicit(&n_until_failure, 1, memory_order_relaxed) == 1;
}

void *mem_alloc(size_t n_bytes)
{
    return refused() ? NULL : malloc(n_bytes ? n_bytes : 1);
}

void *mem_calloc(size_t n, size_t size_bytes)
{
    if (size_bytes && n > SIZE_MAX / size_bytes) { /* a sanitizer's calloc would end the program */
        return NULL;
    }
    return refused() ? NULL : calloc(n ? n : 1, size_bytes ? size_bytes : 1);
}

void *mem_realloc(void *p, size_t n_bytes)
{
    return refused() ? NULL : realloc(p, n_bytes ? n_bytes : 1);
}

char *mem_strndup(const char *s, size_t len)
{
    char *copy = len < SIZE_MAX ? mem_alloc(len + 1) : NULL;
    if (copy) {
        if (len) {
            memcpy(copy, s, len);
        }
        copy[len] = '\0';
    }
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
    free(p);
}

enum { HUGE_PAGE_BYTES = 2 << 20 };

/* Maps one huge page more than asked for and gives the unaligned ends back. */
void *mem_pages_alloc(size_t n_bytes)
{
    if (refused() || n_bytes == 0 || n_bytes > SIZE_MAX - 2 * HUGE_PAGE_BYTES) {
        return NULL;
    }
    size_t want = (n_bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    uint8_t *raw = mmap(NULL, want + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        return NULL;
    }
    size_t front = (size_t)(-(uintptr_t)raw & (HUGE_PAGE_BYTES - 1));
    if (front) {
        munmap(raw, front);
    }
    munmap(raw + front + want, HUGE_PAGE_BYTES - front);
#ifdef MADV_HUGEPAGE
    madvise(raw + front, want, MADV_HUGEPAGE); /* a hint: a refusal costs speed, not correctness */
#endif
    return raw + front;
}

void mem_pages_free(void *p, size_t n_bytes)
{
    if (p) {
        munmap(p, (n_bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES);
    }
}

uint64_t mem_alloc_count(void)
{
    return atomic_load_explicit(&n_allocs, memory_order_relaxed);
}

void mem_fail_nth(uint64_t nth)
{
    atomic_store_explicit(&n_until_failure, nth, memory_order_relaxed);
}
