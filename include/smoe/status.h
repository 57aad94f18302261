/* smoe/status.h: the result of every fallible function, and the sentence that explains it.
 *
 * A function that can fail returns a smoe_status and takes a caller-supplied smoe_err. On success
 * the smoe_err is untouched; on failure it holds one complete sentence: what, where, expected,
 * found, what to do. Library code never prints and never exits. */
#ifndef SMOE_STATUS_H
#define SMOE_STATUS_H

/* One list: the enum, and the names that smoe_status_name() prints, both come from here. */
#define SMOE_STATUS_LIST(X)                                                       \
    X(OK, "ok")                                                                   \
    X(USAGE, "usage")             /* a flag or an argument is wrong: exit 2 */    \
    X(NOMEM, "out of memory")     /* an allocation was refused */                 \
    X(IO, "i/o error")            /* the system refused a read, write or open */  \
    X(FORMAT, "bad format")       /* a file does not say what it must say */      \
    X(UNSUPPORTED, "unsupported") /* well-formed, but not something we run */     \
    X(MISMATCH, "mismatch")       /* two good things that do not belong together */ \
    X(RANGE, "out of range")      /* a number outside its limits */               \
    X(OVERFLOW, "context overflow") /* the ids do not fit the context */          \
    X(SUFFIX, "suffix too long")  /* more new ids than --max-suffix */            \
    X(EMPTY, "empty request")     /* no ids */                                    \
    X(CANCELLED, "cancelled")                                                     \
    X(NUMERIC, "not finite")      /* logits that are not finite */                \
    X(CHILD, "child failed")      /* the engine process died or hung */           \
    X(INTERNAL, "internal error")

typedef enum smoe_status {
#define X(name, text) SMOE_##name,
    SMOE_STATUS_LIST(X)
#undef X
} smoe_status;

typedef struct smoe_err {
    smoe_status code;
    char text[768]; /* one sentence, NUL-terminated, no newline at the end */
} smoe_err;

const char *smoe_status_name(smoe_status status);

#endif
