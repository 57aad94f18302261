#!/usr/bin/env python3
"""smoe http: who may ask, models that are switched, engines that fail, clients that do."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import threading
import time
import unittest
from pathlib import Path

from harness import SMOE, TINY, WORK, main, run, shatter
from http_rig import CHAT, PARIS, QUESTION, FakeServer, Server, WithServer, read_until


def child_of(server):
    """The engine's process."""
    child, = [int(child) for task in Path(f"/proc/{server.process.pid}/task").iterdir()
              for child in (task / "children").read_text().split()]
    return child


class Pages(WithServer):
    def test_models(self):
        models = self.server.get("/v1/models").json()
        self.assertEqual([m["id"] for m in models["data"]], ["smoe-tiny"])
        model = models["data"][0]
        self.assertEqual((model["object"], model["context_length"]), ("model", 1024))
        self.assertEqual(len(model["lineage"]), 32)
        self.assertEqual(self.server.get("/v1/models/smoe-tiny").json(), model)
        self.assertEqual(self.server.get("/v1/models/other").status, 404)

    def test_health(self):
        reply = self.server.get("/health")
        self.assertEqual(reply.json(), {"status": "ok", "model": "smoe-tiny", "waiting": 0})
        self.assertEqual(self.server.request("HEAD", "/health").status, 200)

    def test_metrics(self):
        self.server.ask(QUESTION)
        text = self.server.get("/metrics").text
        self.assertIn('smoe_http_requests_total{status="200"}', text)
        found = re.search(r"^smoe_generated_tokens_total (\d+)$", text, re.M)
        self.assertGreater(int(found.group(1)), 5)
        figures = dict(re.findall(r"^(smoe_\S+) (\S+)$", text, re.M))
        self.assertEqual(figures["smoe_expert_lookups_total"], figures["smoe_expert_hits_total"])
        self.assertGreater(int(figures["smoe_expert_lookups_total"]), 40)
        self.assertEqual(int(figures['smoe_memory_bytes{part="ring"}']), 48 * 114688)

    def test_the_form_of_metrics(self):
        """Prometheus' text form: each family once, with its help and type before its samples;
        buckets grow up to the count."""
        self.server.ask(QUESTION)
        text = self.server.get("/metrics").text
        self.assertTrue(text.endswith("\n"))
        types, samples, family = {}, {}, None
        for line in text.splitlines():
            if found := re.fullmatch(r"# HELP ([a-z_]+) \S.*", line):
                family = found.group(1)
                self.assertNotIn(family, types)
            elif found := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge|histogram)", line):
                self.assertEqual(found.group(1), family)
                types[family] = found.group(2)
            else:
                found = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"\\\n]*"\})? (\S+)', line)
                self.assertTrue(found, line)
                name, labels, value = found.groups()
                suffixes = ("_bucket", "_sum", "_count") if types[family] == "histogram" else ("",)
                self.assertIn(name, [family + suffix for suffix in suffixes])
                self.assertNotIn((name, labels), samples)
                samples[name, labels] = float(value)
                self.assertEqual(name.endswith("_total"), types[family] == "counter")
        for name in [name for name, kind in types.items() if kind == "histogram"]:
            buckets = [v for (n, _), v in samples.items() if n == name + "_bucket"]
            self.assertEqual(buckets, sorted(buckets))
            self.assertEqual(buckets[-1], samples[name + "_count", None])
            self.assertIn((name + "_bucket", '{le="+Inf"}'), samples)

    def test_no_such_path(self):
        for path in ("/v1/nothing", "/../etc/passwd", "/%2e%2e/%00", "/v1/models/../../x", "//"):
            reply = self.server.get(path)
            self.assertEqual(reply.status, 404, path)
            self.assertEqual(reply.json()["error"]["type"], "invalid_request_error")

    def test_wrong_method(self):
        for method, path in (("GET", CHAT), ("DELETE", CHAT), ("POST", "/health")):
            reply = self.server.request(method, path)
            self.assertEqual(reply.status, 405)
            self.assertIn("Allow", reply.headers)

    def test_pages_of_other_origins(self):
        body = {"messages": [{"role": "user", "content": "Hello!"}]}
        origin = {"Origin": "https://evil.example"}
        self.assertEqual(self.server.post(CHAT, body, origin).status, 403)
        self.assertEqual(self.server.get("/v1/models", Host="evil.example").status, 403)
        own = {"Origin": f"http://127.0.0.1:{self.server.port}"}
        reply = self.server.post(CHAT, body, own)
        self.assertEqual(reply.status, 200)
        self.assertNotIn("Access-Control-Allow-Origin", reply.headers)


