#!/usr/bin/env python3
"""What an engine does between requests: it reads the experts used most into free slots, from a
history beside the vault. The same tokens, more hits; and no history, however bad, is fatal."""

import json
import os
import random
import re
import signal
import time
import unittest

from harness import ENGINE, Engine, Model, main, run, shatter, TINY, WORK

N_VOCAB, N_RECORDS = 2048, 48


def some_ids(seed, n):
    rng = random.Random(seed)
    return [rng.randrange(N_VOCAB) for _ in range(n)]


def copy_of_model(name):
    """A model of the test's own, by links: each has its own history."""
    made = shatter(TINY, "q4_K", "q8_0")
    (WORK / "prewarm").mkdir(exist_ok=True)
    model = Model(WORK / "prewarm" / name)
    model.history = model.vault.with_name(model.vault.name + ".heat")
    for target, source in ((model.vault, made.vault), (model.scout, made.scout)):
        target.hardlink_to(source)
    return model


def streamed(model, *flags, n_ring=N_RECORDS // 2):
    return Engine(model, "--eos-ids", 0, "--ring", n_ring, "--instrument=json", *flags)


def costs(engine):
    """The line of --instrument of the one request so far; it follows the reply."""
    while True:
        line = re.search(r"^(\{.*\})\n", engine.errors(), re.M)
        if line:
            return json.loads(line.group(1))
        if engine.process.poll() is not None:
            raise AssertionError(f"the engine ended: {engine.errors()}")
        time.sleep(0.001)


def hits(reply):
    return float(reply.fields["hit"])


def used_model(name):
    """A model with the history of one session."""
    model = copy_of_model(name)
    with streamed(model) as engine:
        engine.ask(some_ids(1, 3), 60)
    return model


def warmed_up(model, ids, n_tokens, *flags):
    """The first reply of an engine that had the time to read ahead, and its costs."""
    for wait_s in (0.1, 0.3, 1, 3, 10, 30):
        with streamed(model, *flags) as engine:
            time.sleep(wait_s)
            reply = engine.ask(ids, n_tokens)
            cost = costs(engine)
            if cost["prewarm_bytes"] >= (N_RECORDS // 2 - 4) * 114688:
                break
    return reply, cost


class Prewarm(unittest.TestCase):
    def test_a_restarted_engine_hits_more(self):
        model = used_model("restart")
        self.assertTrue(model.history.exists())
        ids = some_ids(1, 3)
        with streamed(model, "--no-prewarm") as engine:
            time.sleep(0.3)
            cold, cold_cost = engine.ask(ids, 60), costs(engine)
        self.assertEqual(cold_cost["prewarm_bytes"], 0)
        warm, cost = warmed_up(model, ids, 60)
        self.assertEqual(warm.ids, cold.ids)
        self.assertGreater(cost["prewarm_used_bytes"], 0)
        self.assertLessEqual(cost["prewarm_used_bytes"] + cost["prewarm_wasted_bytes"],
                             cost["prewarm_bytes"])
        self.assertGreater(hits(warm), hits(cold))
        self.assertEqual(cost["acquires"], cold_cost["acquires"])
        self.assertLess(cost["bytes_read"], cold_cost["bytes_read"])

    def test_the_same_tokens_whatever_comes_between(self):
        model = used_model("same")
        prompts = [some_ids(seed, 1 + 9 * seed) for seed in range(6)]
        with Engine(model, "--eos-ids", 0) as whole:
            want = [whole.ask(ids, 10).ids for ids in prompts]
        rng = random.Random(2)
        for _ in range(6):
            flags = ["--workers", rng.choice([1, 2, 8]), "--spec", rng.randrange(4)]
            with streamed(model, *flags, n_ring=rng.randrange(12, N_RECORDS)) as engine:
                for i in rng.sample(range(6), 6):
                    time.sleep(rng.random() * 0.004)  # a request may come while it reads
                    self.assertEqual(engine.ask(prompts[i], 10).ids, want[i])

    def test_switched_off_it_keeps_nothing(self):
        model = copy_of_model("off")
        with streamed(model, "--no-prewarm") as engine:
            engine.ask(some_ids(1, 3), 20)
        self.assertFalse(model.history.exists())
        with Engine(model, "--eos-ids", 0) as engine:  # all in memory: nothing to read ahead
            engine.ask(some_ids(1, 3), 20)
        self.assertFalse(model.history.exists())
        done = run(ENGINE, *model.files(), "--tokens-in", "1", "--tokens", 3, "--ring", 24)
        self.assertEqual(done.returncode, 0)
        self.assertFalse(model.history.exists())

    def test_a_history_that_is_none(self):
        model = used_model("none")
        good = model.history.read_bytes()
        other = bytearray(good)
        other[100] ^= 1
        for bad in (b"", b"x", good[:-1], good + b"x", bytes(other), os.urandom(len(good))):
            model.history.write_bytes(bad)
            with streamed(model) as engine:
                time.sleep(0.05)
                engine.ask(some_ids(1, 3), 5)
                self.assertEqual(costs(engine)["prewarm_bytes"], 0)
                self.assertEqual(engine.errors().count("it is ignored"), 1)
            self.assertEqual(len(model.history.read_bytes()), len(good))
            with streamed(model) as engine:
                self.assertNotIn("ignored", engine.errors())

    def test_a_history_that_cannot_be_written(self):
        model = copy_of_model("cannot")
        model.history.mkdir()  # refused to every user, the superuser too
        engine = streamed(model)
        self.assertEqual(len(engine.ask(some_ids(1, 3), 5).ids), 5)
        self.assertEqual(engine.errors().count("it is ignored"), 1)
        engine.process.stdin.close()
        self.assertEqual(engine.process.wait(60), 0)
        log = engine.errors()
        self.assertEqual(log.count("the history of experts is not kept"), 1)
        self.assertIn(str(model.history), log)
        engine.process.stdout.close()
        engine.stderr.close()
        self.assertEqual(sorted(p.name for p in model.vault.parent.glob("cannot*.partial*")), [])

    def test_killed_it_keeps_the_old_history(self):
        model = used_model("killed")
        good = model.history.read_bytes()
        for i in range(10):
            engine = streamed(model)
            engine.gen(some_ids(i, 5), 40)
            time.sleep(i * 0.01)
            engine.process.send_signal(signal.SIGKILL)
            engine.process.wait()
            for end in (engine.process.stdin, engine.process.stdout, engine.stderr):
                end.close()
            self.assertEqual(model.history.read_bytes(), good)


if __name__ == "__main__":
    main()
