"""clients/chat.py says what `smoe chat` says, sends the ids that it sends, and obeys the same rules
when things go wrong. What compares texts and ids needs the Python package transformers, else it is
skipped; the environment variable SMOE_PYTHON names an interpreter that has it. The rules are tested
over a tokenizer whose ids are bytes."""

import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from harness import (BUILD, ENGINE, GOLDEN, SMOE, SOURCE, TIMEOUT_S, TINY, WORK, main, must_run,
                     run, shatter, thinking_checkpoint)

PYTHON = os.environ.get("SMOE_PYTHON", sys.executable)
CLIENT = SOURCE / "clients" / "chat.py"
FAKE = BUILD / "tests" / "unit" / "protocol" / "fake_engine"
QUESTIONS = "Hello!\nWhat is the capital of France?\nAnd of Italy?\n/reset\nAnd of Italy?\n"
GREEDY = ["--temperature", "0", "--rep-penalty", "1"]

BYTES = '''"""transformers, as far as chat.py needs it: ids are bytes."""
import os


class AutoTokenizer:
    @staticmethod
    def from_pretrained(folder):
        return AutoTokenizer()

    def get_vocab(self):
        return {}

    def apply_chat_template(self, messages, add_generation_prompt, return_dict):
        if messages[-1]["content"] == "refuse":
            raise ValueError("never no")
        text = "".join(f"<{m['role']}>{m['content']}</>" for m in messages) + "<assistant>"
        return list(text.encode())

    def decode(self, ids, **options):
        return bytes(ids).decode(errors="replace")
'''

HAS_TRANSFORMERS = subprocess.run([PYTHON, "-c", "import transformers"],
                                  capture_output=True).returncode == 0


