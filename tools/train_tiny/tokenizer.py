"""The tokenizer of smoe-tiny: byte-level BPE in the form of the Qwen3 tokenizers, and the ChatML template."""
import itertools
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VOCAB = 2048
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# Our own template, written with the constructs that ChatML templates of the Qwen family use.
TEMPLATE = """{%- for message in messages %}
    {%- if loop.first and message.role == 'system' %}
        {{- '<|im_start|>system\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'user' %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""


def train(stream, conversations=30000):
    """Learn the merges from the first conversations of the training stream."""
    def byte_level():
        return dict(add_prefix_space=False, trim_offsets=False, use_regex=False)
    t = Tokenizer(models.BPE(byte_fallback=False))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(**byte_level())])
    t.decoder = decoders.ByteLevel(**byte_level())
    t.post_processor = processors.ByteLevel(**byte_level())
    text = (m for system, turns in itertools.islice(stream, conversations) for m in [system, *turns, "system\n", "user\n", "assistant\n"])
    t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=VOCAB - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                    show_progress=False))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    assert t.get_vocab_size() == VOCAB, t.get_vocab_size()
    return t


def render(system, turns):
    """What the template renders, in pieces: [(text, is it the assistant's to say)]."""
    out = [(f"<|im_start|>system\n{system}<|im_end|>\n", False)] if system else []
    for i, m in enumerate(turns):
        if i % 2:
            out += [("<|im_start|>assistant\n", False), (m + "<|im_end|>", True), ("\n", False)]
        else:
            out += [(f"<|im_start|>user\n{m}<|im_end|>\n", False)]
    return out


def encode(tok, conversations):
    """Token ids and loss masks. Pieces end at special tokens or line ends, so piecewise encoding equals encoding the whole."""
    pieces = [render(s, t) for s, t in conversations]
    flat = tok.encode_batch([p for c in pieces for p, _ in c])
    out, i = [], 0
    for c in pieces:
        ids, mask = [], []
        for _, say in c:
            ids += flat[i].ids
            mask += [say] * len(flat[i].ids)
            i += 1
        out.append((ids, mask))
    return out


def config(model_max_length=1024):
    """tokenizer_config.json"""
    return {
        "add_bos_token": False, "add_prefix_space": False,
        "added_tokens_decoder": {str(VOCAB - len(SPECIAL) + i): {"content": s, "lstrip": False, "normalized": False, "rstrip": False,
                                                                 "single_word": False, "special": True} for i, s in enumerate(SPECIAL)},
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "bos_token": None, "chat_template": TEMPLATE, "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
        "errors": "replace", "model_max_length": model_max_length, "pad_token": "<|endoftext|>", "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer", "unk_token": None,
    }
