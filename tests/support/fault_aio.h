/* fault_aio.h: a mechanism of reading (cache/aio_backend.h) that fails on purpose. It reads with
 * threads, and does to the reads that its rules name what drives, file systems and other processes
 * do to them. */
#ifndef SUPPORT_FAULT_AIO_H
#define SUPPORT_FAULT_AIO_H

#include "cache/aio_backend.h"

typedef enum fault_kind {
    FAULT_SHORT, /* reads `amount` bytes, or what is asked for if that is less */
    FAULT_ERROR, /* ends with errno value `amount` */
    FAULT_WRONG, /* reads, then inverts the byte in the middle */
    FAULT_SLOW,  /* reads, and is done `amount` ms later */
} fault_kind;

enum { FAULT_FOR_EVER = INT32_MAX, FAULT_MAX_RULES = 8 };

typedef struct fault_rule {
    fault_kind kind;
    uint64_t begin, end; /* attempts whose first byte is in here */
    uint32_t n_times;    /* this many attempts */
    uint32_t amount;
} fault_rule;

/* Reads fd, which stays the caller's. For aio_params.backend, with the same depth. */
aio_backend *fault_aio_new(int fd, uint32_t depth);
/* From the next read on; the first rule that fits applies. n = 0: no faults. */
void fault_aio_set(aio_backend *b, const fault_rule *rules, uint32_t n);
/* Attempts that a rule applied to, since fault_aio_new. */
uint32_t fault_aio_n_faults(const aio_backend *b);

#endif
