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
        for ring in (6, 0.25, "25%"):
            found, _ = rows(*SHAPE, "--ring", ring, "--routing", "sticky")
            for row in found:
                self.assertEqual((row["ring"], row["records"]), (6, 24))
                if row["n_gen"]:  # of a prompt, the next layer may be read ahead
                    self.assertLess(row["hit_rate"], 1)
                self.assertGreater(row["bytes_read_per_token"], 0)
                self.assertGreater(row["read_gb_s"], 0)
                self.assertGreater(row["ttft_ms"], 0)
                self.assertIn(row["bound"], ("disk", "memory" if row["n_gen"] else "compute"))
                self.assertIn("drive_gb_s", row)

    def test_routing(self):
        """A law gives the same choices every time; a trace holds the model's, whatever the ring."""
        traces = {}
        for name, flags in {"a": ["--ring", 6, "--threads", 1], "b": [],
                            "c": ["--routing", "sticky"], "d": ["--routing", "sticky"],
                            "e": ["--routing", "uniform"]}.items():
            traces[name] = WORK / f"{name}.trace"
            found, _ = rows(*SHAPE, *flags, "--record", traces[name])
            self.assertEqual(found[0]["routing"], "model" if name in "ab" else flags[1])
        data = {name: path.read_bytes() for name, path in traces.items()}
        self.assertEqual(data["a"], data["b"])
        self.assertEqual(data["c"], data["d"])
        self.assertEqual(len(set(data.values())), 3)
        n_passes, n_tokens = 1 + 1 + 1 + 4, 16 + 32 + 1 + 4
        self.assertEqual(len(data["a"]), 64 + 4 * n_passes + 2 * n_tokens * 2 * 3)
        found, _ = rows(*SHAPE, "--replay", traces["c"], "--ring", "50%")
        self.assertEqual(found[0]["routing"], "replay")
        done = run(SMOE, "bench", *SHAPE, *SHORT, "--layers", 3, "--replay", traces["a"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 layers", done.stderr)

    def test_io(self):
        folder = WORK / "io"
        folder.mkdir()
        short = ["--trial-ms", 5, "--json"]
        done = must_run(SMOE, "bench", "io", "--dir", folder, "--size", "8M", *short)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([r["depth"] for r in found], [1, 2, 4, 8, 16, 32] * 2)
        self.assertEqual(list(folder.iterdir()), [])
        model = shatter(TINY, "q8_0", "q8_0")
        done = must_run(SMOE, "bench", "io", model.stem, *short)
        self.assertEqual(len(done.stdout.splitlines()), 12)
        for flags, part in [([model.stem, "--dir", folder], "--dir"), (["--size", 0], "--size"),
                            (["--size", "900T", "--dir", folder], "room")]:
            done = run(SMOE, "bench", "io", *flags)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(list(folder.iterdir()), [])

    def test_policies(self):
        trace = WORK / "policy.trace"
        rows(*SHAPE, "--routing", "sticky", "--record", trace)
        for flags in (["--replay", trace], ["--shape", "smoe-tiny", "--tokens", 50],
                      ["--shape", "smoe-tiny", "--routing", "uniform", "--tokens", 50]):
            done = must_run(SMOE, "bench", "policy", *flags, "--ring", "6,50%,1.0", "--json")
            found = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([r["policy"] for r in found], ["lru", "lfu", "optimum"] * 3)
            for lru, lfu, optimum in zip(found[::3], found[1::3], found[2::3]):
                self.assertLessEqual(lru["hit_rate_cold"], optimum["hit_rate_cold"])
                self.assertLessEqual(lfu["hit_rate_cold"], optimum["hit_rate_cold"])
            self.assertEqual(found[6]["ring"], found[6]["records"])
            table = must_run(SMOE, "bench", "policy", *flags, "--ring", "6,50%,1.0").stdout
            self.assertEqual(len(table.splitlines()), 7)
        for flags, part in [([], "--replay FILE"),
                            (["--replay", trace, "--layers", 2], "--layers"),
                            (["--shape", "smoe-tiny", "--routing", "model"], "--record"),
                            (["--shape", "smoe-tiny", "--ring", "0.0"], "--ring")]:
            done = run(SMOE, "bench", "policy", *flags)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)

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
                ([*SHAPE, "--ring", "1.5"], "25%"),
                ([*SHAPE, "--ring", "-1"], "25%"),
                ([*SHAPE, "--routing", "random"], "sticky"),
                ([*SHAPE, "--routing", "sticky", "--replay", "f"], "--replay"),
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
