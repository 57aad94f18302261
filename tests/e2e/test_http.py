#!/usr/bin/env python3
"""smoe http: OpenAI's APIs, over the model that ships and over engines that do as they are told."""

import json
import re
import shutil
import socket
import threading
import time
import unittest

from harness import SMOE, SOURCE, main, must_run, shatter, thinking_checkpoint
from http_rig import (CHAT, PARIS, QUESTION, TOOLS, Server, WithServer, events, named_events,
                      read_until, saying, tool_server)


class Chat(WithServer):
    def test_answer(self):
        reply = self.server.chat(QUESTION)
        answer = reply.json()
        self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "application/json"))
        self.assertEqual(answer["object"], "chat.completion")
        self.assertEqual(answer["model"], "smoe-tiny")
        self.assertTrue(answer["id"].startswith("chatcmpl-"))
        choice = answer["choices"][0]
        self.assertEqual(choice["message"]["content"], PARIS)
        self.assertEqual((choice["finish_reason"], choice["index"]), ("stop", 0))
        usage = answer["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])

    def test_a_conversation_is_found_again(self):
        first = self.server.ask("My name is Zoë.")
        before = self.server.chat("My name is Zoë.", first).json()["usage"]
        usage = self.server.chat("My name is Zoë.", first, "What is my name?").json()["usage"]
        self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"],
                           before["prompt_tokens"] - 8)
        self.assertIn("Zoë", self.server.ask("My name is Zoë.", first, "What is my name?"))

    def test_stream(self):
        reply = self.server.chat("What is the flag of France?", stream=True,
                                 stream_options={"include_usage": True})
        self.assertTrue(reply.headers["Content-Type"].startswith("text/event-stream"))
        chunks = events(reply.text)
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1])
        self.assertEqual(text, self.server.ask("What is the flag of France?"))
        self.assertEqual(chunks[-2]["choices"][0]["finish_reason"], "stop")
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertGreater(chunks[-1]["usage"]["completion_tokens"], 3)
        self.assertEqual(len({c["id"] for c in chunks}), 1)

    def test_parts_and_roles(self):
        parts = [{"type": "text", "text": QUESTION}]
        self.assertEqual(self.server.ask({"role": "user", "content": parts}), PARIS)
        for role in ("system", "developer"):
            self.server.ask({"role": role, "content": "Be brief."},
                            {"role": "user", "content": QUESTION})
        call = {"id": "call_1", "type": "function",
                "function": {"name": "f", "arguments": "{\"a\": 1}"}}
        self.server.ask({"role": "user", "content": QUESTION},
                        {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
                        {"role": "user", "content": QUESTION})

    def test_stop_strings(self):
        reply = self.server.chat(QUESTION, stop=[" is Pa", "zzz"]).json()
        self.assertEqual(reply["choices"][0]["message"]["content"], "The capital of France")
        self.assertEqual(reply["choices"][0]["finish_reason"], "stop")
        self.assertEqual(self.server.ask(QUESTION, stop="France"), "The capital of ")
        reply = self.server.chat(QUESTION, stop="ris", stream=True)
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in events(reply.text))
        self.assertEqual(text, "The capital of France is Pa")
        self.assertEqual(self.server.ask(QUESTION), PARIS)

    def test_max_tokens(self):
        for name in ("max_tokens", "max_completion_tokens"):
            reply = self.server.chat(QUESTION, **{name: 3}).json()
            self.assertEqual(reply["choices"][0]["finish_reason"], "length")
            self.assertEqual(reply["usage"]["completion_tokens"], 3)
        self.assertEqual(self.server.ask(QUESTION, max_tokens=10 ** 12), PARIS)

    def test_seed(self):
        answers = {self.server.ask("Tell me something.", temperature=1.5, seed=7, top_k=-1)
                   for _ in range(3)}
        self.assertEqual(len(answers), 1)

    def test_penalties(self):
        def ask(**fields):
            return self.server.ask("Hello!", **fields)

        self.assertEqual(ask(min_p=1, temperature=1.9), ask())
        again = ask(frequency_penalty=2, presence_penalty=2, max_tokens=200)
        self.assertNotEqual(again, "")

    def test_logprobs(self):
        whole = self.server.chat(QUESTION, logprobs=True, top_logprobs=3).json()["choices"][0]
        content = whole["logprobs"]["content"]
        self.assertEqual("".join(t["token"] for t in content), PARIS)
        for token in content:
            self.assertLessEqual(token["logprob"], 0)
            self.assertEqual(bytes(token["bytes"]).decode(), token["token"])
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["top_logprobs"][0]["token"], token["token"])
        chunks = events(self.server.chat(QUESTION, logprobs=True, top_logprobs=3,
                                         stream=True).text)
        pieces = [c["choices"][0]["logprobs"] for c in chunks]
        self.assertEqual([t for p in pieces if p for t in p["content"]], content)
        tokens = self.server.chat("How is Tokyo written in Japanese?", logprobs=True).json()
        tokens = tokens["choices"][0]
        data = b"".join(bytes(t["bytes"]) for t in tokens["logprobs"]["content"])
        self.assertEqual(data.decode(), tokens["message"]["content"])

    def test_harmless_fields(self):
        self.assertEqual(self.server.ask(
            QUESTION, user="me", metadata={"a": "b"}, store=False, n=1, logprobs=False,
            presence_penalty=0, frequency_penalty=0.0, logit_bias={}, tools=[], stop=None,
            response_format={"type": "text"}, something_new=[1]), PARIS)

    def test_keep_alive(self):
        s = self.server.open(stream=False, temperature=0)
        data = read_until(s, rb"\}\}$")
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(b"200 OK", read_until(s, rb'"waiting":0}', b""))
        self.assertIn(b"chat.completion", data)
        s.close()

    def test_a_client_that_asks_first(self):
        body = json.dumps({"messages": [{"role": "user", "content": QUESTION}],
                           "temperature": 0}).encode()
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                  b"Content-Length: %d\r\n\r\n" % (CHAT.encode(), len(body)))
        read_until(s, rb"HTTP/1.1 100 .*\r\n\r\n")
        s.sendall(body)
        self.assertIn(PARIS.encode(), read_until(s, rb"\}\}$"))
        s.close()

    def test_http_1_0(self):
        body = json.dumps({"messages": [{"role": "user", "content": QUESTION}], "stream": True,
                           "temperature": 0}).encode()
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        s.sendall(b"POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s"
                  % (CHAT.encode(), len(body), body))
        data = b""
        while more := s.recv(65536):
            data += more
        s.close()
        self.assertNotIn(b"chunked", data)
        chunks = events(data.partition(b"\r\n\r\n")[2].decode())
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
        self.assertEqual(text, PARIS)

    def test_clients_at_once(self):
        questions = [QUESTION, "What is the capital of Italy?", "What is 3 plus 4?"] * 4
        alone = {q: self.server.ask(q) for q in set(questions)}
        answers = [None] * len(questions)

        def ask(i):
            answers[i] = self.server.ask(questions[i])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(questions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [alone[q] for q in questions])


