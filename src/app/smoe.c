/* smoe.c: the program that people type: picks the subcommand. */
#include <stdio.h>
#include <string.h>

#include "app/app.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"chat", cmd_chat, "talk with a model"},
    {"http", cmd_http, "serve a model to programs that speak the API of OpenAI"},
    {"shatter", cmd_shatter, "convert a checkpoint directory into a scout and a vault"},
    {"inspect", cmd_inspect, "show what a model's files hold, and verify them"},
    {"tokens", cmd_tokens, "show a text as token ids, or ids as text"},
    {"eval", cmd_eval, "logits, perplexity, or answers to a file of questions"},
    {"plan", cmd_plan, "what a model would need here, and how fast it would be"},
    {"bench", cmd_bench, "measure speed beside the limits of this machine"},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void usage(FILE *out)
{
    fprintf(out, "smoe runs Mixture-of-Experts language models that are larger than memory.\n\n"
                 "usage: smoe <command> [arguments]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
    }
    fprintf(out, "\n`smoe <command> --help` lists what a command takes.\n");
}

int main(int argc, char **argv)
{
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("smoe %s\n", SMOE_VERSION);
        return 0;
    }
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "smoe: there is no command \"%s\"; `smoe --help` lists them\n", argv[1]);
    return 2;
}
