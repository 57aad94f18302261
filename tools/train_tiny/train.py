"""Train smoe-tiny: python train.py --out DIR [--steps N]. The same seed and steps give the same data and schedule."""
import argparse
import ctypes
import itertools
import json
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from tokenizers import Tokenizer

import dialogues
import tokenizer
from model import Config, Model

CHUNK = 2000                # conversations made and encoded at a time


def batches(tok, seed, rows, length, pad, memory=1):
    """Endless batches of packed rows: ids, positions, attention mask, and which positions have a target."""
    stream = dialogues.training(seed, memory)
    row, rest = [], []

    def tensors(packed):
        ids = torch.full((rows, length), pad)
        pos = torch.zeros((rows, length), dtype=torch.long)
        doc = torch.full((rows, length), -1)
        say = torch.zeros((rows, length), dtype=torch.bool)
        for r, convs in enumerate(packed):
            at = 0
            for i, (t, m) in enumerate(convs):
                n = len(t)
                ids[r, at:at + n] = torch.tensor(t)
                pos[r, at:at + n] = torch.arange(n)
                doc[r, at:at + n] = i
                say[r, at:at + n] = torch.tensor(m)
                at += n
        mask = (doc[:, :, None] == doc[:, None, :]).tril()
        # position p predicts p + 1: a target where the next token is the assistant's (never a conversation's first token)
        select = F.pad(say[:, 1:], (0, 1)).reshape(-1).nonzero().squeeze(1)
        return ids, pos, mask[:, None], select, ids.reshape(-1)[select + 1]

    bins = []               # open rows; each conversation goes into the first row with room
    while True:
        for t, m in tokenizer.encode(tok, itertools.islice(stream, CHUNK)):
            if len(t) > length:
                continue
            for b in bins:
                if b[0] + len(t) <= length:
                    break
            else:
                b = [0, []]
                bins.append(b)
            b[0] += len(t)
            b[1].append((t, m))
            if len(bins) > rows + 24:       # the fullest rows leave
                bins.sort(key=lambda b: -b[0])
                yield tensors([b[1] for b in bins[:rows]])
                bins = bins[rows:]


def keep_memory():
    """Let glibc reuse large blocks instead of returning them to the system: the page faults cost a fifth of a step."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 30)       # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)   # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        pass


def main():
    keep_memory()
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=6000)
    p.add_argument("--stop", type=int, default=0, help="stop after this step of the schedule (to go on with --resume)")
    p.add_argument("--minutes", type=float, default=1e9, help="stop then, whatever the schedule says")
    p.add_argument("--rows", type=int, default=16)
    p.add_argument("--length", type=int, default=256)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--warmup", type=int, default=100)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--balance", type=float, default=0.01)
    p.add_argument("--q2-from", type=float, default=0.6, help="from this fraction on, every other step sees two-bit experts")
    p.add_argument("--save-every", type=float, default=240, help="seconds")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--memory", type=float, default=1, help="how much more often a person tells and asks for their own things")
    p.add_argument("--resume", help="go on from this checkpoint directory (same tokenizer), with fresh data of this seed")
    p.add_argument("--resume-step", type=int, default=-1, help="where in the schedule to go on (default: where it stopped)")
    p.add_argument("--float32", action="store_true")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    out = Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    tok = Tokenizer.from_file(a.resume + "/tokenizer.json") if a.resume else tokenizer.train(dialogues.training(a.seed))
    tok.save(str(out / "tokenizer.json"))
    model = Model(Config(vocab_size=tok.get_vocab_size()))
    matrices = [w for w in model.parameters() if w.dim() > 1]
    vectors = [w for w in model.parameters() if w.dim() == 1]
    opt = torch.optim.AdamW([{"params": matrices, "weight_decay": a.decay}, {"params": vectors, "weight_decay": 0.0}],
                            lr=a.lr, betas=(0.9, 0.98), eps=1e-9, fused=True)
    first = 0
    if a.resume:
        old = torch.load(a.resume + "/model.pt", weights_only=True)
        model.load_state_dict(old["model"])
        opt.load_state_dict(old["opt"])
        first = a.resume_step if a.resume_step >= 0 else old["step"]
    print(f"{sum(w.numel() for w in model.parameters())} parameters", flush=True)

    def save(step, log):
        torch.save({"config": vars(model.c), "model": model.state_dict(), "opt": opt.state_dict(), "step": step, "log": log, "args": vars(a)}, out / "tmp.pt")
        (out / "tmp.pt").rename(out / "model.pt")

    source = batches(tok, a.seed + 1 + first, a.rows, a.length, tok.token_to_id("<|endoftext|>"), a.memory)
    start = saved = time.time()
    log, tokens, shown, load, n = [], 0, 0.0, 0, 0
    for step in range(first, a.steps):
        lr = a.lr * min((step + 1) / a.warmup, 0.01 + 0.99 * (0.5 + 0.5 * math.cos(math.pi * min(1, step / a.steps))))
        for g in opt.param_groups:
            g["lr"] = lr
        fake = step >= a.q2_from * a.steps and step % 2 == 1
        for layer in model.layers:
            layer.moe.fake = fake
        ids, pos, mask, select, target = next(source)
        with torch.autocast("cpu", torch.bfloat16, enabled=not a.float32):
            logits = model(ids, pos, mask, select=select)
        ce = F.cross_entropy(logits.float(), target)
        balance = sum(x.moe.balance for x in model.layers)
        z = sum(x.moe.z for x in model.layers)
        (ce + a.balance * balance + 1e-4 * z).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        tokens += ids.numel()
        shown, load, n = shown + ce.item(), load + torch.stack([x.moe.load for x in model.layers]), n + 1
        now = time.time()
        last = step + 1 in (a.steps, a.stop) or now - start > 60 * a.minutes
        if (step + 1) % 50 == 0 or last:
            row = {"step": step + 1, "seconds": round(now - start), "loss": round(shown / n, 4), "tokens_per_s": round(tokens / (now - start)),
                   "lr": round(lr, 6), "load_min": round(load.min().item() / n, 3), "load_max": round(load.max().item() / n, 3)}
            log.append(row)
            print(json.dumps(row), flush=True)
            shown, load, n = 0.0, 0, 0
        if last or now - saved > a.save_every:
            save(step + 1, log)
            saved = now
        if last:
            break


if __name__ == "__main__":
    main()