class Keys(unittest.TestCase):
    def test_keys(self):
        file = WORK / "keys"
        file.write_text("# two of them\nsecret-1\n\nsecret-2\n")
        with Server("--api-key-file", file, "--cors-origin", "https://chat.example") as server:
            server.wait_until_ready()
            self.assertEqual(server.get("/health").status, 200)
            for headers in ({}, {"Authorization": "Bearer secret"},
                            {"Authorization": "Bearer secret-1x"}, {"Authorization": "secret-1"},
                            {"Authorization": "Bearer "}, {"x-api-key": ""}):
                reply = server.get("/v1/models", **headers)
                self.assertEqual(reply.status, 401, headers)
                self.assertEqual(reply.json()["error"]["code"], "invalid_api_key")
            self.assertEqual(server.post(CHAT, {}).status, 401)
            for headers in ({"Authorization": "Bearer secret-1"}, {"x-api-key": "secret-2"},
                            {"Authorization": "bearer secret-2", "Host": "server.example"}):
                self.assertEqual(server.get("/v1/models", **headers).status, 200)
            reply = server.request("OPTIONS", CHAT, headers={"Origin": "https://chat.example"})
            self.assertEqual(reply.status, 204)
            self.assertEqual(reply.headers["Access-Control-Allow-Origin"], "https://chat.example")

    def test_what_does_not_start(self):
        empty = WORK / "no-keys"
        empty.write_text("# none\n")
        for flags, status, words in (
                (["--host", "0.0.0.0"], 2, "--api-key-file"),
                (["--host", "no such host"], 2, "--host"),
                (["--api-key-file", empty], 2, "holds no key"),
                (["--api-key-file", "/nowhere/x"], 1, "/nowhere/x"),
                (["--log", "xml"], 2, "--log"),
                (["--vault-dir", WORK / "nothing"], 1, "--vault-dir"),
                (["--temperature", "hot"], 1, "did not load"),
                (["/nowhere/model"], 1, "/nowhere/model")):
            done = run(SMOE, "http", "--port", 0, *flags)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)
        with Server() as server:
            done = run(SMOE, "http", "--port", server.port)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"port {server.port}", done.stderr)


