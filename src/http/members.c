/* members.c: see members.h. */
#include "http/members.h"

void members_function(json_writer *w)
{
    jw_key(w, "type");
    jw_cstr(w, "function");
    jw_key(w, "function");
    jw_begin_object(w);
}

void members_progress(json_writer *w, const http_event *event)
{
    jw_key(w, "prompt_progress");
    jw_begin_object(w);
    jw_key(w, "total");
    jw_uint(w, event->total);
    jw_key(w, "processed");
    jw_uint(w, event->done);
    jw_end_object(w);
}
