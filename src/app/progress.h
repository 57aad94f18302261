/* progress.h: how far a long job over bytes has come, for people: a bar with rate and time left on
 * a terminal, one plain line per 10 % elsewhere. Writes to stderr. */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const char *verb; /* "converted", "checked" */
    bool is_tty, bar_shown;
    uint64_t start_ns, shown_ns;
    unsigned tenth; /* the last plain line */
} progress;

void progress_begin(progress *p, const char *verb);
void progress_update(progress *p, uint64_t done_bytes, uint64_t total_bytes);
void progress_end(progress *p); /* removes the bar; safe to call twice */

/* Makes SIGINT, SIGTERM, SIGHUP and SIGPIPE set a flag instead of killing; a second one of these
 * kills, except for SIGPIPE. */
void stop_signals_catch(void);
bool stop_signal_seen(void);

#endif
