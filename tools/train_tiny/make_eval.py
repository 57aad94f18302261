"""Write eval.tsv and prove that it is held out: python make_eval.py FILE [--streams SEED:MEMORY ...] [--conversations N].

The proof walks through every conversation that training can have seen. Seed 1 taught the tokenizer, seed 2 the first
part of the run; a part that goes on at step S draws from seed 2 + S.
"""
import argparse
import itertools
import json

import dialogues


def plain(text):
    """A message without what sloppy typing changes: case, end punctuation, words before."""
    for p in dialogues.PREFIXES:
        text = text.removeprefix(p)
    return text.lower().strip("?.! ")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--streams", nargs="+", default=["1:1", "2:1", "1237:2", "1397:2"])
    p.add_argument("--conversations", type=int, default=80_000, help="of each stream; a step sees about 41")
    a = p.parse_args()
    rows = dialogues.test_set()
    with open(a.file, "w", encoding="utf-8", newline="\n") as f:
        f.write("kind\tturns\tanswer\tsystem\n")
        for r in rows:
            cells = [r["kind"], json.dumps(r["turns"], ensure_ascii=False), r["answer"], r["system"]]
            assert not any("\t" in c or "\n" in c for c in cells)
            f.write("\t".join(cells) + "\n")

    # whole conversations; and for facts, the question with its answer, anywhere in any conversation
    whole = {json.dumps(r["turns"]) for r in rows if len(r["turns"]) > 1 or r["kind"] in ("paraphrase", "arithmetic")}
    asked = {(plain(r["turns"][-1]), r["answer"]) for r in rows if r["kind"] in ("paraphrase", "arithmetic", "small_talk", "unknown")}
    told = [r["turns"] for r in rows if r["kind"] == "unseen_name"]
    names = {n for n in dialogues.TEST_NAMES if any(n in t[0] for t in told)}
    for stream in a.streams:
        seed, memory = map(int, stream.split(":"))
        for _, turns in itertools.islice(dialogues.training(seed, memory), a.conversations):
            for i in range(0, len(turns), 2):
                assert (plain(turns[i]), turns[i + 1]) not in asked, turns[i]
                assert json.dumps(turns[:i + 1]) not in whole, turns
                assert not names & set(turns[i].rstrip("!.?").split()), turns[i]
    print(f"{len(rows)} rows; none of them in {a.conversations} conversations of each training stream")


if __name__ == "__main__":
    main()
