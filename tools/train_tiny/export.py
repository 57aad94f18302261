"""Write a training checkpoint as a Hugging Face directory: python export.py CHECKPOINT_DIR MODEL_DIR."""
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

import tokenizer
from model import Config, Model


def load(directory):
    saved = torch.load(Path(directory) / "model.pt", weights_only=True)
    model = Model(Config(**saved["config"]))
    model.load_state_dict(saved["model"])
    return model.eval(), saved


def names(model):
    """The tensors under their published names: one matrix per expert, as in Qwen3-30B-A3B."""
    out = {"model.embed_tokens.weight": model.embed, "model.norm.weight": model.norm.weight}
    for i, layer in enumerate(model.layers):
        p = f"model.layers.{i}."
        out[p + "input_layernorm.weight"] = layer.norm1.weight
        out[p + "post_attention_layernorm.weight"] = layer.norm2.weight
        for x in "qkvo":
            out[p + f"self_attn.{x}_proj.weight"] = getattr(layer, x).weight
        for x in "qk":
            out[p + f"self_attn.{x}_norm.weight"] = getattr(layer, x + "_norm").weight
        out[p + "mlp.gate.weight"] = layer.moe.gate
        half = model.c.moe_intermediate_size
        for e in range(model.c.num_experts):
            out[p + f"mlp.experts.{e}.gate_proj.weight"] = layer.moe.up[e, :half]
            out[p + f"mlp.experts.{e}.up_proj.weight"] = layer.moe.up[e, half:]
            out[p + f"mlp.experts.{e}.down_proj.weight"] = layer.moe.down[e]
    return out


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def main(source, target):
    target = Path(target)
    target.mkdir(parents=True, exist_ok=True)
    model, _ = load(source)
    tensors = {k: v.detach().to(torch.bfloat16).contiguous().clone() for k, v in names(model).items()}
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    (target / "model.safetensors").chmod(0o644)
    shutil.copyfile(Path(source) / "tokenizer.json", target / "tokenizer.json")
    c = tokenizer.config(model.c.max_position_embeddings)
    write(target / "tokenizer_config.json", c)
    ids = {v["content"]: int(k) for k, v in c["added_tokens_decoder"].items()}
    end, text = ids["<|im_end|>"], ids["<|endoftext|>"]
    write(target / "config.json", model.c.hf(end, text))
    write(target / "generation_config.json", {"bos_token_id": None, "do_sample": True, "eos_token_id": [end, text], "pad_token_id": text,
                                              "temperature": 0.6, "top_k": 20, "top_p": 0.95})
    print(f"{sum(t.numel() for t in tensors.values())} parameters, {sum(f.stat().st_size for f in target.iterdir())} bytes in {target.name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
