"""clients/chat.py says what `smoe chat` says. Needs the Python package transformers, else skipped;
the environment variable SMOE_PYTHON names an interpreter that has it."""

import os
import subprocess
import sys
import unittest

from harness import ENGINE, SMOE, SOURCE, TINY, main, must_run, run, shatter

PYTHON = os.environ.get("SMOE_PYTHON", sys.executable)
CLIENT = SOURCE / "clients" / "chat.py"
QUESTIONS = "Hello!\nWhat is the capital of France?\nAnd of Italy?\n/reset\nAnd of Italy?\n"
GREEDY = ["--temperature", "0", "--rep-penalty", "1"]

HAS_TRANSFORMERS = subprocess.run([PYTHON, "-c", "import transformers"],
                                  capture_output=True).returncode == 0


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed for this Python")
class PythonClient(unittest.TestCase):
    def test_same_answers(self):
        model = shatter(TINY, "q4_K", "q8_0")
        ours = must_run(SMOE, "chat", model.stem, *GREEDY, input=QUESTIONS).stdout
        theirs = must_run(PYTHON, CLIENT, TINY, model.stem, "--engine", ENGINE, "--", *GREEDY,
                          input=QUESTIONS).stdout
        self.assertEqual(theirs, ours)

    def test_no_checkpoint(self):
        done = run(PYTHON, CLIENT, SOURCE / "tests", "x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs the checkpoint's directory", done.stderr)

    def test_no_engine(self):
        done = run(PYTHON, CLIENT, TINY, "/nowhere/model", "--engine", ENGINE, input="Hello\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the engine died twice", done.stderr)


if __name__ == "__main__":
    main()