class Completions(WithServer):
    PROMPT = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"

    def complete(self, prompt, **fields):
        return self.server.post("/v1/completions", {
            "prompt": prompt, "temperature": 0, "repetition_penalty": 1, **fields})

    def test_text_and_ids(self):
        reply = self.complete(self.PROMPT).json()
        self.assertEqual(reply["object"], "text_completion")
        self.assertEqual(reply["choices"][0]["text"], PARIS)
        done = must_run(SMOE, "tokens", "-", "--json", input=self.PROMPT)
        ids = json.loads(done.stdout)["ids"]
        for prompt in (ids, [ids], [self.PROMPT]):
            self.assertEqual(self.complete(prompt).json()["choices"][0]["text"], PARIS)

    def test_stream(self):
        chunks = events(self.complete(self.PROMPT, stream=True,
                                      stream_options={"include_usage": True}).text)
        text = "".join(c["choices"][0]["text"] for c in chunks[:-1])
        self.assertEqual(text, PARIS)
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 9)

    def test_refused(self):
        for prompt in (None, 5, [], "", ["a", "b"], [1, "a"], [-1], [99999], [1.5], [[1], [2]]):
            reply = self.complete(prompt)
            found = (reply.status, reply.json()["error"]["param"])
            self.assertEqual(found, (400, "prompt"), prompt)
        for name in ("suffix", "echo", "best_of", "logprobs", "logit_bias"):
            reply = self.complete("x", **{name: 3})
            self.assertEqual((reply.status, reply.json()["error"]["param"]), (400, name))

    def test_embeddings(self):
        reply = self.server.post("/v1/embeddings", {"input": "x"})
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (501, "not_implemented"))


