/* interrupt.h: Ctrl-C as a count that a loop can look at. One catcher per process at a time. */
#ifndef CHAT_INTERRUPT_H
#define CHAT_INTERRUPT_H

void interrupt_catch(void);   /* SIGINT is counted from now on and interrupts waiting calls */
void interrupt_restore(void); /* as it was before */
unsigned interrupt_count(void);

#endif
