/* scratch.h: a directory for one test program's files, and files made of given bytes. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stddef.h>

/* Creates the directory; path() returns "<dir>/<name>" in one of a few rotating buffers. */
int scratch_setup(void **state);
int scratch_teardown(void **state); /* removes everything in it */
const char *scratch_path(const char *name);
void scratch_write(const char *name, const void *data, size_t n_bytes);
/* 8-byte length + header + n_data zero bytes. */
void scratch_write_safetensors(const char *name, const char *header, size_t n_data);

#endif
