#!/usr/bin/env python3
"""smoe http under the real anthropic package: streaming, tools, errors, cancellation. Skipped, with
the reason, where PyPI is out of reach. tests/e2e/test_http_messages.py has the same as raw HTTP."""

import unittest

from harness import WORK, main
from http_rig import FakeServer, Server, python_package, tool_server

PARIS = "The capital of France is Paris."
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ADD = {"name": "add", "description": "Adds.", "input_schema": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}
CALL = 'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
# In the body: newer versions of the package have no parameter for it.
GREEDY = {"model": "smoe-tiny", "max_tokens": 60, "extra_body": {"temperature": 0}}

ANTHROPIC, REASON = python_package("anthropic")


def client(server, **options):
    return ANTHROPIC.Anthropic(base_url=f"http://127.0.0.1:{server.port}",
                               **{"api_key": "none", "max_retries": 0, **options})


@unittest.skipIf(ANTHROPIC is None, REASON)
class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().wait_until_ready()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def setUp(self):
        self.messages = client(self.server).messages

    def test_answer(self):
        reply = self.messages.create(messages=QUESTION, **GREEDY)
        self.assertEqual((reply.content[0].type, reply.content[0].text), ("text", PARIS))
        self.assertEqual(reply.stop_reason, "end_turn")
        self.assertGreater(reply.usage.output_tokens, 3)

    def test_stream(self):
        with self.messages.stream(messages=QUESTION, **GREEDY) as stream:
            self.assertEqual("".join(stream.text_stream), PARIS)
            final = stream.get_final_message()
        self.assertEqual((final.content[0].text, final.stop_reason), (PARIS, "end_turn"))
        again = self.messages.create(messages=QUESTION, **GREEDY)
        self.assertEqual(final.usage.output_tokens, again.usage.output_tokens)
        self.assertEqual(final.usage.input_tokens + final.usage.cache_read_input_tokens,
                         again.usage.input_tokens + again.usage.cache_read_input_tokens)

    def test_stop_sequences(self):
        reply = self.messages.create(messages=QUESTION, stop_sequences=[" Paris"], **GREEDY)
        self.assertEqual((reply.content[0].text, reply.stop_reason, reply.stop_sequence),
                         ("The capital of France is", "stop_sequence", " Paris"))

    def test_count_tokens(self):
        counted = self.messages.count_tokens(model="smoe-tiny", messages=QUESTION)
        self.assertGreater(counted.input_tokens, 8)

    def test_models(self):
        models = list(client(self.server).models.list())
        self.assertEqual([(m.id, m.type, m.display_name) for m in models],
                         [("smoe-tiny", "model", "smoe-tiny")])
        self.assertGreater(models[0].created_at.year, 2000)
        self.assertEqual(client(self.server).models.retrieve("smoe-tiny"), models[0])

    def test_errors(self):
        with self.assertRaises(ANTHROPIC.NotFoundError):
            self.messages.create(messages=QUESTION, **{**GREEDY, "model": "other"})
        with self.assertRaises(ANTHROPIC.BadRequestError) as caught:
            self.messages.create(messages=[{"role": "user", "content": "word " * 3000}], **GREEDY)
        self.assertIn("prompt is too long", str(caught.exception))

    def test_retry(self):
        """What a restart of the engine costs is hidden by the client's own retries."""
        with FakeServer("die-silent") as server:
            with self.assertRaises(ANTHROPIC.APIStatusError) as caught:
                client(server).messages.create(messages=QUESTION, **GREEDY)
            self.assertEqual(caught.exception.status_code, 503)
            server.set_mode("echo")
            reply = client(server, max_retries=5).messages.create(messages=QUESTION,
                                                                            **GREEDY)
            self.assertEqual(reply.stop_reason, "end_turn")

    def test_cancel(self):
        with FakeServer("slow 1000") as server:
            with client(server).messages.stream(messages=QUESTION, **GREEDY) as stream:
                next(iter(stream))
            server.wait_to_hear("CANCEL")

    def test_tools(self):
        ask = {**GREEDY, "model": "tools", "tools": [ADD]}
        with tool_server(CALL) as server:
            messages = client(server).messages
            reply = messages.create(messages=QUESTION, **ask)
            self.assertEqual((reply.content[1].name, reply.content[1].input, reply.stop_reason),
                             ("add", {"a": 1, "b": 2}, "tool_use"))
            with messages.stream(messages=QUESTION, **ask) as stream:
                final = stream.get_final_message()
            self.assertEqual([b.type for b in final.content], ["text", "tool_use"])
            self.assertEqual(final.content[1].input, {"a": 1, "b": 2})
            result = {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": reply.content[1].id, "content": "3"}]}
            again = messages.create(messages=[
                *QUESTION, {"role": "assistant", "content": reply.content}, result], **ask)
            self.assertEqual(again.stop_reason, "tool_use")

    def test_a_key_is_needed(self):
        keys = WORK / "anthropic-sdk.keys"
        keys.write_text("secret\n")
        with Server("--api-key-file", keys) as server:
            with self.assertRaises(ANTHROPIC.AuthenticationError):
                client(server).models.list()
            models = client(server, api_key="secret").models.list()
            self.assertEqual([m.id for m in models], ["smoe-tiny"])


if __name__ == "__main__":
    main()
