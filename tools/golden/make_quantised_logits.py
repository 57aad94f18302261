#!/usr/bin/env python3
"""What a model computes when its routed experts are quantised: ggml's blocks, dequantised, in an exact float32 model.

usage: make_quantised_logits.py LIBGGML_BASE MODELS

Adds logits.experts_<type>.f32.xz and experts.json to MODELS/kquant. An engine that quantises its experts to the same
blocks must come this close up to what it loses by rounding activations; compared with the unquantised logits instead,
the error of the weights would hide that of the engine.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

from common import write_json, write_xz
from make_models import load, logits_of, quiet, router_margin, unpack
from make_quants import Ggml

MODEL = "kquant"
TYPES = ["Q8_0", "Q4_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]


def through_blocks(ggml, tensor, name):
    """The values that are left of a (experts, rows, cols) tensor after quantisation along its rows."""
    rows = tensor.reshape(-1, tensor.shape[-1]).numpy()
    block, n_bytes = GGML_QUANT_SIZES[Type[name]]
    blocks = ggml.quantize(rows, Type[name], rows.size // block * n_bytes)
    return torch.tensor(dequantize(blocks.reshape(len(rows), -1), Type[name]).astype(np.float32)).reshape(tensor.shape)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    quiet()
    ggml, folder = Ggml(sys.argv[1]), Path(sys.argv[2]) / MODEL
    ids = [int(i) for i in (folder / "ids.txt").read_text().split(",")]
    facts = {}
    with tempfile.TemporaryDirectory() as tmp:
        unpack(folder, Path(tmp))
        exact = logits_of(load(Path(tmp)), ids)
        for name in TYPES:
            model = load(Path(tmp))
            with torch.no_grad():
                for layer in model.model.layers:
                    for weight in (layer.mlp.experts.gate_up_proj, layer.mlp.experts.down_proj):
                        weight.copy_(through_blocks(ggml, weight, name))
            logits = logits_of(model, ids)
            lower = name[0].lower() + name[1:]
            write_xz(folder / f"logits.experts_{lower}.f32.xz", logits.numpy().astype("<f4").tobytes())
            facts[lower] = {
                "min_router_margin": router_margin(model, ids),
                "rms_difference_from_exact": (logits - exact).square().mean().sqrt().item(),
                "max_abs_difference_from_exact": (logits - exact).abs().max().item(),
                "rms_logit": logits.square().mean().sqrt().item(),
            }
            print(lower, json.dumps(facts[lower]))
    write_json(folder / "experts.json", facts)


if __name__ == "__main__":
    main()
