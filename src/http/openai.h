/* openai.h: what the OpenAI endpoints share. */
#ifndef HTTP_OPENAI_H
#define HTTP_OPENAI_H

#include "http/fields.h"
#include "http/format.h"
#include "http/members.h"
#include "json/json_write.h"

/* The messages of a chat as a template takes them, appended to out. Tool calls and results too. */
bool openai_messages(const json_value *messages, buf *out, http_error *error);

/* Sampling, max_tokens and max_completion_tokens, stop, stream, n; refuses what is not supported.
 * For chat and plain completions. */
bool openai_common(const json_value *body, http_request *request, http_error *error);

/* {"error":{...}} */
smoe_status openai_error(const http_error *error, buf *out, smoe_err *err);
/* The members of "error", for other envelopes. */
void openai_error_members(json_writer *w, const http_error *error);
/* tool_choice and parallel_tool_calls: sets has_tools and one_tool_call. A choice that the model
 * would have to be forced to is refused. */
bool openai_tool_choice(const json_value *body, bool has_tools, http_request *request,
                        http_error *error);
bool openai_include_usage(const json_value *body, bool *include, http_error *error);
/* Opens the object of a reply or chunk: id, object, created, model, system_fingerprint. */
void openai_head(json_writer *w, const http_reply *reply, const char *prefix, const char *object);
/* The engine's own times, where it says. */
void openai_timings(json_writer *w, const http_end *end);
void openai_usage(json_writer *w, const http_end *end);
/* "stop", "length", ... */
const char *openai_finish_reason(enum http_fin fin);
/* "logprobs": null when n is 0. */
void openai_logprobs(json_writer *w, const http_reply *reply, const smoe_logprobs *logprobs,
                     size_t n);
/* "data: " ... blank line around one JSON text. */
smoe_status openai_sse_begin(buf *out, smoe_err *err);
smoe_status openai_sse_end(buf *out, smoe_err *err);
smoe_status openai_sse_error(const http_error *error, buf *out, smoe_err *err);
/* A comment that keeps the connection and says how far the prompt is. */
smoe_status openai_sse_waiting(const http_event *event, buf *out, smoe_err *err);

#endif
