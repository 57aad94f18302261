/* fake_engine.c: speaks the serve protocol, and breaks it on demand. Ids are bytes of text.
 *
 *   fake_engine MODE [ARG]
 *
 * Every mode answers RESET; on GEN:
 *
 *   answer TEXT      TEXT's bytes as ids
 *   echo             the ids of the request
 *   count            the number of ids of the request, in digits
 *   slow TEXT        TEXT over and over, 20 ms per byte, until CANCEL or max_tokens
 *   prefill TEXT     progress lines for a second or until CANCEL, then TEXT
 *   die-once FILE    the first time: three ids, a complaint, exit 3 (FILE remembers); then "again"
 *   die              three ids, a complaint, exit 3
 *   die-silent       exit 4 before anything is said
 *   crash            SIGKILL to itself
 *   garbage          text that is not the protocol
 *   half             "12" without white space, then exit 0
 *   hang             nothing, and CANCEL is ignored
 *   hang-term        the same, and SIGTERM is ignored
 *   close-stdin      closes its input, says nothing more, lives on
 *   error NAME       <<ERR NAME>> after one id
 *
 * Before the first request:
 *
 *   die-start        exit 5 with a complaint
 *   slow-start       nothing for a minute
 *   flood            8 MiB of ids; then as echo */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *line;
static size_t line_cap;

static void say(const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t written = write(1, text, n);
        if (written < 0) {
            _exit(9);
        }
        text += written;
        n -= (size_t)written;
    }
}

static void say_id(int id)
{
    char piece[16];
    snprintf(piece, sizeof piece, "%d ", id);
    say(piece);
}

static void say_text(const char *text)
{
    for (; *text; text++) {
        say_id((unsigned char)*text);
    }
}

static void done(const char *fin, int n)
{
    char text[128];
    snprintf(text, sizeof text,
             "\nfin=%s n=%d pp=7 pc=3 hit=0.5000 prefill_ms=1.500 decode_ms=2.000 "
             "<<DONE>>\n",
             fin, n);
    say(text);
}

static void sleep_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* Unbuffered: what poll says about the descriptor is the truth. False at the end of input. */
static int read_line(void)
{
    size_t n = 0;
    while (1) {
        if (n + 2 > line_cap) {
            line_cap = line_cap ? line_cap * 2 : 4096;
            line = realloc(line, line_cap);
        }
        ssize_t got = read(0, line + n, 1);
        if (got <= 0) {
            return 0;
        }
        if (line[n] == '\n') {
            line[n] = '\0';
            return 1;
        }
        n++;
    }
}

static int cancelled(void)
{
    struct pollfd p = {.fd = 0, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && (!read_line() || strcmp(line, "CANCEL") == 0);
}

static void slow(const char *text, int max_tokens)
{
    for (int n = 0; n < max_tokens; n++) {
        if (cancelled()) {
            done("cancel", n);
            return;
        }
        say_id((unsigned char)text[(size_t)n % strlen(text)]);
        sleep_ms(20);
    }
    done("length", max_tokens);
}

static void complain_and_die(int status)
{
    say_text("abc");
    fprintf(stderr, "fake_engine: something broke\n");
    exit(status);
}

static void echo(char *ids, int count_only)
{
    int n = 0;
    for (char *id = strtok(ids, ","); id; id = strtok(NULL, ",")) {
        n++;
        if (!count_only) {
            say_id(atoi(id));
        }
    }
    if (count_only) {
        char text[16];
        snprintf(text, sizeof text, "%d", n);
        say_text(text);
    }
    done("stop", n);
}

static void generate(const char *mode, const char *arg)
{
    int max_tokens = atoi(line + 4);
    char *ids = strrchr(line, ' ') + 1;
    if (!strcmp(mode, "answer")) {
        say_text(arg);
        done("stop", (int)strlen(arg));
    } else if (!strcmp(mode, "echo") || !strcmp(mode, "flood") || !strcmp(mode, "count")) {
        echo(ids, !strcmp(mode, "count"));
    } else if (!strcmp(mode, "slow")) {
        slow(arg, max_tokens);
    } else if (!strcmp(mode, "prefill")) {
        for (int i = 1; i <= 10; i++) {
            char piece[32];
            if (cancelled()) {
                done("cancel", 0);
                return;
            }
            snprintf(piece, sizeof piece, "pf=%d/10\n", i);
            say(piece);
            sleep_ms(100);
        }
        say_text(arg);
        done("stop", (int)strlen(arg));
    } else if (!strcmp(mode, "die-once")) {
        if (access(arg, F_OK) != 0) {
            fclose(fopen(arg, "w"));
            complain_and_die(3);
        }
        say_text("again");
        done("stop", 5);
    } else if (!strcmp(mode, "die")) {
        complain_and_die(3);
    } else if (!strcmp(mode, "die-silent")) {
        _exit(4);
    } else if (!strcmp(mode, "crash")) {
        raise(SIGKILL);
    } else if (!strcmp(mode, "garbage")) {
        say("Segmentation fault (not really)\n");
        sleep_ms(60000);
    } else if (!strcmp(mode, "half")) {
        say("12");
        _exit(0);
    } else if (!strcmp(mode, "close-stdin")) {
        close(0);
        sleep_ms(60000);
    } else if (!strcmp(mode, "error")) {
        char piece[64];
        say_text("x");
        fprintf(stderr, "fake_engine: the reason\n");
        snprintf(piece, sizeof piece, "\n<<ERR %s>>\n", arg);
        say(piece);
    } else {
        sleep_ms(60000);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "echo", *arg = argc > 2 ? argv[2] : "";
    if (!strcmp(mode, "die-start")) {
        fprintf(stderr, "fake_engine: no such model\n");
        return 5;
    }
    if (!strcmp(mode, "slow-start")) {
        sleep_ms(60000);
    }
    if (!strcmp(mode, "hang-term")) {
        signal(SIGTERM, SIG_IGN);
    }
    if (!strcmp(mode, "flood")) {
        for (int i = 0; i < 1 << 20; i++) {
            say("1234567 ");
        }
        say("<<DONE>>\n");
    }
    while (read_line()) {
        if (!strcmp(line, "RESET")) {
            say("<<DONE>>\n");
        } else if (!strncmp(line, "GEN ", 4)) {
            generate(mode, arg);
        }
    }
    free(line);
    return 0;
}
