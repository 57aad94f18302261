/* aio_uring.c: Linux io_uring: a batch of reads is one system call, and no thread of ours waits.
 *
 * The file is registered, and the owner's memory too where the system lets us pin it: then a read
 * need not look up its pages. The kernel limits the size of a registered piece; a read that lies
 * across two pieces goes the unregistered way.
 *
 * A submission that the kernel refuses for good leaves entries behind that must never be submitted
 * later, when their memory belongs to something else: the ring is broken from then on, its entries
 * end with that error, and so does every later read. */
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "base/mem.h"
#include "cache/aio_backend.h"

enum { SUBMIT_TRIES = 1000 }; /* of a kernel that has no memory for a request now; 1 ms apart */

struct uring {
    aio_backend base; /* first: a pointer to it is a pointer to this */
    struct io_uring ring;
    int fd;           /* 0 with IOSQE_FIXED_FILE when the file is registered */
    unsigned sqe_flags;
    uint8_t *memory;
    uint64_t memory_bytes, piece_bytes;
    int broken;          /* 0, or the errno value that broke the ring */
    aio_result *refused; /* [depth]: ended without the kernel */
    uint32_t n_refused;
};

static void pause_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void prepare(struct uring *u, const aio_op *op)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring); /* never NULL: depth entries */
    uint64_t at = u->base.is_registered ? (uint64_t)(op->data - u->memory) : 0;
    uint64_t piece = at / u->piece_bytes;
    if (u->base.is_registered && piece == (at + op->len - 1) / u->piece_bytes) {
        io_uring_prep_read_fixed(sqe, u->fd, op->data, op->len, op->offset, (int)piece);
    } else {
        io_uring_prep_read(sqe, u->fd, op->data, op->len, op->offset);
    }
    io_uring_sqe_set_flags(sqe, u->sqe_flags);
    io_uring_sqe_set_data64(sqe, op->place);
}

/* Submits what was prepared; the number that the kernel took. */
static uint32_t submit(struct uring *u, uint32_t n)
{
    uint32_t n_taken = 0;
    for (int n_tries = 0; n_taken < n;) {
        int result = io_uring_submit(&u->ring);
        if (result > 0) {
            n_taken += (uint32_t)result;
        } else if (result == -EINTR) {
            continue;
        } else if (n_tries++ < SUBMIT_TRIES &&
                   (result == 0 || result == -EAGAIN || result == -EBUSY)) {
            pause_ms();
        } else {
            u->broken = result ? -result : EAGAIN;
            break;
        }
    }
    return n_taken;
}

static void start(aio_backend *b, const aio_op *ops, uint32_t n)
{
    struct uring *u = (struct uring *)b;
    uint32_t n_taken = 0;
    if (!u->broken) {
        for (uint32_t i = 0; i < n; i++) {
            prepare(u, &ops[i]);
        }
        n_taken = submit(u, n);
    }
    for (uint32_t i = n_taken; i < n; i++) {
        u->refused[u->n_refused++] = (aio_result){ops[i].place, -u->broken};
    }
}

static uint32_t finish(aio_backend *b, aio_result *results, uint32_t max, bool wait)
{
    struct uring *u = (struct uring *)b;
    uint32_t n = 0;
    while (n < max && u->n_refused > 0) {
        results[n++] = u->refused[--u->n_refused];
    }
    struct io_uring_cqe *cqe;
    while (n < max) {
        int error = wait && n == 0 ? io_uring_wait_cqe(&u->ring, &cqe)
                                   : io_uring_peek_cqe(&u->ring, &cqe);
        if (error == 0) {
            results[n++] = (aio_result){(uint32_t)io_uring_cqe_get_data64(cqe), cqe->res};
            io_uring_cqe_seen(&u->ring, cqe);
        } else if (!wait || n > 0) {
            break;
        } else if (error != -EINTR) {
            pause_ms(); /* the reads are in flight and will end; only the waiting failed */
        }
    }
    return n;
}

static void close_uring(aio_backend *b)
{
    struct uring *u = (struct uring *)b;
    io_uring_queue_exit(&u->ring);
    mem_free(u->refused);
    mem_free(u);
}

/* Pins the memory, which RLIMIT_MEMLOCK may forbid: then it is read into all the same. */
static smoe_status register_memory(struct uring *u, smoe_err *err)
{
    uint64_t n_pieces = (u->memory_bytes + u->piece_bytes - 1) / u->piece_bytes;
    if (!u->memory || n_pieces > UIO_MAXIOV) {
        return SMOE_OK;
    }
    struct iovec *pieces = mem_calloc(n_pieces, sizeof *pieces);
    if (!pieces) {
        return err_nomem(err, "the io_uring", n_pieces * sizeof *pieces);
    }
    for (uint64_t i = 0, left = u->memory_bytes; i < n_pieces; i++) {
        uint64_t n_bytes = left < u->piece_bytes ? left : u->piece_bytes;
        pieces[i] = (struct iovec){u->memory + i * u->piece_bytes, n_bytes};
        left -= n_bytes;
    }
    u->base.is_registered = io_uring_register_buffers(&u->ring, pieces, (unsigned)n_pieces) == 0;
    mem_free(pieces);
    return SMOE_OK;
}

static smoe_status refuse(int error, smoe_err *err)
{
    const char *why = error == EPERM ? "is forbidden here, by a container or by the setting "
                                       "kernel.io_uring_disabled"
                      : error == ENOSYS ? "is not offered by this kernel"
                                        : "cannot be set up";
    return err_set(err, SMOE_UNSUPPORTED, "io_uring %s (%s)", why, strerror(error));
}

smoe_status aio_uring_open(const aio_backend_params *p, aio_backend **out, smoe_err *err)
{
    struct uring *u = mem_calloc(1, sizeof *u);
    aio_result *refused = mem_calloc(p->depth, sizeof *refused);
    if (!u || !refused) {
        mem_free(u);
        mem_free(refused);
        return err_nomem(err, "the io_uring", p->depth * sizeof *refused);
    }
    *u = (struct uring){.base = {start, finish, close_uring, false}, .fd = p->fd,
                        .memory = p->memory, .memory_bytes = p->memory_bytes,
                        .piece_bytes = p->piece_bytes, .refused = refused};
    int error = io_uring_queue_init(p->depth, &u->ring, 0);
    if (error == 0 && !(u->ring.features & IORING_FEAT_RW_CUR_POS)) {
        io_uring_queue_exit(&u->ring);
        error = -ENOSYS; /* before Linux 5.6, which has the plain read and this feature */
    }
    if (error != 0) {
        mem_free(u->refused);
        mem_free(u);
        return refuse(-error, err);
    }
    if (io_uring_register_files(&u->ring, &p->fd, 1) == 0) {
        u->fd = 0;
        u->sqe_flags = IOSQE_FIXED_FILE;
    }
    smoe_status status = register_memory(u, err);
    if (status != SMOE_OK) {
        close_uring(&u->base);
        return status;
    }
    *out = &u->base;
    return SMOE_OK;
}
