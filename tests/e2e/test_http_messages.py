#!/usr/bin/env python3
"""smoe http: Anthropic's API, over raw HTTP."""

import json
import shutil
import unittest

from harness import SMOE, TINY, WORK, main, must_run, shatter
from http_rig import FakeServer, Server, named_events, tool_server

PARIS = "The capital of France is Paris."
QUESTION = "What is the capital of France?"
PATH = "/v1/messages"
ADD = {"name": "add", "description": "Adds.", "input_schema": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}}


def body(*messages, **fields):
    """The messages in turn from user and assistant."""
    roles = ["user", "assistant"]
    return {"model": "smoe-tiny", "max_tokens": 60, "temperature": 0,
            "messages": [m if isinstance(m, dict) else {"role": roles[i % 2], "content": m}
                         for i, m in enumerate(messages)], **fields}


def named(text):
    """[(name, data)] of a stream, the type in the data being the name."""
    found = named_events(text)
    for name, data in found:
        assert data["type"] == name, text
    return found


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().wait_until_ready()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def ask(self, *messages, **fields):
        reply = self.server.post(PATH, body(*messages, **fields))
        self.assertEqual(reply.status, 200, reply.text)
        return reply.json()

    def test_answer(self):
        answer = self.ask(QUESTION)
        self.assertEqual((answer["type"], answer["role"], answer["model"]),
                         ("message", "assistant", "smoe-tiny"))
        self.assertEqual(answer["content"], [{"type": "text", "text": PARIS}])
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("end_turn", None))
        self.assertGreater(answer["usage"]["output_tokens"], 3)
        self.assertTrue(answer["id"].startswith("msg_"))
        self.assertNotEqual(answer["id"], self.ask(QUESTION)["id"])

    def test_it_is_the_answer_of_the_other_api(self):
        openai = self.server.ask({"role": "system", "content": "Be brief."},
                                 {"role": "user", "content": "What is 3 plus 4?"})
        answer = self.ask("What is 3 plus 4?", system="Be brief.")
        self.assertEqual(answer["content"], [{"type": "text", "text": openai}])

    def test_stream(self):
        reply = self.server.post(PATH, body(QUESTION, stream=True))
        self.assertTrue(reply.headers["Content-Type"].startswith("text/event-stream"))
        found = named(reply.text)
        names = [name for name, _ in found]
        n_deltas = names.count("content_block_delta")
        self.assertEqual(names, ["message_start", "content_block_start", "ping"] +
                         ["content_block_delta"] * n_deltas +
                         ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual("".join(d["delta"]["text"] for n, d in found
                                 if n == "content_block_delta"), PARIS)
        self.assertEqual(found[-2][1]["delta"], {"stop_reason": "end_turn", "stop_sequence": None})
        usage, start = found[-2][1]["usage"], found[0][1]["message"]["usage"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"],
                         start["input_tokens"])

    def test_stop_sequences(self):
        answer = self.ask(QUESTION, stop_sequences=["zzz", " is Pa"])
        self.assertEqual(answer["content"][0]["text"], "The capital of France")
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]),
                         ("stop_sequence", " is Pa"))

    def test_max_tokens(self):
        answer = self.ask(QUESTION, max_tokens=3)
        self.assertEqual((answer["stop_reason"], answer["usage"]["output_tokens"]),
                         ("max_tokens", 3))

    def test_a_changing_header_does_not_spoil_the_prefix(self):
        def system(i):
            return [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2; cch={i};"},
                    {"type": "text", "text": "You are a coding agent. " * 10,
                     "cache_control": {"type": "ephemeral"}}]
        first = self.ask(QUESTION, system=system(11111))["usage"]
        second = self.ask(QUESTION, system=system(98765))["usage"]
        self.assertEqual(second["input_tokens"], 1)  # the last one is always run again
        self.assertEqual(first["input_tokens"] + first["cache_read_input_tokens"],
                         second["cache_read_input_tokens"] + 1)

    def test_a_conversation_is_found_again(self):
        first = self.ask("My name is Zoë.")
        usage = self.ask("My name is Zoë.", first["content"], "What is my name?")["usage"]
        self.assertGreater(usage["cache_read_input_tokens"], first["usage"]["output_tokens"])

    def test_count_tokens(self):
        request = body(QUESTION, system="Be brief.")
        del request["max_tokens"]
        counted = self.server.post(PATH + "/count_tokens", request).json()
        usage = self.ask(QUESTION, system="Be brief.")["usage"]
        self.assertEqual(counted, {"input_tokens": usage["input_tokens"] +
                                   usage["cache_read_input_tokens"]})
        long = self.server.post(PATH + "/count_tokens", body("word " * 3000))
        self.assertGreater(long.json()["input_tokens"], 3000)

    def test_errors(self):
        cases = [(b"{", 400, "invalid_request_error"), (b"\xff", 400, "invalid_request_error"),
                 (json.dumps(body("\ud800")), 400, "invalid_request_error"),
                 (body(QUESTION, model="other"), 404, "not_found_error"),
                 (body(QUESTION, tool_choice={"type": "any"}), 400, "invalid_request_error"),
                 (body(QUESTION, "The capital"), 400, "invalid_request_error"),
                 (body("word " * 3000), 400, "invalid_request_error")]
        for request, status, kind in cases:
            for path in (PATH, PATH + "?beta=true"):
                reply = self.server.post(path, request)
                self.assertEqual((reply.status, reply.json()["type"]), (status, "error"))
                self.assertEqual(reply.json()["error"]["type"], kind, reply.text)
        self.assertRegex(reply.json()["error"]["message"], r"^prompt is too long: \d+ tokens > ")
        reply = self.server.get(PATH)
        self.assertEqual((reply.status, reply.json()["type"]), (405, "error"))


