#!/usr/bin/env python3
"""Design A4: the same bits whatever the instruction set, threads, ring, batches and prefixes."""

import math
import os
import random
import unittest

from harness import ENGINE, SMOE, Engine, golden_model, main, must_run, run, shatter, TINY, WORK

MODELS = {  # name: (model, vocabulary)
    "kquant-q4_K": (lambda: golden_model("kquant", "q4_K", "q8_0"), 288),
    "kquant-q2_K": (lambda: golden_model("kquant", "q2_K", "q6_K"), 288),
    "kquant-q3_K": (lambda: golden_model("kquant", "q3_K", "q5_K"), 288),
    "kquant-q4_0": (lambda: golden_model("kquant", "q4_0", "f16"), 288),
    "odd-f32": (lambda: golden_model("odd"), 307),
    "tiny-q4_K": (lambda: shatter(TINY, "q4_K", "q8_0"), 2048),
}


def isas():
    """The kernel sets that this processor has."""
    model = golden_model("odd")
    for name in ("scalar", "avx2", "avx2_vnni", "avx512", "neon", "neon_dot"):
        env = dict(os.environ, SMOE_ISA=name)
        if run(ENGINE, *model.files(), "--tokens-in", "1", "--tokens", "1", "--raw-ids",
               env=env).returncode == 0:
            yield name


def some_ids(seed, n, n_vocab):
    return [random.Random(f"{seed} {i}").randrange(n_vocab) for i in range(n)]


