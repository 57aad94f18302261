#!/usr/bin/env python3
"""What smoe http adds to the bare protocol: the same prompt and number of tokens, in turn through
an engine of its own and through the server, over one connection. Times to the first token and to
the end; medians, and medians of the differences within a pair.

usage: http_overhead.py BUILD_DIR [--pairs N] [--tokens N] [--model STEM]"""

import argparse
import json
import os
import re
import select
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

QUESTION = "<|im_start|>user\nTell me all you know of the capital of {}.<|im_end|>\n" \
           "<|im_start|>assistant\n"


class Bare:
    def __init__(self, build, model):
        self.process = subprocess.Popen(
            [build / "smoe-engine", "--serve", "--vault", f"{model}.smoe", "--scout",
             f"{model}.scout.safetensors", "--ctx", "1024"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.process.stdin.write(b"RESET\n")
        self.until(lambda data: b"<<DONE>>" in data)

    def until(self, done):
        data, first = b"", None
        while not done(data):
            select.select([self.process.stdout], [], [])
            data += os.read(self.process.stdout.fileno(), 65536)
            if first is None and re.search(rb"(^|\s)\d+\s", data):
                first = time.perf_counter()
        return first, time.perf_counter()

    def ask(self, ids, n_tokens):
        began = time.perf_counter()
        line = f"GEN {n_tokens} t=0 r=1 {','.join(map(str, ids))}\n"
        self.process.stdin.write(line.encode())
        first, end = self.until(lambda data: b"<<DONE>>" in data)
        return first - began, end - began


class Served:
    def __init__(self, build, model):
        self.log = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen([build / "smoe", "http", model, "--port", "0", "--log",
                                         "none"], stderr=self.log)
        while not (port := re.search(rb"http://\S+:(\d+)", Path(self.log.name).read_bytes())):
            time.sleep(0.05)
        self.socket = socket.create_connection(("127.0.0.1", int(port.group(1))))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, ids, n_tokens):
        body = json.dumps({"prompt": ids, "max_tokens": n_tokens, "temperature": 0,
                           "repetition_penalty": 1, "stream": True}).encode()
        began = time.perf_counter()
        self.socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        data, first = b"", None
        while b"0\r\n\r\n" not in data[-16:]:
            data += self.socket.recv(65536)
            if first is None and b'"text":"' in data:
                first = time.perf_counter()
        return first - began, time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--model", type=Path)
    args = parser.parse_args()
    model = args.model or args.build / "models" / "smoe-tiny"
    bare, served = Bare(args.build, model), Served(args.build, model)
    times = {"bare": [], "served": []}
    for i in range(args.pairs + 5):
        text = QUESTION.format(f"country {i}")  # nothing but the beginning is cached
        done = subprocess.run([args.build / "smoe", "tokens", model, "-", "--json"], text=True,
                              input=text, stdout=subprocess.PIPE, check=True)
        ids = json.loads(done.stdout)["ids"]
        pair = [("bare", bare), ("served", served)]
        for name, one in pair if i % 2 else reversed(pair):
            times[name].append(one.ask(ids, args.tokens))
    bare.process.kill()
    served.process.terminate()
    for k, what in enumerate(("first token", "whole request")):
        a, b = ([t[k] * 1e3 for t in times[name][5:]] for name in ("bare", "served"))
        added = statistics.quantiles((y - x for x, y in zip(a, b)), n=4)
        print(f"{what}: bare {statistics.median(a):.2f} ms (at best {min(a):.2f}), served "
              f"{statistics.median(b):.2f} ms (at best {min(b):.2f}), added {added[1]:.2f} ms "
              f"(quartiles {added[0]:.2f} and {added[2]:.2f})")


if __name__ == "__main__":
    main()
