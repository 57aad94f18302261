#!/usr/bin/env python3
"""A console for smoe in Python: transformers makes the prompt, smoe-engine answers.

usage: chat.py CHECKPOINT MODEL [--engine PATH] [--system TEXT] [--ctx N] [--max-tokens N]
               [-- ENGINE FLAGS]

CHECKPOINT is the Hugging Face directory (its tokenizer and chat template are used), MODEL the stem
of what `smoe shatter` made of it. Needs transformers. The rules are those of `smoe chat`: every
turn sends the whole conversation; Ctrl-C stops an answer, twice within a second it leaves; an
engine that dies is started again and asked once more; reasoning is folded. /reset, /quit;
//text says "/text".
"""

import argparse
import collections
import json
import os
import select
import signal
import subprocess
import sys
import time

STOP_S, SILENCE_S, SLICE_S, PIECE_BYTES = 10, 30, 0.1, 4096
VISIBLE = {**{i: 0x2400 + i for i in range(32) if chr(i) not in "\n\t"}, 0x7F: 0x2421,
           **{i: 0xFFFD for i in range(0x80, 0xA0)}}  # for what would steer a terminal


class EngineDied(Exception):
    pass


def note(text):
    print(f"[{text.translate(VISIBLE)}]", file=sys.stderr, flush=True)


class Engine:
    """smoe-engine --serve behind two pipes; docs/protocol.md has the grammar."""

    def __init__(self, argv):
        self.argv, self.interrupts = argv, []
        self.start()

    def start(self):
        # Its own process group: a terminal's Ctrl-C does not reach it.
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        bufsize=0, start_new_session=True)
        self.unsent, self.left, self.unread = b"", b"", collections.deque()

    def word(self):
        """The next word of the reply, "" when none has come yet; writes what is unsent."""
        if self.unread:
            return self.unread.popleft()
        to, out = self.process.stdin.fileno(), self.process.stdout.fileno()
        readable, writable, _ = select.select([out], [to] if self.unsent else [], [], SLICE_S)
        try:
            if writable:  # no more than a pipe takes without blocking
                self.unsent = self.unsent[os.write(to, self.unsent[:PIECE_BYTES]):]
        except BrokenPipeError:
            raise EngineDied from None
        if readable:
            piece = os.read(out, 65536)
            if not piece:
                raise EngineDied
            *words, self.left = (self.left + piece).replace(b"\n", b" ").split(b" ")
            self.unread.extend(word.decode("ascii", "replace") for word in words if word)
        return self.unread.popleft() if self.unread else ""

    def ask(self, line, on_id):
        """Calls on_id for each token; returns (fin, error). Ctrl-C cancels."""
        if self.process.returncode is not None:
            self.start()
        # Counted, not raised: an exception in the middle of a read would lose what was read.
        before = signal.signal(signal.SIGINT, lambda *_: self.interrupts.append(time.monotonic()))
        try:
            return self.reply(line, on_id)
        finally:
            signal.signal(signal.SIGINT, before)

    def reply(self, line, on_id=None):
        fin, failed, self.interrupts, stop_at = "", False, [], float("inf")
        silent_at = time.monotonic() + SILENCE_S if on_id else float("inf")
        self.unsent += line.encode() + b"\n"
        while True:
            word, now = self.word(), time.monotonic()
            if self.interrupts[1:] and self.interrupts[-1] - self.interrupts[-2] < 1:
                raise KeyboardInterrupt
            if self.interrupts and stop_at == float("inf"):
                stop_at, silent_at = now + STOP_S, float("inf")
                self.unsent += b"CANCEL\n"
            if now > stop_at:
                return "hung", None
            if word:
                silent_at = max(silent_at, now + SILENCE_S)
            elif now > silent_at:
                silent_at = float("inf")
                note(f"no sign of life from the engine for {SILENCE_S} s; Ctrl-C stops this answer")
            if word.isdecimal() and on_id:
                on_id(int(word))
            elif word == "<<DONE>>":
                return fin, None
            elif failed and word.endswith(">>"):
                return fin, word[:-2]
            elif word.startswith("fin="):
                fin = word[4:]
            elif word == "<<ERR":
                failed = True
            elif word and "=" not in word:
                raise EngineDied  # not the protocol

    def bury(self):
        self.process.kill()
        status = self.process.wait()
        return f"exit {status if status >= 0 else 128 - status}"

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=2)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self.process.kill()


class Answer:
    """Ids into text, shown as it comes: whole characters, and without what is reasoning."""

    def __init__(self, tokenizer, prompt):
        self.tokenizer, self.ids, self.start, self.done = tokenizer, [], 0, 0
        self.reasoning, self.content, self.terminal = "", "", sys.stdout.isatty()
        self.answering = "</think>" not in tokenizer.get_vocab()
        self.opened = not self.answering and self.decode(prompt[-8:]).rstrip().endswith("<think>")

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=True,
                                     clean_up_tokenization_spaces=False)

    def push(self, token):
        """One more token; None: the last one has come. Some decoders look back, hence start."""
        self.ids += [] if token is None else [token]
        text = self.decode(self.ids[self.start:])
        if token is None or not text.endswith("\ufffd"):  # an unfinished character
            text = text[len(self.decode(self.ids[self.start:self.done])):]
            self.start, self.done = self.done, len(self.ids)
            self.sort(text, token is None)

    def sort(self, text, last):
        if not self.answering:
            text = self.reasoning = self.reasoning + text
            head = text if self.opened else text.lstrip()
            if self.opened or head.startswith("<think>"):
                reasoning, _, text = head.removeprefix("<think>").partition("</think>")
                text = text.lstrip("\n")
                self.answering = bool(text)  # before that, more line breaks may come
                if text or last:
                    self.reasoning = reasoning.strip("\n")
            elif last or not "<think>".startswith(head):
                self.answering, self.reasoning = True, ""
        if self.answering:
            self.content += text
            print(text.translate(VISIBLE) if self.terminal else text, end="", flush=True)