class Readme(WithServer):
    flags = ["--log", "none"]

    @unittest.skipUnless(shutil.which("curl"), "there is no curl here")
    def test_commands(self):
        text = (SOURCE / "README.md").read_text(encoding="utf-8")
        commands = re.findall(r"^\$ (curl .*)\n(.*)$", text, re.M)
        self.assertGreater(len(commands), 1)
        for command, output in commands:
            command = command.replace(":8080/", f":{self.server.port}/")
            self.assertEqual(must_run("sh", "-c", command).stdout.strip(), output)


class Responses(WithServer):
    def post(self, input, **fields):
        return self.server.post("/v1/responses", {
            "input": input, "temperature": 0, "repetition_penalty": 1, **fields})

    def test_answer(self):
        reply = self.post(QUESTION).json()
        self.assertEqual((reply["object"], reply["status"]), ("response", "completed"))
        self.assertEqual(reply["output"][0]["content"][0]["text"], PARIS)
        self.assertEqual(reply["usage"]["output_tokens"], 9)
        conversation = [{"role": "user", "content": "My name is Anna."},
                        {"type": "message", "role": "assistant", "content": [
                            {"type": "output_text", "text": "Nice to meet you, Anna!"}]},
                        {"type": "reasoning", "summary": []},
                        {"role": "user", "content": [{"type": "input_text",
                                                      "text": "What is my name?"}]}]
        reply = self.post(conversation, instructions="Be brief.").json()
        self.assertEqual(reply["output"][0]["content"][0]["text"], "Your name is Anna.")
        reply = self.post(QUESTION, max_output_tokens=2).json()
        self.assertEqual(reply["status"], "incomplete")
        self.assertEqual(reply["incomplete_details"], {"reason": "max_output_tokens"})

    def test_stream(self):
        found = named_events(self.post(QUESTION, stream=True).text)
        names = [name for name, _ in found]
        self.assertEqual(names[:4], ["response.created", "response.in_progress",
                                     "response.output_item.added", "response.content_part.added"])
        self.assertEqual(names[-4:], ["response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"])
        self.assertEqual(set(names[4:-4]), {"response.output_text.delta"})
        self.assertEqual("".join(d["delta"] for n, d in found if n.endswith("delta")), PARIS)
        self.assertEqual([d["sequence_number"] for _, d in found], list(range(len(found))))
        whole = self.post(QUESTION).json()
        for reply in (whole, found[-1][1]["response"]):
            del reply["id"], reply["created_at"], reply["output"][0]["id"], reply["usage"]
        self.assertEqual(found[-1][1]["response"], whole)

    def test_refused(self):
        for fields, param in (
                ({"input": None}, "input"), ({"input": []}, "input"),
                ({"input": [{"role": "king", "content": "x"}]}, "input[0].role"),
                ({"input": [{"role": "user", "content": 1}]}, "input[0].content"),
                ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
                 "input[0].content[0]"),
                ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
                ({"input": [{"type": "function_call"}]}, "input[0]"),
                ({"input": [{"type": "function_call_output"}]}, "input[0].output"),
                ({"previous_response_id": "resp_1"}, "previous_response_id"),
                ({"background": True}, "background"), ({"instructions": 1}, "instructions"),
                ({"max_output_tokens": 0}, "max_output_tokens"),
                ({"tools": [{"type": "web_search"}]}, "tools[0]"),
                ({"tool_choice": "required"}, "tool_choice"),
                ({"text": {"format": {"type": "json_schema"}}}, "text.format")):
            reply = self.post(**{"input": "x", **fields})
            found = (reply.status, reply.json()["error"]["param"])
            self.assertEqual(found, (400, param))


