"""http_rig: smoe http over the model that ships or over a fake engine, and plain HTTP to it."""

import http.client
import importlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from harness import BUILD, SMOE, SOURCE, TIMEOUT_S, TINY, WORK, must_run, shatter

CHAT = "/v1/chat/completions"
QUESTION = "What is the capital of France?"
PARIS = "The capital of France is Paris."


class Server:
    """A `smoe http` that listens; use it in a with statement."""

    def __init__(self, *args, smoe=SMOE, env=None, n_files=None):
        def limit():
            if n_files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))

        self.stderr = open(WORK / f"http-{time.monotonic_ns()}.err", "w+b")
        self.process = subprocess.Popen(
            [str(a) for a in [smoe, "http", *args, "--port", "0"]], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.stderr, env=env, preexec_fn=limit)
        self.port = int(self.wait_for(r"listening on http://\S+:(\d+)").group(1))

    def wait_for(self, pattern):
        end = time.monotonic() + TIMEOUT_S
        while not (found := re.search(pattern, self.log())):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in {self.log()!r}")
            time.sleep(0.02)
        return found

    def wait_until_ready(self):
        end = time.monotonic() + TIMEOUT_S
        while self.get("/health").status != 200:
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)
        return self

    def log(self):
        return Path(self.stderr.name).read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        status = self.stop()
        if exception[0] is None and status != 0:
            raise AssertionError(f"smoe http ended with {status}: {self.log()}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    # ---- requests ----

    def request(self, method, path, body=None, headers=None):
        """The finished reply: status, headers, text, and json() of it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        reply.text = reply.read().decode()
        reply.json = lambda: json.loads(reply.text)
        connection.close()
        return reply

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def chat(self, *messages, **fields):
        """Greedy; the messages in turn from user and assistant."""
        roles = ["user", "assistant"]
        body = {"model": "smoe-tiny", "temperature": 0, "repetition_penalty": 1,
                "messages": [m if isinstance(m, dict) else {"role": roles[i % 2], "content": m}
                             for i, m in enumerate(messages)]}
        return self.post(CHAT, {**body, **fields})

    def chat_in_the_end(self):
        """Asks until there is room for one more connection."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return self.chat("Hello!")
            except ConnectionError:
                assert time.monotonic() < end
                time.sleep(0.1)

    def ask(self, *messages, **fields):
        reply = self.chat(*messages, **fields)
        assert reply.status == 200, (reply.status, reply.text)
        return reply.json()["choices"][0]["message"]["content"]

    def open_raw(self, data):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
        s.sendall(data)
        return s

    def open(self, path=CHAT, body=None, **fields):
        """A socket on which the request has been sent, for those who read it in their own way."""
        body = json.dumps(body or {"messages": [{"role": "user", "content": "Hello!"}],
                                   "stream": True, **fields}).encode()
        s = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
        s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                  % (path.encode(), len(body), body))
        return s


def read_until(s, pattern, data=b""):
    """Reads from a socket until the pattern is there."""
    while not re.search(pattern, data):
        more = s.recv(65536)
        if not more:
            raise AssertionError(f"the end, and no {pattern!r} in {data!r}")
        data += more
    return data


def events(text):
    """The data of the SSE events in a reply, parsed, without the closing [DONE]."""
    data = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert data[-1] == "[DONE]", text
    return [json.loads(d) for d in data[:-1]]


class FakeServer(Server):
    """smoe http whose engine is tests/support/fake_http_engine.py."""

    def __init__(self, mode, *args, model=BUILD / "models" / "smoe-tiny", **kwargs):
        self.folder = WORK / f"fake-{time.monotonic_ns()}"
        self.folder.mkdir()
        shutil.copy(SMOE, self.folder / "smoe")
        shutil.copy(SOURCE / "tests" / "support" / "fake_http_engine.py",
                    self.folder / "smoe-engine")
        (self.folder / "log").touch()
        self.set_mode(mode)
        env = dict(os.environ, SMOE_FAKE_MODE=str(self.folder / "mode"),
                   SMOE_FAKE_LOG=str(self.folder / "log"))
        super().__init__(model, *args, smoe=self.folder / "smoe", env=env, **kwargs)

    def set_mode(self, mode):
        (self.folder / "mode.new").write_text(mode)
        (self.folder / "mode.new").rename(self.folder / "mode")

    def set_mode_after(self, mode, word, n):
        """Sets the mode when the engine has been sent its n-th line that begins so."""
        def wait():
            self.wait_to_hear(word, n)
            self.set_mode(mode)
        threading.Thread(target=wait).start()

    def heard(self, word):
        """Times at which the engine was sent a line that begins so."""
        lines = (self.folder / "log").read_text().splitlines()
        return [float(line.split(" ")[0]) for line in lines if line.split(" ")[1] == word]

    def wait_to_hear(self, word, n=1):
        end = time.monotonic() + TIMEOUT_S
        while len(self.heard(word)) < n:
            assert time.monotonic() < end, f"the engine never heard {word}"
            time.sleep(0.01)
        return self.heard(word)[n - 1]


TOOLS = [{"type": "function", "function": {
    "name": "add", "parameters": {"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": "string"}}}}}]

TEMPLATE = """{%- if tools %}{% for tool in tools %}{{- tool | tojson }}{% endfor %}{% endif -%}
{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content }}
{%- for c in m.tool_calls or [] %}<tool_call>{{- c.function.arguments | tojson }}</tool_call>
{%- endfor %}{{- '<|im_end|>\\n' }}{% endfor -%}
{{- '<|im_start|>assistant\\n' }}"""


def tool_server(text):
    """A model whose template has tools, over an engine that says the text."""
    folder = WORK / "in" / "tools"
    if not folder.exists():
        shutil.copytree(TINY, folder)
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config["chat_template"] = TEMPLATE
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return saying(text, shatter(folder, name="tools").stem)


def saying(text, model):
    """A model over an engine that says the text."""
    ids = json.loads(must_run(SMOE, "tokens", model, "-", "--json", input=text).stdout)["ids"]
    return FakeServer("say " + ",".join(map(str, ids)), model=model)


def python_package(name):
    """The module and "", or None and a sentence why it is not there. It comes from PyPI into a
    folder of the build, once."""
    folder = BUILD / f"{name}-sdk"
    try:
        if not (folder / name).exists():
            done = subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), name],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            if done.returncode:
                return None, f"the {name} package cannot be installed here: {done.stdout[-200:]}"
        sys.path.insert(0, str(folder))
        return importlib.import_module(name), ""
    except ImportError as error:
        return None, f"the {name} package does not load here: {error}"
    except (OSError, subprocess.SubprocessError) as failure:
        return None, f"the {name} package cannot be installed here: {failure}"


def named_events(text):
    """[(name, data), ...] of SSE events that have names."""
    found = re.findall(r"event: (\S+)\ndata: (.*)\n\n", text)
    return [(name, json.loads(data)) for name, data in found]


class WithServer(unittest.TestCase):
    flags = []

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.flags).wait_until_ready()

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0, (status, cls.server.log())
