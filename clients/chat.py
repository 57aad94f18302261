#!/usr/bin/env python3
"""A console for smoe in Python: transformers makes the prompt, smoe-engine answers.

usage: chat.py CHECKPOINT MODEL [--engine PATH] [--system TEXT] [--max-tokens N] [-- ENGINE FLAGS]

CHECKPOINT is the Hugging Face directory (its tokenizer and chat template are used), MODEL the stem
of what `smoe shatter` made of it. Needs transformers. Same rules as `smoe chat`: every turn sends
the whole conversation; Ctrl-C stops an answer; an engine that dies is started again and asked once
more; /reset and /quit.
"""

import argparse
import subprocess
import sys
import time

STOP_S = 10  # how long a stopped answer may take to end


class EngineDied(Exception):
    pass


class Engine:
    """smoe-engine --serve behind two pipes; docs/protocol.md has the grammar."""

    def __init__(self, argv):
        self.argv = argv
        self.start()

    def start(self):
        # Its own process group: a terminal's Ctrl-C does not reach it.
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        bufsize=0, start_new_session=True)
        self.left = b""

    def send(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            raise EngineDied from None

    def words(self):
        """The reply, word by word: ids as they come, fields, and <<...>> last."""
        while True:
            piece = self.process.stdout.read(65536)
            if not piece:
                raise EngineDied
            *words, self.left = (self.left + piece).replace(b"\n", b" ").split(b" ")
            yield from (word.decode() for word in words if word)

    def generate(self, ids, max_tokens, on_id):
        """Calls on_id for each token; returns (fin, error). KeyboardInterrupt cancels."""
        fin, cancelled_at = "", None
        self.send(f"GEN {max_tokens} {','.join(map(str, ids))}")
        words = self.words()
        while True:
            try:
                word = next(words)
                if word.isdigit():
                    on_id(int(word))
                elif word.startswith("fin="):
                    fin = word[4:]
                elif word == "<<DONE>>":
                    return fin, None
                elif word == "<<ERR":
                    return fin, next(words).rstrip(">")
                elif "=" not in word:
                    raise EngineDied  # not the protocol
            except KeyboardInterrupt:
                if cancelled_at:
                    raise
                cancelled_at = time.monotonic()
                self.send("CANCEL")
                words = self.words()  # the generator ended with the interrupt
            if cancelled_at and time.monotonic() - cancelled_at > STOP_S:
                raise EngineDied

    def restart(self):
        self.process.kill()
        status = self.process.wait()
        print(f"[engine died (exit {status}) - restarting]", file=sys.stderr)
        self.start()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()


def answer(engine, tokenizer, ids, max_tokens):
    """Prints the answer as it comes; returns its text, or None when there is none to keep."""
    for attempt in range(2):
        got, shown = [], ""

        def on_id(token):
            nonlocal shown
            got.append(token)
            text = tokenizer.decode(got, skip_special_tokens=True)
            if not text.endswith("\ufffd"):  # an unfinished character
                print(text[len(shown):], end="", flush=True)
                shown = text

        try:
            fin, error = engine.generate(ids, max_tokens, on_id)
        except EngineDied:
            engine.restart()
            continue
        text = tokenizer.decode(got, skip_special_tokens=True)
        print(text[len(shown):])
        if error:
            print(f"[the engine could not answer: {error}]", file=sys.stderr)
        elif fin == "cancel":
            print("[stopped]", file=sys.stderr)
        return text if got or not error else None
    print("[the engine died twice: this message was dropped]", file=sys.stderr)
    return None


def converse(engine, tokenizer, messages, max_tokens):
    n_failed, prompt = 0, "> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(prompt)
        except (EOFError, KeyboardInterrupt):
            return n_failed
        if line == "/quit":
            return n_failed
        if line == "/reset":
            messages = [m for m in messages if m["role"] == "system"]
        elif line.strip():
            messages.append({"role": "user", "content": line})
            ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True,
                                                return_dict=False)
            text = answer(engine, tokenizer, ids, max_tokens)
            if text is None:
                n_failed += 1
                messages.pop()
            else:
                messages.append({"role": "assistant", "content": text})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="directory of tokenizer.json, tokenizer_config.json")
    parser.add_argument("model", help="stem of the .smoe and .scout.safetensors files")
    parser.add_argument("--engine", default="smoe-engine")
    parser.add_argument("--system")
    parser.add_argument("--max-tokens", type=int, default=512)
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, flags = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1:]
    try:
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(args.checkpoint)
    except ImportError:
        sys.exit("chat.py needs the Python package transformers; `smoe chat` needs nothing")
    except (OSError, ValueError) as e:
        sys.exit("chat.py needs the checkpoint's directory for its tokenizer, and "
                 f"{args.checkpoint} has none: {e}")
    engine = Engine([args.engine, "--serve", "--vault", f"{args.model}.smoe",
                     "--scout", f"{args.model}.scout.safetensors", *flags])
    messages = [{"role": "system", "content": args.system}] if args.system else []
    try:
        n_failed = converse(engine, tokenizer, messages, args.max_tokens)
    finally:
        engine.close()
    sys.exit(1 if n_failed else 0)


if __name__ == "__main__":
    main()