class Models(unittest.TestCase):
    def test_switch(self):
        folder = WORK / "vaults"
        for name in ("one", "two"):
            shatter(TINY, "q8_0", name=name)
        shutil.copytree(WORK / "models", folder)
        (folder / "broken.smoe").write_text("x")
        with Server("--vault-dir", folder) as server:
            server.wait_until_ready()
            names = [m["id"] for m in server.get("/v1/models").json()["data"]]
            self.assertEqual([n for n in names if n in ("one", "two", "broken")], ["one", "two"])
            self.assertIn("broken.smoe is left out", server.log())
            for name in ("two", "one", "two", "two"):
                reply = server.chat(QUESTION, model=name).json()
                self.assertEqual(reply["model"], name)
                self.assertEqual(reply["choices"][0]["message"]["content"], PARIS)
                loaded = [m["id"] for m in server.get("/v1/models").json()["data"] if m["loaded"]]
                self.assertEqual(loaded, [name])
            self.assertEqual(len(re.findall("two is loaded", server.log())), 2)

    def test_two_models_at_once(self):
        folder = WORK / "two-vaults"
        folder.mkdir()
        for name in ("one", "two"):
            model = shatter(TINY, "q8_0", name=name)
            for file in (model.vault, model.scout):
                shutil.copy(file, folder)
        with Server("--vault-dir", folder) as server:
            found = []

            def ask(name):
                for _ in range(3):
                    reply = server.chat(QUESTION, model=name).json()
                    answer = reply["choices"][0]["message"]["content"]
                    found.append((reply["model"] == name, answer))

            threads = [threading.Thread(target=ask, args=(("one", "two")[i % 2],))
                       for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, [(True, PARIS)] * 18)

    def test_names(self):
        one = shatter(TINY, "q8_0", name="one")
        (WORK / "other").mkdir()
        for file in (one.vault, one.scout):
            shutil.copy(file, WORK / "other")
        done = run(SMOE, "http", one.stem, WORK / "other", "--port", 0)
        self.assertEqual(done.returncode, 2)
        self.assertIn("have the same name", done.stderr)
        # One pair, two ways to write where it is.
        with FakeServer("echo", "--vault-dir", f"{WORK}/other/../other",
                        model=WORK / "other" / "one") as server:
            names = [m["id"] for m in server.get("/v1/models").json()["data"]]
            self.assertEqual(names, ["one"])

    def test_names_that_no_client_can_write(self):
        model = shatter(TINY, "q8_0", name="one")
        folder = os.fsencode(WORK / "odd")
        os.mkdir(folder)
        for name in (b"good \"name\\", b"tab\tline\n", b"not\xffutf8"):
            for file in (model.vault, model.scout):
                end = os.fsencode(file)[len(os.fsencode(model.stem)):]
                shutil.copy(file, folder + b"/" + name + end)
        with Server("--vault-dir", folder.decode()) as server:
            server.wait_until_ready()
            self.assertEqual([m["id"] for m in server.get("/v1/models").json()["data"]],
                             ["good \"name\\"])
            self.assertIn('{model="good \\"name\\\\"} 1', server.get("/metrics").text)
            self.assertEqual(server.log().count("is left out"), 2)
            self.assertIn("tab line .smoe is left out: the name of", server.log())


