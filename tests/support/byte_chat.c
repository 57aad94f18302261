/* byte_chat.c: the console over any engine command line, with bytes as tokens: what `smoe chat` is,
 * minus the model. Usage: byte_chat [FLAGS of the table below] -- ENGINE ARGS... */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/opts.h"
#include "chat/chat.h"

int main(int argc, char **argv)
{
    smoe_err err = {0};
    const char *engine[16] = {NULL};
    size_t n_engine = 0;
    const char *term = getenv("TERM");
    chat_options o = {.title = "bytes", .n_ctx = 1000, .in_fd = 0, .out_fd = 1, .err_fd = 2,
                      .dumb = term == NULL || strcmp(term, "dumb") == 0,
                      .color = getenv("NO_COLOR") == NULL};
    smoe_chat_format *format;
    int ended_by = 0;
    uint64_t fail_nth = 0; /* the allocation that is refused */
    const opt table[] = {
        {"system", OPT_TEXT, &o.system_text, 0, 0, "TEXT", "", NULL},
        {"ctx", OPT_U32, &o.n_ctx, 0, 0, "N", "", NULL},
        {"max-tokens", OPT_U32, &o.max_tokens, 0, 0, "N", "", NULL},
        {"stop-ms", OPT_U32, &o.stop_timeout_ms, 0, 0, "N", "", NULL},
        {"fail-nth", OPT_U64, &fail_nth, 0, 0, "N", "", NULL},
        {"prompt", OPT_TEXT, &o.prompt, 0, 0, "TEXT", "", NULL},
        {"file", OPT_TEXT, &o.file_path, 0, 0, "PATH", "", NULL},
        {"state", OPT_TEXT, &o.state_dir, 0, 0, "DIR", "", NULL},
        {"lineage", OPT_TEXT, &o.lineage, 0, 0, "TEXT", "", NULL},
        {"silence-ms", OPT_U32, &o.silence_ms, 0, 0, "N", "", NULL},
        {"continue", OPT_FLAG, &o.resume, 0, 0, NULL, "", NULL},
        {"json", OPT_FLAG, &o.json, 0, 0, NULL, "", NULL},
        {"stats", OPT_FLAG, &o.stats, 0, 0, NULL, "", NULL},
        {"verbose", OPT_FLAG, &o.verbose, 0, 0, NULL, "", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    smoe_status status = opts_parse(table, argc, argv, 1, engine, 15, &n_engine, &err);
    if (status == SMOE_OK) {
        smoe_chat_format_new(NULL, &format, &err);
        o.format = format;
        o.engine_argv = engine;
        mem_fail_nth(fail_nth);
        status = chat_run(&o, &ended_by, &err);
    }
    if (status != SMOE_OK) {
        fprintf(stderr, "byte_chat: %s\n", err.text);
    }
    return status == SMOE_OK ? 0 : status == SMOE_CANCELLED ? 128 + ended_by : 1;
}
