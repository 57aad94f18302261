#!/usr/bin/env python3
"""Random histories against one long-lived engine. Every greedy answer must be the one that a fresh
engine gives: a second engine that is RESET before each request tells, and a sample of new processes
confirms it. Every request gets exactly one terminal line."""

import random
import unittest

from harness import ENGINE, IS_SANITIZED, Engine, golden_model, main, must_run

N_ENGINES, N_STEPS = (4, 300) if IS_SANITIZED else (10, 800)
N_CTX = 160
FLAGS = ["--ctx", N_CTX, "--kv-type", "f16", "--threads", 1]
GARBAGE = [b"", b"\n", b"HELLO\n", b"GEN\n", b"GEN x 1,2\n", b"GEN 0 1\n", b"GEN -1 1\n",
           b"GEN 5 1,,2\n", b"GEN 5 1,2,\n", b"GEN 5 t=x 1\n", b"GEN 5 t=0\n", b"GEN 5\n",
           b"GEN 99999999999 1\n",
           b"GEN 5 288\n", b"GEN 5 -1\n", b"gen 5 1\n", b"RESET now\n", b"\x00\xff\n",
           b"GEN 5 1 2\n",
           b"GEN 161 1\n", b"GEN 5 t=nan 1\n", b"GEN 5 s=-1 1\n", b"1,2,3\n"]


