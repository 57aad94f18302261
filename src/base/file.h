/* file.h: files by absolute offset, and files that appear under their name only when complete. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct file {
    int fd; /* -1 = closed */
    uint64_t size_bytes;
    char *path; /* owned; for messages */
} file;

#define FILE_CLOSED ((file){-1, 0, NULL})

/* Refuses a directory and anything else that is not a regular file. */
smoe_status file_open(file *f, const char *path, smoe_err *err);
void file_close(file *f);
/* Exactly n_bytes or an error: short reads are completed, EINTR resumed, EIO retried 3 times. */
smoe_status file_read_at(const file *f, uint64_t offset, void *data, uint64_t n_bytes,
                         smoe_err *err);
/* What these bytes hold is in memory elsewhere: the page cache may drop them. */
void file_forget(const file *f, uint64_t offset, uint64_t n_bytes);
/* The whole file, appended to out, if it is at most max_bytes. */
smoe_status file_slurp(const char *path, uint64_t max_bytes, buf *out, smoe_err *err);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Joins with one '/'; the caller frees. NULL when memory is refused. */
char *path_join(const char *dir, const char *name);

/* Writes into "<path>.partial-<pid>" and renames at commit; abort (or never committing) leaves
 * nothing under the final name. A leftover of a killed run is removed by the next create of the
 * same path. */
typedef struct file_writer {
    int fd;
    char *path;
    char *path_partial;
    uint64_t n_written; /* end of the furthest sequential write */
} file_writer;

#define FILE_WRITER_CLOSED ((file_writer){-1, NULL, NULL, 0})

smoe_status file_create(file_writer *w, const char *path, smoe_err *err);
smoe_status file_write(file_writer *w, const void *data, uint64_t n_bytes, smoe_err *err);
smoe_status file_write_at(file_writer *w, uint64_t offset, const void *data, uint64_t n_bytes,
                          smoe_err *err);
smoe_status file_commit(file_writer *w, smoe_err *err); /* fsync, rename, fsync of the directory */
/* safe after commit and on a closed writer */
void file_abort(file_writer *w);

/* Bytes that an ordinary user may still write in the file system of dir. */
smoe_status file_free_bytes(const char *dir, uint64_t *n_bytes, smoe_err *err);

#endif
