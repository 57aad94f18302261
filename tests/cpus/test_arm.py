#!/usr/bin/env python3
"""The kernels for aarch64 on a machine of another kind: src/quant and its unit tests are
cross-compiled and run under qemu-user, once as a processor that has every extension and once as one
without the dot product. So the NEON sets equal the scalar one bit for bit, and nothing uses an
instruction that the processor lacks.

Wants aarch64-linux-gnu-gcc with its C library and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu,
libc6-dev-arm64-cross, qemu-user); without them it is skipped. Every case of a test program counts
as one case on each processor."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "cpus"
UNIT = ROOT / "tests" / "unit" / "quant"
GOLDEN = ROOT / "tests" / "golden"
CC, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"
TIMEOUT_S = 600

# The flags of meson.build and src/quant/meson.build.
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-ffp-contract=off", f"-I{HERE}", f"-I{ROOT / 'include'}",
         f"-I{ROOT / 'src'}"]
SET_FLAGS = {
    "kernels_neon": ["-O3"],
    "panel_neon": ["-O3"],
    "panel_neon_dot": ["-O3", "-march=armv8.2-a+dotprod"],
}
PROGRAMS = ["half", "exp", "act", "rows", "quantize", "kernels", "panel", "attn_q8"]
WITH_GOLDEN = ["rows", "quantize"]
PROCESSORS = {  # -cpu: the kernel sets that dispatch must choose there
    "max": "neon neon_dot",
    "cortex-a53": "neon neon",
}


def call(*argv):
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="backslashreplace")


def must_call(*argv):
    done = call(*argv)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n"
                           f"{done.stdout}")


def missing():
    """What keeps the tests from running here; empty if nothing does."""
    for tool in (CC, QEMU):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    program = "#include <math.h>\nint main(int n, char **a) { return (int)sqrt(n) - 1 + !a; }\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "try.c")
        source.write_text(program)
        if call(CC, "-static", source, "-o", source.with_suffix(""), "-lm").returncode:
            return f"{CC} has no C library (Debian: libc6-dev-arm64-cross)"
    return ""


def compile_one(source, out):
    target = out / f"{source.stem}.o"
    must_call(CC, *FLAGS, *SET_FLAGS.get(source.stem, ["-O2"]), "-c", source, "-o", target)
    return target


def build(pool, out):
    """The test programs and sets, statically linked, in the folder `out`."""
    library = [s for s in sorted((ROOT / "src" / "quant").glob("*.c")) if "_avx" not in s.name]
    library.append(ROOT / "src" / "formats" / "dtype.c")
    mains = [UNIT / f"test_{name}.c" for name in PROGRAMS] + [HERE / "sets.c"]
    objects = list(pool.map(lambda s: compile_one(s, out), library + mains))
    for main in objects[len(library):]:
        must_call(CC, "-static", main, *objects[:len(library)], "-o", main.with_suffix(""), "-lm")


def run(cpu, name, out):
    """(passed, failed, log) of one test program on one processor."""
    argv = [QEMU, "-cpu", cpu, out / f"test_{name}", *([out] if name in WITH_GOLDEN else [])]
    start = time.monotonic()
    try:
        done = call(*argv)
        text, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired:
        text, status = "", f"a timeout of {TIMEOUT_S} s"
    passed = len(re.findall(r"^\[       OK \]", text, re.M))
    failed = len(re.findall(r"^\[  FAILED  \]", text, re.M))
    if status != 0 and not failed:
        failed, text = 1, f"{text}ended with {status}\n"  # it died within a case
    if not passed and not failed:
        failed, text = 1, f"{text}no case was run\n"
    return passed, failed, f"== {cpu}: test_{name}, {time.monotonic() - start:.1f} s\n{text}"


def check_sets(cpu, out):
    done = call(QEMU, "-cpu", cpu, out / "sets")
    want, found = PROCESSORS[cpu], done.stdout.strip()
    good = done.returncode == 0 and found == want
    return int(good), int(not good), f"== {cpu}: sets \"{found}\", expected \"{want}\""


def main():
    reason = missing()
    if reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    n_jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    with tempfile.TemporaryDirectory(prefix="smoe-arm-") as folder, \
            concurrent.futures.ThreadPoolExecutor(n_jobs) as pool:
        out = Path(folder)
        try:
            must_call(sys.executable, GOLDEN / "unpack.py", GOLDEN / "quants", out)
            build(pool, out)
        except RuntimeError as e:
            print(f"{e}\n0 passed, 1 failed, 0 skipped")
            return 1
        results = [pool.submit(check_sets, cpu, out) for cpu in PROCESSORS]
        results += [pool.submit(run, cpu, name, out) for name in PROGRAMS for cpu in PROCESSORS]
        n_passed = n_failed = 0
        for result in results:
            passed, failed, log = result.result()
            print(log, flush=True)
            n_passed, n_failed = n_passed + passed, n_failed + failed
    print(f"{n_passed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
