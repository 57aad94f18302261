"""Tokenizers of the families that docs/tokenizers.md lists: their published pipelines (normaliser, pre-tokenizer, decoder,
flags of the model) with a small vocabulary trained here, because the published vocabularies are not ours to give away.
"""

import json

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from diff_tokenizer import CJK, DIGITS, GPT4O, LLAMA3, PUNCTUATION, QWEN
from tokenizer_texts import SENTENCES

CODE = ["for i in range(10):\n    print(f'{i:>3} {x[i]!r}')  # don't\n", "if (a == b && c != d) { return x->y[0]; }\n\n", "123456 3.14"]
KIMI = (
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_V2 = [
    r"[\r\n]",
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅ𐐀-𐑏𞤀-𞥃]+",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"\s+$",
    r"[一-龥ࠀ-一가-퟿]+",
]


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def byte_level(prefix=False, use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def metaspace(scheme, cuts):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cuts}


def trained(pre, special, is_byte_level):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>" if not is_byte_level else None))
    tokenizer.pre_tokenizer = pre
    alphabet = pre_tokenizers.ByteLevel.alphabet() if is_byte_level else []
    trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    texts = (SENTENCES + CODE) * 3
    tokenizer.train_from_iterator([t.replace(" ", "▁") if not is_byte_level else t for t in texts], trainer)
    return json.loads(tokenizer.to_str())


def byte_family(base, pre, normalizer=None, **model):
    return {**base, "normalizer": normalizer, "pre_tokenizer": pre, "decoder": byte_level(), "post_processor": None,
            "model": {**base["model"], **model}}


def byte_families():
    base = trained(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>", "<|end|>"], True)
    yield "gpt-2", byte_family(base, byte_level(False, True))
    yield "neox, olmoe", byte_family(base, byte_level(False, True), {"type": "NFC"})
    yield "qwen", byte_family(base, sequence(split(QWEN), byte_level()), {"type": "NFC"})
    yield "llama 3", byte_family(base, sequence(split(LLAMA3), byte_level()), ignore_merges=True)
    yield "deepseek v2", byte_family(base, sequence(
        *map(split, DEEPSEEK_V2), {"type": "Digits", "individual_digits": True}, byte_level()), {"type": "Sequence", "normalizers": []})
    yield "deepseek v3", byte_family(base, sequence(split(DIGITS), split(CJK), split(PUNCTUATION), byte_level()))
    yield "gpt-oss", byte_family(base, sequence(split(GPT4O), byte_level()))
    yield "kimi k2", byte_family(base, sequence(split(KIMI), byte_level()))
    for form in "NFC NFD NFKC NFKD".split():
        yield form, byte_family(base, byte_level(True, True), {"type": form})
    yield "lower case without accents", byte_family(base, byte_level(False, True), {
        "type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]})
    yield "replaced", byte_family(base, byte_level(False, True), {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"Regex": r"\s{2,}|[aeo]\p{M}"}, "content": "-"},
        {"type": "Replace", "pattern": {"String": "the"}, "content": "THE"}, {"type": "Prepend", "prepend": "x "}]})
    for behavior in "Isolated Removed Contiguous MergedWithPrevious MergedWithNext".split():
        for invert in (False, True):
            yield f"{behavior}, {invert}", byte_family(base, sequence(split(r"\p{Lu}|[.,' \n]|é", behavior, invert), byte_level()))
        yield f"Punctuation, {behavior}", byte_family(base, sequence({"type": "Punctuation", "behavior": behavior}, byte_level()))
    yield "Whitespace", byte_family(base, sequence({"type": "Whitespace"}, byte_level()))
    yield "WhitespaceSplit", byte_family(base, sequence({"type": "WhitespaceSplit"}, byte_level()))
    for individual in (False, True):
        yield f"Digits, {individual}", byte_family(
            base, sequence({"type": "Digits", "individual_digits": individual}, split(r"\p{N}", "Removed"), byte_level()))
    yield "lines", byte_family(base, sequence(split(r"^[a-c]+|[d-z ]+$|^\s", "Removed"), byte_level()))


def char_families():
    base = trained(pre_tokenizers.Metaspace(), ["<unk>", "<s>", "</s>"], False)
    vocab, merges = base["model"]["vocab"], base["model"]["merges"]
    letters = {k: v for k, v in vocab.items()}
    for byte in range(256):
        letters.setdefault(f"<0x{byte:02X}>", len(letters))
    decoder = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    llama = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}

    def family(normalizer, pre, decoder, vocab, **model):
        return {**base, "normalizer": normalizer, "pre_tokenizer": pre, "decoder": decoder, "post_processor": None,
                "model": {**base["model"], "vocab": vocab, "merges": merges, **model}}

    flags = {"byte_fallback": True, "fuse_unk": True}
    yield "llama 2, mixtral", family(llama, None, decoder, letters, **flags)
    yield "llama 2, not legacy", family(None, metaspace("first", False), decoder, letters, **flags)
    yield "gemma", family({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, split(" ", "MergedWithPrevious"), {
        "type": "Sequence", "decoders": decoder["decoders"][:3]}, letters, **flags)
    yield "metaspace", family(None, metaspace("always", True), metaspace("always", True), vocab, fuse_unk=True)
    yield "metaspace, each unknown", family(None, metaspace("never", True), metaspace("never", True), vocab)
    few = {k: v for k, v in letters.items() if k not in ("<0xE2>", "<0xC3>")}
    few = {k: i for i, k in enumerate(sorted(few, key=few.get))}
    for fuse in (False, True):
        yield f"bytes missing, {fuse}", family(llama, None, decoder, few, byte_fallback=True, fuse_unk=fuse)


def families():
    yield from byte_families()
    yield from char_families()
