/* members.h: members of JSON objects that several APIs, and the templates, write alike. */
#ifndef HTTP_MEMBERS_H
#define HTTP_MEMBERS_H

#include "http/events.h"
#include "json/json_write.h"

/* "type":"function","function":{ - around a tool or a call; the caller ends the object. */
void members_function(json_writer *w);
/* "prompt_progress":{"total","processed"} */
void members_progress(json_writer *w, const http_event *event);

#endif
