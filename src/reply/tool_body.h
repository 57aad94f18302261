/* tool_body.h: what stands inside a tool call, in either of the two forms of Qwen:
 *   {"name": "f", "arguments": {...}}
 *   <function=f> <parameter=k> \n text \n </parameter> ... </function>
 * Anything else is refused: the caller shows it as text. */
#ifndef REPLY_TOOL_BODY_H
#define REPLY_TOOL_BODY_H

#include "json/json_write.h"

/* Appends the name, and the arguments as one JSON object. The second form says nothing of types:
 * every value is a string there. SMOE_FORMAT: it is no call; the outputs may hold a part then. */
smoe_status tool_body_parse(slice body, buf *name, buf *arguments, smoe_err *err);

#endif
