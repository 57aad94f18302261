#!/usr/bin/env python3
"""Design A7: smoe shatter, killed at any moment, leaves no file under a final name that is not
whole, and nothing that the next run does not clear away.

SMOE_KILLS sets how often (50), and SMOE_SEED repeats a run whose seed was printed."""

import os
import random
import signal
import subprocess
import time
import unittest

from harness import SMOE, WORK, main, must_run, run, unpack

N_KILLS = int(os.environ.get("SMOE_KILLS", 50))
SEED = int(os.environ.get("SMOE_SEED", time.time_ns() % 1000000))


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()} if folder.exists() else {}


class Killed(unittest.TestCase):
    def command(self, out):
        return [str(a) for a in (SMOE, "shatter", unpack("sharded"), "-o", out, "--name", "m",
                                 "--experts", "f16", "--scout", "f32")]

    def kill_at(self, out, delay_s):
        process = subprocess.Popen(self.command(out), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL

    def check(self, out, want):
        """What a final name holds is whole. The names that are left."""
        found = files(out)
        for name, data in found.items():
            if name in want:
                self.assertEqual(data, want[name], name)
            else:
                self.assertRegex(name, r"^m\.(smoe|scout\.safetensors)\.partial-\d+$")
        return set(found)

    def test_killed_at_random_moments(self):
        rng = random.Random(SEED)
        print(f"SMOE_SEED={SEED}", flush=True)
        start = time.monotonic()
        must_run(*self.command(WORK / "want"))
        whole_s = time.monotonic() - start
        want = files(WORK / "want")
        self.assertEqual(sorted(want), ["m.scout.safetensors", "m.smoe"])
        n_killed = n_partial = 0
        for i in range(N_KILLS):
            out = WORK / "out" / str(i // 5)  # five runs, one after another, over what they leave
            n_killed += self.kill_at(out, rng.random() * whole_s * 1.1)
            left = self.check(out, want)
            n_partial += len(left - set(want))
            self.assertLessEqual(len(left - set(want)), 2, "leftovers of earlier runs stay")
            if i % 5 == 4:
                must_run(*self.command(out))
                self.assertEqual(self.check(out, want), set(want))
                done = run(SMOE, "inspect", out / "m", "--verify")
                self.assertEqual(done.returncode, 0, done.stderr)
        print(f"{N_KILLS} runs of {whole_s:.3f} s: {n_killed} killed, {n_partial} partial files")
        self.assertGreater(n_killed, N_KILLS // 4)

    def test_nobody_reads(self):
        """`smoe ... 2>&1 | head -1`: as if interrupted, and what was written so far is removed."""
        for command in (self.command(WORK / "unread"),
                        [SMOE, "bench", "io", "--size", "256M", "--dir", WORK / "unread"]):
            (WORK / "unread").mkdir(exist_ok=True)
            read_end, write_end = os.pipe()
            os.close(read_end)
            done = subprocess.run([str(a) for a in command], stdin=subprocess.DEVNULL,
                                  stdout=write_end, stderr=write_end)
            os.close(write_end)
            self.assertIn(done.returncode, (1, -signal.SIGPIPE))  # killed: it had no file yet
            self.assertEqual(files(WORK / "unread"), {})

    def test_a_live_process_keeps_its_partial_file(self):
        """Only what nobody writes any more is cleared away."""
        out = WORK / "live"
        out.mkdir()
        dead = subprocess.Popen(["true"])
        dead.wait()
        mine, stale = f"m.smoe.partial-{os.getpid()}", f"m.smoe.partial-{dead.pid}"
        for name in (mine, stale):
            (out / name).write_bytes(b"half")
        must_run(*self.command(out))
        self.assertEqual(sorted(files(out)), sorted([mine, "m.scout.safetensors", "m.smoe"]))


if __name__ == "__main__":
    main()
