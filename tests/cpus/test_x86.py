#!/usr/bin/env python3
"""On x86-64 processors that lack AVX-512, or AVX altogether, the programs answer with the same bits
as here and never meet an illegal instruction: they run under qemu-user (Debian: qemu-user), which
has instructions of its own and not this machine's. Without it, or elsewhere, this is skipped."""

import os
import platform
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import BUILD, ENGINE, SMOE, WORK, Model, main, must_run, run  # noqa: E402

QEMU = "qemu-x86_64"
LACKS = {  # -cpu: the kernel sets that it cannot run
    "Nehalem": ["avx2", "avx2_vnni", "avx512"],
    "Haswell": ["avx2_vnni", "avx512"],
}
IDS = ",".join(str(7 + 61 * i) for i in range(30))


@unittest.skipUnless(platform.machine() in ("x86_64", "AMD64"), "this is no x86-64 machine")
@unittest.skipUnless(shutil.which(QEMU), f"{QEMU} is not installed")
class OtherProcessors(unittest.TestCase):
    def emulate(self, cpu, *argv, isa=None):
        env = {k: v for k, v in os.environ.items() if k != "SMOE_ISA"}
        return run(QEMU, "-cpu", cpu, *argv, env=dict(env, SMOE_ISA=isa) if isa else env)

    def must_emulate(self, cpu, *argv, isa=None):
        done = self.emulate(cpu, *argv, isa=isa)
        self.assertEqual(done.returncode, 0, f"-cpu {cpu}, set {isa}: {done.stderr}")
        return done.stdout

    def setUp(self):
        self.model = Model(BUILD / "models" / "smoe-tiny")
        self.generate = [ENGINE, *self.model.files(), "--tokens-in", IDS, "--tokens", 8,
                         "--temperature", 0, "--eos-ids", 0, "--raw-ids"]

    def check(self, cpu):
        if self.emulate(cpu, "/bin/sh", "-c", ":").returncode:
            self.skipTest(f"this system's own programs do not run on {cpu} under this {QEMU}")
        self.assertEqual(self.must_emulate(cpu, *self.generate), must_run(*self.generate).stdout)

        logits = [SMOE, "eval", "logits", self.model.stem, "--ids", IDS, "--out"]
        self.must_emulate(cpu, *logits, WORK / cpu)
        must_run(*logits, WORK / "here")
        self.assertEqual((WORK / cpu).read_bytes(), (WORK / "here").read_bytes())

        for isa in LACKS[cpu]:
            refused = self.emulate(cpu, *self.generate, isa=isa)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(f'no kernel set "{isa}"', refused.stderr)

    def test_without_avx(self):
        self.check("Nehalem")

    def test_without_avx512(self):
        self.check("Haswell")

    def test_avx2_is_taken(self):
        """That the test before was one of AVX2, and not of plain C."""
        done = self.emulate("Haswell", *self.generate, isa="avx2")
        if "no kernel set" in done.stderr:
            self.skipTest(f"this {QEMU} does not know AVX2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, must_run(*self.generate).stdout)


if __name__ == "__main__":
    main()
