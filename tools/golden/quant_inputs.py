"""Inputs of the quantiser goldens: rows of 256 floats, one for each thing a quantiser can get wrong."""

import numpy as np

N = 256
SUB = 32
# Blocks of zeros with minus signs: ggml and the gguf package disagree about the sign of their (zero) scale.
SIGNED_ZEROS = ("negative_zero", "zero_mixed_signs")


def to_bf16(x):
    """Nearest bfloat16, as float32: what the weights of a published checkpoint look like."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32)


def rows(seed):
    """[(name, 256 float32)], the same for the same seed."""
    rng = np.random.RandomState(seed)
    out = []

    def add(name, values):
        row = np.broadcast_to(np.asarray(values, np.float32), (N,)).copy()
        if name not in SIGNED_ZEROS:
            row += np.float32(0)   # turns every -0 into 0
        assert np.isfinite(row).all()
        out.append((name, row))

    for _ in range(40):
        add("normal", rng.standard_normal(N) * 0.02)
    for _ in range(60):
        add("normal_bf16", to_bf16(rng.standard_normal(N) * 0.03))
    for _ in range(16):
        add("normal_wide", rng.standard_normal(N) * np.exp(rng.uniform(-8, 8)))
    for _ in range(30):
        add("heavy_tail", rng.standard_t(2, N) * 0.02)
    for _ in range(16):
        add("laplace_bf16", to_bf16(rng.laplace(0, 0.02, N)))
    for _ in range(10):
        add("uniform", rng.uniform(-1, 1, N))
    for _ in range(8):
        add("positive", np.abs(rng.standard_normal(N)) + 0.1)
        add("negative", -np.abs(rng.standard_normal(N)) - 0.1)
        add("offset", rng.standard_normal(N) * 0.05 + rng.uniform(-2, 2))
    for _ in range(8):
        row = rng.standard_normal(N) * 0.01
        row[rng.randint(N)] = rng.choice([-1, 1]) * 10 ** rng.uniform(0, 3)
        add("one_outlier", row)
    for _ in range(6):
        add("sub_block_scales", rng.standard_normal(N) * np.repeat(2.0 ** -rng.permutation(N // SUB), SUB))
        add("half_zero", rng.standard_normal(N) * np.repeat(rng.permutation(N // 16) % 2, 16))
        add("sparse", rng.standard_normal(N) * (rng.uniform(0, 1, N) < 0.1))
    for _ in range(4):
        row = np.zeros(N)
        row[rng.randint(N)] = rng.standard_normal()
        add("one_nonzero", row)
    add("zero", 0.0)
    add("negative_zero", -0.0)
    add("zero_mixed_signs", np.where(np.arange(N) % 2, 0.0, -0.0))
    for value in (1.0, -1.0, 0.1, -0.1, 3.0e-5, 1.0e-8, -1.0e-8, 1000.0, -60000.0):
        add("constant", value)
    add("alternating", np.where(np.arange(N) % 2, 1.0, -1.0))
    add("alternating_small", np.where(np.arange(N) % 2, 0.013, -0.011))
    for low, high in ((0, 1), (-1, 0), (-0.5, 0.25), (-3, 7)):
        add("two_values", rng.choice([low, high], N))
    add("ramp", np.linspace(-1, 1, N))
    add("ramp_down", np.linspace(5, -2, N))
    # Integers whose scale is exactly 1 in the 8-bit types, then values halfway between two levels.
    integers = rng.randint(-127, 128, N).astype(float)
    integers[::SUB] = 127
    add("integers", integers)
    add("integers_negative_peak", -integers)
    halves = rng.randint(-126, 126, N) + 0.5
    halves[::SUB] = 127
    add("halfway_8bit", halves)
    halves = rng.randint(-7, 7, N) + 0.5
    halves[::SUB] = -8
    add("halfway_4bit", halves)
    add("peaks_of_both_signs", np.where(np.arange(N) % 7 == 0, 1.0, np.where(np.arange(N) % 5 == 0, -1.0, 0.25)))
    # Smaller than what 1 / scale can be taken of: where that is infinite, ggml's C is undefined (see the README).
    for scale in (1e-45, 1e-42, 1e-39, 3e-38):
        add("denormal", rng.standard_normal(N) * scale)
    for scale in (1e-30, 1e-20, 1e-16, 1e-12):
        add("tiny", rng.standard_normal(N) * scale)
    # Here the 16-bit scales are themselves subnormal, or round to zero.
    for scale in (1e-9, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4):
        add("subnormal_scale", rng.standard_normal(N) * scale)
    # The largest rows whose 16-bit scales stay finite in every type.
    for scale in (1e3, 1e4, 3e4):
        add("large", np.clip(rng.standard_normal(N) * scale, -6e4, 6e4))
    return out


def scalars(seed):
    """Numbers for the 16-bit float types: all the halfway cases and their neighbours, and every kind of extreme."""
    rng = np.random.RandomState(seed)
    bits = [rng.randint(0, 1 << 32, 1024, dtype=np.uint64)]
    for exponent in range(255):
        top = np.uint64(exponent << 23) | (rng.randint(0, 128, 2).astype(np.uint64) << np.uint64(16))
        for low in (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
            bits.append(top | np.uint64(low))
    halves = np.concatenate([
        np.arange(64), np.arange(960, 1090), rng.randint(0, 0x7BFF, 256), np.arange(0x7BF0, 0x7BFF)])
    low = halves.astype(np.uint16).view(np.float16).astype(np.float64)
    high = (halves + 1).astype(np.uint16).view(np.float16).astype(np.float64)
    middle = ((low + high) / 2).astype(np.float32)
    below, above = np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(1e9))
    for near in (low.astype(np.float32), middle, below, above):
        bits.append(near.view(np.uint32).astype(np.uint64))
    extremes = np.array([
        65504, 65519.996, 65520, 65536, 3.3895314e38, 3.4028235e38, np.inf, 1e-45, 1.1754942e-38, 1.1754944e-38,
        2.98023223876953125e-08, 5.9604645e-08, 0.0], np.float32)
    bits.append(extremes.view(np.uint32).astype(np.uint64))
    bits = np.concatenate(bits).astype(np.uint32)
    bits = np.concatenate([bits, bits ^ np.uint32(0x80000000)])
    values = bits.view(np.float32)
    return values[~np.isnan(values)]
