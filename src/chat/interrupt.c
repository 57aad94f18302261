/* interrupt.c: see interrupt.h. A signal handler can reach only globals. */
#include "chat/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
enum { N_CAUGHT = sizeof caught / sizeof caught[0] };

static volatile sig_atomic_t n_interrupts, ended_by, resized;
static struct sigaction before[N_CAUGHT];

static void on_signal(int sig)
{
    if (sig == SIGWINCH) {
        resized = 1;
        return;
    }
    n_interrupts++;
    ended_by = sig == SIGINT ? ended_by : sig;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < N_CAUGHT; i++) { /* no SA_RESTART: poll and read return at once */
        sigaction(caught[i], &action, &before[i]);
    }
}

void interrupt_restore(void)
{
    for (size_t i = 0; i < N_CAUGHT; i++) {
        sigaction(caught[i], &before[i], NULL);
    }
}

unsigned interrupt_count(void)
{
    return (unsigned)n_interrupts;
}

int interrupt_ended_by(void)
{
    return (int)ended_by;
}

void interrupt_hang_up(void)
{
    on_signal(SIGHUP);
}

bool interrupt_take_resize(void)
{
    bool was = resized;
    resized = 0;
    return was;
}
