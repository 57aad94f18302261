/* editor.h: line editing and history over libedit; only built where libedit is. */
#ifndef CHAT_EDITOR_H
#define CHAT_EDITOR_H

#include "chat/line_edit.h"

typedef struct editor editor;

smoe_status editor_new(int in_fd, int out_fd, editor **out, smoe_err *err);
void editor_free(editor *e);
/* As line_edit_read. */
enum line_event editor_read(editor *e, const char *prompt, const char *offered,
                            unsigned n_interrupts, slice *line, smoe_err *err);

#endif
