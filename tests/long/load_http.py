#!/usr/bin/env python3
"""Many clients at once against smoe http over the model that ships, a part of which hang up at a
random time. Every answer must equal the one to the same request alone; memory must stay flat; in
the end no request may be left over.

usage: load_http.py [--seconds N] [--clients N]     (SMOE_BUILD: the build folder)"""

import argparse
import json
import random
import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness import IS_SANITIZED, TINY  # noqa: E402
from http_rig import CHAT, Server, events  # noqa: E402

HANG_UP = 0.25  # of the requests
GROWTH_KB = 8 << 10


def questions():
    """Short conversations out of the model's evaluation file."""
    rows = (TINY / "eval.tsv").read_text().splitlines()[1:]
    return [row.split("\t")[1] for row in rows[::37]][:60]


def body(question, stream):
    return {"model": "smoe-tiny", "temperature": 0, "stream": stream, "max_tokens": 40,
            "messages": [{"role": "user", "content": question}]}


def rss_kb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


class Load:
    def __init__(self, server, alone):
        self.server, self.alone = server, alone
        self.lock = threading.Lock()
        self.counts = {"answers": 0, "streams": 0, "hung up": 0, "refused": 0}
        self.wrong = []
        self.end = False

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def hang_up(self, question, chance):
        s = self.server.open(CHAT, body(question, chance.random() < 0.7))
        s.settimeout(chance.choice([0.001, 0.01, 0.05, 0.2]))
        try:
            for _ in range(chance.randrange(1, 6)):
                s.recv(chance.choice([1, 100, 10000]))
        except OSError:
            pass
        s.close()
        self.count("hung up")

    def ask(self, question, stream):
        reply = self.server.post(CHAT, body(question, stream))
        if reply.status == 429:
            self.count("refused")
            return time.sleep(0.05)
        if reply.status != 200:
            answer = f"status {reply.status}: {reply.text}"
        elif stream:
            answer = "".join(c["choices"][0]["delta"].get("content", "")
                             for c in events(reply.text))
        else:
            answer = reply.json()["choices"][0]["message"]["content"]
        if answer != self.alone[question]:
            self.wrong.append((question, answer))
        self.count("streams" if stream else "answers")

    def client(self, seed):
        chance = random.Random(seed)
        while not self.end:
            question = chance.choice(list(self.alone))
            try:
                if chance.random() < HANG_UP:
                    self.hang_up(question, chance)
                else:
                    self.ask(question, chance.random() < 0.5)
            except Exception as error:  # counted, so that the others go on
                self.wrong.append((question, repr(error)))
                time.sleep(0.1)


def run(seconds, n_clients):
    with Server("--log", "none", "--max-waiting", "24") as server:
        server.wait_until_ready()
        alone = {q: server.post(CHAT, body(q, False)).json()["choices"][0]["message"]["content"]
                 for q in questions()}
        load = Load(server, alone)
        threads = [threading.Thread(target=load.client, args=(i,)) for i in range(n_clients)]
        for thread in threads:
            thread.start()
        began, sizes = time.monotonic(), []
        while time.monotonic() - began < seconds:
            time.sleep(1)
            sizes.append(rss_kb(server.process.pid))
        load.end = True
        for thread in threads:
            thread.join()
        end = time.monotonic() + 30
        while not (is_idle := idle(server)) and time.monotonic() < end:
            time.sleep(0.1)
        early, late = max(sizes[:max(1, len(sizes) // 4)]), max(sizes[-max(1, len(sizes) // 4):])
        print(json.dumps({"seconds": seconds, "clients": n_clients, **load.counts,
                          "questions": len(alone), "wrong": len(load.wrong),
                          "rss_kb_first_quarter": early, "rss_kb_last_quarter": late,
                          "idle_in_the_end": is_idle}))
        for question, answer in load.wrong[:10]:
            print("wrong:", question, "->", answer)
        if not is_idle:
            print("left over:", server.get("/metrics").text)
        is_flat = late - early < GROWTH_KB or IS_SANITIZED  # sanitizers keep what was freed
        return not load.wrong and is_idle and is_flat


def idle(server):
    """Nothing runs or waits, and no connection is left but this one and perhaps the last one's."""
    text = server.get("/metrics").text
    found = dict(re.findall(r"^(\w+) (\S+)$", text, re.M))
    return (found["smoe_requests_running"] == found["smoe_requests_waiting"] == "0"
            and int(found["smoe_connections"]) <= 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--clients", type=int, default=32)
    args = parser.parse_args()
    ok = run(args.seconds, args.clients)
    print(f"{int(ok)} passed, {int(not ok)} failed, 0 skipped")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
