"""Does the exported directory mean the same to transformers? python check_hf.py CHECKPOINT_DIR MODEL_DIR"""
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer, Qwen3MoeForCausalLM

import export
import tokenizer

TALK = ("You are smoe, a small helpful model.", ["My name is Désirée.", "Nice to meet you, Désirée!", "How is Tokyo written in Japanese?",
                                                 "Tokyo is written 東京 in Japanese.", "What is the flag of France?"])


@torch.no_grad()
def main(source, target):
    ours, _ = export.load(source)
    for w in ours.parameters():
        w.copy_(w.bfloat16())
    theirs = Qwen3MoeForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
    tok, hf = Tokenizer.from_file(str(Path(target) / "tokenizer.json")), AutoTokenizer.from_pretrained(target)
    system, turns = TALK
    messages = [{"role": "system", "content": system}] + [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(turns)]
    text = hf.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "".join(t for t, _ in tokenizer.render(system, turns)) + "<|im_start|>assistant\n", text
    ids = hf(text).input_ids
    assert ids == tok.encode(text).ids and hf.decode(ids) == text
    x = torch.tensor([ids])
    n = len(ids)
    a = ours(x, torch.arange(n)[None], torch.ones(1, 1, n, n, dtype=torch.bool).tril())[0]
    b = theirs(x).logits[0]
    print(f"{n} tokens; largest logit {b.abs().max():.2f}, largest difference {(a - b).abs().max():.2e}")
    assert (a - b).abs().max() < 1e-3
    out = theirs.generate(x, do_sample=False, max_new_tokens=40)
    print("transformers answers:", repr(hf.decode(out[0, n:])))
    print("end tokens:", theirs.generation_config.eos_token_id, "template ok, tokenizer ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