class Refusals(WithServer):
    flags = ["--max-body", "64K"]

    def refused(self, body, status, param, code=None):
        reply = self.server.post(CHAT, body)
        self.assertEqual(reply.status, status, reply.text)
        error = reply.json()["error"]
        self.assertEqual((error["param"], error["code"]), (param, code), error)
        self.assertTrue(error["message"])
        return error

    def with_fields(self, **fields):
        return {"messages": [{"role": "user", "content": "Hello!"}], **fields}

    def test_not_json(self):
        for body in (b"", b"{", b"[]", b"null", b"{} x", b'{"a":1,"a":2}'):
            self.refused(body, 400, None)
        for body in (b"[" * 30000, b'{"a":' * 10000):
            self.assertEqual(self.server.post(CHAT, body).status, 400)

    def test_text_that_is_no_unicode(self):
        for text in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\\ud800",
                     b"\\udc00x", b"\\ud800\\ud800", b"\\u0000"):
            body = b'{"messages":[{"role":"user","content":"a %s b"}],"n":1}' % text
            self.refused(body, 400, "messages[0].content")
            self.refused(b'{"user":{"x":"%s"},"n":1}' % text, 400, "user.x")

    def test_deep_json_in_a_field(self):
        deep = b'{"messages":[{"role":"user","content":"x"}],"metadata":%s1%s}' % (
            b"[" * 2000, b"]" * 2000)
        self.assertEqual(self.server.post(CHAT, deep).status, 200)
        for text in (b"[" * 3000 + b"]" * 3000, b'{"a":' * 1900 + b"1" + b"}" * 1900):
            body = b'{"messages":[{"role":"user","content":%s}]}' % text
            self.assertEqual(self.server.post(CHAT, body).status, 400)

    def test_messages(self):
        self.refused({}, 400, "messages")
        self.refused({"messages": []}, 400, "messages")
        self.refused({"messages": "hi"}, 400, "messages")
        for message, param in (
                (1, "messages[0].role"),
                ({"role": "king", "content": "x"}, "messages[0].role"),
                ({"role": "user"}, "messages[0].content"),
                ({"role": "user", "content": 5}, "messages[0].content"),
                ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0]"),
                ({"role": "user", "content": ["x"]}, "messages[0].content[0]"),
                ({"role": "assistant", "content": "", "tool_calls": [{}]},
                 "messages[0].tool_calls[0]")):
            self.refused({"messages": [message]}, 400, param)

    def test_fields(self):
        for name, value in (
                ("temperature", "hot"), ("temperature", -1), ("top_p", 2), ("top_k", 1.5),
                ("n", 2), ("max_tokens", 0), ("stop", [""]), ("stop", 5), ("stop", ["x"] * 17),
                ("stream", 1), ("seed", "x"), ("repetition_penalty", 0), ("logprobs", 1),
                ("top_logprobs", 3), ("top_logprobs", 21), ("min_p", 2), ("presence_penalty", 3),
                ("frequency_penalty", "x"), ("logit_bias", {"5": 1}), ("model", 5),
                ("response_format", {"type": "json_schema"}), ("stream_options", 1),
                ("chat_template_kwargs", 3)):
            self.refused(self.with_fields(**{name: value}), 400, name)

    def test_no_such_model(self):
        self.refused(self.with_fields(model="gpt-4"), 404, "model", "model_not_found")

    def test_context(self):
        error = self.refused(
            {"messages": [{"role": "user", "content": "word " * 3000}]}, 400, "messages",
            "context_length_exceeded")
        self.assertEqual(error["n_ctx"], 1024)
        self.assertGreater(error["n_prompt_tokens"], 3000)

    def test_large_body(self):
        reply = self.server.post(CHAT, b"x" * 100000)
        self.assertEqual(reply.status, 413)
        self.assertEqual(reply.json()["error"]["code"], "request_too_large")
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
                  % CHAT.encode())
        self.assertIn(b" 413 ", read_until(s, rb"\r\n\r\n"))
        s.close()

    def test_bodies_fill_the_memory(self):
        """What clients send and do not finish is bounded for all of them together."""
        unfinished = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60001\r\n\r\n%s" % (
            CHAT.encode(), b"x" * 60000)
        held = [self.server.open_raw(unfinished) for _ in range(4)]
        end = time.monotonic() + 60
        while (reply := self.server.post(CHAT, b"x" * 60000)).status != 429:
            self.assertEqual(reply.status, 400)
            self.assertLess(time.monotonic(), end)
        self.assertIn("Retry-After", reply.headers)
        for s in held:
            s.close()
        while self.server.post(CHAT, b"x" * 60000).status == 429:
            self.assertLess(time.monotonic(), end)

    def test_large_headers(self):
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        try:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 200000))
            reply = s.recv(100)
        except ConnectionError:
            reply = b""
        self.assertTrue(reply == b"" or b" 431 " in reply or b" 413 " in reply, reply)
        s.close()
        self.assertEqual(self.server.get("/health").status, 200)

    def test_log_lines_are_one_line(self):
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        s.sendall(b"GET /a%0Ab%1b[31m HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_until(s, rb" 404 ")
        s.close()
        self.assertIn("GET /a?b?[31m 404", self.server.wait_for(r"GET /a.*").group())


class Tools(unittest.TestCase):
    """A model whose template has tools, over an engine that says what it is told to."""

    def ask(self, server, **fields):
        return server.chat("Add.", model="tools", tools=TOOLS, **fields)

    def test_call(self):
        said = 'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "x"}}\n</tool_call>'
        with tool_server(said) as server:
            choice = self.ask(server).json()["choices"][0]
            self.assertEqual(choice["finish_reason"], "tool_calls")
            self.assertEqual(choice["message"]["content"], "I add.")
            call = choice["message"]["tool_calls"][0]
            self.assertEqual((call["type"], call["function"]["name"]), ("function", "add"))
            self.assertEqual(json.loads(call["function"]["arguments"]), {"a": 1, "b": "x"})
            chunks = events(self.ask(server, stream=True).text)
            deltas = [c["choices"][0]["delta"] for c in chunks]
            pieces = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
            self.assertEqual(pieces[0]["function"]["name"], "add")
            self.assertTrue(pieces[0]["id"].startswith("call_"))
            arguments = "".join(p["function"]["arguments"] for p in pieces)
            self.assertEqual(json.loads(arguments), {"a": 1, "b": "x"})
            self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "tool_calls")
            without = server.chat("Add.", model="tools").json()["choices"][0]
            self.assertEqual(without["message"]["content"], said)
            none = self.ask(server, tool_choice="none").json()["choices"][0]
            self.assertEqual(none["message"]["content"], said)

    def test_responses(self):
        said = 'I add.\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
        tools = [{"type": "function", "strict": True, **TOOLS[0]["function"]}]
        body = {"model": "tools", "tools": tools, "input": [
            {"role": "user", "content": "Add."},
            {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{}"},
            {"type": "function_call", "call_id": "2", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "5"},
            {"type": "function_call_output", "call_id": "2", "output": "6"}]}
        with tool_server(said) as server:
            reply = server.post("/v1/responses", body).json()
            self.assertEqual([i["type"] for i in reply["output"]], ["message", "function_call"])
            self.assertEqual(json.loads(reply["output"][1]["arguments"]), {"a": 1})
            self.assertEqual(reply["tools"], tools)
            found = named_events(server.post("/v1/responses", {**body, "stream": True}).text)
            names = [name for name, _ in found]
            self.assertEqual(names[-4:], [
                "response.function_call_arguments.delta", "response.function_call_arguments.done",
                "response.output_item.done", "response.completed"])
            output = found[-1][1]["response"]["output"]
            self.assertEqual(output[1]["name"], "add")
            self.assertEqual([d["output_index"] for n, d in found if n.endswith("added")],
                             [0, 0, 1])

    def test_the_form_of_coder(self):
        said = ("<tool_call>\n<function=add>\n<parameter=a>\n5\n</parameter>\n<parameter=b>\n6\n"
                "</parameter>\n</function>\n</tool_call>")
        with tool_server(said) as server:
            message = self.ask(server).json()["choices"][0]["message"]
            arguments = message["tool_calls"][0]["function"]["arguments"]
            self.assertEqual(json.loads(arguments), {"a": 5, "b": "6"})
            self.assertIsNone(message["content"])

    def test_two_calls(self):
        said = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>\n' * 2
        with tool_server(said) as server:
            message = self.ask(server).json()["choices"][0]["message"]
            self.assertEqual(len({c["id"] for c in message["tool_calls"]}), 2)
            reply = self.ask(server, parallel_tool_calls=False).json()["choices"][0]
            self.assertEqual(len(reply["message"]["tool_calls"]), 1)

    def test_a_malformed_call_is_text(self):
        for said in ('<tool_call>{"name": "add", "arguments"</tool_call>', "<tool_call>{",
                     "</tool_call>"):
            with tool_server(said) as server:
                choice = self.ask(server).json()["choices"][0]
                self.assertEqual(choice["message"]["content"], said)
                self.assertEqual(choice["finish_reason"], "stop")

    def test_refused(self):
        with tool_server("x") as server:
            for fields, param in (({"tools": 1}, "tools"), ({"tools": [{}]}, "tools[0]"),
                                  ({"tool_choice": "required"}, "tool_choice"),
                                  ({"tool_choice": {"type": "function"}}, "tool_choice"),
                                  ({"parallel_tool_calls": 1}, "parallel_tool_calls")):
                reply = server.chat("Add.", model="tools", **fields)
                self.assertEqual(reply.status, 400)
                self.assertEqual(reply.json()["error"]["param"], param)
        with Server() as server:
            reply = server.chat("Add.", tools=TOOLS)
            self.assertEqual((reply.status, reply.json()["error"]["param"]), (400, "tools"))

class Reasoning(unittest.TestCase):
    """A model that knows <think> and </think>, over an engine that says what it is told to."""

    PLAIN = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
"""

    def check(self, template, name, said, reasoning, content):
        model = shatter(thinking_checkpoint(name, template), name=name).stem
        with saying(said, model) as server:
            reply = server.chat("Hello!", model=name).json()
            message = reply["choices"][0]["message"]
            self.assertEqual((message.get("reasoning_content"), message["content"]),
                             (reasoning, content))
            n = reply["usage"]["completion_tokens_details"]["reasoning_tokens"]
            self.assertEqual(n > 0, reasoning is not None)
            self.assertLess(n, reply["usage"]["completion_tokens"])
            deltas = [c["choices"][0]["delta"]
                      for c in events(server.chat("Hello!", model=name, stream=True).text)]
            self.assertEqual("".join(d.get("reasoning_content", "") for d in deltas),
                             reasoning or "")
            self.assertEqual("".join(d.get("content", "") for d in deltas), content)
            stopped = server.chat("Hello!", model=name, stop=["so", "e"]).json()["choices"][0]
            self.assertEqual(stopped["message"].get("reasoning_content"), reasoning)
            self.assertEqual(stopped["message"]["content"], content.partition("e")[0])
            output = server.post("/v1/responses", {"model": name, "input": "x"}).json()["output"]
            types = ["reasoning", "message"] if reasoning else ["message"]
            self.assertEqual([item["type"] for item in output], types)

    def test_block(self):
        self.check(self.PLAIN, "block", "<think>\nso, so\n</think>\n\nYes, é.", "so, so", "Yes, é.")

    def test_block_that_the_prompt_opened(self):
        self.check(self.PLAIN + "<think>\n", "opened", "hm </think> Yes.", "hm ", " Yes.")

    def test_tag_in_an_answer(self):
        self.check(self.PLAIN, "late", "The <think> tag", None, "The <think> tag")


if __name__ == "__main__":
    main()
