#!/usr/bin/env python3
"""smoe http under the real openai package: streaming, tools, errors, cancellation.

The package comes from PyPI into a folder of the build, once; where that fails every case is
skipped, and says so. tests/e2e/test_http.py has the same exchanges as raw HTTP."""

import unittest

from harness import main
from http_rig import TOOLS, FakeServer, Server, python_package, tool_server

QUESTION = "What is the capital of France?"
PARIS = "The capital of France is Paris."


OPENAI, REASON = python_package("openai")


@unittest.skipIf(OPENAI is None, REASON)
class Sdk(unittest.TestCase):
    def client(self, server, **options):
        return OPENAI.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none",
                             **options)

    @classmethod
    def setUpClass(cls):
        cls.server = Server().wait_until_ready()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def ask(self, **fields):
        return self.client(self.server).chat.completions.create(
            model="smoe-tiny", temperature=0, messages=[{"role": "user", "content": QUESTION}],
            **fields)

    def test_chat(self):
        answer = self.ask()
        self.assertEqual(answer.choices[0].message.content, PARIS)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertGreater(answer.usage.prompt_tokens, 5)

    def test_stream(self):
        chunks = list(self.ask(stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, PARIS)
        self.assertGreater(chunks[-1].usage.completion_tokens, 5)

    def test_responses(self):
        client = self.client(self.server)
        answer = client.responses.create(model="smoe-tiny", temperature=0, input=QUESTION)
        self.assertEqual(answer.output_text, PARIS)
        with client.responses.stream(model="smoe-tiny", temperature=0, input=QUESTION) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            self.assertEqual(text, PARIS)
            self.assertEqual(stream.get_final_response().output_text, PARIS)

    def test_completions(self):
        answer = self.client(self.server).completions.create(
            model="smoe-tiny", temperature=0, max_tokens=3,
            prompt=f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n")
        self.assertTrue(PARIS.startswith(answer.choices[0].text))
        self.assertEqual(answer.choices[0].finish_reason, "length")

    def test_models(self):
        self.assertEqual([m.id for m in self.client(self.server).models.list()], ["smoe-tiny"])

    def test_errors(self):
        with self.assertRaises(OPENAI.BadRequestError) as caught:
            self.ask(n=2)
        self.assertEqual(caught.exception.param, "n")
        with self.assertRaises(OPENAI.NotFoundError):
            self.client(self.server).chat.completions.create(model="x", messages=[
                {"role": "user", "content": "x"}])
        with self.assertRaises(OPENAI.BadRequestError) as caught:
            self.client(self.server).chat.completions.create(model="smoe-tiny", messages=[
                {"role": "user", "content": "word " * 3000}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_cancellation(self):
        with FakeServer("slow 100000") as server:
            stream = self.client(server).chat.completions.create(
                model="smoe-tiny", messages=[{"role": "user", "content": "x"}], stream=True)
            for n, _ in enumerate(stream):
                if n == 5:
                    break
            stream.close()
            server.wait_to_hear("CANCEL")

    def test_the_package_tries_again(self):
        with FakeServer("die") as server:
            server.set_mode_after("say 66", "START", 2)
            answer = self.client(server, max_retries=5).chat.completions.create(
                model="smoe-tiny", messages=[{"role": "user", "content": "x"}])
            self.assertTrue(answer.choices[0].message.content)

    def test_tools(self):
        said = 'So.<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
        with tool_server(said) as server:
            chat = self.client(server).chat.completions
            messages = [{"role": "user", "content": "Add."}]
            answer = chat.create(model="tools", messages=messages, tools=TOOLS)
            call = answer.choices[0].message.tool_calls[0]
            self.assertEqual((call.function.name, answer.choices[0].finish_reason),
                             ("add", "tool_calls"))
            messages += [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id,
                                                     "content": "2"}]
            chat.create(model="tools", messages=messages, tools=TOOLS)
            arguments = ""
            for chunk in chat.create(model="tools", messages=messages, tools=TOOLS, stream=True):
                for piece in chunk.choices[0].delta.tool_calls or []:
                    arguments += piece.function.arguments or ""
            self.assertEqual(arguments.replace(" ", ""), '{"a":1}')


if __name__ == "__main__":
    main()
