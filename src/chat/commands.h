/* commands.h: lines that are for the console, not for the model. */
#ifndef CHAT_COMMANDS_H
#define CHAT_COMMANDS_H

#include "base/err.h"
#include "base/slice.h"

enum command {
    COMMAND_NONE, /* text for the model: *text is it ("//x" says "/x") */
    COMMAND_HELP,
    COMMAND_HISTORY,
    COMMAND_SYSTEM,
    COMMAND_FILE,
    COMMAND_RETRY,
    COMMAND_EDIT,
    COMMAND_UNDO,
    COMMAND_THINK,
    COMMAND_SET,
    COMMAND_STATS,
    COMMAND_TOKENS,
    COMMAND_COMPACT,
    COMMAND_SAVE,
    COMMAND_LOAD,
    COMMAND_EXPORT,
    COMMAND_RESET,
    COMMAND_QUIT,
    COMMAND_WRONG, /* err says why */
};

/* Splits "/name argument". *text: the argument without white space around it. */
enum command command_parse(slice line, slice *text, smoe_err *err);
extern const char command_help[];

#endif