def turn(engine, tokenizer, messages, args):
    """Asks and shows the answer, which joins the messages; without one the question leaves them.
    True: it was answered, if only in part."""
    try:
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True,
                                            return_dict=False)
    except Exception as e:  # whatever the template or its filters raise
        note(f"this message cannot be sent: {e}")
        messages.pop()
        return False
    left = max(1, args.ctx - len(ids))
    line = f"GEN {min(args.max_tokens or left, left)} {','.join(map(str, ids))}"
    for last in (False, True):
        reply, error = Answer(tokenizer, ids), None
        try:
            fin, error = engine.ask(line, reply.push)
        except EngineDied:
            fin = "died"
        reply.push(None)
        ended = fin in ("stop", "length", "cancel")
        if (reply.content or ended) and not reply.content.endswith("\n"):
            print(flush=True)
        if fin == "hung":
            engine.bury()
            note("engine does not stop - restarting")
            engine.start()
        if fin != "died":
            break
        note(f"engine died ({engine.bury()}){'' if last else ' - restarting'}")
        if reply.content and not last:
            note("the answer starts again from its beginning")
    if error == "ctx_overflow":
        note(f"the conversation has {len(ids)} tokens, the context holds {args.ctx}: this message "
             "was dropped; /reset starts a new conversation")
    elif error:
        note(f"the engine could not answer: {error}")
    elif fin == "cancel":
        note("stopped")
    if reply.reasoning or reply.content or (ended and fin != "cancel"):
        messages.append({"role": "assistant", "content": reply.content,
                         **({"reasoning_content": reply.reasoning} if reply.reasoning else {})})
    else:
        messages.pop()
    return ended


def converse(engine, tokenizer, messages, args):
    """Returns how many turns there were and how many failed."""
    n_turns, n_failed, prompt = 0, 0, "> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(prompt).replace("\0", "\ufffd")
        except EOFError:
            return n_turns, n_failed
        if line == "/quit":
            return n_turns, n_failed
        if line == "/reset":
            messages = [m for m in messages if m["role"] == "system"]
        elif line.startswith("/") and not line.startswith("//"):
            note('there is no such command, only /reset and /quit; //text says "/text"')
        elif line.strip():
            messages.append({"role": "user", "content": line.removeprefix("/")})
            n_turns += 1
            n_failed += not turn(engine, tokenizer, messages, args)


def open_tokenizer(checkpoint):
    """The tokenizer and the context that the model was trained for."""
    try:
        from transformers import AutoTokenizer
        with open(os.path.join(checkpoint, "config.json"), encoding="utf-8") as f:
            n_ctx = json.load(f).get("max_position_embeddings", 4096)
        return AutoTokenizer.from_pretrained(checkpoint), n_ctx
    except ImportError:
        sys.exit("chat.py needs the Python package transformers; `smoe chat` needs nothing")
    except (OSError, ValueError) as e:
        sys.exit("chat.py needs the checkpoint's directory for its tokenizer, and "
                 f"{checkpoint} has none: {e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="directory of tokenizer.json, tokenizer_config.json")
    parser.add_argument("model", help="stem of the .smoe and .scout.safetensors files")
    parser.add_argument("--engine", default="smoe-engine")
    parser.add_argument("--system")
    parser.add_argument("--ctx", type=int, help="default: 4096, or the model's maximum")
    parser.add_argument("--max-tokens", type=int, help="default: what is left of the context")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, flags = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1:]
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", errors="replace")
    tokenizer, n_ctx = open_tokenizer(args.checkpoint)
    args.ctx = args.ctx or min(n_ctx, 4096)
    messages = [{"role": "system", "content": args.system}] if args.system else []
    engine = None
    try:
        engine = Engine([args.engine, "--serve", "--vault", f"{args.model}.smoe", "--scout",
                         f"{args.model}.scout.safetensors", "--ctx", str(args.ctx), *flags])
        engine.reply("RESET")  # answered: the model is loaded
        n_turns, n_failed = converse(engine, tokenizer, messages, args)
        if n_failed and not sys.stdin.isatty():
            sys.exit(f"chat.py: {n_failed} of {n_turns} turns failed")
    except EngineDied:
        sys.exit(f"chat.py: the engine did not start ({engine.bury()})")
    except BrokenPipeError:  # whoever read the answers has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except OSError as e:
        sys.exit(f"chat.py: {args.engine} cannot be started: {e}")
    finally:
        if engine:
            engine.close()


if __name__ == "__main__":
    main()
