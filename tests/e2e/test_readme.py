#!/usr/bin/env python3
"""The README is right: every command in its blocks marked "console run" is run, in a folder that
looks like the repository after `make`, and prints what the README shows, but for the digits. In a
block marked "console typed" the command gets a terminal, and the lines after "> " are typed there.
Its first block is what .ci/run runs.

usage: test_readme.py              compare
       test_readme.py --update     write what the commands print into the README"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import unittest

from harness import BUILD, SOURCE, TIMEOUT_S, WORK, main, run

UPDATE = "--update" in sys.argv
README = SOURCE / "README.md"
BLOCK = re.compile(r"^```(\S+)( run| typed)?\n(.*?)^```$", re.M | re.S)
COLUMNS = 140


def commands(block):
    """[(command, expected output lines)] of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def read_until(fd, at_end):
    """What appears on a terminal, until that or its end."""
    shown = b""
    while not re.search(at_end, shown):
        ready, _, _ = select.select([fd], [], [], TIMEOUT_S)
        try:
            piece = os.read(fd, 65536) if ready else b""
        except OSError:
            piece = b""
        if not piece:
            break
        shown += piece
    return shown.decode().replace("\r\n", "\n")


def typed(command, lines, folder):
    """The screen of a session in which these lines are typed. A dumb terminal: no escapes."""
    fd, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen(["sh", "-c", command], cwd=folder, stdin=other, stdout=other,
                               stderr=other, env=dict(os.environ, TERM="dumb"),
                               start_new_session=True)
    os.close(other)
    screen = ""
    for line in lines:
        screen += read_until(fd, rb"(^|\n)[>.] $")
        os.write(fd, line.encode() + b"\n")
    screen += read_until(fd, rb"(?!)")
    os.close(fd)
    if process.wait(TIMEOUT_S):
        raise AssertionError(f"{command} ended with {process.returncode}: {screen}")
    return screen


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

    def type_block(self, block):
        lines = block.splitlines()
        with self.subTest(command=lines[0]):
            found = typed(lines[0][2:], [line[2:] for line in lines if line[:2] in ("> ", ". ")],
                          self.folder)
            if not UPDATE:
                self.assertEqual(masked(found.splitlines()), masked(lines[1:]))
            return f"{lines[0]}\n{found}"

    def test_commands(self):
        blocks = [(mark, b) for kind, mark, b in BLOCK.findall(self.text) if mark]
        self.assertGreaterEqual(len(blocks), 5)
        text = self.text
        for mark, block in blocks:
            found = self.run_block(block) if mark == " run" else self.type_block(block)
            text = text.replace(block, found)
        if UPDATE:
            README.write_text(text, encoding="utf-8")

    def test_links(self):
        for link in re.findall(r"\]\(([^)#:]+)\)", self.text):
            self.assertTrue((SOURCE / link).exists(), link)


if __name__ == "__main__":
    if UPDATE:
        sys.argv.remove("--update")
    main()