class Determinism(unittest.TestCase):
    def logits(self, model, ids, *flags, isa=None):
        env = dict(os.environ, **({"SMOE_ISA": isa} if isa else {}))
        out = WORK / "logits"
        must_run(SMOE, "eval", "logits", model.stem, "--ids", ",".join(map(str, ids)), "--out", out,
                 *flags, env=env)
        return out.read_bytes()

    def each(self):
        for name, (make, n_vocab) in MODELS.items():
            with self.subTest(model=name):
                yield make(), n_vocab

    def test_instruction_sets(self):
        names = list(isas())
        self.assertIn("scalar", names)
        for model, n_vocab in self.each():
            is_tiny = n_vocab == 2048  # its heads are wide enough for q8_0, the golden models' not
            for kv in ("f32", "f16") + (("q8_0",) if is_tiny else ()):
                ids = some_ids("isa", 40, n_vocab)
                want = self.logits(model, ids, "--kv-type", kv, isa="scalar")
                self.assertEqual(len(want), 40 * n_vocab * 4)
                for isa in names[1:]:
                    self.assertEqual(self.logits(model, ids, "--kv-type", kv, isa=isa), want, isa)

    def test_threads(self):
        for model, n_vocab in self.each():
            ids = some_ids("threads", 40, n_vocab)
            want = self.logits(model, ids, "--threads", 1)
            for n in (2, 3, 7):
                self.assertEqual(self.logits(model, ids, "--threads", n), want)

    def test_ring_sizes(self):
        for model, n_vocab in self.each():
            ids = some_ids("ring", 40, n_vocab)
            want = self.logits(model, ids)
            refused = run(SMOE, "eval", "logits", model.stem, "--ids", "1", "--out", WORK / "x",
                          "--ring", 1)
            least = int(refused.stderr.split("give at least ")[1].split()[0])
            for n in (least, least + 1):
                self.assertEqual(self.logits(model, ids, "--ring", n), want)

    def test_batches_of_a_long_prompt(self):
        """300 ids run as 256 + 44; a shorter prompt has the first rows of a longer one."""
        model, n_vocab = MODELS["tiny-q4_K"][0](), 2048
        ids = some_ids("long", 300, n_vocab)
        want = self.logits(model, ids)
        for n in (1, 2, 17, 256, 257):
            self.assertEqual(self.logits(model, ids[:n]), want[:n * n_vocab * 4], n)

    def test_prefix_history(self):
        """Token by token, in pieces, at once, after other prompts: the same answers."""
        for model, n_vocab in self.each():
            rng = random.Random(4)
            ids = some_ids("prefix", 150, n_vocab)
            flags = ["--eos-ids", 0, "--kv-type", "f16"]
            with Engine(model, *flags) as engine:
                want = engine.ask(ids, 12).ids
            with Engine(model, *flags) as engine:
                for _ in range(4):
                    at = 0
                    while at < len(ids):
                        at = min(len(ids), at + rng.choice([1, 2, 7, 64]))
                        engine.ask(ids[:at], rng.choice([1, 5]))
                    self.assertEqual(engine.ask(ids, 12).ids, want)
                    engine.ask(ids[:rng.randrange(1, 150)] + some_ids(rng.random(), 9, n_vocab), 3)

    def test_one_shot_equals_serve(self):
        for model, n_vocab in self.each():
            ids = some_ids("shot", 20, n_vocab)
            for extra in (["--temperature", 0], ["--seed", 7], []):
                flags = ["--eos-ids", 0, *extra]
                shot = must_run(ENGINE, *model.files(), "--tokens-in", ",".join(map(str, ids)),
                                "--raw-ids", "--tokens", 40, *flags)
                with Engine(model, *flags) as engine:
                    self.assertEqual(engine.ask(ids, 40, "").ids,
                                     [int(i) for i in shot.stdout.split()])

    def test_logprobs(self):
        """The same to the last digit, whatever the threads, the instruction set or the cache; and
        no answer depends on whether they were asked for."""
        for model, n_vocab in self.each():
            ids = some_ids("logprobs", 40, n_vocab)
            how = "t=0 r=1 logprobs=20"
            with Engine(model, "--eos-ids", 0, "--threads", 1) as engine:
                self.assertEqual(engine.ask(ids, 12).logprobs, [])
                plain, want = engine.ask(ids, 12).ids, engine.ask(ids, 12, how)
                self.assertEqual(engine.ask(ids, 12, "t=0 r=1.3 logprobs=20").logprobs[0],
                                 want.logprobs[0])
            self.assertEqual(want.ids, plain)
            self.assertEqual(len(want.logprobs), 12)
            for token, text in zip(want.ids, want.logprobs):
                chosen, *top = text.split(",")
                top = [(int(t.split(":")[0]), float(t.split(":")[1])) for t in top]
                self.assertEqual(top[0], (token, float(chosen)))  # greedy
                self.assertEqual(len(top), 20)
                self.assertEqual(top, sorted(top, key=lambda t: -t[1]))
                self.assertLessEqual(sum(math.exp(p) for _, p in top), 1 + 1e-4)
            scalar = dict(os.environ, SMOE_ISA="scalar")
            with Engine(model, "--eos-ids", 0, "--threads", 3, env=scalar) as engine:
                self.assertEqual(engine.ask(ids, 12, how).logprobs, want.logprobs)
                self.assertEqual(engine.ask(ids[:20], 1, how).end, "length")
                self.assertEqual(engine.ask(ids, 12, how).logprobs, want.logprobs)

    def test_min_p_and_penalties(self):
        model, n_vocab = MODELS["tiny-q4_K"][0](), 2048
        ids = some_ids("penalties", 20, n_vocab)
        with Engine(model, "--eos-ids", 0) as engine:
            greedy = engine.ask(ids, 40).ids
            self.assertEqual(engine.ask(ids, 40, "t=1.5 p=1 k=1024 r=1 min_p=1").ids, greedy)
            self.assertNotEqual(engine.ask(ids, 40, "t=1.5 p=1 k=1024 r=1").ids, greedy)
            same = engine.ask(ids, 40, "t=0 r=1 presence_penalty=0 frequency_penalty=0").ids
            self.assertEqual(same, greedy)
            varied = engine.ask(ids, 40, "t=0 r=1 presence_penalty=2 frequency_penalty=2").ids
            self.assertGreater(len(set(varied)), len(set(greedy)))
        flags = ["--eos-ids", 0, "--temperature", 0, "--rep-penalty", 1]
        with Engine(model, *flags, "--presence-penalty", 2, "--frequency-penalty", 2) as engine:
            self.assertEqual(engine.ask(ids, 40, "").ids, varied)
        with Engine(model, *flags[:2], "--temperature", 1.5, "--rep-penalty", 1, "--min-p", 1,
                    "--presence-penalty", -0.0) as engine:
            self.assertEqual(engine.ask(ids, 40, "").ids, greedy)

    def test_seeds(self):
        model, n_vocab = MODELS["tiny-q4_K"][0](), 2048
        ids = some_ids("seed", 20, n_vocab)
        with Engine(model, "--eos-ids", 0) as engine:
            hot = "t=1.5 p=1 k=1024"
            first, second = engine.ask(ids, 40, hot).ids, engine.ask(ids, 40, hot).ids
            self.assertNotEqual(first, second)  # the generator runs on
            a, b = engine.ask(ids, 40, hot + " s=5").ids, engine.ask(ids, 40, hot + " s=5").ids
            self.assertEqual(a, b)
            third = engine.ask(ids, 40, hot).ids
        with Engine(model, "--eos-ids", 0) as engine:  # s= did not move the session's own generator
            again = [engine.ask(ids, 40, hot).ids for _ in range(3)]
        self.assertEqual(again, [first, second, third])


if __name__ == "__main__":
    main()
