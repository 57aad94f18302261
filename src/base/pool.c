/* pool.c: see pool.h.
 *
 * A loop is cut into ranges; the caller and the workers claim them one by one from one atomic
 * ticket. The loop is over when every range is done, whether or not every worker has come: on a
 * busy machine a worker that is not scheduled costs nothing. A worker spins for a short while
 * before it sleeps: between the hundreds of small loops of one token, waking a sleeping thread
 * would cost more than the work. The mutex is only for sleeping and waking.
 *
 * The ticket holds the loop's number (32 bits), its number of ranges and the next one to claim (16
 * bits each). A claim below the number of ranges keeps the loop from ending, and so its fields (fn,
 * ctx, n, step) from changing, until that range is counted in n_done. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/mem.h"

enum { SPIN_NS = 50 * 1000, RANGES_PER_THREAD = 4, MAX_THREADS = 4096 };

struct pool {
    uint32_t n_threads;          /* with the caller */
    uint32_t n_started;          /* worker threads that exist */
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;         /* a new loop, or stop */
    pthread_cond_t done;         /* the last range is done */
    _Atomic uint64_t ticket;
    _Atomic uint32_t n_done;     /* ranges of this loop that are done */
    _Atomic uint32_t n_sleeping; /* workers in, or about to enter, pthread_cond_wait */
    atomic_bool stop;
    size_t n, step;
    pool_fn *fn;
    void *ctx;
};

struct worker_arg {
    pool *p;
    uint32_t thread;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint32_t loop_of(uint64_t ticket)
{
    return (uint32_t)(ticket >> 32);
}

static uint32_t n_ranges_of(uint64_t ticket)
{
    return (uint32_t)(ticket >> 16) & 0xffff;
}

/* Claims and runs ranges until none are left. */
static void run_ranges(pool *p, uint32_t thread)
{
    for (;;) {
        uint64_t ticket = atomic_fetch_add(&p->ticket, 1);
        uint32_t i = (uint32_t)ticket & 0xffff, n_ranges = n_ranges_of(ticket);
        if (i >= n_ranges) {
            return;
        }
        size_t begin = i * p->step;
        size_t end = i + 1 == n_ranges ? p->n : begin + p->step;
        p->fn(p->ctx, begin, end, thread);
        if (atomic_fetch_add(&p->n_done, 1) + 1 == n_ranges && thread != 0) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

/* Returns the number of the current loop once it differs from `seen`. */
static uint32_t wait_for_work(pool *p, uint32_t seen)
{
    uint32_t loop;
    for (uint64_t start = clock_ns(); clock_ns() - start < SPIN_NS;) {
        for (int i = 0; i < 64; i++) {
            loop = loop_of(atomic_load(&p->ticket));
            if (loop != seen) {
                return loop;
            }
            relax();
        }
    }
    pthread_mutex_lock(&p->lock);
    /* before the last look: announce() looks in the other order */
    atomic_fetch_add(&p->n_sleeping, 1);
    while ((loop = loop_of(atomic_load(&p->ticket))) == seen) {
        pthread_cond_wait(&p->wake, &p->lock);
    }
    atomic_fetch_sub(&p->n_sleeping, 1);
    pthread_mutex_unlock(&p->lock);
    return loop;
}

static void *worker(void *arg)
{
    struct worker_arg a = *(struct worker_arg *)arg;
    mem_free(arg);
    for (uint32_t seen = 0;;) {
        seen = wait_for_work(a.p, seen);
        if (atomic_load(&a.p->stop)) {
            return NULL;
        }
        run_ranges(a.p, a.thread);
    }
}

static void announce(pool *p, uint32_t n_ranges)
{
    uint64_t loop = (uint64_t)loop_of(atomic_load(&p->ticket)) + 1;
    atomic_store(&p->ticket, loop << 32 | (uint64_t)n_ranges << 16);
    if (atomic_load(&p->n_sleeping) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
}

smoe_status pool_new(uint32_t n_threads, pool **out, smoe_err *err)
{
    pool *p = mem_calloc(1, sizeof *p);
    if (!p) {
        return err_nomem(err, "the thread pool", sizeof *p);
    }
    p->n_threads = n_threads == 0 ? 1 : n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    p->threads = mem_calloc(p->n_threads, sizeof *p->threads);
    /* Signals belong to the main thread: workers start with all of them blocked. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = p->threads != NULL;
    for (uint32_t i = 1; ok && i < p->n_threads; i++) {
        struct worker_arg *arg = mem_alloc(sizeof *arg);
        if (arg) {
            *arg = (struct worker_arg){p, i};
        }
        ok = arg && pthread_create(&p->threads[p->n_started], NULL, worker, arg) == 0;
        if (ok) {
            p->n_started++;
        } else {
            mem_free(arg);
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!ok) {
        uint32_t n_asked = p->n_threads;
        pool_free(p);
        return err_set(err, SMOE_NOMEM,
                       "the system refused to start %u threads; ask for fewer with "
                       "--threads",
                       n_asked);
    }
    *out = p;
    return SMOE_OK;
}

void pool_free(pool *p)
{
    if (!p) {
        return;
    }
    atomic_store(&p->stop, true);
    announce(p, 0);
    for (uint32_t i = 0; i < p->n_started; i++) {
        pthread_join(p->threads[i], NULL);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    mem_free(p->threads);
    mem_free(p);
}

uint32_t pool_n_threads(const pool *p)
{
    return p->n_threads;
}

void pool_for(pool *p, size_t n, size_t grain, pool_fn *fn, void *ctx)
{
    grain = grain ? grain : 1;
    if (n == 0) {
        return;
    }
    if (p->n_started == 0 || n <= grain) {
        fn(ctx, 0, n, 0);
        return;
    }
    size_t step = n / ((size_t)p->n_threads * RANGES_PER_THREAD);
    step = step < grain ? grain : step;
    size_t n_ranges = n / step; /* the last one takes the remainder; below 8 per thread */
    p->step = step;
    p->n = n;
    p->fn = fn;
    p->ctx = ctx;
    atomic_store(&p->n_done, 0);
    announce(p, (uint32_t)n_ranges);
    run_ranges(p, 0);
    for (uint64_t start = clock_ns(); clock_ns() - start < SPIN_NS;) {
        if (atomic_load(&p->n_done) == n_ranges) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->n_done) != n_ranges) {
        pthread_cond_wait(&p->done, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}
