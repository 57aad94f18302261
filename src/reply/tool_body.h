/* tool_body.h: what stands inside a tool call, in either of the two forms of Qwen:
 *   {"name": "f", "arguments": {...}}
 *   <function=f> <parameter=k> \n text \n </parameter> ... </function>
 * Anything else is refused: the caller shows it as text. */
#ifndef REPLY_TOOL_BODY_H
#define REPLY_TOOL_BODY_H

#include "json/json_write.h"

/* Appends the name, and the arguments as one JSON object.
 *   First form: the object as the model wrote it, byte for byte, so that a client which sends it
 * back gives the same tokens. It may also stand in a string.
 *   Second form: a value is a string, unless the schema in tools (see tool_schema.h; may be NULL)
 * declares another type and the value parses as one.
 * SMOE_FORMAT: it is no call; the outputs may hold a part then. */
smoe_status tool_body_parse(slice body, const json_value *tools, buf *name, buf *arguments,
                            smoe_err *err);

#endif
