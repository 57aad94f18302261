/* chat.h: a conversation with an engine, on a terminal or through pipes.
 *
 * Owns the turn loop and everything a person sees. Knows the engine only through its protocol: when
 * the engine dies the conversation goes on with a new one. */
#ifndef CHAT_CHAT_H
#define CHAT_CHAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "smoe/tokenizer.h"

enum chat_think { CHAT_THINK_DEFAULT, CHAT_THINK_ON, CHAT_THINK_OFF };

typedef struct chat_options {
    const char *const *engine_argv; /* smoe-engine ... --serve, NULL-terminated */
    const smoe_chat_format *format;
    const char *title;              /* the model's name, for the greeting */
    const char *lineage;            /* of the model, or NULL */
    const char *system_text;        /* NULL = no system message */
    const char *prompt;             /* one message, then the end; NULL = read the input */
    const char *file_path;          /* attached to the first message; "-" = the input */
    const char *state_dir;          /* where conversations are saved; NULL = nowhere */
    bool resume;                    /* go on with the newest one */
    enum chat_think think;          /* enable_thinking for the template */
    uint32_t n_ctx;                 /* the engine's context */
    uint32_t max_tokens;            /* per answer; 0 = what is left of the context */
    uint32_t stop_timeout_ms;       /* how long a CANCEL may take; 0 = 10 s */
    uint32_t silence_ms;            /* without a sign of the engine this is said; 0 = 30 s */
    int in_fd, out_fd, err_fd;
    bool json;                      /* out_fd gets one JSON object per answer, nothing else */
    bool dumb;                      /* no escape sequences at all: TERM is unset or "dumb" */
    bool color;                     /* dim text on a terminal: NO_COLOR is unset */
    bool stats;                     /* figures also where out_fd is no terminal, to err_fd */
    bool verbose;                   /* the engine's messages appear as they come */
} chat_options;

/* Runs until /quit or the end of input. SMOE_CANCELLED: ended by Ctrl-C or a signal (*signal: its
 * number). SMOE_CHILD: the engine did not start. Input that is not a terminal: SMOE_INTERNAL when a
 * turn failed (each has been explained on err_fd). Catches SIGINT, SIGTERM, SIGHUP and SIGWINCH
 * while a person types; restores them before it returns. */
smoe_status chat_run(const chat_options *options, int *signal, smoe_err *err);

#endif
