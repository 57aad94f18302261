#!/usr/bin/env python3
"""Every golden checkpoint: logits beside those of the reference, and its 64 greedy tokens, through
`smoe eval`, one-shot and --serve."""

import unittest

from harness import (ENGINE, GOLDEN, GREEDY, SMOE, WORK, Engine, golden_model, golden_names, main,
                     must_run, read_floats, read_ids, run, unpack)

TOLERANCE = 1e-4  # of the largest logit
REFUSED = {"sliding_window": "sliding-window attention is not supported"}  # never guessed at


class Golden(unittest.TestCase):
    def check_logits(self, name):
        model, folder = golden_model(name), GOLDEN / "models" / name
        ids = (folder / "ids.txt").read_text().strip()
        out = WORK / f"{name}.logits"
        must_run(SMOE, "eval", "logits", model.stem, "--ids", ids, "--out", out)
        found, want = read_floats(out), read_floats(folder / "logits.f32.xz")
        self.assertEqual(len(found), len(want))
        largest = max(map(abs, want))
        worst = max(abs(a - b) for a, b in zip(found, want))
        self.assertLessEqual(worst, TOLERANCE * largest)

    def check_greedy(self, name):
        model, folder = golden_model(name), GOLDEN / "models" / name
        ids, want = read_ids(folder / "ids.txt"), read_ids(folder / "greedy.txt")
        never = next(i for i in range(288) if i not in want)  # an end token that does not come
        flags = ["--eos-ids", never, *GREEDY]
        one_shot = must_run(ENGINE, *model.files(), "--tokens-in", ",".join(map(str, ids)),
                            "--raw-ids", "--tokens", len(want), *flags)
        self.assertEqual([int(i) for i in one_shot.stdout.split()], want)
        with Engine(model, *flags) as engine:
            for _ in range(2):  # the second time everything but the last id is in the KV cache
                reply = engine.ask(ids, len(want))
                self.assertEqual((reply.ids, reply.end), (want, "length"))
            self.assertEqual(int(reply.fields["pc"]), len(ids) - 1)


    def check_refused(self, name):
        done = run(SMOE, "shatter", unpack(name), "-o", WORK / name)
        self.assertEqual(done.returncode, 1)
        self.assertIn(REFUSED[name], done.stderr)


for golden in golden_names():
    if golden in REFUSED:
        setattr(Golden, f"test_refused_{golden}", lambda self, n=golden: self.check_refused(n))
        continue
    setattr(Golden, f"test_logits_{golden}", lambda self, n=golden: self.check_logits(n))
    setattr(Golden, f"test_greedy_{golden}", lambda self, n=golden: self.check_greedy(n))

if __name__ == "__main__":
    main()
