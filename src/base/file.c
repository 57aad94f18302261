/* file.c: see file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"

enum { EIO_RETRIES = 3, IO_MAX_BYTES = 1 << 30 };

smoe_status file_open(file *f, const char *path, smoe_err *err)
{
    struct stat st;
    *f = FILE_CLOSED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, SMOE_IO, "%s cannot be opened", path);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(err, SMOE_IO, "%s is not a regular file", path);
    }
    char *copy = mem_strdup(path);
    if (!copy) {
        close(fd);
        return err_nomem(err, "a path", strlen(path));
    }
    *f = (file){fd, (uint64_t)st.st_size, copy};
    return SMOE_OK;
}

void file_close(file *f)
{
    if (f->fd >= 0) {
        close(f->fd);
    }
    mem_free(f->path);
    *f = FILE_CLOSED;
}

smoe_status file_read_at(const file *f, uint64_t offset, void *data, uint64_t n_bytes,
                         smoe_err *err)
{
    uint64_t done = 0;
    int n_eio = 0;
    while (done < n_bytes) {
        uint64_t want = n_bytes - done < IO_MAX_BYTES ? n_bytes - done : IO_MAX_BYTES;
        ssize_t n = pread(f->fd, (char *)data + done, want, (off_t)(offset + done));
        if (n > 0) {
            done += (uint64_t)n;
        } else if (n == 0) {
            return err_set(err, SMOE_IO,
                           "%s ends at byte %llu, but %llu bytes were to be read at offset %llu: "
                           "the file was cut short after it was opened",
                           f->path, (unsigned long long)(offset + done),
                           (unsigned long long)n_bytes, (unsigned long long)offset);
        } else if (errno == EIO && n_eio < EIO_RETRIES) {
            n_eio++;
        } else if (errno != EINTR) {
            return err_errno(err, SMOE_IO, "%s: reading %llu bytes at offset %llu failed", f->path,
                             (unsigned long long)n_bytes, (unsigned long long)offset);
        }
    }
    return SMOE_OK;
}

void file_forget(const file *f, uint64_t offset, uint64_t n_bytes)
{
#ifdef POSIX_FADV_DONTNEED
    posix_fadvise(f->fd, (off_t)offset, (off_t)n_bytes, POSIX_FADV_DONTNEED);
#else
    (void)f, (void)offset, (void)n_bytes;
#endif
}

smoe_status file_slurp(const char *path, uint64_t max_bytes, buf *out, smoe_err *err)
{
    file f;
    TRY(file_open(&f, path, err));
    smoe_status status = SMOE_OK;
    if (f.size_bytes > max_bytes) {
        status = err_set(err, SMOE_RANGE, "%s has %llu bytes; at most %llu are accepted here", path,
                         (unsigned long long)f.size_bytes, (unsigned long long)max_bytes);
        goto out;
    }
    CHECK(buf_reserve(out, f.size_bytes, err));
    CHECK(file_read_at(&f, 0, out->data + out->len, f.size_bytes, err));
    out->len += f.size_bytes;
    out->data[out->len] = '\0';
out:
    file_close(&f);
    return status;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *path_join(const char *dir, const char *name)
{
    size_t n_dir = strlen(dir), n_name = strlen(name);
    bool slash = n_dir > 0 && dir[n_dir - 1] != '/';
    char *path = mem_alloc(n_dir + slash + n_name + 1);
    if (path) {
        memcpy(path, dir, n_dir);
        if (slash) {
            path[n_dir] = '/';
        }
        memcpy(path + n_dir + slash, name, n_name + 1);
    }
    return path;
}

static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return mem_strdup(".");
    }
    return slash == path ? mem_strdup("/") : mem_strndup(path, (size_t)(slash - path));
}

/* Removes "<path>.partial-<pid>" files whose process is gone: the leftovers of killed runs. */
static void remove_leftovers(const char *path)
{
    char *dir_path = dir_of(path);
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t n_base = strlen(base);
    static const char mark[] = ".partial-";
    DIR *dir = dir_path ? opendir(dir_path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, base, n_base) != 0 ||
            strncmp(e->d_name + n_base, mark, sizeof mark - 1) != 0) {
            continue;
        }
        char *end;
        long pid = strtol(e->d_name + n_base + sizeof mark - 1, &end, 10);
        if (*end == '\0' && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
            unlinkat(dirfd(dir), e->d_name, 0);
        }
    }
    if (dir) {
        closedir(dir);
    }
    mem_free(dir_path);
}

