"""The tokenizer of the tiny models: byte-level BPE in exactly the form of Qwen3, with 288 tokens.

The merges are written out rather than trained, so the file depends on no trainer. They were chosen to make the
interesting things happen: merges that build on merges, a run of spaces, a double newline, a two-byte letter.
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

MERGES = """
Ġ t|h e|Ġt he|i n|e r|Ġ a|o n|r e|a t|n d|Ġa nd|e s|o u|i s|in g|Ġ s|e n|l l|Ċ Ċ|Ġ Ġ|ĠĠ ĠĠ|Ġ w|o r|l d|or ld|
Ġw orld|Ã ©|a r|Ġ i
"""
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def byte_letters():
    """The 256 characters that stand for bytes, in the order of the published vocabularies (printable ones first)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) for b in printable] + [chr(256 + i) for i in range(len(others))]


def build():
    merges = [tuple(m.split(" ")) for m in MERGES.replace("\n", "").split("|")]
    tokens = byte_letters() + [a + b for a, b in merges]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
    ])
    byte_level = {"add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    tokenizer.post_processor = processors.ByteLevel(**byte_level)
    tokenizer.decoder = decoders.ByteLevel(**byte_level)
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIALS])
    return tokenizer


def write(folder):
    """Write tokenizer.json and tokenizer_config.json; returns the ids of SPECIALS."""
    tokenizer = build()
    folder = Path(folder)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    ids = [tokenizer.token_to_id(s) for s in SPECIALS]
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {str(i): {"content": s, **flags} for i, s in zip(ids, SPECIALS)},
        "additional_special_tokens": SPECIALS[1:],
        "bos_token": None,
        "chat_template": CHATML,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 4096,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8", newline="\n")
    return ids
