#!/usr/bin/env python3
"""smoe-tiny answers what it was trained to answer, in every type: a wrong scale, a shifted block or
a misread template would show here first."""

import re
import unittest

from harness import IS_SANITIZED, SMOE, TINY, WORK, main, must_run, shatter

# experts, scout: the least per cent of right answers. Measured values are in the model's README.
LEAST_PERCENT = {
    ("bf16", "bf16"): 97.3,
    ("q8_0", "q8_0"): 97.3,
    ("q4_K", "q8_0"): 97.3,
    ("q2_K", "q8_0"): 97.2,
    ("f32", "q8_0"): 97.3,
    ("f16", "f16"): 97.3,
    ("q6_K", "q8_0"): 97.3,
    ("q5_K", "q8_0"): 97.3,
    ("q4_0", "q8_0"): 97.3,
    ("q3_K", "q8_0"): 97.3,
}
EVERY = 40 if IS_SANITIZED else 1  # of the file's rows
SLACK_PERCENT = 10 if IS_SANITIZED else 0  # for what so few rows can tell


class Answers(unittest.TestCase):
    def check(self, experts, scout):
        lines = (TINY / "eval.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
        rows = WORK / "rows.tsv"
        rows.write_text("".join([lines[0]] + lines[1::EVERY]), encoding="utf-8")
        model = shatter(TINY, experts, scout)
        done = must_run(SMOE, "eval", "answers", model.stem, "--file", rows, "--show", 3)
        print(done.stdout)
        percent, n = re.search(r"^all +([\d.]+) % +\(\d+ of (\d+)\)", done.stdout, re.M).groups()
        self.assertEqual(int(n), len(lines[1::EVERY]))
        self.assertGreaterEqual(float(percent), LEAST_PERCENT[experts, scout] - SLACK_PERCENT)


for pair in LEAST_PERCENT:
    setattr(Answers, f"test_{pair[0]}", lambda self, p=pair: self.check(*p))

if __name__ == "__main__":
    main()
