/* openai.c: what the OpenAI endpoints share: fields, usage, errors, the frame of an event. */
#include "http/openai.h"

#include <stdio.h>

/* Of other servers and of older versions of the API; an unknown name that is in neither list is
 * ignored. */
static const char *const unsupported[] = {
    "logit_bias", "best_of",
    "functions", "function_call", "audio", "web_search_options", "min_tokens",
    "ignore_eos", "typical_p", "tfs_z", "mirostat", "dry_multiplier", "xtc_probability",
    "grammar", "json_schema", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
    "logits_processors", "use_beam_search", "length_penalty", "bad_words", "stop_token_ids",
    "prompt_logprobs", NULL,
};

static bool read_stops(const json_value *stop, http_request *request, http_error *error)
{
    bool is_list = jr_kind(stop) == JSON_KIND_ARRAY;
    size_t n = jr_is_null(stop) ? 0 : is_list ? jr_len(stop) : 1;
    if (n > HTTP_MAX_STOPS) {
        return http_refuse(error, HTTP_BAD_REQUEST, "stop",
                           "stop may hold %d strings at most, found %zu", HTTP_MAX_STOPS, n);
    }
    for (size_t i = 0; i < n; i++) {
        slice text;
        const json_value *v = is_list ? jr_at(stop, i) : stop;
        if (!jr_string(v, &text) || text.len == 0) {
            return http_refuse(error, HTTP_BAD_REQUEST, "stop",
                               "stop must be a string or an array of strings, none of them empty");
        }
        if (!field_append(&request->stops[request->n_stops++], text, error)) {
            snprintf(error->param, sizeof error->param, "stop");
            return false;
        }
    }
    return true;
}

static bool read_sampling(const json_value *body, http_sampling *s, http_error *error)
{
    int64_t k = 0, seed = 0;
    if (!field_number(body, "temperature", 0, 100, &s->temperature, &s->has_temperature, error) ||
        !field_number(body, "top_p", 0, 1, &s->top_p, &s->has_top_p, error) ||
        !field_number(body, "repetition_penalty", 0.01, 100, &s->rep_penalty, &s->has_rep_penalty,
                      error) ||
        !field_number(body, "min_p", 0, 1, &s->min_p, &s->has_min_p, error) ||
        !field_number(body, "presence_penalty", -2, 2, &s->presence_penalty,
                      &s->has_presence_penalty, error) ||
        !field_number(body, "frequency_penalty", -2, 2, &s->frequency_penalty,
                      &s->has_frequency_penalty, error) ||
        !field_int(body, "top_k", -1, INT64_MAX, &k, &s->has_top_k, error) ||
        !field_int(body, "seed", INT64_MIN, INT64_MAX, &seed, &s->has_seed, error)) {
        return false;
    }
    s->top_k = k < 1 || k > 1024 ? 1024 : (uint32_t)k; /* 0 and -1: no limit */
    s->seed = (uint64_t)seed;
    return true;
}

bool openai_common(const json_value *body, http_request *request, http_error *error)
{
    int64_t n = 1, max_tokens = 0;
    slice model = {0};
    if (!field_string(body, "model", &model, error) ||
        !field_append(&request->model, model, error) ||
        !field_int(body, "n", 1, INT64_MAX, &n, NULL, error)) {
        return false;
    }
    if (n != 1) {
        return http_refuse(error, HTTP_BAD_REQUEST, "n", "n must be 1: one answer per request");
    }
    if (!field_int(body, "max_tokens", 1, INT64_MAX, &max_tokens, NULL, error) ||
        !field_int(body, "max_completion_tokens", 1, INT64_MAX, &max_tokens, NULL, error) ||
        !field_bool(body, "stream", &request->stream, error) ||
        !read_sampling(body, &request->sampling, error)) {
        return false;
    }
    request->max_tokens = max_tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)max_tokens;
    return read_stops(jr_get(body, "stop"), request, error) &&
           fields_refuse(body, unsupported, error);
}

bool openai_tool_choice(const json_value *body, bool has_tools, http_request *request,
                        http_error *error)
{
    const json_value *choice = jr_get(body, "tool_choice");
    slice word = {0};
    bool parallel = true;
    jr_string(choice, &word);
    if (!jr_is_null(choice) && !slice_is(word, "auto") && !slice_is(word, "none")) {
        return http_refuse(error, HTTP_BAD_REQUEST, "tool_choice",
                           "tool_choice must be auto or none; no model is forced to call here");
    }
    request->has_tools = has_tools && !slice_is(word, "none");
    bool ok = field_bool(body, "parallel_tool_calls", &parallel, error);
    request->one_tool_call = !parallel;
    return ok;
}

bool openai_include_usage(const json_value *body, bool *include, http_error *error)
{
    const json_value *options = jr_get(body, "stream_options");
    if (!jr_is_null(options) && jr_kind(options) != JSON_KIND_OBJECT) {
        return http_refuse(error, HTTP_BAD_REQUEST, "stream_options",
                           "stream_options must be an object, found %s", jr_kind_name(options));
    }
    return field_bool(options, "include_usage", include, error);
}

