#!/usr/bin/env python3
"""Design A5 as the kernel counts it: all memory charged to the engine's cgroup, page cache and
kernel memory with it, stays within 2 % of the budget, and a container with a limit is survived.
Needs a memory controller of cgroup v1 and the right to make a group; skipped elsewhere.

The long run takes a model that exists, a limit in bytes and a time:
  SMOE_SOAK=STEM SMOE_SOAK_LIMIT=4294967296 SMOE_SOAK_S=3600 test_cgroup.py Cgroup.test_soak"""

import json
import os
import random
import re
import struct
import time
import unittest
from pathlib import Path

from harness import ENGINE, IS_SANITIZED, Engine, Model, WORK, main, run, shatter, unpack

SOAK, SOAK_S = os.environ.get("SMOE_SOAK"), int(os.environ.get("SMOE_SOAK_S", 600))
SOAK_LIMIT = int(os.environ.get("SMOE_SOAK_LIMIT", 4 << 30))
MIB = 1 << 20
N_CTX = 512


def own_group():
    """The directory of this process's group of the memory controller of cgroup v1; None without."""
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if "memory" in controllers.split(","):
                mount = re.search(r"^\S+ (\S+) cgroup \S*\bmemory\b",
                                  Path("/proc/mounts").read_text(), re.M).group(1)
                for path in (Path(mount + group), Path(mount)):  # the second: in a namespace
                    if (path / "memory.usage_in_bytes").exists():
                        return path
    except (OSError, AttributeError):
        pass
    return None


