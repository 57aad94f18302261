#!/usr/bin/env python3
"""smoe plan: its sizes, its refusals, that it cleans up, and that it says about what smoe bench
measures."""

import json
import signal
import subprocess
import time
import unittest

from harness import IS_SANITIZED, SMOE, TINY, WORK, main, must_run, run, shatter

FOLDER = WORK / "drive"
FOLDER.mkdir()
QUICK = ["--size", "16M", "--dir", FOLDER]
# Prediction and measurement are seconds apart on machines that others use too; ratios from 0.7 to
# 2.9 were seen on one that was never quiet. The band is wide, to catch wrong arithmetic only.
BAND = 8


def plan(*flags):
    done = must_run(SMOE, "plan", *flags, "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Plan(unittest.TestCase):
    def test_shapes(self):
        """The figures that the README has been giving for these models."""
        found = {row["model"]: row for row in plan(*QUICK, "--mem", "64G")}
        self.assertEqual(list(found), ["qwen3-30b-a3b", "qwen3-235b-a22b",
                                       "qwen3-coder-480b-a35b"])
        for name, download, vault, scout, least in [
                ("qwen3-30b-a3b", 61.1, 16.3, 1.65, 3.1),
                ("qwen3-235b-a22b", 470.2, 127.7, 8.54, 17.3),
                ("qwen3-coder-480b-a35b", 960.3, 263.3, 12.9, 26.1)]:
            row = found[name]
            self.assertAlmostEqual(row["download_bytes"] / 1e9, download, delta=0.1)
            self.assertAlmostEqual(row["vault_bytes"] / 1e9, vault, delta=0.1)
            self.assertAlmostEqual(row["scout_bytes"] / 1e9, scout, delta=0.05)
            self.assertGreater(row["needed_bytes"] / 1e9, least)
            self.assertTrue(row["fits"])
            for key in ("drive_gb_s", "dram_gb_s", "int_gop_s", "decode_tok_s", "ttft_ms"):
                self.assertGreater(row[key], 0)
        self.assertEqual(found["qwen3-30b-a3b"]["hit_rate"], 1)
        self.assertEqual(found["qwen3-30b-a3b"]["bytes_read_per_token"], 0)
        self.assertLess(found["qwen3-235b-a22b"]["hit_rate"], 1)
        self.assertEqual(list(FOLDER.iterdir()), [])

    def test_memory(self):
        """More of it never hurts; too little is said, with what it takes."""
        last = 0
        for mem in ("4G", "8G", "12G", "24G"):
            row, = plan("Qwen3-30B-A3B", *QUICK, "--mem", mem)
            self.assertGreater(row["hit_rate"], last)
            last = row["hit_rate"]
        row, = plan("qwen3-30b-a3b", *QUICK, "--mem", "2G")
        self.assertFalse(row["fits"])
        self.assertGreater(row["needed_bytes"], 2 << 30)
        table = must_run(SMOE, "plan", "qwen3-30b-a3b", *QUICK, "--mem", "2G").stdout
        self.assertIn("too little memory", table)

    def test_a_config_and_a_model(self):
        model = shatter(TINY, "q8_0", "q8_0")
        flags = ["--experts", "q8_0"]
        here, = plan(model.stem, "--size", "16M")
        self.assertEqual(here["download_bytes"], 0)
        for path in (TINY, TINY / "config.json"):
            row, = plan(path, *QUICK, *flags)
            self.assertEqual(row["model"], "smoe-tiny")
            for key in ("vault_bytes", "record_bytes", "records", "ring", "kv_bytes"):
                self.assertEqual(row[key], here[key], key)
            self.assertAlmostEqual(row["scout_bytes"], here["scout_bytes"],
                                   delta=here["scout_bytes"] / 10)

    def test_interrupted(self):
        process = subprocess.Popen([str(SMOE), "plan", "--dir", str(FOLDER)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not list(FOLDER.iterdir()) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertTrue(said.endswith(b"smoe plan: interrupted\n"), said)
        self.assertEqual(list(FOLDER.iterdir()), [])

    def test_refusals(self):
        config = WORK / "config.json"
        config.write_text("{}")
        model = shatter(TINY, "q8_0", "q8_0")
        for flags, status, part in [
                (["qwen4"], 2, "smoe plan alone"), (["--experts", "q7"], 2, "q4_K"),
                (["smoe-tiny", "--ctx", 100000], 1, "max_position_embeddings"),
                ([config], 1, "config.json"), (["--size", "1M"], 2, "16M"),
                (["--dir", WORK / "nowhere"], 1, "nowhere"),
                ([model.stem, "--experts", "q4_K"], 2, "--experts")]:
            with self.subTest(flags=flags):
                done = run(SMOE, "plan", *([] if "--dir" in flags or model.stem in flags
                                           else QUICK if "--size" not in flags else []), *flags)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(part, done.stderr)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer slows the engine, not the probes")
    def test_prediction(self):
        """Half a gigabyte of random weights, resident and with a third of the experts."""
        folder = WORK / "prediction"
        shape = ["--shape", "qwen3-30b-a3b", "--layers", 1, "--scout", "q2_K", "--dir", folder]
        rows = ["--prompt", 512, "--depth", 512, "--gen", 32, "--repeat", 3, "--ctx", 545]
        stem = folder / "qwen3-30b-a3b-1-q4_K-q2_K"
        for mem in ("1G", "460M"):
            flags = [*shape, *rows, "--mem-limit", mem, "--routing", "sticky", "--json"]
            done = must_run(SMOE, "bench", *flags)
            prompt, decode = [json.loads(line) for line in done.stdout.splitlines()]
            said, = plan(stem, "--mem", mem, "--ctx", 545)
            self.assertEqual(said["ring"], decode["ring"])
            if said["hit_rate"] < 1:
                self.assertAlmostEqual(said["hit_rate"], decode["hit_rate"], delta=0.1)
            for name, ratio in [
                    ("tokens/s", said["decode_tok_s"] / decode["decode_tok_s"]),
                    ("first token", said["ttft_ms"] / prompt["ttft_ms"])]:
                print(f"{mem}: {name}: prediction / measurement = {ratio:.2f}")
                self.assertLess(ratio, BAND)
                self.assertGreater(ratio, 1 / BAND)


if __name__ == "__main__":
    main()
