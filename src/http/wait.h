/* wait.h: waiting on a condition until a time of clock_ns, which no change of the date moves. */
#ifndef HTTP_WAIT_H
#define HTTP_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

static inline void wait_init(pthread_cond_t *cond)
{
#ifdef __APPLE__
    pthread_cond_init(cond, NULL);
#else
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
#endif
}

/* The lock is held. False: the time has come. */
static inline bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end_ns)
{
    uint64_t now_ns = clock_ns();
    if (now_ns >= end_ns) {
        return false;
    }
#ifdef __APPLE__
    uint64_t ns = end_ns - now_ns;
    struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    pthread_cond_timedwait_relative_np(cond, lock, &ts);
#else
    struct timespec ts = {(time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u)};
    pthread_cond_timedwait(cond, lock, &ts);
#endif
    return true;
}

#endif
