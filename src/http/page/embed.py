#!/usr/bin/env python3
"""Makes the page one file, and that file one C source, with the policy that fits it.

usage: embed.py FOLDER OUTPUT.c

The policy allows the page's own script and style, by their SHA-256, and requests to its own server;
nothing else. OUTPUT.c defines page_html, page_html_bytes and page_policy (page.h)."""

import base64
import hashlib
import sys
from pathlib import Path

SCRIPTS = ("markdown.js", "api.js", "store.js", "messages.js", "app.js")


def source_hash(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main():
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    read = lambda name: (folder / name).read_text(encoding="utf-8")
    style, script = read("style.css"), "".join(read(name) for name in SCRIPTS)
    if "</script" in script or "</style" in style:
        sys.exit("embed.py: a closing tag inside the script or the style would end it early")
    page = read("index.html").replace("/*style.css*/", style).replace("/*script.js*/", script)
    policy = ("default-src 'none'; connect-src 'self'; img-src data:; "
              f"script-src 'sha256-{source_hash(script)}'; "
              f"style-src 'sha256-{source_hash(style)}'; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    data = page.encode("utf-8")
    rows = (", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24))
    output.write_text(
        '#include "http/page.h"\n\n'
        "const unsigned char page_html[] = {\n    " + ",\n    ".join(rows) + ",\n};\n"
        "const size_t page_html_bytes = sizeof page_html;\n"
        f'const char page_policy[] =\n    "{policy}";\n', encoding="ascii")


main()
