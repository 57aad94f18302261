/* commands.h: lines that are for the console, not for the model. */
#ifndef CHAT_COMMANDS_H
#define CHAT_COMMANDS_H

#include "base/slice.h"

enum command {
    COMMAND_NONE, /* text for the model: *text is it ("//x" says "/x") */
    COMMAND_HELP,
    COMMAND_HISTORY,
    COMMAND_RESET,
    COMMAND_QUIT,
    COMMAND_UNKNOWN,
};

enum command command_parse(slice line, slice *text);
extern const char command_help[];

#endif
