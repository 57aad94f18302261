#!/usr/bin/env python3
"""Compare smoe's tokenizer with the `tokenizers` library for every family of family_tokenizers.py: generated texts, and
every character alone between letters. Prints every difference; exit status 1 when anything differs.

usage: diff_families.py TOKENIZE [--count N] [--seed N] [--only NAME]      TOKENIZE: see diff_tokenizer.py
"""

import argparse
import sys

from diff_tokenizer import compare
from family_tokenizers import families


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenize")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    every = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000 and not 0x40000 < c < 0xE0000 and c < 0xF0010]
    lines = ["".join(f"a{chr(c)}b 1{chr(c)} " for c in every[i:i + 64]) for i in range(0, len(every), 64)]
    n_bad = 0
    for i, (name, data) in enumerate(families()):
        if args.only in name:
            extra = [t["content"] for t in data["added_tokens"]]
            n_bad += compare(name, data, extra, args, args.seed + i)
            n_bad += compare(name + ", every character", data, extra, args, 0, lines)
    sys.exit(n_bad > 0)


if __name__ == "__main__":
    main()