class Fresh:
    """What an engine without a history answers, remembered."""

    def __init__(self, model):
        self.model, self.engine, self.memo = model, Engine(model, *FLAGS), {}

    def answer(self, ids, max_tokens):
        """Asked for without a limit: a shorter answer is a prefix of a longer one."""
        key = tuple(ids)
        if key not in self.memo:
            self.engine.send("RESET\n")
            assert self.engine.reply().end == "done"
            reply = self.engine.ask(ids, N_CTX)
            self.memo[key] = (reply.ids, reply.end)
        want, end = self.memo[key]
        if len(want) < max_tokens:
            return want, end
        return want[:max_tokens], "length"


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = golden_model("base", "q8_0", "q8_0")
        cls.fresh = Fresh(cls.model)
        cls.n_requests = cls.n_histories = 0

    @classmethod
    def tearDownClass(cls):
        cls.fresh.engine.close()
        print(f"{cls.n_requests} requests in {cls.n_histories} histories")

    def next_ids(self, rng, ids):
        """Extend, edit, truncate or repeat the conversation so far; sometimes a new one."""
        kind = rng.randrange(8)
        new = [rng.randrange(288) for _ in range(rng.choice([1, 1, 2, 5, 30]))]
        if kind <= 2:
            ids = ids + new
        elif kind == 3:
            ids = ids[:rng.randrange(len(ids) + 1)] + new
        elif kind == 4:
            ids = ids[:rng.randrange(1, len(ids) + 1)]
        elif kind == 5:
            at = rng.randrange(len(ids))
            ids = ids[:at] + [rng.randrange(288)] + ids[at + 1:]
        elif kind == 6:
            ids = new
        return ids[-(N_CTX - 10):]

    def step(self, rng, engine, ids):
        """One request; returns the conversation that follows from it."""
        ids = self.next_ids(rng, ids)
        max_tokens = rng.choice([1, 2, 5, 20, N_CTX])
        cancel_after = rng.choice([None] * 4 + [0, 1, 3])
        engine.gen(ids, max_tokens)
        if cancel_after == 0:
            engine.send("CANCEL\n")
        reply = engine.reply(lambda r: len(r.ids) == cancel_after and engine.send("CANCEL\n"))
        want, end = self.fresh.answer(ids, max_tokens)
        self.assertIsNone(reply.error)
        if reply.end == "cancel":
            self.assertIsNotNone(cancel_after)
            self.assertEqual(reply.ids, want[:len(reply.ids)])
        else:
            self.assertEqual((reply.ids, reply.end), (want, end))
        self.assertEqual(int(reply.fields["n"]), len(reply.ids))
        self.assertEqual(int(reply.fields["pp"]), len(ids))
        return ids + reply.ids

    def histories(self, seed):
        """Many histories, short and long, in one engine: RESET ends each."""
        rng = random.Random(seed)
        ids, length = [286], 10
        with Engine(self.model, *FLAGS) as engine:
            for _ in range(N_STEPS):
                kind = rng.randrange(12)
                if rng.randrange(length) == 0:
                    engine.send("RESET\n")
                    reply = engine.reply()
                    self.assertEqual((reply.ids, reply.end), ([], "done"))
                    type(self).n_histories += 1
                    length = rng.choice([1, 2, 3, 4, 50])
                elif kind == 1:
                    line = rng.choice(GARBAGE)
                    engine.send(line)
                    if line:
                        self.assertIsNotNone(engine.reply().error, line)
                elif kind == 2:
                    engine.send("CANCEL\n")  # nothing runs: no answer
                else:
                    ids = self.step(rng, engine, ids)
                    type(self).n_requests += 1

    def test_pipelined_requests(self):
        """Many requests in one write: answered in order, one terminal line each."""
        rng = random.Random("pipelined")
        prompts = [[rng.randrange(288) for _ in range(rng.randrange(1, 9))] for _ in range(50)]
        with Engine(self.model, *FLAGS) as engine:
            engine.send("".join(f"GEN 3 t=0 r=1 {','.join(map(str, p))}\nBAD\n" for p in prompts))
            for prompt in prompts:
                self.assertEqual(engine.reply().ids, self.fresh.answer(prompt, 3)[0])
                self.assertEqual(engine.reply().error, "bad_request")

    def test_new_processes_agree(self):
        """The engine that is reset stands for a fresh one: here is the proof by sample."""
        rng = random.Random("processes")
        for _ in range(5 if IS_SANITIZED else 25):
            ids = [rng.randrange(288) for _ in range(rng.randrange(1, 60))]
            done = must_run(ENGINE, *self.model.files(), *FLAGS, "--tokens-in",
                            ",".join(map(str, ids)), "--tokens", 20, "--raw-ids", "--temperature",
                            0, "--rep-penalty", 1)
            self.assertEqual([int(i) for i in done.stdout.split()], self.fresh.answer(ids, 20)[0])

    def test_a_full_context(self):
        ids = [i % 288 for i in range(N_CTX)]
        with Engine(self.model, *FLAGS, "--eos-ids", 3) as engine:
            reply = engine.ask(ids, 5)
            self.assertEqual((len(reply.ids), reply.end), (1, "length"))  # from the last place
            self.assertEqual(engine.ask(ids + [1], 5).error, "ctx_overflow")
            reply = engine.ask(ids[:N_CTX - 3], N_CTX)
            self.assertEqual((len(reply.ids), reply.end), (4, "length"))

    def test_max_suffix(self):
        with Engine(self.model, *FLAGS, "--max-suffix", 10) as engine:
            ids = list(range(20, 40))
            self.assertEqual(engine.ask(ids, 1).error, "suffix_too_long")
            self.assertEqual(engine.ask(ids[:10], 1).end, "length")
            self.assertEqual(engine.ask(ids + [1], 1).error, "suffix_too_long")  # 10 cached, 11 new
            self.assertEqual(engine.ask(ids, 1).end, "length")

    def test_input_that_ends_within_a_request(self):
        engine = Engine(self.model, *FLAGS)
        engine.send("GEN 3 t=0 r=1 1,2,3\nGEN 3 t=0 r=1 1,2")
        engine.process.stdin.close()
        self.assertEqual(len(engine.reply().ids), 3)
        self.assertEqual(engine.reply().error, "bad_request")
        self.assertIsNone(engine.word())
        self.assertEqual(engine.process.wait(), 0)

    def test_a_reader_that_goes_away(self):
        engine = Engine(self.model, *FLAGS)
        engine.process.stdout.close()
        try:
            engine.send("GEN 100 t=0 1,2,3\nGEN 100 t=0 4,5,6\n")
        except BrokenPipeError:
            pass
        engine.process.stdin.close()
        self.assertEqual(engine.process.wait(60), 0)


for i in range(N_ENGINES):
    setattr(Protocol, f"test_histories_{i}", lambda self, seed=i: self.histories(seed))

if __name__ == "__main__":
    main()
