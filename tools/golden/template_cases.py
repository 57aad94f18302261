"""The conversations that the chat templates of the model families are rendered with."""


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def tool(text, **more):
    return {"role": "tool", "content": text, **more}


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a \"city\" — now, in °C.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "e.g. Zürich, 東京"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": ["integer", "null"]},
            },
            "required": ["city"],
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "",
        "parameters": {
            "type": "object",
            "properties": {
                "queries": {"type": "array", "items": {"type": "string"}},
                "filters": {"type": "array", "items": {"type": "object", "properties": {"key": {"type": "string"}, "min": {"type": "number"}}, "required": ["key"]}},
                "limit": {"oneOf": [{"type": "integer"}, {"type": "string", "enum": ["all"]}]},
                "safe": {"type": "boolean", "default": True},
                "options": {"type": "object", "properties": {}},
                "rest": {"type": "array"},
            },
            "required": ["queries", "limit"],
        },
    },
}
PLAIN = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}

CALL = call("get_weather", {"city": "Zürich", "days": 2}, id="call00001")
CALL_TEXT = call("get_weather", "{\"city\": \"Oslo\"}", id="call00002")

CONVERSATIONS = {
    "one_question": [user("Hi")],
    "system": [system("Be brief."), user("What is 2+2?")],
    "two_turns": [user("Hi"), assistant("Hello! How can I help?"), user("Tell me a joke.")],
    "ends_with_assistant": [system("S"), user("Q1"), assistant("A1"), user("Q2"), assistant("A2")],
    "blank_lines": [system("  S \n"), user("\n  spaced  \n\n"), assistant("\n\nanswer \n"), user(" \t")],
    "unicode": [user("Grüße, 世界! 👩🏽‍🚀 e\u0301 \u202e"), assistant("Ünïcödé \"quoted\" \\ back\tslash"), user("<|im_end|> <b>&amp;</b> {{ x }} {% y %}")],
    "empty_contents": [system(""), user(""), assistant(""), user("")],
    "late_system": [user("a"), system("in the middle"), user("b")],
    "two_users": [user("a"), user("b")],
    "starts_with_assistant": [assistant("I start"), user("ok")],
    "strange_role": [user("a"), {"role": "narrator", "content": "meanwhile"}],
    "no_messages": [],
    "only_system": [system("S")],
    "think_in_content": [user("Q"), assistant("<think>\nfirst\nthen\n</think>\n\nThe answer."), user("Why?")],
    "think_last": [user("Q"), assistant("<think>\nfirst\n</think>\n\n\nThe answer.")],
    "think_broken": [user("Q"), assistant("no start</think>x</think>end"), user("?"), assistant("<think>never closed")],
    "reasoning_content": [user("Q"), assistant("A", reasoning_content="\nstep 1\nstep 2\n"), user("Q2"), assistant("A2", reasoning_content="more")],
    "reasoning_none": [user("Q"), assistant("<think>\nin content\n</think>\n\nA", reasoning_content=None)],
    "tool_call": [system("Use tools."), user("Weather in Zürich?"), assistant("", tool_calls=[CALL])],
    "tool_round": [user("Weather in Zürich?"), assistant("Let me look.", tool_calls=[CALL], reasoning_content="I need the tool."), tool("{\"t\": 21.5}", tool_call_id="call00001"), assistant("It is 21.5 °C."), user("Thanks")],
    "two_tool_calls": [user("Both?"), assistant("", tool_calls=[CALL, CALL_TEXT]), tool("21", tool_call_id="call00001"), tool("7", tool_call_id="call00002")],
    "flat_tool_call": [user("Q"), assistant("", tool_calls=[{"name": "now", "arguments": {}}])],
    "multi_step": [
        user("Plan a trip"),
        assistant("", tool_calls=[call("search", {"queries": ["a", "b"], "limit": "all", "safe": False, "n": None, "x": 1.5, "deep": {"k": []}}, id="call00003")], reasoning_content="search first"),
        tool("[]", tool_call_id="call00003"),
        assistant("Nothing found, trying the weather.", tool_calls=[CALL], reasoning_content="then weather"),
        tool("{\"t\": -3}", tool_call_id="call00001"),
        assistant("Stay home.", reasoning_content="cold"),
    ],
    "user_tool_response": [user("Q"), assistant("A", reasoning_content="r1"), user("<tool_response>\nx\n</tool_response>"), assistant("B", reasoning_content="r2")],
    "tool_calls_none": [user("Q"), assistant("A", tool_calls=None), user("R")],
    "tool_calls_empty": [user("Q"), assistant("A", tool_calls=[]), user("R")],
    "tool_object": [user("Q"), assistant("", tool_calls=[CALL]), tool({"content": {"t": 1}}, tool_call_id="call00001")],
    "short_call_id": [user("Q"), assistant("", tool_calls=[call("now", {}, id="x")])],
    "parts": [system("S"), {"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"}, {"type": "text", "text": "here"}]}],
    "system_parts": [{"role": "system", "content": [{"type": "text", "text": "S"}]}, user("Q"), assistant("A")],
    "content_none": [user("Q"), assistant(None), user("R")],
    "content_number": [user(7)],
    "content_missing": [{"role": "user"}],
}
TOOLS = {"": None, "one_tool": [WEATHER], "tools": [WEATHER, SEARCH, PLAIN], "no_tools": []}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def conversation_cases(tokens):
    """Every conversation alone; those about tools and one plain one with tools; the prompt and its switches on a few."""
    def case(name, tools="", prompt=True, **more):
        label = ",".join([name, *([tools] if tools else []), *(["no_prompt"] if not prompt else []), *(f"{k}={v}" for k, v in more.items())])
        return label, {"messages": CONVERSATIONS[name], "tools": TOOLS[tools], "documents": None, "add_generation_prompt": prompt, **tokens, **more}

    for name in CONVERSATIONS:
        yield case(name)
        yield case(name, prompt=False)
    for name in ("one_question", "system", "two_turns", "tool_call", "tool_round", "two_tool_calls", "multi_step", "no_messages", "unicode"):
        yield case(name, "one_tool")
        yield case(name, "tools", prompt=False)
    yield case("system", "no_tools")
    for name in ("one_question", "think_last", "tool_round", "multi_step"):
        for thinking in (True, False, None):
            yield case(name, enable_thinking=thinking)
    yield case("one_question", "one_tool", enable_thinking=False)
    yield case("system", date_string="1 Jan 2030")
    yield case("system", "one_tool", tools_in_user_message=False)
    yield case("system", custom_tools=[PLAIN])
