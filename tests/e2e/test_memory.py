#!/usr/bin/env python3
"""Design A5: the resident memory of the engine never exceeds --mem-limit."""

import re
import unittest
from pathlib import Path

from harness import ENGINE, IS_SANITIZED, SMOE, TINY, Engine, main, run, shatter


def peak_bytes(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


@unittest.skipIf(IS_SANITIZED, "a sanitizer's own memory would be counted")
@unittest.skipUnless(Path("/proc/self/status").exists(), "this system has no /proc")
class Memory(unittest.TestCase):
    def peak(self, model, *flags):
        with Engine(model, *flags) as engine:
            for seed in range(4):
                ids = [(i * 7919 + seed) % 2000 for i in range(700)]
                self.assertIsNone(engine.ask(ids, 60).error)
            return peak_bytes(engine.process)

    def least_mib(self, model, *flags):
        """The smallest limit that is accepted: there the ring is smallest."""
        for mib in range(40, 200, 2):
            done = run(ENGINE, *model.files(), "--tokens-in", 1, "--tokens", 1, "--raw-ids",
                       "--mem-limit", f"{mib}M", *flags)
            if done.returncode == 0:
                return mib
        raise AssertionError(done.stderr)

    def test_limits(self):
        model = shatter(TINY, "f32", "q8_0")  # 36 MiB of experts: not all fit the smaller limits
        for kv in ("f16", "f32"):
            flags = ["--threads", 2, "--kv-type", kv]
            least = self.least_mib(model, *flags)
            for mib in (least, least + 8, least + 16, 400):
                peak = self.peak(model, "--mem-limit", f"{mib}M", *flags)
                print(f"--mem-limit {mib}M --kv-type {kv}: peak {peak / 2**20:.1f} MiB")
                self.assertLessEqual(peak, mib << 20)

    def test_a_limit_that_is_too_small_is_refused(self):
        model = shatter(TINY, "f32", "q8_0")
        done = run(SMOE, "eval", "logits", model.stem, "--ids", "1", "--out", "/dev/null",
                   "--mem-limit", "40M")
        self.assertEqual(done.returncode, 1)
        self.assertIn("raise --mem-limit", done.stderr)


if __name__ == "__main__":
    main()
