"""Greedy answers to eval.tsv, scored by exact match: python evaluate.py CHECKPOINT_DIR EVAL_TSV [--experts q2] [--router rolled].

The weights are rounded to bfloat16 as they are in the exported file; the arithmetic is float32.
"""
import argparse
import csv
import json
from collections import Counter

import torch
from tokenizers import Tokenizer

import export
import tokenizer
import train
from model import fake_q2


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield r["kind"], json.loads(r["turns"]), r["answer"], r["system"] or ""


@torch.no_grad()
def answers(model, tok, prompts, limit=64):
    """Greedy continuations of a batch of prompts (lists of ids), left-padded, with a KV cache."""
    stop, pad = tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")
    n, width = len(prompts), max(map(len, prompts))
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts])
    empty = torch.tensor([width - len(p) for p in prompts])[:, None]
    pos = (torch.arange(width)[None] - empty).clamp(min=0)
    live = torch.arange(width)[None] >= empty                       # keys that exist
    mask = (live[:, None, :] & torch.ones(width, width, dtype=torch.bool).tril())[:, None]
    mask |= torch.eye(width, dtype=torch.bool)                      # padding looks at itself, so that it stays finite
    cache = [[] for _ in model.layers]
    out, done = [[] for _ in prompts], [False] * n
    last = torch.arange(n) * width + width - 1
    for _ in range(limit):
        best = model(ids, pos, mask, cache, last).argmax(-1)
        for i, t in enumerate(best.tolist()):
            done[i] = done[i] or t in (stop, pad)
            if not done[i]:
                out[i].append(t)
        if all(done):
            break
        ids, pos, last = best[:, None], pos[:, -1:] + 1, torch.arange(n)
        live = torch.cat((live, torch.ones(n, 1, dtype=torch.bool)), 1)
        mask = live[:, None, None]
    return [tok.decode(o) for o in out]


@torch.no_grad()
def choosiness(model, tok, count=12):
    """Per layer: how much knowing the token tells about its experts, in bits per slot. A router that did not look would give 0."""
    source = train.batches(tok, 999, 16, 256, tok.token_to_id("<|endoftext|>"))
    e = model.c.num_experts
    joint = torch.zeros(len(model.layers), model.c.vocab_size, e)
    for _ in range(count):
        ids, pos, mask, select, _ = next(source)
        model(ids, pos, mask, select=select)
        for i, layer in enumerate(model.layers):
            k = layer.moe.chosen.shape[1]
            joint[i].view(-1).index_add_(0, (ids.reshape(-1, 1) * e + layer.moe.chosen).reshape(-1), torch.ones(ids.numel() * k))
    p = joint / joint.sum((1, 2), keepdim=True)
    independent = p.sum(1, keepdim=True) * p.sum(2, keepdim=True)
    return (p * (p / independent).log2().nan_to_num(0, 0, 0)).sum((1, 2)).tolist()


@torch.no_grad()
def loads(model, tok, count=12):
    """Fraction of the routed slots that each expert of each layer gets, on conversations of an unused seed."""
    source = train.batches(tok, 999, 16, 256, tok.token_to_id("<|endoftext|>"))
    total = 0
    for _ in range(count):
        ids, pos, mask, select, _ = next(source)
        model(ids, pos, mask, select=select)
        total = total + torch.stack([x.moe.load for x in model.layers])
    return (total / count).tolist()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("checkpoint")
    p.add_argument("eval")
    p.add_argument("--experts", choices=("bf16", "q2"), default="bf16", help="q2: experts as a two-bit quantisation leaves them")
    p.add_argument("--router", choices=("learned", "rolled"), default="learned", help="rolled: every router names the next expert instead")
    p.add_argument("--show", type=int, default=20, help="wrong answers to show")
    p.add_argument("--load", action="store_true", help="also report the expert load")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    model, saved = export.load(a.checkpoint)
    tok = Tokenizer.from_file(a.checkpoint + "/tokenizer.json")
    with torch.no_grad():
        for w in model.parameters():
            w.copy_(w.bfloat16())
        if a.experts == "q2":
            for layer in model.layers:
                for w in (layer.moe.up, layer.moe.down):
                    w.copy_(fake_q2(w))
        if a.router == "rolled":
            for layer in model.layers:
                layer.moe.gate.copy_(layer.moe.gate.roll(1, 0))
    rows = list(read(a.eval))
    encoded = tokenizer.encode(tok, [(s, t) for _, t, _, s in rows])
    head = tok.encode("<|im_start|>assistant\n").ids
    order = sorted(range(len(rows)), key=lambda i: len(encoded[i][0]))
    got = {}
    for i in range(0, len(order), 128):
        part = order[i:i + 128]
        got.update(zip(part, answers(model, tok, [encoded[j][0] + head for j in part])))
    right, count, shown = Counter(), Counter(), 0
    for i, (kind, turns, answer, _) in enumerate(rows):
        ok = got[i] == answer
        count[kind] += 1
        right[kind] += ok
        if not ok and shown < a.show:
            shown += 1
            print(f"{kind}: {turns[-3:]} -> {got[i]!r}, expected {answer!r}")
    print(f"step {saved['step']}, experts {a.experts}, router {a.router}")
    for kind in count:
        print(f"| {kind} | {count[kind]} | {100 * right[kind] / count[kind]:.1f} % |")
    print(f"| all | {len(rows)} | {100 * sum(right.values()) / len(rows):.2f} % |")
    if a.load:
        for i, x in enumerate(loads(model, tok)):
            print(f"| {i} | " + " | ".join(f"{100 * y:.1f}" for y in x) + " |")
        print("bits per slot that the token tells about its experts:", ", ".join(f"{x:.2f}" for x in choosiness(model, tok)))


if __name__ == "__main__":
    main()
