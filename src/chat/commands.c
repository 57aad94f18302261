/* commands.c: see commands.h. */
#include "chat/commands.h"

const char command_help[] =
    "/system [TEXT]    show the system message, or set it\n"
    "/file PATH        attach a text file to the next message\n"
    "/retry            ask the last question again\n"
    "/edit             change the last question and ask it again\n"
    "/undo             forget the last question and its answer\n"
    "/think            show or fold the model's reasoning\n"
    "/set [NAME VALUE] temperature, top-p, top-k, rep-penalty, min-p, presence-penalty,\n"
    "                  frequency-penalty, seed, max-tokens\n"
    "/tokens [TEXT]    count the tokens of the conversation, or of a text\n"
    "/stats            figures of this session\n"
    "/compact          drop the oldest turns until half of the context is free\n"
    "/save PATH        write the conversation (JSON Lines); /load PATH reads one\n"
    "/export PATH      write it for reading (Markdown)\n"
    "/history          the conversation so far\n"
    "/reset            start a new conversation\n"
    "/quit             leave (so does Ctrl-D)\n"
    "//text            say \"/text\" to the model\n"
    "A line that ends with \\ goes on; \"\"\" begins and ends several lines.\n"
    "Ctrl-C stops the answer; twice within a second: leave.\n";

enum argument { ARGUMENT_NONE, ARGUMENT_MAY, ARGUMENT_MUST };

static const struct {
    const char *name;
    enum command command;
    enum argument argument;
} table[] = {
    {"help", COMMAND_HELP, ARGUMENT_NONE},       {"?", COMMAND_HELP, ARGUMENT_NONE},
    {"history", COMMAND_HISTORY, ARGUMENT_NONE}, {"system", COMMAND_SYSTEM, ARGUMENT_MAY},
    {"file", COMMAND_FILE, ARGUMENT_MUST},       {"retry", COMMAND_RETRY, ARGUMENT_NONE},
    {"edit", COMMAND_EDIT, ARGUMENT_NONE},       {"undo", COMMAND_UNDO, ARGUMENT_NONE},
    {"think", COMMAND_THINK, ARGUMENT_NONE},     {"set", COMMAND_SET, ARGUMENT_MAY},
    {"stats", COMMAND_STATS, ARGUMENT_NONE},     {"tokens", COMMAND_TOKENS, ARGUMENT_MAY},
    {"compact", COMMAND_COMPACT, ARGUMENT_NONE}, {"save", COMMAND_SAVE, ARGUMENT_MUST},
    {"load", COMMAND_LOAD, ARGUMENT_MUST},       {"export", COMMAND_EXPORT, ARGUMENT_MUST},
    {"reset", COMMAND_RESET, ARGUMENT_NONE},     {"quit", COMMAND_QUIT, ARGUMENT_NONE},
    {"exit", COMMAND_QUIT, ARGUMENT_NONE},
};

static slice trim(slice s)
{
    while (s.len > 0 && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s = slice_of(s.data + 1, s.len - 1);
    }
    while (s.len > 0 && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

enum command command_parse(slice line, slice *text, smoe_err *err)
{
    *text = line;
    if (line.len == 0 || line.data[0] != '/') {
        return COMMAND_NONE;
    }
    if (line.len > 1 && line.data[1] == '/') {
        *text = slice_of(line.data + 1, line.len - 1);
        return COMMAND_NONE;
    }
    slice name = slice_of(line.data + 1, 0);
    while (name.len + 1 < line.len && name.data[name.len] != ' ' && name.data[name.len] != '\t') {
        name.len++;
    }
    *text = trim(slice_of(name.data + name.len, line.len - 1 - name.len));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!slice_is(name, table[i].name)) {
            continue;
        }
        if (table[i].argument == ARGUMENT_NONE && text->len > 0) {
            err_set(err, SMOE_USAGE, "/%s takes nothing after it; //... says /... to the model",
                    table[i].name);
            return COMMAND_WRONG;
        }
        if (table[i].argument == ARGUMENT_MUST && text->len == 0) {
            err_set(err, SMOE_USAGE, "/%s needs a path", table[i].name);
            return COMMAND_WRONG;
        }
        return table[i].command;
    }
    err_set(err, SMOE_USAGE, "there is no such command; /help lists them, and //... says /...");
    return COMMAND_WRONG;
}
