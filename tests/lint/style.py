#!/usr/bin/env python3
"""Checks what can be checked by machine of the project's style.

usage: style.py SOURCE_ROOT"""

import os
import re
import sys
import unicodedata
from pathlib import Path

MAX_COLUMNS, MAX_FILE_LINES, MAX_FUNCTION_LINES = 100, 900, 79
CODE = {".c", ".h", ".py", ".sh"}
SCRIPTS = {"scripts/setup", "scripts/test", ".ci/run", "Makefile"}
TEXT = CODE | {".build", ".md", ".txt", ".tsv", ".jinja", ".json"}
SKIPPED = ("models/", "tests/golden/")  # data, not text of ours
LONG_LINES = ("tools/",)  # tables of sentences

MACHINE_PATH = re.compile(r"(?<![\w.$}])/(work|root|home|Users)/")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
OWN_T_NAME = re.compile(r"^\s*typedef\b[^;{]*\b\w+_t\s*;|^\}\s*\w+_t\s*;")
CALL = r"(?<![\w.>])(%s)\s*\("
# In src/, outside these modules, none of these calls. Asserting on input is for tests.
FORBIDDEN = [
    (re.compile(CALL % "exit|_exit|_Exit|abort|quick_exit|getenv|secure_getenv"), {"app"}),
    (re.compile(CALL % "printf|vprintf|puts|putchar|perror"), {"app"}),
    (re.compile(r"\bstdout\b|\bstderr\b"), {"app", "chat"}),
    (re.compile(CALL % "assert"), set()),
    (re.compile(CALL % "malloc|calloc|realloc|free|strdup|strndup|aligned_alloc"), set()),
    (re.compile(CALL % "strcpy|strcat|sprintf|gets|atoi|atof|strtok"), set()),
    (re.compile(r"^int main\s*\("), {"app"}),
]
# The one place that may use the thing it wraps. child.c ends a forked child whose exec failed.
EXEMPT = {("src/base/mem.c", "malloc"), ("src/protocol/child.c", "_exit")}


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def without_comments(text):
    """The same lines with comments and the inside of literals blanked out."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def check_functions(path, lines):
    """A function is a line '{' at column 0 up to the '}' at column 0; its head starts after the
    last blank line, comment or closing brace."""
    for start, line in enumerate(lines):
        if line != "{":
            continue
        head = start
        while head > 0 and re.match(r"[\w(]|\s+\S", lines[head - 1]):
            head -= 1
        end = start
        while end + 1 < len(lines) and not lines[end].startswith("}"):
            end += 1
        if end - head + 1 > MAX_FUNCTION_LINES:
            yield f"{path}:{head + 1}: a function of {end - head + 1} lines"


def check_c(path, text):
    code = without_comments(text).splitlines()
    yield from check_functions(path, code)
    is_src = path.startswith("src/")
    module = path.split("/")[1] if is_src else ""
    for i, line in enumerate(code, 1):
        if OWN_T_NAME.search(line):
            yield f"{path}:{i}: a type of ours whose name ends in _t"
        for pattern, modules in FORBIDDEN:
            found = is_src and module not in modules and pattern.search(line)
            if found and not any(path == p and word in ("malloc", found.group(1))
                                 for p, word in EXEMPT):
                yield f"{path}:{i}: {found.group().strip()} does not belong here"


def check(path, text):
    suffix = Path(path).suffix
    lines = text.splitlines()
    is_code = suffix in CODE or path in SCRIPTS
    if is_code and len(lines) > MAX_FILE_LINES:
        yield f"{path}: {len(lines)} lines"
    if text and not text.endswith("\n"):
        yield f"{path}: the last line does not end"
    for i, line in enumerate(lines, 1):
        if is_code and columns(line) > MAX_COLUMNS and not path.startswith(LONG_LINES):
            yield f"{path}:{i}: {columns(line)} columns"
        if is_code and "\t" in line and path != "Makefile":
            yield f"{path}:{i}: a tab"
        if line != line.rstrip() and path != "README.md":  # it shows output as it is
            yield f"{path}:{i}: blanks at the end"
        if MACHINE_PATH.search(line):
            yield f"{path}:{i}: a path of one machine: {line.strip()[:60]}"
        if UNFINISHED.search(line):
            yield f"{path}:{i}: unfinished: {line.strip()[:60]}"
    if suffix in (".c", ".h"):
        yield from check_c(path, text)


def files(root):
    """What a checkout holds: build directories and caches are left out."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(d for d in folders if not d.startswith("build") and d not in
                            (".git", "__pycache__", ".venv"))
        for name in sorted(names):
            path = (Path(folder) / name).relative_to(root).as_posix()
            if (Path(name).suffix in TEXT or path in SCRIPTS) and not path.startswith(SKIPPED):
                yield path


def main():
    root = Path(sys.argv[1])
    problems, n_files = [], 0
    for path in files(root):
        n_files += 1
        problems += check(path, (root / path).read_text(encoding="utf-8"))
    print("\n".join(problems))
    print(f"{n_files} files, {len(problems)} problems")
    sys.exit(1 if problems or not n_files else 0)


if __name__ == "__main__":
    main()
