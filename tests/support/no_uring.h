/* no_uring.h: a process that may not set up an io_uring, as in many containers. */
#ifndef SUPPORT_NO_URING_H
#define SUPPORT_NO_URING_H

#include <stdbool.h>

#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#if defined(HAVE_LIBURING) && defined(__NR_io_uring_setup)
#define CAN_FORBID_URING 1

/* From here on io_uring_setup fails with this errno value, for ever: for a child of fork. false:
 * this system cannot do that. */
static inline bool forbid_uring(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#endif

#endif
