#!/usr/bin/env python3
"""An engine for the tests of smoe http: speaks the serve protocol, and breaks it on demand.

What it does stands in the file that SMOE_FAKE_MODE names, read anew for every request: a mode and
perhaps an argument. What it was sent is appended, with the time, to the file SMOE_FAKE_LOG.

  echo           the ids of the request
  say TEXT       the ids in TEXT, separated by commas
  slow N         id 66 every 20 ms, N times or up to CANCEL
  silent S       nothing for S seconds or up to CANCEL, then as echo
  prefill S      as silent, with progress ten times a second
  die            one id, then exit 3
  die-silent     exit 4
  die-start      exit 5, also before anything is read
  refuse NAME    as die-start if NAME is in an argument, else as echo
  load S         the model takes S seconds to load; then as echo
  deaf           nothing, and CANCEL is ignored
  error NAME     <<ERR NAME>>"""

import os
import select
import sys
import time


def say(text):
    os.write(1, text.encode())


def note(text):
    with open(os.environ["SMOE_FAKE_LOG"], "a") as log:
        log.write(f"{time.monotonic():.3f} {text}\n")


def mode():
    with open(os.environ["SMOE_FAKE_MODE"]) as file:
        return (file.read().strip() + " ").split(" ", 1)


class Input:
    def __init__(self):
        self.data = b""

    def line(self, timeout=None):
        """The next line; None when none comes in time. Ends the process at the end of input."""
        end = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self.data:
            left = None if end is None else max(0, end - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                return None
            more = os.read(0, 1 << 16)
            if not more:
                note("END")
                sys.exit(0)
            self.data += more
        line, self.data = self.data.split(b"\n", 1)
        note(line.decode()[:200])
        return line.decode()


def done(fin, n, n_prompt):
    say(f"\nfin={fin} n={n} pp={n_prompt} pc=3 hit=0.5000 prefill_ms=1.500 decode_ms=2.000 "
        "<<DONE>>\n")


def wait(lines, seconds, progress):
    """False: it was cancelled."""
    end = time.monotonic() + seconds
    for i in range(1, 1 << 30):
        if time.monotonic() >= end:
            return True
        if progress:
            say(f"pf={i}/1000\n")
        if lines.line(0.1 if progress else end - time.monotonic()) == "CANCEL":
            return False


def generate(lines, line):
    ids = line.split(" ")[-1].split(",")
    what, argument = mode()
    if what in ("silent", "prefill") and not wait(lines, float(argument), what == "prefill"):
        return done("cancel", 0, len(ids))
    if what in ("echo", "silent", "prefill", "load", "refuse"):
        say(" ".join(ids) + " ")
        return done("stop", len(ids), len(ids))
    if what == "say":
        said = argument.strip().split(",")
        say(" ".join(said) + " ")
        return done("stop", len(said), len(ids))
    if what == "slow":
        for n in range(int(argument)):
            if lines.line(0.02) == "CANCEL":
                return done("cancel", n, len(ids))
            say("66 ")
        return done("stop", int(argument), len(ids))
    if what == "die":
        say("66 ")
        sys.exit(3)
    if what == "die-start":
        sys.exit(5)
    if what == "die-silent":
        sys.exit(4)
    if what == "error":
        return say(f"<<ERR {argument.strip()}>>\n")
    while True:  # deaf
        lines.line()


def main():
    lines = Input()
    note("START " + " ".join(sys.argv[1:]))
    refused = mode()[1].strip() if mode()[0] == "refuse" else None
    if mode()[0] == "die-start" or (refused and any(refused in a for a in sys.argv[1:])):
        print("fake engine: no such model", file=sys.stderr)
        sys.exit(5)
    while True:
        line = lines.line()
        if line == "RESET":
            if mode()[0] == "load":
                time.sleep(float(mode()[1]))
            say("<<DONE>>\n")
        elif line.startswith("GEN "):
            generate(lines, line)


main()
