"""What the end-to-end tests share: where things are, models made once per run, an engine to talk
to, and a closing line that counts cases. Standard library only.

The build passes the places through the environment; run by hand, build/ is taken."""

import array
import atexit
import json
import lzma
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("SMOE_BUILD", SOURCE / "build")).resolve()
SMOE, ENGINE = BUILD / "smoe", BUILD / "smoe-engine"
IS_SANITIZED = os.environ.get("SMOE_SANITIZED") == "1"
GOLDEN = SOURCE / "tests" / "golden"
TINY = SOURCE / "models" / "smoe-tiny"
TIMEOUT_S = 600 if IS_SANITIZED else 120

WORK = Path(tempfile.mkdtemp(prefix="smoe-e2e-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = str(WORK / "state-of-home")  # nothing is kept of what tests say


def run(*argv, **kwargs):
    """The finished process, with its output as text. Never raises on a status."""
    kwargs.setdefault("timeout", TIMEOUT_S)
    if "input" not in kwargs:
        kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="backslashreplace", **kwargs)


def must_run(*argv, **kwargs):
    done = run(*argv, **kwargs)
    if done.returncode:
        raise AssertionError(f"{argv} ended with {done.returncode}: {done.stderr}")
    return done


def read_ids(path):
    return [int(i) for i in Path(path).read_text().strip().split(",")]


def read_floats(path):
    path = Path(path)
    data = path.read_bytes()
    floats = array.array("f", lzma.decompress(data) if path.suffix == ".xz" else data)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats


def golden_names():
    return sorted(d.name for d in (GOLDEN / "models").iterdir() if (d / "golden.json").exists())


def unpack(name):
    """The checkpoint directory of a golden model."""
    target = WORK / "golden" / name
    if not target.exists():
        must_run(sys.executable, GOLDEN / "unpack.py", GOLDEN / "models" / name, target)
    return target


class Model:
    """A pair of files under one stem."""

    def __init__(self, stem):
        self.stem = Path(stem)
        self.vault = Path(f"{stem}.smoe")
        self.scout = Path(f"{stem}.scout.safetensors")

    def files(self):
        return ["--vault", self.vault, "--scout", self.scout]


def shatter(checkpoint, experts="f32", scout="f32", name=None):
    """The model of a checkpoint in these types; made once."""
    name = name or f"{Path(checkpoint).name}-{experts}-{scout}"
    model = Model(WORK / "models" / name)
    if not model.vault.exists():
        must_run(SMOE, "shatter", checkpoint, "-o", model.stem.parent, "--name", name,
                 "--experts", experts, "--scout", scout)
    return model


def golden_model(name, experts="f32", scout="f32"):
    return shatter(unpack(name), experts, scout, f"{name}-{experts}-{scout}")


def thinking_checkpoint(name, template):
    """smoe-tiny with another template, its last two words replaced by the tags of reasoning."""
    folder = WORK / "thinking" / name
    shutil.copytree(TINY, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab, n_vocab = tokenizer["model"]["vocab"], len(tokenizer["model"]["vocab"])
    tokenizer["model"]["vocab"] = {word: i for word, i in vocab.items() if i < n_vocab - 2}
    del tokenizer["model"]["merges"][-2:]
    tags = [{"id": n_vocab - 2 + i, "content": tag, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": False}
            for i, tag in enumerate(("<think>", "</think>"))]
    tokenizer["added_tokens"][:0] = tags
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = template
    del config["added_tokens_decoder"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


GREEDY = ["--temperature", "0", "--rep-penalty", "1", "--kv-type", "f32"]


class Reply:
    def __init__(self):
        self.ids, self.fields, self.end, self.error = [], {}, None, None
        self.n_progress = 0
        self.logprobs = []  # the lp fields, each behind the id that it belongs to

    def __repr__(self):
        return f"{self.ids} {self.fields} {self.error or self.end}"


class Engine:
    """A `smoe-engine --serve` at the other end of two pipes."""

    def __init__(self, model, *flags, env=None, preexec_fn=None):
        self.stderr = open(WORK / f"engine-{time.monotonic_ns()}.err", "w+b")
        self.process = subprocess.Popen(
            [str(a) for a in [ENGINE, *model.files(), "--serve", *flags]], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.stderr, env=env, bufsize=0, preexec_fn=preexec_fn)
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close(check=exception[0] is None)

    def send(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            data = data[self.process.stdin.write(data):]

    def gen(self, ids, max_tokens=64, overrides="t=0 r=1"):
        self.send(f"GEN {max_tokens} {overrides} {','.join(map(str, ids))}\n")

    def word(self, timeout_s=TIMEOUT_S):
        """The next word of the output; None at its end."""
        while True:
            found = re.match(rb"\s*(\S+)\s", self.data)
            if found:
                self.data = self.data[found.end(1):]
                return found.group(1).decode()
            ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
            if not ready:
                raise AssertionError(f"the engine said nothing for {timeout_s} s: {self.errors()}")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                if self.data.strip():
                    raise AssertionError(f"the output ends inside a word: {self.data}")
                return None
            self.data += more

    def reply(self, on_id=None):
        """Reads up to the terminal line. on_id(reply) is called after each id."""
        reply = Reply()
        while True:
            word = self.word()
            if word is None:
                raise AssertionError(f"the engine ended within a reply: {self.errors()}")
            if word == "<<DONE>>":
                reply.end = reply.fields.get("fin", "done")
                return reply
            if word == "<<ERR":
                reply.error = self.word().removesuffix(">>")
                return reply
            if "=" in word:
                key, value = word.split("=", 1)
                reply.n_progress += key == "pf"
                reply.fields[key] = value
                if key == "lp":
                    reply.logprobs.append(value)
                    assert len(reply.logprobs) == len(reply.ids), reply
            else:
                reply.ids.append(int(word))
                if on_id:
                    on_id(reply)

    def ask(self, ids, max_tokens=64, overrides="t=0 r=1"):
        self.gen(ids, max_tokens, overrides)
        return self.reply()

    def errors(self):
        self.stderr.flush()
        return Path(self.stderr.name).read_text(errors="replace")

    def close(self, check=True):
        """Ends the input; the engine must then end by itself with status 0, having said no more."""
        self.process.stdin.close()
        try:
            status = self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        rest = self.data + self.process.stdout.read()
        self.process.stdout.close()
        errors = self.errors()
        self.stderr.close()
        if check and (status or rest.strip()):
            raise AssertionError(f"the engine ended with {status}, left {rest[:200]!r}: {errors}")


class _Result(unittest.TextTestResult):
    n_passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.n_passed += 1


def main():
    """Runs the test cases of the calling script and prints the closing line."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=_Result, stream=sys.stdout)
    program = unittest.main(module="__main__", testRunner=runner, exit=False)
    result = program.result
    n_failed = len(result.failures) + len(result.errors)
    print(f"{result.n_passed} passed, {n_failed} failed, {len(result.skipped)} skipped")
    sys.exit(1 if n_failed else 0)