smoe_status file_create(file_writer *w, const char *path, smoe_err *err)
{
    *w = FILE_WRITER_CLOSED;
    size_t n = strlen(path) + 32;
    w->path = mem_strdup(path);
    w->path_partial = mem_alloc(n);
    if (!w->path || !w->path_partial) {
        file_abort(w);
        return err_nomem(err, "a path", n);
    }
    snprintf(w->path_partial, n, "%s.partial-%ld", path, (long)getpid());
    remove_leftovers(path);
    w->fd = open(w->path_partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        err_errno(err, SMOE_IO, "%s cannot be created", w->path_partial);
        mem_free(w->path_partial); /* nothing of ours to unlink */
        w->path_partial = NULL;
        file_abort(w);
        return SMOE_IO;
    }
    return SMOE_OK;
}

smoe_status file_write_at(file_writer *w, uint64_t offset, const void *data, uint64_t n_bytes,
                          smoe_err *err)
{
    for (uint64_t done = 0; done < n_bytes;) {
        uint64_t want = n_bytes - done < IO_MAX_BYTES ? n_bytes - done : IO_MAX_BYTES;
        ssize_t n = pwrite(w->fd, (const char *)data + done, want, (off_t)(offset + done));
        if (n > 0) {
            done += (uint64_t)n;
        } else if (n < 0 && errno != EINTR) {
            return err_errno(err, SMOE_IO,
                             "%s: writing %llu bytes at offset %llu failed; nothing was "
                             "left under that name",
                             w->path, (unsigned long long)n_bytes, (unsigned long long)offset);
        }
    }
    return SMOE_OK;
}

smoe_status file_write(file_writer *w, const void *data, uint64_t n_bytes, smoe_err *err)
{
    TRY(file_write_at(w, w->n_written, data, n_bytes, err));
    w->n_written += n_bytes;
    return SMOE_OK;
}

static void sync_dir_of(const char *path)
{
    char *dir = dir_of(path);
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd); /* some file systems refuse to sync a directory; the rename itself stands */
        close(fd);
    }
    mem_free(dir);
}

smoe_status file_commit(file_writer *w, smoe_err *err)
{
    if (fsync(w->fd) != 0) {
        return err_errno(err, SMOE_IO, "%s cannot be flushed to disk", w->path_partial);
    }
    if (rename(w->path_partial, w->path) != 0) {
        return err_errno(err, SMOE_IO, "%s cannot be renamed to %s", w->path_partial, w->path);
    }
    sync_dir_of(w->path);
    mem_free(w->path_partial);
    w->path_partial = NULL;
    file_abort(w);
    return SMOE_OK;
}

void file_abort(file_writer *w)
{
    if (w->fd >= 0) {
        close(w->fd);
    }
    if (w->path_partial) {
        unlink(w->path_partial);
    }
    mem_free(w->path);
    mem_free(w->path_partial);
    *w = FILE_WRITER_CLOSED;
}

smoe_status file_free_bytes(const char *dir, uint64_t *n_bytes, smoe_err *err)
{
    struct statvfs vfs;
    if (statvfs(dir, &vfs) != 0) {
        return err_errno(err, SMOE_IO, "the free space of %s cannot be read", dir);
    }
    *n_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    return SMOE_OK;
}
