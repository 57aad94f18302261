#!/usr/bin/env python3
"""The README is right: every command in its blocks marked "console run" is run, in a folder that
looks like the repository after `make`, and prints what the README shows, but for the digits. Its
first block is what .ci/run runs.

usage: test_readme.py              compare
       test_readme.py --update     write what the commands print into the README"""

import re
import sys
import unittest

from harness import BUILD, SOURCE, WORK, main, run

UPDATE = "--update" in sys.argv
README = SOURCE / "README.md"
BLOCK = re.compile(r"^```(\S+)( run)?\n(.*?)^```$", re.M | re.S)


def commands(block):
    """[(command, expected output lines)] of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def masked(lines):
    """Digits stand for any number and lineage, and so does the space that pads them."""
    return [re.sub(r"\s+", " ", re.sub(r"\b[0-9a-f]{32}\b|\d+(\.\d+)?", "#", line)).strip()
            for line in lines]


class Readme(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.text = README.read_text(encoding="utf-8")
        cls.folder = WORK / "checkout"
        cls.folder.mkdir()
        (cls.folder / "build").symlink_to(BUILD)
        (cls.folder / "models").symlink_to(SOURCE / "models")

    def test_first_block_is_what_ci_runs(self):
        first = BLOCK.search(self.text).group(3).split("\n")
        ci = (SOURCE / ".ci/run").read_text()
        self.assertIn("scripts/setup && make chat", first)
        self.assertIn("make test", first)
        self.assertIn("scripts/setup && make chat", ci)
        self.assertIn("\nmake test", ci)

    def run_block(self, block):
        """Compares; returns the block as it should be."""
        shown = ""
        for command, want in commands(block):
            with self.subTest(command=command):
                done = run("sh", "-c", command, cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                shown += f"$ {command}\n{done.stdout}"
                if not UPDATE:
                    self.assertEqual(masked(done.stdout.splitlines()), masked(want))
        return shown

    def test_commands(self):
        blocks = [b for kind, marked, b in BLOCK.findall(self.text) if marked]
        self.assertGreaterEqual(len(blocks), 4)
        text = self.text
        for block in blocks:
            text = text.replace(block, self.run_block(block))
        if UPDATE:
            README.write_text(text, encoding="utf-8")

    def test_links(self):
        for link in re.findall(r"\]\(([^)#:]+)\)", self.text):
            self.assertTrue((SOURCE / link).exists(), link)


if __name__ == "__main__":
    if UPDATE:
        sys.argv.remove("--update")
    main()
