/* aio.c: see aio.h.
 *
 *   queued -> in flight (has a place, 0 .. depth - 1) -> done
 *                ^  |
 *                +--+  the rest of a short read; a retry
 *
 * A read keeps its place through rests and retries, so they never wait behind queued reads. */
#include "cache/aio.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cache/aio_backend.h"

enum {
    EIO_RETRIES = 3,      /* as file_read_at */
    FRUITLESS_MAX = 1000, /* attempts in a row that brought nothing and no failure: EINTR, EAGAIN */
};

/* A read that is in flight. */
struct flight {
    aio_read read;
    uint32_t n_read; /* bytes there so far */
    uint32_t n_eio, n_fruitless;
};

struct aio {
    int fd;
    aio_backend *backend;
    uint32_t depth;
    uint32_t step;         /* a direct read begins at a multiple of this, any other anywhere */
    struct flight *flights; /* [depth] by place */
    uint32_t *free_places; /* [depth]: a stack */
    uint32_t n_free;
    aio_op *ops;           /* [depth]: the next batch */
    uint32_t n_ops;
    aio_result *results;   /* [depth] */
    aio_read *queue;       /* [max_queued]: a ring */
    uint32_t max_queued, first, n_queued;
};

const char *aio_kind_name(aio_kind kind)
{
    return kind == AIO_URING ? "io_uring" : "threads";
}

/* ---- open and close ---- */

static smoe_status refuse_direct(const char *path, smoe_err *err)
{
    return err_set(err, SMOE_UNSUPPORTED, "the file system of %s refuses direct reads", path);
}

/* Some file systems accept the flag and refuse the reads. Other failures are not judged here. */
static smoe_status try_direct_read(const char *path, int fd, smoe_err *err)
{
    void *page = mem_pages_alloc(AIO_ALIGN);
    if (!page) {
        return err_nomem(err, "a first direct read", AIO_ALIGN);
    }
    bool is_refused = pread(fd, page, AIO_ALIGN, 0) < 0 && errno == EINVAL;
    mem_pages_free(page, AIO_ALIGN);
    return is_refused ? refuse_direct(path, err) : SMOE_OK;
}

static smoe_status set_caching(const char *path, int fd, bool direct, smoe_err *err)
{
#if defined(F_NOCACHE)
    if (fcntl(fd, direct ? F_NOCACHE : F_RDAHEAD, direct ? 1 : 0) < 0) {
        return refuse_direct(path, err);
    }
#elif defined(POSIX_FADV_RANDOM)
    if (!direct) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* a refusal costs speed only */
    }
#endif
    return direct ? try_direct_read(path, fd, err) : SMOE_OK;
}

/* A descriptor of its own: the flags for direct reads belong to the open file, and p->file is also
 * read in ways that these do not allow. */
static smoe_status open_again(const aio_params *p, int *fd_out, smoe_err *err)
{
    const char *path = p->file->path;
    struct stat before, now;
    int flags = O_RDONLY | O_CLOEXEC;
#ifdef O_DIRECT
    flags |= p->direct ? O_DIRECT : 0;
#endif
    int fd = open(path, flags);
    if (fd < 0) {
        return p->direct && errno == EINVAL
                   ? refuse_direct(path, err)
                   : err_errno(err, SMOE_IO, "%s cannot be opened", path);
    }
    *fd_out = fd;
    if (fstat(p->file->fd, &before) != 0 || fstat(fd, &now) != 0 ||
        before.st_dev != now.st_dev || before.st_ino != now.st_ino) {
        return err_set(err, SMOE_IO,
                       "%s is not the file that was there a moment ago: it was replaced while "
                       "it was being opened; start again", path);
    }
    return set_caching(path, fd, p->direct, err);
}

static smoe_status open_backend(aio *a, const aio_params *p, smoe_err *err)
{
    const aio_backend_params params = {a->fd, a->depth, p->memory, p->memory_bytes,
                                       AIO_PIECE_BYTES};
    if (a->backend) {
        return SMOE_OK;
    }
    if (p->kind == AIO_THREADS) {
        return aio_threads_open(&params, &a->backend, err);
    }
#ifdef HAVE_LIBURING
    return aio_uring_open(&params, &a->backend, err);
#else
    return err_set(err, SMOE_UNSUPPORTED, "this program was built without liburing");
#endif
}

static smoe_status open_all(aio *a, const aio_params *p, smoe_err *err)
{
    if (p->depth < 1 || p->depth > AIO_MAX_DEPTH) {
        return err_set(err, SMOE_RANGE, "1 to %d reads can be in flight at once, not %u",
                       AIO_MAX_DEPTH, p->depth);
    }
    a->max_queued = p->max_queued;
    a->step = p->direct ? AIO_ALIGN : 1;
    a->flights = mem_calloc(p->depth, sizeof *a->flights);
    a->free_places = mem_calloc(p->depth, sizeof *a->free_places);
    a->ops = mem_calloc(p->depth, sizeof *a->ops);
    a->results = mem_calloc(p->depth, sizeof *a->results);
    a->queue = mem_calloc(a->max_queued, sizeof *a->queue);
    if (!a->flights || !a->free_places || !a->ops || !a->results || !a->queue) {
        return err_nomem(err, "the queue of reads", a->max_queued * sizeof *a->queue);
    }
    a->depth = p->depth;
    while (a->n_free < a->depth) {
        a->free_places[a->n_free] = a->depth - 1 - a->n_free;
        a->n_free++;
    }
    TRY(open_again(p, &a->fd, err));
    return open_backend(a, p, err);
}

