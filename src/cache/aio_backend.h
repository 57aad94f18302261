/* aio_backend.h: what a mechanism of reading has to offer. aio.c stands above it and does all that
 * is the same for every mechanism: queue, depth, rests of short reads, retries. Tests put a
 * mechanism that fails on purpose in its place. */
#ifndef CACHE_AIO_BACKEND_H
#define CACHE_AIO_BACKEND_H

#include "cache/aio.h"

enum { AIO_PIECE_BYTES = 1 << 30 }; /* the largest piece of memory that Linux registers */

/* One attempt at a read, or at the rest of one. */
typedef struct aio_op {
    uint64_t offset;
    uint8_t *data;
    uint32_t len;
    uint32_t place; /* below depth, and of no other op in flight */
} aio_op;

typedef struct aio_result {
    uint32_t place;
    int32_t n_bytes; /* as read(2) returns it, or a negative errno value */
} aio_result;

typedef struct aio_backend aio_backend;
struct aio_backend {
    /* Begins n reads; with those in flight at most depth. What cannot be begun is a result with its
     * error. */
    void (*start)(aio_backend *b, const aio_op *ops, uint32_t n);
    /* Results, at most max. wait: at least one; something is in flight then. */
    uint32_t (*finish)(aio_backend *b, aio_result *results, uint32_t max, bool wait);
    void (*close)(aio_backend *b); /* nothing is in flight */
    bool is_registered;            /* see aio_is_registered */
};

typedef struct aio_backend_params {
    int fd; /* borrowed until close */
    uint32_t depth;
    uint8_t *memory; /* may be NULL */
    uint64_t memory_bytes;
    uint64_t piece_bytes; /* memory is registered in pieces of this size */
} aio_backend_params;

/* SMOE_UNSUPPORTED where this system has no io_uring or forbids it. Absent without liburing. */
smoe_status aio_uring_open(const aio_backend_params *p, aio_backend **out, smoe_err *err);
smoe_status aio_threads_open(const aio_backend_params *p, aio_backend **out, smoe_err *err);

#endif
