/* anthropic.h: what the parts of POST /v1/messages share. docs/http-api.md has the table of what is
 * taken, ignored and refused. */
#ifndef HTTP_ANTHROPIC_H
#define HTTP_ANTHROPIC_H

#include "http/fields.h"
#include "http/format.h"
#include "http/members.h"
#include "json/json_write.h"

/* system and messages, as a template takes them: appended to out as one JSON array. */
bool anthropic_messages(const json_value *body, buf *out, http_error *error);

/* tools and thinking as variables of the template, appended to out as one JSON object; tool_choice
 * and what it says into request. */
bool anthropic_tools(const json_value *body, http_request *request, http_error *error);

#endif
