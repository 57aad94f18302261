/* pool.c: see pool.h.
 *
 * One generation counter announces a loop; ranges are handed out by an atomic cursor. A worker spins for
 * a short while before it sleeps: between the hundreds of small loops of one token, waking a sleeping
 * thread would cost more than the work. The mutex is only for sleeping and waking. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/mem.h"

enum { SPIN_NS = 50 * 1000, RANGES_PER_THREAD = 4 };

struct pool {
    uint32_t n_threads;     /* with the caller */
    uint32_t n_started;     /* worker threads that exist */
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* a new generation, or stop */
    pthread_cond_t done;    /* the last worker left the loop */
    _Atomic uint64_t generation;
    _Atomic uint32_t n_active; /* workers that have not finished this generation */
    _Atomic size_t next;    /* first item not yet handed out */
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

static void run_ranges(pool *p, uint32_t thread)
{
    for (;;) {
        size_t begin = atomic_fetch_add_explicit(&p->next, p->step, memory_order_relaxed);
        if (begin >= p->n) {
            return;
        }
        size_t end = p->n - begin < p->step ? p->n : begin + p->step;
        p->fn(p->ctx, begin, end, thread);
    }
}

/* Returns the new generation once it differs from `seen`. */
static uint64_t wait_for_work(pool *p, uint64_t seen)
{
    uint64_t start = clock_ns();
    uint64_t now_gen;
    for (;;) {
        for (int i = 0; i < 64; i++) {
            now_gen = atomic_load_explicit(&p->generation, memory_order_acquire);
            if (now_gen != seen) {
                return now_gen;
            }
            relax();
        }
        if (clock_ns() - start > SPIN_NS) {
            break;
        }
    }
    pthread_mutex_lock(&p->lock);
    while ((now_gen = atomic_load(&p->generation)) == seen) {
        pthread_cond_wait(&p->wake, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return now_gen;
}

static void *worker(void *arg)
{
    struct worker_arg a = *(struct worker_arg *)arg;
    mem_free(arg);
    pool *p = a.p;
    for (uint64_t seen = 0;;) {
        seen = wait_for_work(p, seen);
        if (atomic_load(&p->stop)) {
            return NULL;
        }
        run_ranges(p, a.thread);
        if (atomic_fetch_sub_explicit(&p->n_active, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

static void announce(pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add_explicit(&p->generation, 1, memory_order_release);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

smoe_status pool_new(uint32_t n_threads, pool **out, smoe_err *err)
{
    pool *p = mem_calloc(1, sizeof *p);
    if (!p) {
        return err_nomem(err, "the thread pool", sizeof *p);
    }
    p->n_threads = n_threads ? n_threads : 1;
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
        return err_set(err, SMOE_NOMEM, "the system refused to start %u threads; ask for fewer with "
                       "--threads", n_asked);
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
    announce(p);
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
    p->step = step < grain ? grain : step;
    p->n = n;
    p->fn = fn;
    p->ctx = ctx;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store_explicit(&p->n_active, p->n_started, memory_order_relaxed);
    announce(p);
    run_ranges(p, 0);
    uint64_t start = clock_ns();
    while (atomic_load_explicit(&p->n_active, memory_order_acquire) != 0) {
        relax();
        if (clock_ns() - start > SPIN_NS) {
            pthread_mutex_lock(&p->lock);
            while (atomic_load_explicit(&p->n_active, memory_order_acquire) != 0) {
                pthread_cond_wait(&p->done, &p->lock);
            }
            pthread_mutex_unlock(&p->lock);
        }
    }
}
