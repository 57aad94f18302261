#!/usr/bin/env python3
"""Compare smoe's tokenizer with the `tokenizers` library on generated texts. Prints every difference.

usage: diff_tokenizer.py TOKENIZE TOKENIZER_JSON [--count N] [--seed N] [--variants]

TOKENIZE is the test program built from tests/support/tokenize.c. --variants also tries the same vocabulary
under other settings: other families' patterns, no normaliser, prefix spaces, ignore_merges, and added tokens
that strip white space, stand alone or are normalised. Exit status 1 when anything differs.
"""

import argparse
import copy
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from unicodedata import normalize

from tokenizers import Tokenizer

QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGITS = r"\p{N}{1,3}"
CJK = r"[一-龥぀-ゟ゠-ヿ]+"
PUNCTUATION = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

WORDS = (
    "the The THE don't DON'T I'll I'LL we've it's IT'S they're I'm you'd 'tis o'clock 'S 's 'ſ 'ſt can'T x'Re "
    "hello world naïve café Straße ſtraße İstanbul ΣΊΣΥΦΟΣ привет 你好 世界 日本語 カタカナ 한국어 สวัสดี नमस्ते क्षि "
    "שלום مرحبا ١٢٣ 123 4567 3.14 0x1F ½ Ⅷ ² ₂ ① 〇 <|im_start|> <|im_end|> <|endoftext|> <think> </think> "
    "<tool_call> <|im_sta <|fim_prefix|> foo() { } // /* */ == != -> :: ;; ... ??? !!! --- ___ ``` \\n C:\\x "
    "K Å Ω ﬁ ﬀ ㎏ ﷺ 👨‍👩‍👧 🇩🇪 👍🏽 ❤️ 1️⃣ É é가 가 각 が ガ"
).split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085",
          "\u180e", "\u200b", "\u1680", "\v", "\f", "\u202f", "\x1c", "\ufeff", ""]
MARKS = [*range(0x300, 0x370), *range(0x591, 0x5C8), *range(0x64B, 0x65F), 0x93C, 0x94D, 0x9BE, 0xDCF, 0xE38, 0xF71, 0xF72,
         0x1161, 0x11A8, 0x3099, 0x309A, 0x20D0, 0xFE20, 0x1D165, 0x7FD, 0x8CA, 0x1ABF, 0x1DF6, 0x11930, 0x11935, 0x1E130]


def any_char(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return chr(rng.randrange(0x80))
    if kind == 1:
        return chr(rng.randrange(0x80, 0x800))
    if kind == 2:
        return chr(rng.choice(MARKS))
    if kind == 3:
        return chr(rng.randrange(0x1F000, 0x1FB00))
    if kind == 4:
        return chr(rng.choice([rng.randrange(0x4E00, 0x9FFF), rng.randrange(0xAC00, 0xD7A4), rng.randrange(0x3040, 0x3100)]))
    if kind == 5:
        return chr(rng.choice([rng.randrange(0xF900, 0xFB50), rng.randrange(0x2F800, 0x2FA20), rng.randrange(0x1100, 0x1200)]))
    if kind == 6:
        return chr(rng.randrange(0x10000, 0x33480))
    while True:
        code = rng.randrange(0x110000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def sentence(rng):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES + [" "] * 12) for _ in range(rng.randrange(1, 14)))


def soup(rng):
    return "".join(any_char(rng) for _ in range(rng.randrange(1, 24)))


def marked(rng):
    return "".join(
        rng.choice("aeouAEOUncks \u0915\u1100\u1103가각かカ\u05d0\u0627")
        + "".join(chr(rng.choice(MARKS)) for _ in range(rng.randrange(4)))
        for _ in range(rng.randrange(1, 12))
    )


def mixed(rng):
    parts = [rng.choice(WORDS), rng.choice(SPACES), any_char(rng), rng.choice(SPACES)]
    return "".join(rng.choice([*parts, any_char(rng), rng.choice("abcdefgstm'0123456789 \n")]) for _ in range(rng.randrange(1, 30)))


def run(rng):
    unit = rng.choice([*"a 0\n\t.'é漢\u0301", "ab", " \n", "\r\n", "the", "a ", "👍", rng.choice(WORDS), any_char(rng)])
    return rng.choice(["", "x", " "]) + unit * rng.choice([2, 3, 5, 17, 47, 48, 49, 50, 100, 700]) + rng.choice(["", "x", " ", "\n"])


def letters(rng):
    alphabet = rng.choice(["abcdefghijklmnopqrstuvwxyz", "etaoin shrdlu", "ETAOINSHRDLUetaoin' ", "01", "가나다라", "的一是不了"])
    return "".join(rng.choice(alphabet) for _ in range(rng.choice([3, 10, 40, 60, 200])))


