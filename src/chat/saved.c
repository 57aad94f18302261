/* saved.c: see saved.h. */
#include "chat/saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "json/json_read.h"
#include "json/json_write.h"

enum { SAVED_MAX_BYTES = 512 << 20, PRIVATE_FILE = 0600, PRIVATE_DIR = 0700 };

static const char suffix[] = ".jsonl";

void saved_init(saved *s, const char *dir, const char *model, const char *lineage)
{
    *s = (saved){.dir = dir, .model = model, .lineage = lineage};
}

void saved_forget(saved *s)
{
    mem_free(s->path);
    s->path = NULL;
    s->n_written = 0;
}

void saved_fini(saved *s)
{
    saved_forget(s);
}

/* mkdir -p; every folder that it makes is private. */
static smoe_status make_dirs(const char *dir, smoe_err *err)
{
    char path[4096];
    size_t n = strlen(dir);
    if (n >= sizeof path) {
        return err_set(err, SMOE_IO, "the path %.60s... is too long", dir);
    }
    memcpy(path, dir, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            path[i] = '\0';
            if (mkdir(path, PRIVATE_DIR) != 0 && errno != EEXIST) {
                return err_errno(err, SMOE_IO, "cannot make the folder %s", path);
            }
            path[i] = i < n ? '/' : '\0';
        }
    }
    return SMOE_OK;
}

/* Names sort by time. The process id keeps two consoles of one second apart. */
static smoe_status name_file(saved *s, smoe_err *err)
{
    char name[64], stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    snprintf(name, sizeof name, "%s-%ld%s", stamp, (long)getpid(), suffix);
    TRY(make_dirs(s->dir, err));
    s->path = path_join(s->dir, name);
    for (int i = 2; s->path && file_exists(s->path); i++) { /* /reset within a second */
        mem_free(s->path);
        snprintf(name, sizeof name, "%s-%ld-%d%s", stamp, (long)getpid(), i, suffix);
        s->path = path_join(s->dir, name);
    }
    return s->path ? SMOE_OK : err_nomem(err, "a path", sizeof name);
}

