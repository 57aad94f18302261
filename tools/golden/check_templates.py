#!/usr/bin/env python3
"""Checks tests/unit/template/cases.jsonl against Jinja itself, in the environment of transformers.

    python tools/golden/check_templates.py [--write] [tests/unit/template/cases.jsonl]

A case has "template", "variables" and what comes out: "expected" (the text), "error" (Jinja fails too; the
text is part of smoe's sentence) or "refused" (smoe's sentence for what it does not support; Jinja is not
asked). With --write, "expected" is replaced by what Jinja gives.
"""
import json
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template


def render(case):
    """The text, or None where Jinja fails."""
    try:
        return _compile_jinja_template(case["template"]).render(**case["variables"])
    except Exception:  # whatever it is, the template does not render
        return None


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    path = args[0] if args else "tests/unit/template/cases.jsonl"
    with open(path, encoding="utf-8") as f:
        cases = [json.loads(line) for line in f]
    n_wrong = 0
    for i, case in enumerate(cases, 1):
        if "refused" in case:
            continue
        text = render(case)
        if "expected" in case and "--write" in sys.argv:
            case["expected"] = text
        wanted = case.get("expected") if "expected" in case else None
        if text != wanted:
            n_wrong += 1
            print(f"line {i}: {case['template']!r}\n  wanted {wanted!r}\n  jinja  {text!r}")
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(case) + "\n" for case in cases)
    print(f"{len(cases)} cases, {n_wrong} wrong")
    return n_wrong != 0


if __name__ == "__main__":
    sys.exit(main())
