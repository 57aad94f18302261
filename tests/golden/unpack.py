#!/usr/bin/env python3
"""Copy golden data to a working folder with every .xz file decompressed. Standard library only.

usage: unpack.py SOURCE DESTINATION      SOURCE is a folder or one file
"""

import lzma
import os
import sys
from pathlib import Path


def unpack_file(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    data = source.read_bytes()
    if source.suffix == ".xz":
        target, data = target.with_suffix(""), lzma.decompress(data)
    # A test that runs at the same time must never see half a file.
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(target)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    if source.is_file():
        unpack_file(source, target / source.name)
        return
    for file in sorted(source.rglob("*")):
        if file.is_file():
            unpack_file(file, target / file.relative_to(source))


if __name__ == "__main__":
    main()
