#!/usr/bin/env python3
"""Quantiser goldens: from ggml itself, and from the `gguf` package wherever that can do it too.

usage: make_quants.py LIBGGML_BASE OUT      LIBGGML_BASE is the shared library libggml-base.so

Every quantisation without importance matrix, block by block, is ggml's own (ggml_quantize_chunk). The `gguf` package
quantises only the simple types; its results are compared with ggml's and differences end the run. Dequantisation is
the package's, for all types, and is compared with ggml's as well.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

from common import json_lines, write_text, write_xz
from quant_inputs import N, SIGNED_ZEROS, rows, scalars

QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
# Where the 16-bit scales stand in a block.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
N_RANDOM_BLOCKS = {"Q4_0": 256, "Q4_1": 256, "Q5_0": 256, "Q5_1": 256, "Q8_0": 256}
Q8_K_BYTES = 292


class Ggml:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                                 ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        for name in ("ggml_version", "ggml_commit"):
            getattr(self.lib, name).restype = ctypes.c_char_p

    def quantize(self, values, qtype, n_bytes):
        values = np.ascontiguousarray(values, np.float32)
        out = np.zeros(n_bytes, np.uint8)
        n_rows, n_cols = values.shape
        done = self.lib.ggml_quantize_chunk(int(qtype), values.ctypes.data, out.ctypes.data, 0, n_rows, n_cols, None)
        assert done == n_bytes
        return out

    def quantize_q8_k(self, values):
        values = np.ascontiguousarray(values, np.float32)
        out = np.zeros(values.size // N * Q8_K_BYTES, np.uint8)
        self.lib.quantize_row_q8_K_ref(ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(out.ctypes.data),
                                       ctypes.c_int64(values.size))
        return out

    def dequantize(self, blocks, name, n):
        out = np.zeros(n, np.float32)
        row = getattr(self.lib, f"dequantize_row_{name[0].lower() + name[1:]}")
        row(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(n))
        return out


def same_bits(a, b):
    return np.ravel(a).tobytes() == np.ravel(b).tobytes()


def random_blocks(name, seed):
    """Blocks of random bytes whose scales are finite: everything a reader may meet in a file."""
    _, n_bytes = GGML_QUANT_SIZES[Type[name]]
    rng = np.random.RandomState(seed)
    blocks = rng.randint(0, 256, (N_RANDOM_BLOCKS.get(name, 48), n_bytes)).astype(np.uint8)
    for at in SCALES[name]:
        scales = (rng.standard_normal(len(blocks)) * 10.0 ** rng.uniform(-8, 2, len(blocks))).astype(np.float16)
        scales[:4] = [0.0, -0.0, 65504, 6e-8]
        blocks[:, at: at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks


def make_quantised(ggml, out, names, values, comparable):
    for name in names:
        block, n_bytes = GGML_QUANT_SIZES[Type[name]]
        blocks = ggml.quantize(values, Type[name], values.size // block * n_bytes).reshape(len(values), -1)
        try:
            with np.errstate(all="ignore"):
                equal = (quantize(values, Type[name]) == blocks).all(axis=1)
            package = "equal" if equal.all() else f"equal but for {(~equal).sum()} rows of signed zeros"
            assert equal[comparable].all()
        except NotImplementedError:
            package = "not implemented"
        print(f"quantize {name}: gguf package {package}")
        write_xz(out / f"rows.{name[0].lower() + name[1:]}.xz", blocks.tobytes())


def make_dequantised(ggml, out, names):
    for seed, name in enumerate(names):
        block, _ = GGML_QUANT_SIZES[Type[name]]
        blocks = random_blocks(name, seed)
        values = dequantize(blocks, Type[name]).astype(np.float32).reshape(-1)
        equal = same_bits(values, ggml.dequantize(blocks, name, len(blocks) * block))
        print(f"dequantize {name}: gguf package {'equal' if equal else 'DIFFERENT'}")
        assert equal
        lower = name[0].lower() + name[1:]
        write_xz(out / f"dequant.{lower}.blocks.xz", blocks.tobytes())
        write_xz(out / f"dequant.{lower}.f32.xz", values.astype("<f4").tobytes())


def make_halves(ggml, out):
    """bf16 and f16, both ways. All 65,536 codes of each type can be dequantised without a golden file."""
    values = scalars(7)
    values = values[: len(values) // 32 * 32]
    write_xz(out / "scalars.f32.xz", values.astype("<f4").tobytes())
    for name in ("BF16", "F16"):
        halves = ggml.quantize(values.reshape(1, -1), Type[name], values.size * 2)
        with np.errstate(over="ignore"):
            package = quantize(values.reshape(1, -1), Type[name])
        print(f"quantize {name}: gguf package {'equal' if same_bits(package, halves) else 'DIFFERENT'}")
        assert same_bits(package, halves)
        write_xz(out / f"scalars.{name.lower()}.xz", halves.tobytes())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ggml, out = Ggml(sys.argv[1]), Path(sys.argv[2])
    print("ggml", ggml.lib.ggml_version().decode(), ggml.lib.ggml_commit().decode())
    named = rows(1)
    values = np.stack([row for _, row in named])
    write_xz(out / "rows.f32.xz", values.astype("<f4").tobytes())
    write_text(out / "rows.tsv", "".join(f"{i}\t{name}\n" for i, (name, _) in enumerate(named)))
    comparable = np.array([name not in SIGNED_ZEROS for name, _ in named])
    make_quantised(ggml, out, QUANTISED, values, comparable)
    write_xz(out / "rows.q8_K.xz", ggml.quantize_q8_k(values).tobytes())
    make_dequantised(ggml, out, QUANTISED)
    make_halves(ggml, out)


if __name__ == "__main__":
    main()
