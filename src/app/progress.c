/* progress.c: see progress.h. */
#include "app/progress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "shatter/shatter.h"

enum { BAR_CELLS = 24, REDRAW_NS = 100 * 1000 * 1000 };

static volatile sig_atomic_t signal_seen;

static void on_signal(int signal_number)
{
    signal_seen = signal_number;
}

void stop_signals_catch(void)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    sa.sa_flags = SA_RESTART; /* each later write brings it again, also that of the last sentence */
    sigaction(SIGPIPE, &sa, NULL);
}

bool stop_signal_seen(void)
{
    return signal_seen != 0;
}

void progress_begin(progress *p, const char *verb)
{
    *p = (progress){.verb = verb, .is_tty = isatty(STDERR_FILENO) == 1, .start_ns = clock_ns()};
}

static void draw_bar(progress *p, uint64_t done, uint64_t total, double rate)
{
    char cells[BAR_CELLS + 1], a[32], b[32], c[32];
    size_t n_full = (size_t)((double)done / (double)total * BAR_CELLS);
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', n_full < BAR_CELLS ? n_full : BAR_CELLS);
    cells[BAR_CELLS] = '\0';
    fprintf(stderr, "\r[%s] %3.0f %%  %s of %s", cells, 100.0 * (double)done / (double)total,
            shatter_size_text(done, a), shatter_size_text(total, b));
    if (rate > 0) {
        uint64_t left_s = (uint64_t)((double)(total - done) / rate);
        fprintf(stderr, "  %s/s  %llu:%02llu left", shatter_size_text((uint64_t)rate, c),
                (unsigned long long)(left_s / 60), (unsigned long long)(left_s % 60));
    }
    fprintf(stderr, "\033[K");
    fflush(stderr);
    p->bar_shown = true;
}

void progress_update(progress *p, uint64_t done_bytes, uint64_t total_bytes)
{
    uint64_t now = clock_ns();
    unsigned tenth = total_bytes == 0 ? 0
                                      : (unsigned)((double)done_bytes / (double)total_bytes * 10);
    double seconds = (double)(now - p->start_ns) / 1e9;
    double rate = seconds < 0.2 ? 0 : (double)done_bytes / seconds;
    char a[32], b[32];
    if (total_bytes == 0) {
        return;
    }
    if (p->is_tty) {
        if (now - p->shown_ns >= REDRAW_NS) {
            p->shown_ns = now;
            draw_bar(p, done_bytes, total_bytes, rate);
        }
    } else if (tenth > p->tenth) {
        p->tenth = tenth;
        fprintf(stderr, "%3u %%  %s %s of %s\n", tenth * 10, p->verb,
                shatter_size_text(done_bytes, a), shatter_size_text(total_bytes, b));
    }
}

void progress_end(progress *p)
{
    if (p->bar_shown) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        p->bar_shown = false;
    }
}
