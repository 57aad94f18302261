"""Writing golden files: deterministic compression and the trivial formats that the tests read."""

import json
import lzma
from pathlib import Path


def write_xz(path, data):
    """Write `data` compressed. Literal and position bits are set for 2- and 4-byte numbers."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 2, "lp": 1, "pb": 2}]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters))


def write_text(path, text):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def write_json(path, value):
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def json_lines(rows):
    """JSON Lines with every character beyond ASCII escaped, so that no reader has to guess an encoding."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
