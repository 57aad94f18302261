/* opts.h: command-line flags from one table: parsing, range checks and the --help text. */
#ifndef BASE_OPTS_H
#define BASE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum opt_kind {
    OPT_FLAG,  /* bool *       --name                */
    OPT_TEXT,  /* const char **  --name TEXT, borrowed from argv */
    OPT_OPTIONAL, /* const char **  --name or --name=TEXT; "" without a value */
    OPT_U32,   /* uint32_t *   --name N, min..max    */
    OPT_U64,   /* uint64_t *   --name N, min..max    */
    OPT_FLOAT, /* float *      --name X, min..max    */
    OPT_SIZE,  /* uint64_t *   --name 8G (K M G T, powers of 1024; plain = bytes) */
};

typedef struct opt {
    const char *name;    /* without dashes; NULL ends the table */
    enum opt_kind kind;
    void *dest;
    double min, max;     /* for numbers, inclusive; both 0 = any */
    const char *arg;     /* "N", "DIR", ... for --help */
    const char *help;
    bool *seen;          /* set when given; may be NULL */
} opt;

/* Parses argv[first..argc): flags as --name VALUE or --name=VALUE, in any order among positional
 * arguments; "--" ends the flags. Positional arguments are moved to pos (at most max_pos).
 * SMOE_USAGE with a sentence that names the flag, or suggests the nearest one when it is unknown.
 */
smoe_status opts_parse(const opt *table, int argc, char **argv, int first, const char **pos,
                       size_t max_pos, size_t *n_pos, smoe_err *err);

/* One line per flag, aligned, into out (size bytes). */
void opts_help(const opt *table, char *out, size_t size);

/* "12G" -> bytes. SMOE_USAGE when malformed; `what` names the flag in the message. */
smoe_status opts_parse_size(const char *text, const char *what, uint64_t *bytes, smoe_err *err);

#endif