class Life(unittest.TestCase):
    """Over an engine that does what it is told to."""

    def test_disconnect_while_streaming(self):
        with FakeServer("slow 100000") as server:
            s = server.open()
            read_until(s, rb'"content":"[^"]')
            left = time.monotonic()
            s.close()
            self.assertLess(server.wait_to_hear("CANCEL") - left, 1)
            server.set_mode("say 66")
            self.assertEqual(server.chat("Hello!").status, 200)

    def test_disconnect_during_prefill(self):
        for stream in (True, False):
            with FakeServer("prefill 1000") as server:
                s = server.open(stream=stream)
                server.wait_to_hear("GEN")
                left = time.monotonic()
                s.close()
                self.assertLess(server.wait_to_hear("CANCEL") - left, 1)

    def test_disconnect_while_waiting(self):
        with FakeServer("slow 200") as server:
            first = server.open()
            read_until(first, rb'"content":"[^"]')
            second = server.open()
            while server.get("/health").json()["waiting"] == 0:
                time.sleep(0.01)
            second.close()
            while server.get("/health").json()["waiting"] == 1:
                time.sleep(0.01)
            server.set_mode("say 66")
            read_until(first, rb"\[DONE\]")
            first.close()
            self.assertEqual(server.chat("Hello!").status, 200)
            self.assertEqual(len(server.heard("GEN")), 2)

    def test_keepalive(self):
        with FakeServer("silent 3") as server:
            s = server.open()
            began = time.monotonic()
            read_until(s, rb": waiting\n\n")
            self.assertLess(time.monotonic() - began, 2.5)
            read_until(s, rb"\[DONE\]")
        with FakeServer("prefill 3") as server:
            s = server.open(return_progress=True)
            data = read_until(s, rb"\[DONE\]")
            self.assertIn(b'"prompt_progress":{"total":1000,"processed":', data)
            s = server.open()
            self.assertIn(b"\n: prefill ", read_until(s, rb"\[DONE\]"))

    def test_the_engine_dies(self):
        for mode in ("die", "die-silent"):
            with FakeServer(mode) as server:
                reply = server.chat("Hello!")
                self.assertEqual(reply.status, 503)
                self.assertTrue(int(reply.headers["Retry-After"]) > 0)
                self.assertEqual(reply.json()["error"]["type"], "server_error")
                server.set_mode("say 66,67")
                self.assertEqual(server.chat("Hello!").status, 200)
                self.assertEqual(len(server.heard("START")), 2)
                self.assertIn("smoe_engine_deaths_total 1\n", server.get("/metrics").text)

    def test_the_engine_dies_in_a_stream(self):
        with FakeServer("die") as server:
            s = server.open()
            data = read_until(s, rb'(?s)" 503 |"error":\{.*\}\}\n\n')
            self.assertIn(b"service_unavailable", data)
            server.set_mode("say 66")
            self.assertEqual(server.chat("Hello!").status, 200)

    def test_an_engine_that_does_not_come_back(self):
        with FakeServer("say 66") as server:
            self.assertEqual(server.chat("Hello!").status, 200)
            server.set_mode("die-start")
            for _ in range(2):
                self.assertEqual(server.chat("Hello!").status, 503)
            reply = server.get("/health")
            self.assertEqual((reply.status, reply.json()["status"]), (503, "down"))
            server.set_mode("say 66")
            self.assertEqual(server.chat("Hello!").status, 200)
            self.assertEqual(server.get("/health").json()["status"], "ok")

    def test_a_model_that_does_not_load(self):
        two = shatter(TINY, "q8_0", name="two").stem
        with FakeServer("refuse " + str(two), two) as server:
            server.wait_until_ready()
            self.assertEqual(server.chat("Hello!", model="two").status, 503)
            server.wait_until_ready()  # of itself: the model from before is back
            self.assertEqual(server.get("/health").json()["model"], "smoe-tiny")
            reply = server.chat("Hello!", model=None)
            self.assertEqual((reply.status, reply.json()["model"]), (200, "smoe-tiny"))
            self.assertEqual(len(server.heard("START")), 3)

    def test_an_engine_that_died_while_nobody_asked(self):
        with FakeServer("say 66") as server:
            server.wait_until_ready()
            child = child_of(server)
            os.kill(child, signal.SIGKILL)
            while ") Z " not in Path(f"/proc/{child}/stat").read_text():
                time.sleep(0.01)
            self.assertEqual(server.chat("Hello!").status, 200)
            self.assertEqual(len(server.heard("START")), 2)

    def test_while_the_model_loads(self):
        with FakeServer("load 2") as server:
            reply = server.get("/health")
            self.assertEqual((reply.status, reply.json()["status"]), (503, "loading"))
            self.assertIn("Retry-After", reply.headers)
            self.assertEqual(server.chat("Hello!").status, 200)
            self.assertEqual(server.get("/health").status, 200)

    def test_the_time_of_one_that_waits(self):
        with FakeServer("load 1000", "--timeout", 1, "--drain", 0) as server:
            for stream in (False, True):
                reply = server.chat("Hello!", stream=stream)
                self.assertIn("took longer than the 1 seconds", reply.text)
                self.assertEqual(reply.status, 200 if stream else 504)
            self.assertEqual(server.get("/health").json()["waiting"], 0)

    def test_an_engine_that_does_not_stop(self):
        with FakeServer("deaf") as server:
            s = server.open()
            server.wait_to_hear("GEN")
            s.close()
            server.wait_to_hear("CANCEL")
            server.set_mode("say 66")
            self.assertEqual(server.chat("Hello!").status, 200)
            self.assertEqual(len(server.heard("START")), 2)

    def test_the_engine_refuses(self):
        with FakeServer("error internal") as server:
            self.assertEqual(server.chat("Hello!").status, 500)
            server.set_mode("error ctx_overflow")
            reply = server.chat("Hello!")
            self.assertEqual((reply.status, reply.json()["error"]["code"]),
                             (400, "context_length_exceeded"))

    def test_too_many_wait(self):
        with FakeServer("slow 100000", "--max-waiting", "2") as server:
            sockets = [server.open()]
            server.wait_to_hear("GEN")
            sockets += [server.open(), server.open()]
            while server.get("/health").json()["waiting"] < 2:
                time.sleep(0.01)
            reply = server.chat("Hello!")
            self.assertEqual(reply.status, 429)
            self.assertTrue(int(reply.headers["Retry-After"]) > 0)
            self.assertEqual(reply.json()["error"]["type"], "rate_limit_error")
            for s in sockets:
                s.close()

    def test_a_client_that_does_not_read(self):
        with FakeServer("slow 200") as server:
            stuck = server.open()
            server.wait_to_hear("GEN")
            server.set_mode("say 66")
            self.assertEqual(server.chat("Hello!").status, 200)
            stuck.close()

    def test_time_limits(self):
        with FakeServer("silent 1000", "--timeout", "1", "--client-timeout", "1") as server:
            server.wait_until_ready()  # that is part of a request's time
            slow = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            slow.sendall(b"POST /v1/chat")
            reply = server.chat("Hello!")
            self.assertEqual(reply.status, 504)
            server.set_mode("say 66")
            self.assertEqual(server.chat("Hello!").status, 200)
            while slow.recv(1000):  # hung up on, perhaps after a 408
                pass
            slow.close()

    def test_clients_that_trickle(self):
        """More of them than there may be connections: they are hung up on, and others answered."""
        with FakeServer("say 66", "--max-connections", "20", "--client-timeout", "1") as server:
            stop = threading.Event()
            sockets = []
            for i in range(40):
                s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                s.sendall((b"GET /health HTTP/1.1\r\nX-Slow: ", b"POST %s HTTP/1.1\r\nHost: "
                           b"localhost\r\nContent-Length: 1000\r\n\r\n{" % CHAT.encode())[i % 2])
                sockets.append(s)

            def trickle():
                while not stop.wait(0.1):
                    for s in sockets:
                        try:
                            s.send(b"x")
                        except OSError:
                            pass

            thread = threading.Thread(target=trickle)
            thread.start()
            for _ in range(3):
                self.assertEqual(server.chat_in_the_end().status, 200)
            stop.set()
            thread.join()
            for s in sockets:
                s.close()

    def check_beside(self, n, server):
        """n connections that say nothing do not keep others out, nor do they when they are gone."""
        sockets = []
        for _ in range(n):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", server.port))
            sockets.append(s)
        self.assertEqual(server.chat_in_the_end().status, 200)
        for s in sockets:
            s.close()
        self.assertEqual(server.chat_in_the_end().status, 200)

    def test_no_more_descriptors(self):
        with FakeServer("say 66", "--max-connections", "1000", "--client-timeout", "1",
                        n_files=48) as server:
            self.check_beside(200, server)

    def test_a_thousand_connections(self):
        with FakeServer("say 66", "--max-connections", "50", "--client-timeout", "1") as server:
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            self.check_beside(min(1000, limit - 100), server)

    def test_headers_that_lie(self):
        with FakeServer("say 66") as server:
            for head in (b"Content-Length: -5", b"Content-Length: 99999999999999999999999",
                         b"Content-Length: 5\r\nContent-Length: 6", b"Transfer-Encoding: gzip",
                         b"Transfer-Encoding: chunked\r\nContent-Length: 3",
                         b"X: a\rSet-Cookie: b", b"X: \x00", b"Host: a\r\nHost: b"):
                s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\nzz\r\n0\r\n\r\n"
                          % (CHAT.encode(), head))
                s.shutdown(socket.SHUT_WR)
                reply = b""
                try:
                    while more := s.recv(65536):
                        reply += more
                except ConnectionError:
                    pass
                s.close()
                self.assertNotIn(b"\r\nSet-Cookie", reply)
                self.assertNotIn(b" 200 ", reply)
            self.assertEqual(server.chat("Hello!").status, 200)

    def test_chunks_without_end(self):
        with FakeServer("say 66", "--max-body", "64K") as server:
            s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                      % CHAT.encode())
            chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
            with self.assertRaises(OSError):  # hung up on, after a few of them
                for _ in range(10000):
                    s.sendall(chunk)
            s.close()
            self.assertEqual(server.chat("Hello!").status, 200)

    def test_drain(self):
        server = FakeServer("slow 50")
        s = server.open()
        read_until(s, rb'"content":"[^"]')
        status = []
        thread = threading.Thread(target=lambda: status.append(server.stop()))
        thread.start()
        server.wait_for("ending")
        with self.assertRaises(ConnectionRefusedError):
            while True:
                socket.create_connection(("127.0.0.1", server.port), timeout=60).close()
        data = read_until(s, rb"\[DONE\]")
        self.assertIn(b'"finish_reason":"stop"', data)
        thread.join()
        self.assertEqual(status, [0])
        server.wait_to_hear("END")

    def test_the_end_while_the_model_loads(self):
        server = FakeServer("load 1000", "--drain", 500)
        server.wait_to_hear("RESET")
        self.assertEqual(server.stop(), 0)  # nobody waits for it
        server = FakeServer("load 3", "--drain", 500)
        s = server.open(stream=False, model=None)
        server.wait_to_hear("RESET")
        while server.get("/health").json()["waiting"] == 0:
            time.sleep(0.02)
        self.assertEqual(server.stop(), 0)
        self.assertIn(b" 200 ", read_until(s, rb"\r\n\r\n"))  # it was accepted
        s.close()

    def test_a_load_that_fails_in_the_end(self):
        server = FakeServer("load 2")
        s = server.open(stream=False)
        server.wait_to_hear("RESET")
        while server.get("/health").json()["waiting"] == 0:
            time.sleep(0.02)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("ending")
        os.kill(child_of(server), signal.SIGKILL)
        self.assertIn(b" 503 ", read_until(s, rb"\r\n\r\n"))
        s.close()
        self.assertEqual(server.process.wait(60), 0)

    def test_drain_that_takes_too_long(self):
        server = FakeServer("slow 100000", "--drain", "1")
        s = server.open()
        read_until(s, rb'"content":"[^"]')
        self.assertEqual(server.stop(), 0)
        self.assertIn(b"service_unavailable", read_until(s, rb'"error"'))

    def test_the_same_conversation_goes_first(self):
        """Three conversations wait; the one that continues the timeline overtakes."""
        with FakeServer("slow 20") as server:
            order, threads = [], []

            def ask(name, *messages):
                server.chat(*messages)
                order.append(name)

            def begin(*args):
                threads.append(threading.Thread(target=ask, args=args))
                threads[-1].start()

            begin("a", "My name is Anna.")
            server.wait_to_hear("GEN")
            for i, (name, *messages) in enumerate((
                    ("b", "Hello!"), ("c", "What is 1 plus 1?"),
                    ("a2", "My name is Anna.", "Hi", "What is my name?"))):
                begin(name, *messages)
                while server.get("/health").json()["waiting"] < i + 1:
                    time.sleep(0.01)
            for thread in threads:
                thread.join()
            self.assertEqual(order[:2], ["a", "a2"])

    def test_access_log(self):
        with FakeServer("say 66", "--log", "json") as server:
            server.chat("a secret", user="somebody")
            line = server.wait_for(r'(?m)^\{.*"path":"/v1/chat/completions".*\}$').group()
            record = json.loads(line)
            self.assertEqual((record["status"], record["model"], record["completion_tokens"]),
                             (200, "smoe-tiny", 1))
            self.assertNotIn("secret", server.log())

if __name__ == "__main__":
    main()
