#!/usr/bin/env python3
"""Tokenizer goldens: texts with their ids, and id sequences with their texts, from the `tokenizers` library.

usage: make_tokenizer.py QWEN3 OUT      QWEN3 holds the published tokenizer.json and tokenizer_config.json
"""

import json
import random
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer

import tiny_tokenizer
from family_tokenizers import families
from common import json_lines, write_text, write_xz
from tokenizer_texts import Sample

ORIGIN = """\
tokenizer.json and tokenizer_config.json are those of Qwen3 (https://huggingface.co/Qwen/Qwen3-30B-A3B),
Copyright Alibaba Cloud, licensed under the Apache License, Version 2.0. Unchanged, only compressed.
"""


def encode_rows(tokenizer, texts):
    return [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts]


def decode_rows(tokenizer, encoded, seed, n_random):
    """Id sequences that no text encodes to: cuts inside a character, random ids, ids without a token."""
    rng = random.Random(seed)
    n_vocab = tokenizer.get_vocab_size(with_added_tokens=True)
    added = sorted(tokenizer.get_added_tokens_decoder())
    cases = []
    for row in rng.sample([r for r in encoded if 1 < len(r["ids"]) < 60], min(n_random, 400)):
        a, b = sorted(rng.sample(range(len(row["ids"]) + 1), 2))
        cases.append(row["ids"][a:b])
    for _ in range(n_random):
        # The first 256 ids are single bytes: strings of them are mostly invalid UTF-8.
        top = rng.choice([256, n_vocab])
        cases.append([
            rng.choice(added) if rng.random() < 0.1 else rng.randrange(top) for _ in range(rng.randint(1, 12))])
    cases += [[], [n_vocab], [0, n_vocab + 5, 1], [*added]]
    return [{
        "ids": ids,
        "text": tokenizer.decode(ids, skip_special_tokens=False),
        "text_skip_special": tokenizer.decode(ids, skip_special_tokens=True),
    } for ids in cases]


def make(tokenizer_json, out, keep_one_in, n_random):
    tokenizer = Tokenizer.from_file(str(tokenizer_json))
    specials = [t.content for _, t in sorted(tokenizer.get_added_tokens_decoder().items())]
    texts = Sample(1, specials).texts()
    texts = [t for i, t in enumerate(texts) if i % keep_one_in == 0 or "\0" in t]
    encoded = encode_rows(tokenizer, texts)
    decoded = decode_rows(tokenizer, encoded, 2, n_random)
    write_xz(out / "encode.jsonl.xz", json_lines(encoded).encode())
    write_xz(out / "decode.jsonl.xz", json_lines(decoded).encode())
    print(out, len(encoded), "texts", sum(len(r["ids"]) for r in encoded), "ids", len(decoded), "decodings")


# In CI: one of each pipeline that is published.
COMMITTED = ["neox, olmoe", "llama 3", "deepseek v2", "deepseek v3", "gpt-oss", "kimi k2", "llama 2, mixtral",
             "llama 2, not legacy", "gemma", "metaspace"]


def make_families(out):
    for name, data in families():
        if name in COMMITTED:
            folder = out / "families" / name.replace(",", "").replace(" ", "_")
            text = json.dumps(data, ensure_ascii=False)
            tokenizer = Tokenizer.from_str(text)
            specials = [t.content for _, t in sorted(tokenizer.get_added_tokens_decoder().items())]
            texts = [t for i, t in enumerate(Sample(1, specials).texts()) if i % 8 == 0]
            encoded = encode_rows(tokenizer, texts)
            # Only what texts encode to: of invalid bytes the reference makes other replacement characters.
            decoded = [{"ids": r["ids"], "text_skip_special": tokenizer.decode(r["ids"])} for r in encoded]
            write_xz(folder / "tokenizer.json.xz", text.encode())
            write_xz(folder / "encode.jsonl.xz", json_lines(encoded).encode())
            write_xz(folder / "decode.jsonl.xz", json_lines(decoded).encode())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    qwen3, out = Path(sys.argv[1]), Path(sys.argv[2])
    for name in ("tokenizer.json", "tokenizer_config.json"):
        write_xz(out / "qwen3" / (name + ".xz"), (qwen3 / name).read_bytes())
    write_text(out / "qwen3" / "ORIGIN", ORIGIN)
    make(qwen3 / "tokenizer.json", out / "qwen3", 1, 500)
    with tempfile.TemporaryDirectory() as tmp:
        tiny_tokenizer.write(tmp)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            write_text(out / "tiny" / name, (Path(tmp) / name).read_text(encoding="utf-8"))
        make(Path(tmp) / "tokenizer.json", out / "tiny", 6, 100)
    make_families(out)


if __name__ == "__main__":
    main()