class Group:
    """A new group below this process's own, for one engine."""

    def __init__(self, limit_bytes=None):
        self.path = own_group() / f"smoe-test-{os.getpid()}-{time.monotonic_ns()}"
        self.path.mkdir()
        if limit_bytes:
            (self.path / "memory.limit_in_bytes").write_text(str(limit_bytes))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for _ in range(100):  # the kernel may still be taking the dead process out
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.05)

    def enter(self):
        """For preexec_fn: the child moves itself."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak_bytes(self):
        return int((self.path / "memory.max_usage_in_bytes").read_text())

    def n_killed(self):
        found = re.search(r"oom_kill (\d+)", (self.path / "memory.oom_control").read_text())
        return int(found.group(1)) if found else 0


def write_checkpoint(folder):
    """6 layers of 32 experts of 1.5 MiB (as f32), and hardly anything else: 288 MiB of experts
    beside 3 MiB of scout. Small weights, all from one block of random bits."""
    base = unpack("base")
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).write_bytes((base / name).read_bytes())
    n_layer, n_expert, n_embd, n_ff, n_vocab = 6, 32, 256, 512, 288
    config = json.loads((base / "config.json").read_text())
    config.update(num_hidden_layers=n_layer, num_experts=n_expert, hidden_size=n_embd, head_dim=64,
                  moe_intermediate_size=n_ff, intermediate_size=n_ff, max_window_layers=n_layer,
                  max_position_embeddings=N_CTX)
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"lm_head.weight": [n_vocab, n_embd], "model.embed_tokens.weight": [n_vocab, n_embd],
              "model.norm.weight": [n_embd]}
    for i in range(n_layer):
        at = f"model.layers.{i}"
        attn = {"q_proj.weight": [256, n_embd], "k_proj.weight": [128, n_embd],
                "v_proj.weight": [128, n_embd], "o_proj.weight": [n_embd, 256],
                "q_norm.weight": [64], "k_norm.weight": [64]}
        shapes.update({f"{at}.self_attn.{name}": shape for name, shape in attn.items()})
        shapes.update({f"{at}.{name}_layernorm.weight": [n_embd]
                       for name in ("input", "post_attention")})
        shapes[f"{at}.mlp.gate.weight"] = [n_expert, n_embd]
        for e in range(n_expert):
            for name in ("gate", "up"):
                shapes[f"{at}.mlp.experts.{e}.{name}_proj.weight"] = [n_ff, n_embd]
            shapes[f"{at}.mlp.experts.{e}.down_proj.weight"] = [n_embd, n_ff]
    header, n_bytes = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [n_bytes, n_bytes + size]}
        n_bytes += size
    rng = random.Random(1)
    block = b"".join(struct.pack("<H", 0x3d00 | rng.getrandbits(7) | rng.getrandbits(1) << 15)
                     for _ in range(1 << 16)) * 3
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, tensor in header.items():
            begin, end = tensor["data_offsets"]
            start = rng.randrange(1 << 16) * 2
            f.write(block[start:start + end - begin])
    return folder


def some_ids(rng, n_vocab):
    return [rng.randrange(1, n_vocab) for _ in range(rng.choice([1, 7, 60, 200]))]


@unittest.skipIf(IS_SANITIZED, "a sanitizer's own memory would be counted")
class Cgroup(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if own_group() is None:
            raise unittest.SkipTest("no memory controller of cgroup v1 here")
        try:
            with Group():
                pass
        except OSError as e:
            raise unittest.SkipTest(f"a cgroup cannot be made here: {e}")
        checkpoint = WORK / "wide"
        cls.model = shatter(write_checkpoint(checkpoint), "f32", "q8_0")
        (checkpoint / "model.safetensors").unlink()

    def engine(self, group, *flags):
        return Engine(self.model, "--threads", 2, "--ctx", N_CTX, *flags, preexec_fn=group.enter)

    def least_mib(self):
        """The smallest budget that is accepted."""
        flags = ["--tokens-in", 1, "--tokens", 1, "--raw-ids", "--threads", 2, "--ctx", N_CTX]
        for mib in range(30, 200, 2):
            if run(ENGINE, *self.model.files(), *flags, "--mem-limit", f"{mib}M").returncode == 0:
                return mib
        raise AssertionError("no budget is accepted")

    def serve(self, engine, n, rng):
        for _ in range(n):
            ids = some_ids(rng, 288)
            self.assertIsNone(engine.ask(ids, 8).error)

    def test_what_is_charged_keeps_the_budget(self):
        least = self.least_mib()
        for way in ("uring,direct", "threads,direct", "uring,buffered", "threads,buffered", None):
            for mib in (least, least + 30):
                flags = ["--mem-limit", f"{mib}M"] + (["--io", way] if way else [])
                with self.subTest(way=way, mib=mib), Group() as group:
                    if way and run(ENGINE, *self.model.files(), "--tokens-in", 1, "--tokens", 1,
                                   "--io", way).returncode:
                        continue
                    with self.engine(group, *flags) as engine:
                        self.serve(engine, 6, random.Random(mib))
                        peak = group.peak_bytes()
                    print(f"--mem-limit {mib}M, {way or 'by trial'}: {peak / MIB:.1f} MiB charged",
                          flush=True)
                    self.assertLessEqual(peak, mib * MIB * 1.02)

    def test_a_container_with_a_limit(self):
        """No flag: the engine sees the limit by itself, stays below it, and answers as outside."""
        rng = random.Random(4)
        requests = [some_ids(rng, 288) for _ in range(8)]
        with Engine(self.model, "--ctx", N_CTX) as engine:
            want = [engine.ask(ids, 12).ids for ids in requests]
        for mib in (self.least_mib() + 6, 120):
            with self.subTest(mib=mib), Group(mib * MIB) as group:
                with self.engine(group) as engine:
                    for _ in range(3):
                        self.assertEqual([engine.ask(ids, 12).ids for ids in requests], want)
                    self.assertEqual(group.n_killed(), 0)
                    said = re.search(r"memory: .*", engine.errors()).group()
                print(f"limit {mib} MiB, {group.peak_bytes() / MIB:.1f} MiB charged; {said}")

    @unittest.skipUnless(SOAK, "SMOE_SOAK names no model")
    def test_soak(self):
        """Mixed requests for SMOE_SOAK_S seconds, some cancelled, in a container."""
        rng = random.Random(6)
        n = n_tokens = 0
        end = time.monotonic() + SOAK_S
        with Group(SOAK_LIMIT) as group, \
                Engine(Model(SOAK), "--ctx", 2048, preexec_fn=group.enter) as engine:
            while time.monotonic() < end:
                engine.gen(some_ids(rng, 1000), rng.choice([1, 8, 30]), rng.choice(["t=0 r=1", ""]))
                if rng.random() < 0.2:
                    time.sleep(rng.random() * 3)
                    engine.send("CANCEL\n")
                reply = engine.reply()
                self.assertIsNone(reply.error, engine.errors())
                n, n_tokens = n + 1, n_tokens + len(reply.ids)
                print(f"{n} requests, {n_tokens} tokens, {group.peak_bytes() / MIB:.0f} MiB",
                      flush=True)
            self.assertEqual(group.n_killed(), 0)
            print(engine.errors())


if __name__ == "__main__":
    main()
