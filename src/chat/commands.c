/* commands.c: see commands.h. */
#include "chat/commands.h"

const char command_help[] =
    "/help     this list\n"
    "/history  the conversation so far\n"
    "/reset    start a new conversation\n"
    "/quit     leave (so does Ctrl-D)\n"
    "//text    say \"/text\" to the model\n"
    "Ctrl-C    stop the answer; twice within a second: leave\n";

static const struct {
    const char *name;
    enum command command;
} table[] = {
    {"/help", COMMAND_HELP}, {"/?", COMMAND_HELP},    {"/history", COMMAND_HISTORY},
    {"/reset", COMMAND_RESET}, {"/quit", COMMAND_QUIT}, {"/exit", COMMAND_QUIT},
};

enum command command_parse(slice line, slice *text)
{
    *text = line;
    if (line.len == 0 || line.data[0] != '/') {
        return COMMAND_NONE;
    }
    if (line.len > 1 && line.data[1] == '/') {
        *text = slice_of(line.data + 1, line.len - 1);
        return COMMAND_NONE;
    }
    while (line.len > 0 && (line.data[line.len - 1] == ' ' || line.data[line.len - 1] == '\t')) {
        line.len--;
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (slice_is(line, table[i].name)) {
            return table[i].command;
        }
    }
    return COMMAND_UNKNOWN;
}