class Keys(unittest.TestCase):
    def test_a_key_as_anthropic_sends_it(self):
        keys = WORK / "anthropic.keys"
        keys.write_text("secret\n")
        with Server("--api-key-file", keys) as server:
            reply = server.post(PATH, body(QUESTION))
            self.assertEqual((reply.status, reply.json()["error"]["type"]),
                             (401, "authentication_error"))
            reply = server.post(PATH, body(QUESTION), {"x-api-key": "secret",
                                                       "anthropic-version": "2023-06-01"})
            self.assertEqual(reply.status, 200)


class Life(unittest.TestCase):
    def test_pings_while_a_prompt_is_read(self):
        with FakeServer("prefill 2.5") as server:
            found = named(server.post(PATH, body(QUESTION, stream=True)).text)
            pings = [d for n, d in found if n == "ping"]
            self.assertTrue(any("prompt_progress" in d for d in pings), found)
            self.assertEqual(found[0][0], "message_start")

    def test_an_engine_that_dies(self):
        with FakeServer("die-silent") as server:
            reply = server.post(PATH, body(QUESTION))
            self.assertEqual((reply.status, reply.json()["error"]["type"]),
                             (503, "overloaded_error"))
            server.set_mode("die")
            names = [n for n, _ in named(server.post(PATH, body(QUESTION, stream=True)).text)]
            self.assertEqual(names[-1], "error")


class Thinking(unittest.TestCase):
    """A model whose tokenizer knows </think>, over an engine that says a text with it."""

    def server(self, text):
        folder = WORK / "in" / "thinking"
        if not folder.exists():
            shutil.copytree(TINY, folder)
            tokenizer = json.loads((folder / "tokenizer.json").read_text())
            tokenizer["added_tokens"][0].update(content="</think>", special=False)
            (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        model = shatter(folder, name="thinking").stem
        ids = json.loads(must_run(SMOE, "tokens", model, "-", "--json", input=text).stdout)["ids"]
        return FakeServer("say " + ",".join(map(str, ids)), model=model)

    def test_thinking(self):
        ask = body(QUESTION, model="thinking", thinking={"type": "adaptive"})
        with self.server("<think>\nIt is\n\nParis.\n</think>\n\nParis!") as server:
            answer = server.post(PATH, ask).json()
            thinking = {"type": "thinking", "thinking": "It is\n\nParis.", "signature": "unsigned"}
            self.assertEqual(answer["content"], [thinking, {"type": "text", "text": "Paris!"}])
            self.assertGreater(answer["usage"]["output_tokens_details"]["thinking_tokens"], 3)
            found = named(server.post(PATH, {**ask, "stream": True}).text)
            kinds = [d["delta"]["type"] for n, d in found if n == "content_block_delta"]
            self.assertEqual(sorted(set(kinds), key=kinds.index),
                             ["thinking_delta", "signature_delta", "text_delta"])
            self.assertEqual("".join(d["delta"].get("thinking", "") for n, d in found
                                     if n == "content_block_delta"), thinking["thinking"])
            again = body(QUESTION, answer["content"], QUESTION, model="thinking")
            self.assertEqual(server.post(PATH, again).status, 200)


class Tools(unittest.TestCase):
    def ask(self, server, *messages, **fields):
        return server.post(PATH, body(*messages or ["Add."], model="tools", tools=[ADD], **fields))

    def test_call(self):
        said = 'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "x"}}\n</tool_call>'
        with tool_server(said) as server:
            answer = self.ask(server).json()
            self.assertEqual(answer["stop_reason"], "tool_use")
            text, call = answer["content"]
            self.assertEqual(text, {"type": "text", "text": "I add."})
            self.assertEqual((call["type"], call["name"], call["input"]),
                             ("tool_use", "add", {"a": 1, "b": "x"}))
            found = named(self.ask(server, stream=True).text)
            starts = [d["content_block"]["type"] for n, d in found if n == "content_block_start"]
            self.assertEqual(starts, ["text", "tool_use"])
            pieces = "".join(d["delta"]["partial_json"] for n, d in found
                             if n == "content_block_delta" and "partial_json" in d["delta"])
            self.assertEqual(json.loads(pieces), {"a": 1, "b": "x"})
            self.assertEqual(found[-2][1]["delta"]["stop_reason"], "tool_use")
            none = self.ask(server, tool_choice={"type": "none"}).json()
            self.assertEqual(none["content"], [{"type": "text", "text": said}])

    def test_one_call_only(self):
        said = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>\n' * 2
        with tool_server(said) as server:
            self.assertEqual(len(self.ask(server).json()["content"]), 2)
            choice = {"type": "auto", "disable_parallel_tool_use": True}
            self.assertEqual(len(self.ask(server, tool_choice=choice).json()["content"]), 1)

    def test_a_result_goes_back(self):
        with tool_server('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>') as server:
            call = self.ask(server).json()["content"]
            result = {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call[0]["id"],
                 "content": [{"type": "text", "text": "3"}]}]}
            self.assertEqual(self.ask(server, "Add.", call, result).status, 200)

    def test_a_malformed_call_is_text(self):
        said = '<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call>'
        with tool_server(said) as server:
            answer = self.ask(server).json()
            self.assertEqual(answer["content"], [{"type": "text", "text": said}])
            self.assertEqual(answer["stop_reason"], "end_turn")


if __name__ == "__main__":
    main()
