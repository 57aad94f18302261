#!/usr/bin/env python3
"""Unpacks a golden checkpoint and shatters it, for tests in C that need a model on disk.

usage: golden_model.py SMOE CHECKPOINT OUT_DIR STEM EXPERTS SCOUT"""

import subprocess
import sys
import tempfile
from pathlib import Path

smoe, checkpoint, out_dir, stem, experts, scout = sys.argv[1:]
unpack = Path(__file__).resolve().parent.parent / "golden" / "unpack.py"
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.executable, unpack, checkpoint, folder], check=True)
    subprocess.run([smoe, "shatter", folder, "-o", out_dir, "--name", stem, "--experts", experts,
                    "--scout", scout], check=True, stdout=subprocess.DEVNULL)
