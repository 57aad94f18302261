#!/usr/bin/env python3
"""Tiny random qwen3_moe checkpoints, and what transformers computes for them in float32 on the CPU.

usage: make_models.py OUT [name ...]      writes OUT/<name>/ for the models of model_specs.py
"""

import json
import lzma
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

import tiny_tokenizer
from common import write_json, write_text, write_xz
from model_specs import BASE, SPECS

N_GREEDY = 64
N_PLAIN = 285                  # ids below this one are ordinary tokens, the rest are special or padding
MIN_MARGIN = 2e-3              # between the chosen and the best rejected router logit, and between greedy candidates
MIN_DISTINCT = 12              # distinct ids in the greedy answer: a loop over two tokens would test little
MIN_EFFECT = 1e-2              # that ignoring a variant must have on the logits, relative to the largest one
DTYPES = {"bf16": torch.bfloat16, "mixed": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


class Weights:
    """Random tensors under their published names.

    All rows of one width are drawn, without repetition inside one tensor, from one pool of random rows: the tensors
    differ as much as they should, and xz stores the pool once. So rows have unit gain; the norms set the scales.
    """

    def __init__(self, config, dtype, seed):
        self.random = np.random.RandomState(seed)
        self.dtype = dtype
        self.pools = {}
        n_attention = config["num_attention_heads"] * (config["head_dim"] or 0)
        self.n_pool = max(config["vocab_size"], config["intermediate_size"], config["hidden_size"], n_attention)
        self.tensors = {}

    def matrix(self, name, n_rows, n_cols, dtype=None):
        if n_cols not in self.pools:
            self.pools[n_cols] = self.random.standard_normal((self.n_pool, n_cols)) / np.sqrt(n_cols)
        rows = self.pools[n_cols][self.random.permutation(self.n_pool)[:n_rows]]
        self.tensors[name] = torch.tensor(rows).to(dtype or DTYPES[self.dtype])

    def vector(self, name, n, mean, spread):
        values = mean + spread * self.random.uniform(-1, 1, n)
        self.tensors[name] = torch.tensor(values).to(torch.float32 if self.dtype == "mixed" else DTYPES[self.dtype])

    def router(self, name, n_rows, n_cols):
        self.matrix(name, n_rows, n_cols, torch.float32 if self.dtype == "mixed" else None)


def random_weights(config, dtype, seed):
    w = Weights(config, dtype, seed)
    n_embd, n_head, n_head_kv = (config[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
    head_dim = config["head_dim"] or n_embd // n_head
    w.matrix("model.embed_tokens.weight", config["vocab_size"], n_embd)
    if not config["tie_word_embeddings"]:
        w.matrix("lm_head.weight", config["vocab_size"], n_embd)
    w.vector("model.norm.weight", n_embd, 4.0, 1.5)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        w.vector(at + "input_layernorm.weight", n_embd, 1.0, 0.4)
        for name, rows, cols in (("q", n_head * head_dim, n_embd), ("k", n_head_kv * head_dim, n_embd),
                                 ("v", n_head_kv * head_dim, n_embd), ("o", n_embd, n_head * head_dim)):
            w.matrix(f"{at}self_attn.{name}_proj.weight", rows, cols)
            if config["attention_bias"]:
                w.vector(f"{at}self_attn.{name}_proj.bias", rows, 0.0, 0.5)
        w.vector(at + "self_attn.q_norm.weight", head_dim, 1.7, 0.6)
        w.vector(at + "self_attn.k_norm.weight", head_dim, 1.7, 0.6)
        w.vector(at + "post_attention_layernorm.weight", n_embd, 1.8, 0.6)
        sparse = layer not in config["mlp_only_layers"] and (layer + 1) % config["decoder_sparse_step"] == 0
        if sparse:
            w.router(at + "mlp.gate.weight", config["num_experts"], n_embd)
            mlps = [(f"{at}mlp.experts.{e}.", config["moe_intermediate_size"]) for e in range(config["num_experts"])]
        else:
            mlps = [(at + "mlp.", config["intermediate_size"])]
        for name, n_ff in mlps:
            w.matrix(name + "gate_proj.weight", n_ff, n_embd)
            w.matrix(name + "up_proj.weight", n_ff, n_embd)
            w.matrix(name + "down_proj.weight", n_embd, n_ff)
    return w.tensors


def write_weights(folder, tensors, n_shards):
    """One model.safetensors, or shards that cut the tensors in the order of their names, with their index."""
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    tensors = {name: tensors[name].contiguous() for name in sorted(tensors)}
    if n_shards == 1:
        save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
        return
    names = list(tensors)
    where = {name: f"model-{i * n_shards // len(names) + 1:05}-of-{n_shards:05}.safetensors"
             for i, name in enumerate(names)}
    for shard in sorted(set(where.values())):
        part = {name: tensors[name] for name in names if where[name] == shard}
        save_file(part, str(folder / shard), metadata={"format": "pt"})
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def load(folder, **changes):
    """The checkpoint as the reference sees it: float32, eager everywhere, with its configuration changed if asked."""
    if changes:
        config = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", {**config, **changes})
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    if changes:
        write_json(folder / "config.json", config)
    return model.eval()


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0]


def greedy(model, ids):
    """The greedy continuation, each token from a full forward pass, and the smallest relative margin of a choice."""
    stream, margin = list(ids), float("inf")
    for _ in range(N_GREEDY):
        last = logits_of(model, stream)[-1]
        best = torch.topk(last, 2).values
        margin = min(margin, ((best[0] - best[1]) / last.abs().max()).item())
        stream.append(int(torch.argmax(last)))
    return stream[len(ids):], margin


@torch.no_grad()
def router_margin(model, ids):
    """The smallest distance between a chosen expert's router logit and a rejected one's, over layers and positions."""
    n_used, margin = model.config.num_experts_per_tok, float("inf")
    for logits in model(torch.tensor([ids]), use_cache=False, output_router_logits=True).router_logits:
        if n_used < logits.shape[-1]:
            ranked = torch.sort(logits, dim=-1, descending=True).values
            margin = min(margin, (ranked[:, n_used - 1] - ranked[:, n_used]).min().item())
    return margin


def resave(folder, fused):
    """Let transformers itself write the checkpoint, in the form its current version gives to new ones."""
    dtype = json.loads((folder / "config.json").read_text())["torch_dtype"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    model.save_pretrained(folder, save_original_format=not fused)


def write_checkpoint(folder, spec, seed):
    config = {**BASE, **spec.get("config", {})}
    end_text, _, end_turn = tiny_tokenizer.write(folder)
    write_json(folder / "config.json", {k: v for k, v in config.items() if k != "head_dim" or v})
    style, shards = spec.get("style", "v4"), spec.get("shards", 1)
    write_weights(folder, random_weights(config, spec.get("dtype", "bf16"), seed), 1)
    if style != "v4":
        resave(folder, fused=style == "v5-fused")
    if shards > 1:
        write_weights(folder, load_file(folder / "model.safetensors"), shards)
    write_json(folder / "generation_config.json", {
        "bos_token_id": end_text, "do_sample": True, "eos_token_id": [end_turn, end_text], "pad_token_id": end_text,
        "temperature": 0.6, "top_k": 20, "top_p": 0.95, "transformers_version": "4.51.0",
    })


def attempt(folder, spec, seed):
    """Build the model from `seed`; None if its golden sequence would be a coin toss for an honest implementation."""
    write_checkpoint(folder, spec, seed)
    model = load(folder)
    prompt = np.random.RandomState(seed + 1000).randint(0, N_PLAIN, spec.get("n_prompt", 32)).tolist()
    prompt[0] = N_PLAIN + 1    # <|im_start|>, as in a conversation
    answer, greedy_margin = greedy(model, prompt)
    margin = router_margin(model, prompt + answer)
    if min(margin, greedy_margin) < MIN_MARGIN or len(set(answer)) < MIN_DISTINCT or max(answer) >= N_PLAIN:
        return None
    logits = logits_of(model, prompt)
    for change in spec.get("blind", []):
        if spec.get("style", "v4") != "v4":
            change = {"rope_parameters": {**change["rope_scaling"], "rope_theta": BASE["rope_theta"]}}
        effect = ((logits_of(load(folder, **change), prompt) - logits).abs().max() / logits.abs().max()).item()
        assert effect > MIN_EFFECT, f"{change} changes the logits by {effect} only"
    return prompt, answer, logits, {
        "seed": seed, "n_prompt": len(prompt), "n_vocab": logits.shape[1], "n_greedy": len(answer),
        "max_abs_logit": logits.abs().max().item(), "min_router_margin": margin if margin < 1e30 else None,
        "min_greedy_margin": greedy_margin,
    }


def make(out, name, spec):
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(200):
            folder = Path(tmp) / str(seed)
            folder.mkdir()
            made = attempt(folder, spec, seed)
            if made:
                break
        else:
            sys.exit(f"{name}: no seed gives a clear golden sequence")
        prompt, answer, logits, facts = made
        shutil.rmtree(out / name, ignore_errors=True)
        for file in sorted(folder.iterdir()):
            if file.suffix == ".safetensors":
                write_xz(out / name / (file.name + ".xz"), file.read_bytes())
            else:
                write_text(out / name / file.name, file.read_text(encoding="utf-8"))
        write_text(out / name / "ids.txt", ",".join(map(str, prompt)) + "\n")
        write_text(out / name / "greedy.txt", ",".join(map(str, answer)) + "\n")
        write_xz(out / name / "logits.f32.xz", logits.numpy().astype("<f4").tobytes())
        write_json(out / name / "golden.json", facts)
        print(name, facts, flush=True)


def unpack(source, target):
    """The checkpoint in `source`, as it was before it was compressed."""
    for file in source.iterdir():
        data = file.read_bytes()
        if file.suffix == ".xz":
            (target / file.stem).write_bytes(lzma.decompress(data))
        else:
            (target / file.name).write_bytes(data)


def quiet():
    torch.set_num_threads(1)   # one order of summation, whatever the machine
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    quiet()
    out = Path(sys.argv[1])
    for name in sys.argv[2:] or SPECS:
        make(out, name, SPECS[name])


if __name__ == "__main__":
    main()
