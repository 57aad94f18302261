/* openai_embedding.c: POST /v1/embeddings, which a model made to continue text does not answer. */
#include "http/openai.h"

static bool parse(slice body, http_request *request, void **state, http_error *error)
{
    (void)body;
    (void)request;
    (void)state;
    return http_refuse(error, HTTP_NOT_IMPLEMENTED, NULL,
                       "there are no embeddings here: these models are trained to continue text, "
                       "and their hidden states are no measure of likeness; use a model made for "
                       "that");
}

const http_format openai_embedding_format = {
    .path = "/v1/embeddings",
    .parse = parse,
    .error = openai_error,
};