void openai_error_members(json_writer *w, const http_error *error)
{
    static const struct {
        const char *type, *code;
    } names[] = {
        [HTTP_BAD_REQUEST] = {"invalid_request_error", NULL},
        [HTTP_CONTEXT_LENGTH] = {"invalid_request_error", "context_length_exceeded"},
        [HTTP_UNAUTHORIZED] = {"invalid_request_error", "invalid_api_key"},
        [HTTP_FORBIDDEN] = {"invalid_request_error", "forbidden"},
        [HTTP_NO_SUCH_MODEL] = {"invalid_request_error", "model_not_found"},
        [HTTP_NO_SUCH_PATH] = {"invalid_request_error", "unknown_url"},
        [HTTP_WRONG_METHOD] = {"invalid_request_error", "method_not_allowed"},
        [HTTP_TOO_LARGE] = {"invalid_request_error", "request_too_large"},
        [HTTP_QUEUE_FULL] = {"rate_limit_error", "queue_full"},
        [HTTP_INTERNAL] = {"server_error", "internal_error"},
        [HTTP_NOT_IMPLEMENTED] = {"invalid_request_error", "not_implemented"},
        [HTTP_UNAVAILABLE] = {"server_error", "service_unavailable"},
        [HTTP_TIMED_OUT] = {"server_error", "timeout"},
    };
    jw_key(w, "message");
    jw_cstr(w, error->text);
    jw_key(w, "type");
    jw_cstr(w, names[error->kind].type);
    jw_key(w, "param");
    if (*error->param != '\0') {
        jw_cstr(w, error->param);
    } else {
        jw_null(w);
    }
    jw_key(w, "code");
    if (names[error->kind].code != NULL) {
        jw_cstr(w, names[error->kind].code);
    } else {
        jw_null(w);
    }
    if (error->kind == HTTP_CONTEXT_LENGTH) {
        jw_key(w, "n_prompt_tokens");
        jw_uint(w, error->n_prompt);
        jw_key(w, "n_ctx");
        jw_uint(w, error->n_ctx);
    }
}

smoe_status openai_error(const http_error *error, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_object(&w);
    jw_key(&w, "error");
    jw_begin_object(&w);
    openai_error_members(&w, error);
    jw_end_object(&w);
    jw_end_object(&w);
    return jw_finish(&w, err);
}

void openai_head(json_writer *w, const http_reply *reply, const char *prefix, const char *object)
{
    char id[64];
    snprintf(id, sizeof id, "%s%s", prefix, reply->id);
    jw_begin_object(w);
    jw_key(w, "id");
    jw_cstr(w, id);
    jw_key(w, "object");
    jw_cstr(w, object);
    jw_key(w, "created");
    jw_int(w, reply->created);
    jw_key(w, "model");
    jw_cstr(w, reply->model);
    jw_key(w, "system_fingerprint");
    jw_cstr(w, reply->lineage);
}

void openai_timings(json_writer *w, const http_end *end)
{
    if (end->prefill_s < 0 || end->decode_s < 0) {
        return;
    }
    jw_key(w, "timings");
    jw_begin_object(w);
    jw_key(w, "prompt_ms");
    jw_number(w, end->prefill_s * 1e3);
    jw_key(w, "predicted_ms");
    jw_number(w, end->decode_s * 1e3);
    if (end->hit >= 0) {
        jw_key(w, "expert_hit_rate");
        jw_number(w, end->hit);
    }
    jw_end_object(w);
}

void openai_usage(json_writer *w, const http_end *end)
{
    jw_key(w, "usage");
    jw_begin_object(w);
    jw_key(w, "prompt_tokens");
    jw_uint(w, end->n_prompt);
    jw_key(w, "completion_tokens");
    jw_uint(w, end->n_generated);
    jw_key(w, "total_tokens");
    jw_uint(w, end->n_prompt + end->n_generated);
    jw_key(w, "prompt_tokens_details");
    jw_begin_object(w);
    jw_key(w, "cached_tokens");
    jw_uint(w, end->n_cached);
    jw_end_object(w);
    jw_key(w, "completion_tokens_details");
    jw_begin_object(w);
    jw_key(w, "reasoning_tokens");
    jw_uint(w, end->n_reasoning);
    jw_end_object(w);
    jw_end_object(w);
}

const char *openai_finish_reason(enum http_fin fin)
{
    return fin == HTTP_FIN_LENGTH ? "length" : fin == HTTP_FIN_TOOLS ? "tool_calls" : "stop";
}

smoe_status openai_sse_begin(buf *out, smoe_err *err)
{
    return buf_puts(out, "data: ", err);
}

smoe_status openai_sse_end(buf *out, smoe_err *err)
{
    return buf_puts(out, "\n\n", err);
}

smoe_status openai_sse_error(const http_error *error, buf *out, smoe_err *err)
{
    TRY(openai_sse_begin(out, err));
    TRY(openai_error(error, out, err));
    return openai_sse_end(out, err);
}

smoe_status openai_sse_waiting(const http_event *event, buf *out, smoe_err *err)
{
    return event->total == 0
               ? buf_puts(out, ": waiting\n\n", err)
               : buf_printf(out, err, ": prefill %llu/%llu\n\n", (unsigned long long)event->done,
                            (unsigned long long)event->total);
}
