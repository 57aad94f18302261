"""What `smoe inspect` says about reasoning: a switch, always, none, or why nobody knows."""

import json
import unittest

from harness import GOLDEN, SMOE, TINY, main, must_run, shatter, thinking_checkpoint

TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" \
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


class Thinking(unittest.TestCase):
    def check(self, checkpoint, name, line):
        model = shatter(checkpoint, "q4_K", "q8_0")
        shown = must_run(SMOE, "inspect", model.stem).stdout
        found, = [text for text in shown.splitlines() if text.startswith("thinking ")]
        self.assertEqual(found[:len("thinking      ") + len(line)], f"thinking      {line}")
        record = json.loads(must_run(SMOE, "inspect", model.stem, "--json").stdout)
        self.assertEqual(record["thinking"], name)

    def test_switch(self):
        qwen3 = (GOLDEN / "templates" / "qwen3.jinja").read_text()
        line = "switch: the chat template's enable_thinking; --think and --no-think set it"
        self.check(thinking_checkpoint("switch", qwen3), "switch", line)

    def test_always(self):
        template = TURNS.replace("assistant\n", "assistant\n<think>\n")
        line = "always: the chat template opens a think block before every answer"
        self.check(thinking_checkpoint("always", template), "always", line)

    def test_none(self):
        line = "none: the chat template has no switch and opens no think block"
        self.check(TINY, "none", line)
        self.check(thinking_checkpoint("tags-only", TURNS), "none", line)
        closed = TURNS.replace("assistant\n", "assistant\n<think>\n\n</think>\n\n")
        self.check(thinking_checkpoint("closed", closed), "none", line)

    def test_unknown(self):
        """The reason stands in its place; the rest of the model can be looked at."""
        self.check(thinking_checkpoint("raises", "{{ raise_exception('no questions') }}"), None,
                   "unknown: chat template line 1, column 4: no questions")
        self.check(thinking_checkpoint("broken", "{% for m in messages %}"), None,
                   "unknown: chat template line 1, column 24: the block")


if __name__ == "__main__":
    main()