static smoe_status write_file(const char *path, int flags, slice text, smoe_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, PRIVATE_FILE);
    if (fd < 0) {
        return err_errno(err, SMOE_IO, "cannot write %s", path);
    }
    size_t done = 0;
    while (done < text.len) {
        ssize_t n = write(fd, text.data + done, text.len - done);
        if (n < 0 && errno != EINTR) {
            err_errno(err, SMOE_IO, "cannot write %s", path);
            close(fd);
            return SMOE_IO;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    if (close(fd) != 0) {
        return err_errno(err, SMOE_IO, "cannot write %s", path);
    }
    return SMOE_OK;
}

static smoe_status put_header(const saved *s, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_object(&w);
    jw_key(&w, "smoe_chat");
    jw_int(&w, 1);
    jw_key(&w, "model");
    jw_cstr(&w, s->model);
    jw_key(&w, "lineage");
    jw_cstr(&w, s->lineage ? s->lineage : "");
    jw_end_object(&w);
    TRY(jw_finish(&w, err));
    return buf_putc(out, '\n', err);
}

static smoe_status put_messages(const transcript *t, size_t first, buf *out, smoe_err *err)
{
    for (size_t i = first; i < t->n_messages; i++) {
        TRY(transcript_line(&t->messages[i], out, err));
    }
    return SMOE_OK;
}

smoe_status saved_grow(saved *s, const transcript *t, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    buf text;
    if (s->dir == NULL || t->n_messages <= s->n_written) {
        return SMOE_OK;
    }
    buf_init(&text, SAVED_MAX_BYTES);
    if (s->path == NULL) {
        CHECK(name_file(s, err));
        CHECK(put_header(s, &text, err));
    }
    CHECK(put_messages(t, s->n_written, &text, err));
    CHECK(write_file(s->path, O_APPEND, buf_slice(&text), err));
    s->n_written = t->n_messages;
out:
    buf_fini(&text);
    return status;
}

smoe_status saved_rewrite(saved *s, const transcript *t, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    char *partial = NULL;
    buf text;
    if (s->dir == NULL || s->path == NULL) {
        return saved_grow(s, t, err);
    }
    buf_init(&text, SAVED_MAX_BYTES);
    CHECK(put_header(s, &text, err));
    CHECK(put_messages(t, 0, &text, err));
    size_t n = strlen(s->path) + sizeof ".partial";
    partial = mem_alloc(n);
    if (!partial) {
        CHECK(err_nomem(err, "a path", n));
    }
    snprintf(partial, n, "%s.partial", s->path);
    CHECK(write_file(partial, O_TRUNC, buf_slice(&text), err));
    if (rename(partial, s->path) != 0) {
        CHECK(err_errno(err, SMOE_IO, "cannot write %s", s->path));
    }
    s->n_written = t->n_messages;
out:
    mem_free(partial);
    buf_fini(&text);
    return status;
}

static bool is_newer(const char *name, const char *than)
{
    size_t n = strlen(name);
    return n > sizeof suffix && strcmp(name + n - (sizeof suffix - 1), suffix) == 0 &&
           (!*than || strcmp(name, than) > 0);
}

static smoe_status find_newest(const char *dir, char **path, smoe_err *err)
{
    char newest[256] = "";
    DIR *d = opendir(dir);
    if (d) {
        for (struct dirent *e; (e = readdir(d));) {
            if (strlen(e->d_name) < sizeof newest && is_newer(e->d_name, newest)) {
                memcpy(newest, e->d_name, strlen(e->d_name) + 1);
            }
        }
        closedir(d);
    }
    if (!*newest) {
        return err_set(err, SMOE_IO, "there is no conversation to continue in %s", dir);
    }
    *path = path_join(dir, newest);
    return *path ? SMOE_OK : err_nomem(err, "a path", sizeof newest);
}

/* The first line, if it is a header: who wrote it. */
static void read_header(const saved *s, slice text, char *note, size_t note_size)
{
    json_value *v = NULL;
    smoe_err ignored;
    slice model = {0}, lineage = {0};
    const char *end = text.len ? memchr(text.data, '\n', text.len) : NULL;
    *note = '\0';
    if (end && jr_parse(slice_of(text.data, (size_t)(end - text.data)), "", &v, &ignored) == 0) {
        jr_string(jr_get(v, "model"), &model);
        jr_string(jr_get(v, "lineage"), &lineage);
        if (lineage.len > 0 && s->lineage && !slice_is(lineage, s->lineage)) {
            snprintf(note, note_size, "this conversation was held with %.*s", SLICE_ARG(model));
        }
    }
    jr_free(v);
}

smoe_status saved_continue(saved *s, transcript *t, char *note, size_t note_size, smoe_err *err)
{
    smoe_status status;
    buf text;
    buf_init(&text, SAVED_MAX_BYTES);
    if (s->dir == NULL) {
        CHECK(err_set(err, SMOE_USAGE, "conversations are not saved here: --continue has nothing "
                      "to go on from"));
    }
    saved_forget(s);
    CHECK(find_newest(s->dir, &s->path, err));
    CHECK(file_slurp(s->path, SAVED_MAX_BYTES, &text, err));
    read_header(s, buf_slice(&text), note, note_size);
    CHECK(transcript_read_lines(t, buf_slice(&text), s->path, err));
    s->n_written = t->n_messages;
    if (text.len > 0 && text.data[text.len - 1] != '\n') { /* its writer was killed */
        CHECK(saved_rewrite(s, t, err));
    }
out:
    buf_fini(&text);
    return status;
}

smoe_status saved_export(const char *path, slice text, smoe_err *err)
{
    return write_file(path, O_TRUNC, text, err);
}
