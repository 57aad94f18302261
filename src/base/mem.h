/* mem.h: the only way to the heap. Counts allocations, so that a test can assert that decode makes
 * none, and can be told to refuse the n-th one, so that tests walk every out-of-memory path. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when refused; n_bytes 0 gives a valid pointer */
void *mem_alloc(size_t n_bytes);
/* zeroed; NULL when refused or when n*size overflows */
void *mem_calloc(size_t n, size_t size_bytes);
void *mem_realloc(void *p, size_t n_bytes);    /* p is untouched on failure */
char *mem_strndup(const char *s, size_t len);  /* NUL-terminated copy */
char *mem_strdup(const char *s);
void mem_free(void *p);

/* Whole zeroed pages straight from the system, aligned to 2 MiB and on huge pages where the kernel
 * grants them: for weights, KV cache and ring slots. Unlike page cache, the kernel cannot drop
 * them. */
void *mem_pages_alloc(size_t n_bytes);
void mem_pages_free(void *p, size_t n_bytes);

uint64_t mem_alloc_count(void);        /* calls that allocated so far, all threads */
/* the nth allocation from now fails (1 = the next); 0 = never */
void mem_fail_nth(uint64_t nth);

#endif
