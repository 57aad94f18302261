#!/usr/bin/env python3
"""Compares smoe's template interpreter with transformers' own Jinja on the templates of published checkpoints.

usage: diff_templates.py RENDER FOLDER...     RENDER is the target tests/unit/template/render of a build

Every *.jinja and every tokenizer_config.json with a chat_template below the folders is rendered with all
conversations of template_cases.py. Both must give the same text, or both must refuse. Published templates are not
part of this repository; docs/templates.md says where those of the table came from. Prints a line per template.
"""

import json
import subprocess
import sys
from pathlib import Path

from make_templates import outcome
from template_cases import TOKENS, conversation_cases

# Variables that the environment of transformers has and that change from run to run.
CLOCK = "strftime_now"


def templates(folders):
    """(name, source) of every template, the same text only once."""
    seen = set()
    for folder in folders:
        for file in sorted(Path(folder).rglob("*")):
            if file.suffix == ".jinja":
                sources = {"": file.read_text(encoding="utf-8")}
            elif file.name == "tokenizer_config.json":
                found = json.loads(file.read_text(encoding="utf-8")).get("chat_template", "")
                sources = {"": found} if isinstance(found, str) else {t["name"]: t["template"] for t in found}
            else:
                continue
            for name, source in sources.items():
                if source and source not in seen:
                    seen.add(source)
                    yield f"{file.relative_to(folder)}{':' if name else ''}{name}", source


def ours(render, source, cases):
    lines = "".join(json.dumps({"template": source, "variables": json.dumps(v)}) + "\n" for _, v in cases)
    result = subprocess.run([render, "--lines"], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def compare(render, name, source):
    """Prints the template's line and its differences; returns how many there are."""
    cases = list(conversation_cases(TOKENS))
    n_text = n_error = 0
    wrong = []
    for (case, variables), got in zip(cases, ours(render, source, cases), strict=True):
        want = outcome(source, variables)
        if "expected" in want:
            n_text += 1
            if got.get("text") != want["expected"]:
                wrong.append((case, want["expected"], got.get("text", got.get("error"))))
        else:
            n_error += 1
            if "error" not in got:
                wrong.append((case, f"{want['error']}: {want['message']}", got["text"]))
    print(f"{'ok  ' if not wrong else 'DIFF'} {name}: {n_text} texts, {n_error} refusals, {len(wrong)} differ"
          f"{', uses the clock' if CLOCK in source else ''}")
    for case, want, got in wrong[:3]:
        print(f"     {case}\n       jinja {want!r}\n       smoe  {got!r}")
    return len(wrong)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found = list(templates(sys.argv[2:]))
    n_wrong = sum(compare(sys.argv[1], name, source) > 0 for name, source in found)
    print(f"{len(found)} templates, {n_wrong} differ")
    return n_wrong != 0


if __name__ == "__main__":
    sys.exit(main())