smoe_status aio_open(const aio_params *p, aio **out, smoe_err *err)
{
    aio *a = mem_calloc(1, sizeof *a);
    if (!a) {
        if (p->backend) {
            p->backend->close(p->backend);
        }
        return err_nomem(err, "the queue of reads", sizeof *a);
    }
    a->fd = -1;
    a->backend = p->backend;
    smoe_status status = open_all(a, p, err);
    if (status != SMOE_OK) {
        aio_close(a);
        return status;
    }
    *out = a;
    return SMOE_OK;
}

static uint32_t n_in_flight(const aio *a)
{
    return a->depth - a->n_free;
}

void aio_close(aio *a)
{
    if (!a) {
        return;
    }
    while (a->backend && n_in_flight(a) > 0) { /* memory is theirs until they end */
        a->n_free += a->backend->finish(a->backend, a->results, n_in_flight(a), true);
    }
    if (a->backend) {
        a->backend->close(a->backend);
    }
    if (a->fd >= 0) {
        close(a->fd);
    }
    mem_free(a->flights);
    mem_free(a->free_places);
    mem_free(a->ops);
    mem_free(a->results);
    mem_free(a->queue);
    mem_free(a);
}

/* ---- reads ---- */

/* Adds what is still missing of the read at this place to the next batch. */
static void add_op(aio *a, uint32_t place)
{
    const struct flight *f = &a->flights[place];
    a->ops[a->n_ops++] = (aio_op){f->read.offset + f->n_read, f->read.data + f->n_read,
                                  f->read.len - f->n_read, place};
}

/* Gives free places to queued reads and starts the batch. */
static void start(aio *a)
{
    while (a->n_free > 0 && a->n_queued > 0) {
        uint32_t place = a->free_places[--a->n_free];
        a->flights[place] = (struct flight){.read = a->queue[a->first]};
        a->first = (a->first + 1) % a->max_queued;
        a->n_queued--;
        add_op(a, place);
    }
    if (a->n_ops > 0) {
        a->backend->start(a->backend, a->ops, a->n_ops);
        a->n_ops = 0;
    }
}

void aio_submit(aio *a, const aio_read *reads, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        a->queue[(a->first + a->n_queued++) % a->max_queued] = reads[i];
    }
    start(a);
}

bool aio_withdraw(aio *a, uint32_t tag)
{
    uint32_t i = 0;
    while (i < a->n_queued && a->queue[(a->first + i) % a->max_queued].tag != tag) {
        i++;
    }
    if (i == a->n_queued) {
        return false;
    }
    for (; i + 1 < a->n_queued; i++) {
        a->queue[(a->first + i) % a->max_queued] = a->queue[(a->first + i + 1) % a->max_queued];
    }
    a->n_queued--;
    return true;
}

enum { MORE = -1 }; /* no error, and not the end */

/* Whether the file ends before the read does. */
static bool ends_early(const aio *a, const aio_read *read)
{
    struct stat st;
    return fstat(a->fd, &st) == 0 && (uint64_t)st.st_size < read->offset + read->len;
}

/* What an attempt that returned n_bytes makes of the read: MORE, 0 = all is there, or an error. */
static int judge(const aio *a, struct flight *f, int32_t n_bytes)
{
    if (n_bytes == -EINTR || n_bytes == -EAGAIN) {
        return f->n_fruitless++ < FRUITLESS_MAX ? MORE : -n_bytes;
    }
    if (n_bytes == 0) {
        return ENODATA;
    }
    if (n_bytes < 0 && n_bytes != -EIO) {
        return -n_bytes;
    }
    uint32_t n_whole = n_bytes < 0 ? 0 : (uint32_t)n_bytes / a->step * a->step;
    if (n_whole == f->read.len - f->n_read) {
        return 0;
    }
    if (n_whole > 0) {
        f->n_read += n_whole;
        f->n_fruitless = 0;
        return MORE;
    }
    /* EIO, or less than a step: what stopped it there is the end of the file or a bad place. */
    if (f->n_eio++ < EIO_RETRIES) {
        return MORE;
    }
    return ends_early(a, &f->read) ? ENODATA : EIO;
}

uint32_t aio_reap(aio *a, aio_done *done, uint32_t max, bool wait)
{
    uint32_t n = 0;
    while (n < max && n_in_flight(a) > 0) {
        uint32_t room = max - n < a->depth ? max - n : a->depth;
        uint32_t n_results = a->backend->finish(a->backend, a->results, room, wait && n == 0);
        if (n_results == 0) {
            break;
        }
        for (uint32_t i = 0; i < n_results; i++) {
            uint32_t place = a->results[i].place;
            struct flight *f = &a->flights[place];
            int verdict = judge(a, f, a->results[i].n_bytes);
            if (verdict == MORE) {
                add_op(a, place);
            } else {
                done[n++] = (aio_done){f->read.tag, verdict};
                a->free_places[a->n_free++] = place;
            }
        }
        start(a);
    }
    return n;
}

uint32_t aio_n_pending(const aio *a)
{
    return a->n_queued + n_in_flight(a);
}

bool aio_is_registered(const aio *a)
{
    return a->backend->is_registered;
}
