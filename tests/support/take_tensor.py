#!/usr/bin/env python3
"""The bytes of one tensor of a safetensors file, as a file.

usage: take_tensor.py FILE NAME TARGET"""

import json
import struct
import sys
from pathlib import Path

source, name, target = sys.argv[1:]
data = Path(source).read_bytes()
n_header = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + n_header])[name]["data_offsets"]
Path(target).write_bytes(data[8 + n_header + begin:8 + n_header + end])
