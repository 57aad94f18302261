#!/usr/bin/env python3
"""Checks who includes what: the arrows between modules, public headers, external libraries.

usage: layers.py SOURCE_ROOT"""

import re
import sys
from pathlib import Path

# module: everything it may include besides itself. protocol is three libraries in one folder.
CHAIN = ["base", "json", "formats", "quant", "model", "cache", "engine"]
ALLOWED = {module: set(CHAIN[:i]) for i, module in enumerate(CHAIN)}
ALLOWED["tokenizer"] = {"base", "json"}
ALLOWED["wire"] = {"base"}
ALLOWED["client"] = {"base", "wire"}
ALLOWED["serve"] = {"base", "wire", "engine"}
ALLOWED["shatter"] = {"base", "json", "formats", "quant", "tokenizer"}
ALLOWED["bench"] = {"base", "json", "formats", "quant", "cache", "engine"}
ALLOWED["reply"] = {"base", "json", "tokenizer"}
ALLOWED["chat"] = {"base", "json", "wire", "client", "tokenizer", "reply"}
ALLOWED["http"] = {"base", "json", "wire", "client", "tokenizer", "reply"}
ALLOWED["app"] = set(ALLOWED)

PROTOCOL = {"serve": "serve", "client": "client", "child": "client"}  # the rest is the wire

# public header: the modules that may include it (app always may)
PUBLIC = {
    "status.h": set(ALLOWED),
    "engine.h": {"engine", "serve", "bench"},
    "tokenizer.h": {"tokenizer", "shatter", "chat", "http", "reply"},
    "logprobs.h": {"engine", "wire", "http"},
    "protocol.h": {"wire", "client", "serve", "chat", "http"},
}

# external header: the one file of ours that includes it
EXTERNAL = {
    "jansson.h": "json/json_read.c",
    "xxhash.h": "base/map.c",
    "pcre2.h": None,
    "utf8proc.h": None,
    "histedit.h": None,
    "microhttpd.h": "http/server.c",
    "liburing.h": "cache/aio_uring.c",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def module_of(path):
    """base/err.h -> base; protocol/child.c -> client."""
    folder, name = path.split("/", 1)
    return PROTOCOL.get(name.split(".")[0], "wire") if folder == "protocol" else folder


def main():
    src = Path(sys.argv[1]) / "src"
    problems, users = [], {}
    n_includes = 0
    for file in sorted(src.rglob("*.[ch]")):
        path = file.relative_to(src).as_posix()
        module = module_of(path)
        if module not in ALLOWED:
            problems.append(f"src/{path}: the module {module} is not in the table of layers.py")
            continue
        for kind, name in INCLUDE.findall(file.read_text()):
            n_includes += 1
            if kind == "<":
                users.setdefault(name, []).append(path)
            elif name.startswith("smoe/"):
                header = name.split("/")[1]
                if header not in PUBLIC:
                    problems.append(f"src/{path}: includes {name}, which is no public header")
                elif module != "app" and module not in PUBLIC[header]:
                    problems.append(f"src/{path}: the module {module} may not include {name}")
            elif "/" not in name:
                problems.append(f'src/{path}: includes "{name}" without its module')
            elif not (src / name).is_file():
                problems.append(f'src/{path}: includes "{name}", which does not exist')
            else:
                other = module_of(name)
                if other != module and other not in ALLOWED[module]:
                    problems.append(f"src/{path}: the module {module} may not include {name}")
    for header, owner in EXTERNAL.items():
        files = users.get(header, [])
        if len(files) != 1 or (owner and files != [owner]):
            problems.append(f"<{header}> is to be included by exactly one file"
                            f"{' (' + owner + ')' if owner else ''}; found: {files}")
    print("\n".join(problems))
    print(f"{n_includes - len(problems)} includes in order, {len(problems)} not")
    sys.exit(1 if problems or not n_includes else 0)


if __name__ == "__main__":
    main()
