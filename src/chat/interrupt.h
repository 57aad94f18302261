/* interrupt.h: signals as values that a loop can look at. One catcher per process at a time. */
#ifndef CHAT_INTERRUPT_H
#define CHAT_INTERRUPT_H

#include <stdbool.h>

/* SIGINT is counted, SIGTERM and SIGHUP are remembered, SIGWINCH is noted from now on; all of them
 * interrupt waiting calls. */
void interrupt_catch(void);
void interrupt_restore(void); /* as it was before */
unsigned interrupt_count(void); /* of SIGINT; a SIGTERM or SIGHUP counts too */
int interrupt_ended_by(void);   /* SIGTERM, SIGHUP, or 0 */
/* The terminal is gone: as if SIGHUP had come, which may still be on its way. */
void interrupt_hang_up(void);
bool interrupt_take_resize(void); /* whether the terminal was resized since the last call */

#endif