def as_ids(text):
    """The argument of fake_engine that makes its ids, through smoe-tiny's vocabulary, this text:
    the first 256 tokens are the bytes, in GPT-2's order. Id 0, the '!', cannot be given."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    order = seen + [b for b in range(256) if b not in seen]
    return bytes(order.index(b) for b in text.encode())


def script(name, *argv, log=None):
    """A program that runs argv; log: what it reads is kept there."""
    path = WORK / name / "smoe-engine"
    path.parent.mkdir(exist_ok=True)
    words = " ".join(shlex.quote(os.fsdecode(a)) for a in argv)
    tee = f"tee -a {shlex.quote(str(log))} | " if log else "exec "
    path.write_bytes(os.fsencode(f"#!/bin/sh\n{tee}{words}\n"))
    path.chmod(0o755)
    return path


def fake(name, *mode):
    return script(name, FAKE, *mode)


def ids_sent(log):
    return [line.split()[-1] for line in log.read_text().splitlines() if line.startswith("GEN")]


def over_bytes():
    """The environment in which chat.py finds the tokenizer of bytes."""
    folder = WORK / "bytes-tokenizer"
    folder.mkdir(exist_ok=True)
    (folder / "transformers.py").write_text(BYTES)
    return dict(os.environ, PYTHONPATH=str(folder))


def client(engine, *flags, **options):
    return run(sys.executable, CLIENT, TINY, "/nowhere/model", "--engine", engine, *flags,
               env=over_bytes(), **options)


class Terminal:
    """chat.py on a terminal of its own."""

    def __init__(self, engine):
        self.fd, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, CLIENT, TINY, "/nowhere/model", "--engine", engine], stdin=other,
            stdout=other, stderr=other, env=over_bytes(),
            preexec_fn=lambda: (os.setsid(), os.close(os.open(os.ttyname(0), 2))))
        os.close(other)
        self.text = ""
        self.wait_for(r"(^|\n|\r)> ")

    def read(self):
        ready, _, _ = select.select([self.fd], [], [], TIMEOUT_S)
        try:
            return os.read(self.fd, 65536).decode(errors="replace") if ready else ""
        except OSError:
            return ""

    def wait_for(self, pattern):
        """Reads until the pattern is there; what came up to its end is dropped and returned."""
        while not (found := re.search(pattern, self.text)):
            piece = self.read()
            if not piece:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
            self.text += piece
        before, self.text = self.text[:found.end()], self.text[found.end():]
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def engine_pid(self):
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def kill_engine(self):
        os.kill(self.engine_pid(), signal.SIGKILL)

    def end(self):
        while self.read():
            pass
        status = self.process.wait(TIMEOUT_S)
        os.close(self.fd)
        return status


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed for this Python")
class BesideTheOtherConsole(unittest.TestCase):
    maxDiff = None

    def both(self, name, checkpoint, model, engine, questions, flags=()):
        """What both consoles print, and the ids that both send."""
        found = []
        for program in ("smoe", "chat.py"):
            log = WORK / f"{name}.{program}.log"
            command = script(f"{name}-{program}", *engine, log=log)
            if program == "smoe":  # its engine is the one beside it
                shutil.copy(SMOE, command.parent / "smoe")
                argv = [command.parent / "smoe", "chat", model.stem, *flags]
            else:
                split = [*flags[flags.index("--max-tokens"):]] if "--max-tokens" in flags else []
                rest = flags[:len(flags) - len(split)]
                argv = [PYTHON, CLIENT, checkpoint, model.stem, "--engine", command, *split, "--",
                        *rest]
            found.append((must_run(*argv, input=questions).stdout, ids_sent(log)))
        return found

    def test_same_answers_and_ids(self):
        model = shatter(TINY, "q4_K", "q8_0")
        ours, theirs = self.both("same", TINY, model, [ENGINE, *model.files(), "--serve", *GREEDY],
                                 QUESTIONS, GREEDY)
        self.assertEqual(theirs, ours)
        self.assertEqual(len(ours[1]), 4)
        ours, theirs = self.both("short", TINY, model, [ENGINE, *model.files(), "--serve", *GREEDY],
                                 QUESTIONS, [*GREEDY, "--max-tokens", "2"])
        self.assertEqual(theirs, ours)

    def test_reasoning_is_no_part_of_the_next_prompt(self):
        template = (GOLDEN / "templates" / "qwen3.jinja").read_text()
        folder = thinking_checkpoint("thinking", template)
        model = shatter(folder, "q4_K", "q8_0")
        for name, text in (("folded", "<think>\n hm? <thin\n</think>\n\n\nFour.\n"),
                           ("none", " <thing> no\n"), ("cut", "<think>\nhm"), ("empty", "")):
            with self.subTest(name):
                ours, theirs = self.both("think-" + name, folder, model,
                                         [FAKE, "answer", as_ids(text)], "2+2?\nAnd 3+3?\n")
                self.assertEqual(theirs, ours)
                self.assertEqual(len(ours[1]), 2)

    def test_no_checkpoint(self):
        done = run(PYTHON, CLIENT, SOURCE / "tests", "x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs the checkpoint's directory", done.stderr)

    def test_whole_characters(self):
        text = "é 中 😀 x\x1b[2J"
        done = run(PYTHON, CLIENT, TINY, "x", "--engine", fake("whole", "answer", as_ids(text)),
                   input="Hi\n")
        self.assertEqual(done.stdout, text + "\n")


class Rules(unittest.TestCase):
    def test_engine_that_does_not_start(self):
        done = client(ENGINE, input="Hello\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the engine did not start (exit 1)", done.stderr)
        done = client("/nowhere/engine", input="Hello\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/engine cannot be started", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_engine_that_dies(self):
        done = client(fake("once", "die-once", WORK / "died"), input="Hi\n")
        self.assertEqual((done.returncode, done.stdout), (0, "abc\nagain\n"))
        self.assertIn("[engine died (exit 3) - restarting]", done.stderr)
        self.assertIn("[the answer starts again from its beginning]", done.stderr)
        for mode, status in (("die", 3), ("half", 0), ("garbage", 137)):
            with self.subTest(mode):
                done = client(fake(mode, mode), input="Hi\nHo\n")
                self.assertEqual(done.returncode, 1)
                died = f"[engine died (exit {status})"
                self.assertEqual(done.stderr.count(died + " - restarting]"), 2)
                self.assertEqual(done.stderr.count(died + "]"), 2)
                self.assertIn("2 of 2 turns failed", done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_errors_are_explained(self):
        done = client(fake("overflow", "error", "ctx_overflow"), "--ctx", "10", input="Hi\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\[the conversation has \d+ tokens, the context holds 10: "
                                      r"this message was dropped; /reset starts a new conversation")
        done = client(fake("internal", "error", "internal"), input="Hi\n")
        self.assertIn("[the engine could not answer: internal]", done.stderr)
        done = client(fake("hi", "answer", "Hi"), input="/nonsense\n//quit\n")
        self.assertEqual((done.returncode, done.stdout), (0, "Hi\n"))
        self.assertIn("there is no such command", done.stderr)

    def test_message_that_the_template_rejects(self):
        done = client(fake("a", "answer", "A"), input="refuse\nyes\n")
        self.assertEqual((done.returncode, done.stdout), (1, "A\n"))
        self.assertIn("[this message cannot be sent: never no]", done.stderr)
        self.assertIn("1 of 2 turns failed", done.stderr)

    def test_input_of_any_bytes(self):
        log = WORK / "bytes.log"
        engine = script("bytes", FAKE, "answer", "A", log=log)
        done = subprocess.run([sys.executable, CLIENT, TINY, "x", "--engine", engine],
                              env=over_bytes(), capture_output=True,
                              input=b"a\xff\0b\n" + b"x " * 20000 + b"\n")
        self.assertEqual((done.returncode, done.stdout), (0, b"A\nA\n"))
        first, second = ids_sent(log)
        self.assertEqual(bytes(map(int, first.split(","))).decode(),
                         "<user>a\ufffd\ufffdb</><assistant>")
        self.assertGreater(len(second), 65536)  # more than a pipe holds

    def test_text_is_whole_and_cannot_steer_a_terminal(self):
        text = "é 中 😀\x1b[2J\x07\x7f\x9b"
        engine = fake("text", "answer", text)
        self.assertEqual(client(engine, input="Hi\n").stdout, text + "\n")
        t = Terminal(engine)
        t.type("Hi\n")
        self.assertIn("é 中 😀\u241b[2J\u2407\u2421\ufffd", t.wait_for(r"\ufffd"))
        t.type("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_reader_that_goes_away(self):
        engine = fake("slow-reader", "slow", "abc ")
        line = f"printf 'Hi\\nHi\\n' | {sys.executable} {CLIENT} {TINY} x --engine {engine} " \
               "--max-tokens 40 | head -c 1 >/dev/null"
        done = run("sh", "-c", line, env=over_bytes())
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("Traceback", done.stderr)


class AtATerminal(unittest.TestCase):
    def test_ctrl_c_stops_an_answer(self):
        log = WORK / "ctrl-c.log"
        t = Terminal(script("slow", FAKE, "slow", "xyz", log=log))
        n_stopped = 0
        for pause in (0, 0.05, 0.3):
            t.type("Hi\n")
            t.wait_for("xyzxyz")
            time.sleep(pause)
            t.type("\x03")
            t.wait_for(r"\[stopped\]")
            n_stopped += 1
            t.wait_for("> ")
            time.sleep(1)  # a second Ctrl-C within a second leaves
        self.assertEqual(log.read_text().count("CANCEL"), n_stopped)
        t.type("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_ctrl_c_loses_no_token(self):
        """Every token is sent 20 ms apart: whatever the moment of the interrupt, the letters that
        came are those that were sent, in order and whole."""
        t = Terminal(fake("letters", "slow", "abcdefghij"))
        for pause in range(5):
            t.type("Hi\n")
            t.wait_for("abc")
            time.sleep(0.013 * pause)
            t.type("\x03")
            shown = "abc" + re.sub(r"\^C|\s|\[.*", "", t.wait_for(r"\[stopped\]"))
            self.assertTrue(("abcdefghij" * 30).startswith(shown), shown)
            t.wait_for("> ")
            time.sleep(1)
        t.type("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_second_ctrl_c_leaves(self):
        t = Terminal(fake("slow2", "slow", "xyz"))
        t.type("Hi\n")
        t.wait_for("xyzxyz")
        t.type("\x03")
        time.sleep(0.05)
        t.type("\x03")
        self.assertEqual(t.end(), 130)

    def test_ctrl_c_at_the_prompt_leaves(self):
        t = Terminal(fake("prompt", "answer", "A"))
        # Between the prompt and the read behind it, Python's input() notes a Ctrl-C and goes on to
        # wait. A person types it again, and so does this.
        while t.process.poll() is None:
            t.type("\x03")
            time.sleep(0.2)
        self.assertEqual(t.end(), 130)

    def test_engine_that_does_not_stop(self):
        """The limit of 10 s holds although the engine says nothing at all."""
        t = Terminal(fake("hang", "hang"))
        t.type("Hi\n")
        time.sleep(1)
        t.type("\x03")
        t.wait_for(r"\[engine does not stop - restarting\]")
        t.wait_for("> ")
        t.type("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_engine_killed(self):
        """While idle, in the middle of an answer, and both times that a message is asked."""
        t = Terminal(fake("killed", "slow", "xyz"))
        t.kill_engine()
        t.type("Hi\n")
        t.wait_for(r"\[engine died \(exit 137\) - restarting\]")
        t.wait_for("xyzxyz")
        t.type("\x03")
        t.wait_for(r"\[stopped\]")
        t.wait_for("> ")
        t.type("Hi\n")
        t.wait_for("xyzxyz")
        t.kill_engine()
        t.wait_for(r"\[engine died \(exit 137\) - restarting\]")
        t.wait_for(r"\[the answer starts again from its beginning\]")
        t.wait_for("xyzxyz")
        t.kill_engine()
        t.wait_for(r"\[engine died \(exit 137\)\]")
        t.wait_for("> ")
        t.type("Hi\n")
        t.wait_for("xyzxyz")
        t.kill_engine()
        t.wait_for("restarting")
        t.wait_for("xyzxyz")
        time.sleep(1)
        t.type("\x03")
        t.wait_for(r"\[stopped\]")
        t.wait_for("> ")
        t.type("\x04")
        self.assertEqual(t.end(), 0)


if __name__ == "__main__":
    main()
