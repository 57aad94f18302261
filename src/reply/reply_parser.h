/* reply_parser.h: what a model says, told apart while it streams in: reasoning, content, tool
 * calls, and the end at a stop string. The console and the server share it.
 *
 * Text goes through four parts, each of which holds back only what it cannot yet tell:
 * reasoning.h, tool_call.h, stop.h, and the line breaks around calls. Content of whole characters
 * in comes out in whole characters. Events are the same wherever the text was cut, but for the
 * cuts inside a run of reasoning or content.
 *
 * Rules:
 *   * Calls are looked for only where the request has tools; elsewhere their tags are content.
 *   * A call is announced when all of it has been read and understood, so that one which is
 *     malformed or never closed is content, with its tags, and never an error.
 *   * Stop strings are looked for in content alone, and none reaches across a call.
 *   * Line breaks right before and after a call belong to its tags: templates write them. */
#ifndef REPLY_REPLY_PARSER_H
#define REPLY_REPLY_PARSER_H

#include "json/json_read.h"
#include "reply/reasoning.h"
#include "reply/stop.h"
#include "reply/tool_call.h"

enum reply_event_kind {
    REPLY_REASONING,      /* text: a piece of it, never empty */
    REPLY_CONTENT,        /* text: a piece of it, never empty */
    REPLY_CALL,           /* a tool call begins; text: the function's name; i: 0, 1, 2, ... */
    REPLY_CALL_ARGUMENTS, /* text: a piece of one JSON object; i: of the call */
    REPLY_CALL_END,       /* i: of the call */
    REPLY_STOPPED,        /* i: which stop string; nothing follows */
};

typedef struct reply_event {
    enum reply_event_kind kind;
    slice text; /* borrowed for the call of the sink */
    size_t i;
} reply_event;

typedef void reply_sink(void *ctx, const reply_event *event);

/* All borrowed until reply_parser_fini. */
typedef struct reply_options {
    bool has_think_tags;     /* the tokenizer knows </think>: what it encloses is reasoning */
    bool starts_inside;      /* the prompt left a think block open (reasoning_is_open) */
    bool has_tools;          /* calls are looked for */
    const json_value *tools; /* for the types of parameters, as in tool_schema.h; may be NULL */
    const slice *stop;       /* none is empty */
    size_t n_stop;
} reply_options;

typedef struct reply_parser {
    reply_options options;
    reply_sink *sink;
    void *ctx;
    reasoning reasoning;
    tool_call tool_call;
    tool_call_sink tool_sink;
    stop stop;
    size_t n_breaks;    /* of content, not yet passed on */
    bool after_call;    /* only line breaks of content since a call */
    size_t n_calls;
    buf name, arguments;
    smoe_err err;       /* of a part that failed; the reply cannot go on */
} reply_parser;

/* p must stay where it is. */
void reply_parser_init(reply_parser *p, const reply_options *options, reply_sink *sink, void *ctx);
void reply_parser_fini(reply_parser *p);
/* A piece of the reply, also an empty one. SMOE_NOMEM; never without tools and stop strings. */
smoe_status reply_parser_push(reply_parser *p, slice text, smoe_err *err);
/* The reply is over: passes on what was held back. */
smoe_status reply_parser_finish(reply_parser *p, smoe_err *err);
/* The text pushed so far ends inside a think block. */
bool reply_parser_is_reasoning(const reply_parser *p);
/* A stop string was found: the engine need not go on. */
bool reply_parser_stopped(const reply_parser *p);

#endif
