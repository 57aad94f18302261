#!/usr/bin/env python3
"""smoe bench: its rows, its files, its refusals. Never how fast."""

import json
import os
import unittest

from harness import SMOE, TINY, WORK, main, must_run, run, shatter

FIELDS = {"shape", "threads", "isa", "n_ctx", "n_prompt", "n_gen", "prefill_tok_s", "decode_tok_s",
          "weight_gb_s", "bound", "bound_fraction"}
SHORT = ["--repeat", 1, "--prompt", "16,32", "--depth", 24, "--gen", 4, "--threads", 2]
SHAPE = ["--shape", "smoe-tiny", "--layers", 2]


def rows(*flags):
    done = must_run(SMOE, "bench", *flags, *SHORT, "--json")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


class Bench(unittest.TestCase):
    def check(self, found, name):
        self.assertEqual([(r["n_ctx"], r["n_prompt"], r["n_gen"]) for r in found],
                         [(0, 16, 0), (0, 32, 0), (24, 0, 4)])
        for row in found:
            self.assertEqual(FIELDS - set(row), set())
            self.assertEqual(row["shape"], name)
            self.assertEqual(row["threads"], 2)
            self.assertEqual(row["bound"], "memory" if row["n_gen"] else "compute")
            self.assertGreater(row["bound_fraction"], 0)
            self.assertGreater(row["weight_gb_s"], 0)
            self.assertGreater(row["decode_tok_s" if row["n_gen"] else "prefill_tok_s"], 0)
            self.assertEqual(row["hit_rate"], 1)

    def test_model(self):
        model = shatter(TINY, "q8_0", "q8_0")
        found, _ = rows(model.stem)
        self.check(found, model.stem.name)

    def test_shape_in_a_folder_is_written_once(self):
        folder = WORK / "bench"
        found, said = rows(*SHAPE, "--dir", folder, "--experts", "q2_K", "--scout", "q6_K")
        self.check(found, "smoe-tiny")
        self.assertEqual((found[0]["experts"], found[0]["scout"]), ("q2_K", "q6_K"))
        self.assertIn("writing", said)
        before = sorted((f.name, f.stat().st_mtime_ns) for f in folder.iterdir())
        self.assertEqual(len(before), 2)
        _, said = rows(*SHAPE, "--dir", folder, "--experts", "q2_K", "--scout", "q6_K")
        self.assertNotIn("writing", said)
        self.assertEqual(before, sorted((f.name, f.stat().st_mtime_ns) for f in folder.iterdir()))
        must_run(SMOE, "inspect", folder, "--verify")

    def test_without_a_folder_nothing_is_left(self):
        folder = WORK / "bench-tmp"
        folder.mkdir()
        env = {**os.environ, "TMPDIR": str(folder)}
        self.assertEqual(run(SMOE, "bench", *SHAPE, *SHORT, env=env).returncode, 0)
        self.assertEqual(run(SMOE, "bench", *SHAPE, *SHORT, "--ring", 1, env=env).returncode, 1)
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_small_ring_is_told(self):
        found, said = rows(*SHAPE, "--ring", 6)
        self.assertLess(found[0]["hit_rate"], 1)
        self.assertIn("from the vault", said)

    def test_isas(self):
        found, _ = rows(*SHAPE, "--isa", "scalar")
        self.assertEqual(found[0]["isa"], "scalar")
        self.check(found, "smoe-tiny")

    def test_usage(self):
        for flags, part in [
                (["--shape", "gpt"], "qwen3-235b-a22b"),
                (["--layers", 2], "--layers"),
                ([*SHAPE, "model"], "not both"),
                ([*SHAPE, "--experts", "q7"], "q4_K"),
                ([*SHAPE, "--prompt", "1,,2"], "--prompt"),
                ([*SHAPE, "--prompt", 0, "--depth", 0], "nothing to measure"),
                ([*SHAPE, "--prompt", 1025], "1025 tokens"),
                ([*SHAPE, "--isa", "mmx"], "mmx")]:
            with self.subTest(flags=flags):
                done = run(SMOE, "bench", *flags)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    main()
