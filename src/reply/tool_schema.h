/* tool_schema.h: what a request's tools say about the types of their parameters. */
#ifndef REPLY_TOOL_SCHEMA_H
#define REPLY_TOOL_SCHEMA_H

#include "json/json_read.h"

/* The schema of one parameter, borrowed, or NULL where the tools say nothing of it. tools: an array
 * of {"type": "function", "function": {"name", "parameters": JSON schema}}, or NULL. */
const json_value *tool_schema_find(const json_value *tools, slice function, slice parameter);

/* Parses text as a value of one of the types that the schema declares, other than string: the
 * caller frees *out. False: it is a string. Where several types are declared and string is one of
 * them it is a string too, and Python's True, False and None count as JSON's: templates write
 * values that way, and models copy it. */
bool tool_schema_parse(const json_value *schema, slice text, json_value **out);

#endif
