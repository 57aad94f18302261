/* openai_responses.h: what the two halves of POST /v1/responses share: the request is read in
 * openai_responses_read.c, the reply written in openai_responses.c. */
#ifndef HTTP_OPENAI_RESPONSES_H
#define HTTP_OPENAI_RESPONSES_H

#include "http/openai.h"

/* What a reply is made of, in order. */
enum item_kind { ITEM_REASONING, ITEM_MESSAGE, ITEM_CALL };

typedef struct response_item {
    enum item_kind kind;
    buf text; /* reasoning, content or arguments */
    buf name; /* of a call */
} response_item;

typedef struct responses_state {
    buf tools;           /* as they came: they are part of the reply */
    bool one_tool_call;
    response_item *items; /* owned */
    size_t n_items;
    bool open;           /* the last item is not finished */
    uint64_t sequence;   /* number of the next event */
} responses_state;

/* Fills the request from the body; false: *error says why not. */
bool responses_read(const json_value *body, http_request *request, responses_state *state,
                    http_error *error);

#endif
