/* saved.h: conversations on disk, written as they go: JSON Lines that only their owner can read.
 *
 * The first line names the model; each further one is a message (transcript_line). A conversation
 * gets its file with its first message; a change other than growth writes the file anew. */
#ifndef CHAT_SAVED_H
#define CHAT_SAVED_H

#include "chat/transcript.h"

typedef struct saved {
    const char *dir;    /* NULL = nothing is saved */
    const char *model, *lineage;
    char *path;         /* owned; NULL until the first message */
    size_t n_written;   /* messages in the file */
} saved;

void saved_init(saved *s, const char *dir, const char *model, const char *lineage);
void saved_fini(saved *s);
/* The transcript grew (or is as it was): what is new is appended. */
smoe_status saved_grow(saved *s, const transcript *t, smoe_err *err);
/* The transcript changed elsewhere than at its end. */
smoe_status saved_rewrite(saved *s, const transcript *t, smoe_err *err);
void saved_forget(saved *s); /* the next message starts another file */
/* Reads the newest conversation of the directory and goes on writing there. *note is empty, or says
 * that another model held it. SMOE_IO when there is none. */
smoe_status saved_continue(saved *s, transcript *t, char *note, size_t note_size, smoe_err *err);

/* A conversation to and from a file that the user names. */
smoe_status saved_export(const char *path, slice text, smoe_err *err);

#endif