def raw_bytes(rng):
    kinds = [bytes([rng.randrange(256)]), "é漢👍a ".encode(), b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90"]
    return b"".join(rng.choice(kinds) for _ in range(rng.randrange(1, 12)))


def generate(rng, extra):
    kind = rng.randrange(16)
    if extra and kind < 6:
        return "".join(rng.choice([*extra, rng.choice(SPACES), rng.choice("aX_.é1"), any_char(rng)]) for _ in range(rng.randrange(1, 12)))
    if kind == 15:
        return raw_bytes(rng)
    return [sentence, sentence, soup, soup, marked, marked, mixed, mixed, mixed, run, letters][kind % 11](rng)


def variants(base):
    """Pairs of a name and a tokenizer.json with the vocabulary of base."""
    def byte_level(prefix, use_regex=True):
        return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}

    def with_patterns(*patterns, last=None):
        splits = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in patterns]
        data = copy.copy(base)
        data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*splits, last or byte_level(False, False)]}
        return data

    def with_added(contents, **flags):
        data = copy.copy(base)
        first = max([len(base["model"]["vocab"]), *(t["id"] + 1 for t in base["added_tokens"])])
        plain = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)
        data["added_tokens"] = [*base["added_tokens"]]
        for content in contents:
            known = base["model"]["vocab"].get(content)
            data["added_tokens"].append({"id": first if known is None else known, "content": content, **plain, **flags})
            first += known is None
        return data, contents

    # No Latin letters of the byte-level alphabet, normalised or not: the reference decodes those to single bytes.
    tokens = ["[A]", "[A]B", "[A]BCD", "fooệ", "s\u0307\u0323x", " y ", "\n", "qq", "\u2126", "☃", "Hello", "<x>", "ệ"]
    yield "gpt-2", {**base, "pre_tokenizer": byte_level(False), "normalizer": None}, []
    yield "gpt-2 with prefix", {**base, "pre_tokenizer": byte_level(True)}, []
    yield "llama 3", with_patterns(LLAMA3), []
    yield "llama 3, ignore_merges", {**with_patterns(LLAMA3), "model": {**base["model"], "ignore_merges": True}}, []
    yield "gpt-4", with_patterns(GPT4), []
    yield "gpt-4o", with_patterns(GPT4O), []
    yield "three splits", with_patterns(DIGITS, CJK, PUNCTUATION), []
    yield "splits with prefix", with_patterns(DIGITS, last=byte_level(True)), []
    yield "no normalizer", {**base, "normalizer": None}, []
    yield "added", *with_added(tokens)
    yield "added, normalized", *with_added(tokens, normalized=True)
    yield "added, lstrip", *with_added(tokens, lstrip=True)
    yield "added, rstrip", *with_added([t for t in tokens if t.strip()], rstrip=True)
    yield "added, both strips, normalized", *with_added([t for t in tokens if t.strip()], lstrip=True, rstrip=True, normalized=True)
    yield "added, single word", *with_added(tokens, single_word=True)
    yield "added, single word, normalized", *with_added(tokens, single_word=True, normalized=True)
    yield "added, special", *with_added(tokens, special=True)


def compare(name, data, extra, args, seed, texts=None):
    rng = random.Random(seed)
    texts = texts or [generate(rng, extra) for _ in range(args.count)]
    raw = [t if isinstance(t, bytes) else t.encode() for t in texts]
    texts = [b.decode(errors="replace") for b in raw]
    encoded = json.dumps(data, ensure_ascii=False)
    reference = Tokenizer.from_str(encoded)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(encoded, encoding="utf-8")
        stdin = b"".join(struct.pack("<I", len(b)) + b for b in raw)
        done = subprocess.run([args.tokenize, path], input=stdin, stdout=subprocess.PIPE, check=True)
    lines = done.stdout.decode().splitlines()
    n_bad = abs(len(lines) - len(texts))
    expected = reference.encode_batch(texts, add_special_tokens=False)
    decoded = reference.decode_batch([e.ids for e in expected], skip_special_tokens=True)
    for text, line, e, d in zip(texts, lines, expected, decoded):
        ids, _, hexed = line.partition("\t")
        if ids != " ".join(map(str, e.ids)):
            n_bad += 1
            print(f"{name}: {ascii(text)}\n  expected {e.ids}\n  found    {ids}")
            continue
        # The reference decodes a normalised added token to its normalised text, we to its own.
        found = bytes.fromhex(hexed).decode()
        if found != d and normalize("NFC", found) != normalize("NFC", d):
            n_bad += 1
            print(f"{name}: {ascii(text)}\n  expected text {ascii(d)}\n  found         {ascii(found)}")
        if n_bad >= 20:
            break
    print(f"{name}: {len(texts)} texts, {n_bad} differences", flush=True)
    return n_bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenize")
    parser.add_argument("tokenizer_json")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", action="store_true")
    args = parser.parse_args()
    base = json.loads(Path(args.tokenizer_json).read_text(encoding="utf-8"))
    cases = [("as it is", base, [])]
    if args.variants:
        cases += variants(base)
    n_bad = sum(compare(*case, args, args.seed + i) for i, case in enumerate(cases))
    sys.exit(n_bad > 0)


if __name__ == "__main__":
    main()
