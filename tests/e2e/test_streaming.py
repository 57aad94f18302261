#!/usr/bin/env python3
"""A ring smaller than the vault: the same tokens as with all experts in memory, whatever the ring,
the reads and the guesses; cancelled and killed engines leave nothing behind.

SMOE_REQUESTS sets the number of requests of the stress test (100; 10000 for the long run), and
SMOE_SEED repeats a run of random configurations whose seed was printed."""

import os
import random
import shutil
import signal
import time
import unittest

from harness import ENGINE, Engine, Model, TINY, WORK, golden_model, main, run, shatter

N_REQUESTS = int(os.environ.get("SMOE_REQUESTS", 100))
FLOOR = {"tiny": 12, "kquant": 6}
RECORDS = {"tiny": 48, "kquant": 24}
SEED = int(os.environ.get("SMOE_SEED", time.time_ns() % 1000000))
WAYS = ["uring", "threads", "direct", "buffered", "uring,direct", "uring,buffered",
        "threads,direct", "threads,buffered"]
MODELS = {
    "tiny": (lambda: shatter(TINY, "q4_K", "q8_0"), 2048),
    "kquant": (lambda: golden_model("kquant", "q4_K", "q8_0"), 288),
}


def some_ids(rng, n, n_vocab):
    return [rng.randrange(n_vocab) for _ in range(n)]


def ways(model):
    """The ways of reading that this machine offers."""
    for way in WAYS:
        done = run(ENGINE, *model.files(), "--tokens-in", 1, "--tokens", 1, "--raw-ids",
                   "--io", way)
        if done.returncode == 0:
            yield way
        elif "cannot be had" not in done.stderr:
            raise AssertionError(done.stderr)


class Streaming(unittest.TestCase):
    def test_random_configurations(self):
        rng = random.Random(SEED)
        print(f"SMOE_SEED={SEED}", flush=True)
        offered = list(ways(MODELS["tiny"][0]()))
        for name, (make, n_vocab) in MODELS.items():
            model = make()
            prompts = [some_ids(rng, n, n_vocab) for n in (1, 9, 60, 100)]
            with Engine(model, "--eos-ids", 0) as engine:
                want = [engine.ask(ids, 12).ids for ids in prompts]
            for _ in range(8):
                flags = ["--eos-ids", 0, "--ring", rng.randint(FLOOR[name], RECORDS[name]),
                         "--threads", rng.choice([1, 2, 3])]
                flags += ["--workers", rng.choice([1, 2, 5, 64, 256])] if rng.random() < 0.7 else []
                flags += ["--io", rng.choice(offered)] if rng.random() < 0.8 else []
                flags += ["--spec", rng.randrange(1, 9)] if rng.random() < 0.5 else []
                with self.subTest(model=name, flags=flags), Engine(model, *flags) as engine:
                    for i in rng.sample(range(4), 4):
                        self.assertEqual(engine.ask(prompts[i], 12).ids, want[i])

    def test_stress_at_the_floor(self):
        """Requests of all kinds, many cancelled at a random moment, against an engine that has all
        experts in memory."""
        rng = random.Random(5)
        model, n_vocab = MODELS["tiny"][0](), 2048
        with Engine(model, "--eos-ids", 0) as whole, \
                Engine(model, "--eos-ids", 0, "--ring", FLOOR["tiny"], "--spec", 4) as floor:
            for i in range(N_REQUESTS):
                ids = some_ids(rng, rng.choice([1, 5, 40, 200]), n_vocab)
                if rng.random() < 0.5:
                    floor.gen(ids, 200)
                    time.sleep(rng.random() * 0.02)
                    floor.send("CANCEL\n")
                    self.assertIn(floor.reply().end, ("cancel", "length", "stop"))
                if i % 4 == 0:
                    self.assertEqual(floor.ask(ids, 8).ids, whole.ask(ids, 8).ids)

    def test_file_cut_short_while_serving(self):
        """The request ends with <<ERR internal>> and the reason, the next one works again."""
        made = MODELS["tiny"][0]()
        model = Model(WORK / "cut" / "m")
        model.vault.parent.mkdir()
        data = made.vault.read_bytes()
        model.vault.write_bytes(data)
        shutil.copy(made.scout, model.scout)
        rng = random.Random(2)
        with Engine(model, "--eos-ids", 0, "--ring", FLOOR["tiny"]) as engine:
            for n_bytes in (0, len(data) // 2):
                ids = some_ids(rng, 50, 2048)
                want = engine.ask(ids, 10).ids
                self.assertEqual(len(want), 10)
                os.truncate(model.vault, n_bytes)
                for _ in range(3):
                    engine.send("RESET\n")
                    engine.reply()
                    self.assertEqual(engine.ask(ids, 10).error, "internal")
                self.assertIn("cut short after it was opened", engine.errors())
                with open(model.vault, "r+b") as f:
                    f.write(data)
                engine.send("RESET\n")
                engine.reply()
                self.assertEqual(engine.ask(ids, 10).ids, want)

    def test_killed_at_any_moment(self):
        rng = random.Random(3)
        model, n_vocab = MODELS["tiny"][0](), 2048
        ids = some_ids(rng, 50, n_vocab)
        before = sorted(p.name for p in model.vault.parent.iterdir())
        with Engine(model, "--eos-ids", 0) as engine:
            want = engine.ask(ids, 10).ids
        for _ in range(50):
            with Engine(model, "--eos-ids", 0, "--ring", FLOOR["tiny"]) as engine:
                engine.gen(ids, 500)
                time.sleep(rng.random() * 0.1)
                engine.process.send_signal(signal.SIGKILL)
                engine.process.wait()
                raise_nothing(engine)
        self.assertEqual(sorted(p.name for p in model.vault.parent.iterdir()), before)
        with Engine(model, "--eos-ids", 0, "--ring", FLOOR["tiny"]) as engine:
            self.assertEqual(engine.ask(ids, 10).ids, want)


def raise_nothing(engine):
    """A killed engine's status and half a reply are no failure."""
    engine.close = lambda check=True: (engine.process.stdin.close(),
                                       engine.process.stdout.close(), engine.stderr.close())


if __name__ == "__main__":
    main()
