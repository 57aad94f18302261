#!/usr/bin/env python3
"""The console with the model that ships: through a pipe, and on a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest
from pathlib import Path

from harness import SMOE, TIMEOUT_S, WORK, main, must_run, run


class Terminal:
    """smoe chat on a terminal of its own."""

    def __init__(self, *flags):
        self.fd, other = pty.openpty()
        env = dict(os.environ, TERM="xterm", LANG="C.UTF-8", LC_ALL="C.UTF-8")
        self.process = subprocess.Popen([SMOE, "chat", *flags], stdin=other, stdout=other,
                                        stderr=other, env=env, start_new_session=True)
        os.close(other)
        self.text = ""

    def wait_for(self, pattern):
        """Reads until the pattern is there; what came before and with it is dropped."""
        end = time.monotonic() + TIMEOUT_S
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"the end, and no {pattern!r} in {self.text!r}") from error
        self.text = self.text[found.end():]
        return found.group()

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        status = self.process.wait(TIMEOUT_S)
        os.close(self.fd)
        return status


class Chat(unittest.TestCase):
    def test_pipe(self):
        done = must_run(SMOE, "chat", "--temperature", 0, input="Hello!\nMy name is Zoë.\n")
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), 2, done.stdout)
        self.assertTrue(all(answers))
        self.assertEqual(done.stderr, "")
        self.assertEqual(must_run(SMOE, "chat", "--temperature", 0,
                                  input="Hello!\nMy name is Zoë.\n").stdout, done.stdout)

    def test_pipe_without_a_last_newline(self):
        self.assertTrue(must_run(SMOE, "chat", input="Hello!").stdout.strip())

    def test_empty_input(self):
        done = run(SMOE, "chat", input="")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_one_question(self):
        question = "What is the capital of France?"
        done = must_run(SMOE, "chat", "-p", question, "--temperature", 0)
        self.assertEqual(done.stdout, "The capital of France is Paris.\n")
        self.assertEqual(done.stderr, "")
        done = must_run(SMOE, "chat", "-p", question, "--temperature", 0, "--json")
        record = json.loads(done.stdout)
        self.assertEqual(record["content"], "The capital of France is Paris.")
        self.assertEqual(record["fin"], "stop")
        self.assertGreater(record["n_prompt"], 5)

    def test_a_file_goes_before_the_question(self):
        done = must_run(SMOE, "chat", "--file", "-", "-p", "Hello!", "--json", input="one\ntwo\n")
        with_file = json.loads(done.stdout)["n_prompt"]
        alone = json.loads(must_run(SMOE, "chat", "-p", "Hello!", "--json").stdout)["n_prompt"]
        self.assertGreater(with_file, alone)
        done = run(SMOE, "chat", "--file", "/nowhere/x", "-p", "Hello!")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/x", done.stderr)

    def test_thinking_needs_a_template_with_the_switch(self):
        for flags in (["--think"], ["--no-think"], ["--think", "--no-think"]):
            done = run(SMOE, "chat", *flags, "-p", "Hello!")
            self.assertEqual(done.returncode, 2)
            self.assertIn(flags[0], done.stderr)

    def test_saved_and_continued(self):
        env = dict(os.environ, XDG_STATE_HOME=str(WORK / "state"))
        done = run(SMOE, "chat", "--continue", "-p", "Hello!", env=env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no conversation to continue", done.stderr)
        folder = WORK / "state" / "smoe" / "chats"
        folder.mkdir(parents=True)
        file = folder / "20260101-000000-1.jsonl"
        file.write_text('{"role":"user","content":"My name is Anna."}\n'
                        '{"role":"assistant","content":"Nice to meet you, Anna!"}\n')
        done = must_run(SMOE, "chat", "--continue", "-p", "What is my name?", "--temperature", 0,
                        env=env)
        self.assertEqual(done.stdout, "Your name is Anna.\n")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual([line["content"] for line in lines[2:]],
                         ["What is my name?", "Your name is Anna."])

    def test_reader_that_goes_away(self):
        script = f"printf 'Hello!\\nHello!\\nHello!\\n' | '{SMOE}' chat | head -c 1 >/dev/null"
        self.assertEqual(run("sh", "-c", script).returncode, 0)

    def test_terminal(self):
        terminal = Terminal()
        terminal.wait_for("> ")
        terminal.type("Hello!\r")
        terminal.wait_for(r"tok/s")
        terminal.type("What is the capital of France?\r")
        terminal.wait_for(r"tok/s")
        terminal.wait_for("> ")
        terminal.type("\x04")  # Ctrl-D
        self.assertEqual(terminal.end(), 0)

    def test_an_engine_that_dies(self):
        """It is started again, and the conversation goes on."""
        terminal = Terminal()
        terminal.wait_for("> ")
        terminal.type("Hello!\r")
        terminal.wait_for(r"tok/s")
        pid = terminal.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        os.kill(int(children[0]), signal.SIGKILL)
        terminal.wait_for("> ")
        terminal.type("Hello!\r")
        terminal.wait_for(r"engine died \(exit 137\) - restarting")
        terminal.wait_for(r"tok/s")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    main()
