#!/usr/bin/env python3
"""Chat template goldens: what transformers' own Jinja environment makes of each template.

usage: make_templates.py QWEN3 OUT      QWEN3 holds the published tokenizer_config.json

The templates OUT/*.jinja are written by hand, apart from qwen3.jinja, which is copied from QWEN3. For each one,
OUT/<name>.jsonl.xz gets a line per case: its name, all variables the template sees, and the text or the error.
OUT/snippets.jsonl.xz has the template itself on each line.
"""

import json
import re
import sys
from pathlib import Path

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

from common import json_lines, write_text, write_xz
from template_cases import TOKENS, conversation_cases
from template_snippets import SNIPPETS, VARIABLES

QWEN3_TOKENS = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


def outcome(template, variables):
    """The rendered text, or the error: bad `syntax`, an `undefined` value, `raised` by the template, or any `other`."""
    try:
        return {"expected": _compile_jinja_template(template).render(**variables)}
    except jinja2.exceptions.TemplateSyntaxError as e:
        return {"error": "syntax", "message": e.message}
    except jinja2.exceptions.UndefinedError as e:
        return {"error": "undefined", "message": str(e)}
    except jinja2.exceptions.SecurityError as e:
        return {"error": "other", "message": f"SecurityError: {e}"}
    except jinja2.exceptions.TemplateError as e:
        return {"error": "raised", "message": str(e)}
    except Exception as e:
        return {"error": "other", "message": f"{type(e).__name__}: {e}"}


def write_rows(out, name, rows):
    write_xz(out / f"{name}.jsonl.xz", json_lines(rows).encode())
    kinds = [row.get("error", "text") for row in rows]
    print(name, {kind: kinds.count(kind) for kind in sorted(set(kinds))})


def snippet_rows():
    for section, lines in SNIPPETS.items():
        for number, line in enumerate(lines.strip("\n").split("\n")):
            template = unescape(line) if section == "whitespace" else line
            variables = {k: v for k, v in VARIABLES.items() if re.search(rf"\b{k}\b", template)}
            yield {"case": f"{section}:{number}", "template": template, "variables": variables,
                   **outcome(template, variables)}


def unescape(line):
    return line.replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    qwen3, out = Path(sys.argv[1]), Path(sys.argv[2])
    published = json.loads((qwen3 / "tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    write_text(out / "qwen3.jinja", published)
    for file in sorted(out.glob("*.jinja")):
        template = file.read_text(encoding="utf-8")
        cases = conversation_cases(QWEN3_TOKENS if file.stem == "qwen3" else TOKENS)
        write_rows(out, file.stem, [
            {"case": case, "variables": variables, **outcome(template, variables)} for case, variables in cases])
    write_rows(out, "snippets", list(snippet_rows()))


if __name__ == "__main__":
    main()
