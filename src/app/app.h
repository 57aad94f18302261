/* app.h: what the subcommands of `smoe` share. Only this folder has main, exit and getenv. */
#ifndef APP_APP_H
#define APP_APP_H

#include "base/err.h"
#include "smoe/tokenizer.h"

/* Every subcommand gets argv without the program name: argv[0] is its own name. Returns the exit
 * status: 0, 1 (failure), 2 (usage). */
int cmd_chat(int argc, char **argv);
int cmd_http(int argc, char **argv);
int cmd_shatter(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_tokens(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_bench_io(int argc, char **argv);     /* argv[0] is "io" */
int cmd_bench_policy(int argc, char **argv); /* argv[0] is "policy" */

/* Prints "smoe <command>: <text>" to stderr; returns 2 for SMOE_USAGE, 1 for the rest. */
int app_fail(const char *command, const smoe_err *err);

/* Path of smoe-engine: beside this executable, else found through PATH by its name alone. Owned by
 * the caller (mem_free); NULL when memory is refused. */
char *app_engine_path(void);

/* MODEL, or the model that ships (<directory of the executable>/models/smoe-tiny) when it is NULL:
 * paths of the vault and the scout, owned by the caller (mem_free). */
smoe_status app_find_model(const char *model, char **vault_path, char **scout_path,
                           smoe_err *err);

/* What people call the model: its file without directory and ending. Owned by the caller; NULL
 * when memory is refused. */
char *app_model_name(const char *vault_path);
enum { APP_DEFAULT_CTX = 4096 };
/* The context that was asked for; for 0 the engine's own choice, so that both sides agree: the
 * smaller of the default and what the model was trained for. */
uint32_t app_context(uint32_t n_asked, uint32_t n_ctx_train);

/* Tokenizer and template out of the scout's embedded files. The caller owns *out. */
smoe_status app_open_chat_format(const char *scout_path, smoe_chat_format **out, smoe_err *err);

#endif
