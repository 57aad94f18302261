/* interrupt.c: see interrupt.h. A signal handler can reach only globals. */
#include "chat/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t n_interrupts;
static struct sigaction before;

static void on_sigint(int sig)
{
    (void)sig;
    n_interrupts++;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_sigint};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before); /* no SA_RESTART: poll and read return at once */
}

void interrupt_restore(void)
{
    sigaction(SIGINT, &before, NULL);
}

unsigned interrupt_count(void)
{
    return (unsigned)n_interrupts;
}
