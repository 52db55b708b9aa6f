"""A mixed load that goes on and on: nothing fails that should not, and memory stays flat.

HOCKET_SOAK_SECONDS  how long (5); 600 is what a release gets, in a build with AddressSanitizer
HOCKET_SOAK_SEED     of what the clients do (a new one each time)
"""

import collections
import http.client
import json
import os
import random
import shutil
import statistics
import threading
import time
import urllib.parse
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "lm"
MODELS = ("llama", "qwen35", "gemma3", "bailingmoe3")
FLAGS = ("-t", "1", "-b", "32", "-c", "512", "-np", "4", "--models-max", "2", "--max-queue", "64",
         "--session-cache-mib", "1", "--session-disk-mib", "2")
SECONDS = float(os.environ.get("HOCKET_SOAK_SECONDS", "5"))
SEED = int(os.environ.get("HOCKET_SOAK_SEED", str(random.randrange(1 << 30))))
N_CLIENTS = 8
WORDS = "hello world this is a test of twenty and more tokens in several batches with rain on the river".split()


class Client:
    """One that does what its dice say, and counts (what, status)."""

    def __init__(self, server, number):
        url = urllib.parse.urlparse(server.url)
        self.address = (url.hostname, url.port)
        self.dice = random.Random(SEED + number)
        self.counts = collections.Counter()
        self.faults = []
        self.ways = [self.complete, self.stream, self.hang_up, self.hold, self.cancel, self.constrained, self.sessions,
                     self.wrong, self.small]

    def words(self, most=60):
        return " ".join(self.dice.choices(WORDS, k=self.dice.randrange(1, most)))

    def body(self, **fields):
        d = self.dice
        body = {"model": d.choice(MODELS), "prompt": self.words(), "max_tokens": d.randrange(1, 16),
                "temperature": d.choice((0, 0.7, 1.5)), "ignore_eos": True, "user": d.choice(("ann", "bob"))}
        if d.random() < 0.4:
            body["session_id"] = d.choice("abcde")
        elif d.random() < 0.2:
            body.update(n=2, logprobs=3)
        return {**body, **fields}

    def send(self, what, method, path, body=None, read=True, expected=(200,), kind="application/json"):
        """The answer's bytes, or the connection with its answer unread."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(*self.address, timeout=120)
        connection.request(method, path, data, {"Content-Type": kind} if data is not None else {})
        reply = connection.getresponse()
        self.counts[what, reply.status] += 1
        # 429 and 503: the queue is full, the cache is; others of its own say so.
        if reply.status not in (*expected, 429, 503):
            self.faults.append((what, reply.status, reply.read()[:500]))
        if not read:
            return connection, reply
        answer = reply.read()
        connection.close()
        return answer

    def complete(self):
        answer = json.loads(self.send("complete", "POST", "/v1/completions", self.body()))
        if "choices" in answer and not all(choice["finish_reason"] for choice in answer["choices"]):
            self.faults.append(("complete", 200, answer))

    def stream(self):
        lines = self.send("stream", "POST", "/v1/completions", self.body(stream=True)).decode().splitlines()
        if lines and lines[0].startswith("data:") and "data: [DONE]" not in lines:
            self.faults.append(("stream", 200, lines[-3:]))

    def hang_up(self):
        connection, reply = self.send("hang up", "POST", "/v1/completions", self.body(stream=True, max_tokens=60), read=False)
        reply.read(self.dice.randrange(1, 400))
        connection.close()

    def named_stream(self, what, then):
        """Calls then(request id) while a stream of that id runs, and reads its end."""
        connection, reply = self.send(what, "POST", "/v1/completions", self.body(stream=True, max_tokens=40, n=1), read=False)
        first = reply.readline().decode()
        if first.startswith("data: {") and '"error"' not in first:
            then(reply.getheader("X-Request-Id"))
        reply.read()
        connection.close()

    def hold(self):
        def pause(name):
            self.send("pause", "POST", "/v1/generation/pause", {"request_id": name}, expected=(200, 404))
            time.sleep(self.dice.random() * 0.05)
            self.send("resume", "POST", "/v1/generation/resume", {"request_id": name}, expected=(200, 404))

        self.named_stream("hold", pause)

    def cancel(self):
        self.named_stream("cancel", lambda name: self.send("cancelling", "POST", "/v1/cancel", {"request_id": name},
                                                           expected=(200, 404)))

    def constrained(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
        self.send("constrained", "POST", "/v1/completions", self.body(json_schema=schema, max_tokens=32, n=1))

    def sessions(self):
        d = self.dice
        user, model, session = d.choice(("ann", "bob")), d.choice(MODELS), d.choice("abcde")
        query = urllib.parse.urlencode({"user": user, "model": model})
        gone = (200, 404, 409)
        way = d.randrange(4)
        if way == 0:
            self.send("list", "GET", f"/v1/sessions?{query}")
        elif way == 1:
            self.send("drop", "DELETE", f"/v1/sessions/{session}?{query}", expected=gone)
        elif way == 2:
            self.send("fork", "POST", "/v1/cache/fork", {"user": user, "model": model, "source_session_id": session,
                                                         "target_session_id": d.choice("abcde")}, expected=(*gone, 400))
        else:
            state = self.send("export", "GET", f"/v1/sessions/{session}/state?{query}", expected=gone)
            self.send("import", "PUT", f"/v1/sessions/{d.choice('abcde')}/state?{query}", state, expected=(200, 400, 409),
                      kind="application/octet-stream")

    def wrong(self):
        bad = self.dice.choice((b"{", b'{"prompt":1e999}', {"model": MODELS[0]}, self.body(temperature="hot"),
                                self.body(max_tokens=0), self.body(prompt=[-1]), self.body(grammar="root ::= ("),
                                self.body(prompt="x " * 4000)))
        self.send("wrong", "POST", "/v1/completions", bad, expected=(400,))
        self.send("unknown model", "POST", "/v1/completions", self.body(model="none"), expected=(404,))

    def small(self):
        self.send("tokenize", "POST", "/tokenize", {"content": self.words(), "model": self.dice.choice(MODELS)})
        for path in ("/health", "/metrics", "/v1/models", "/v1/generation/status"):
            self.send(path, "GET", path)

    def run(self, until):
        while time.monotonic() < until:
            try:
                self.dice.choice(self.ways)()
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.faults.append((type(error).__name__, 0, str(error)))
                if len(self.faults) > 20:
                    return


def resident_mib(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


def test_a_mixed_load_goes_on(own_server, tmp_path, monkeypatch):
    print("HOCKET_SOAK_SEED", SEED)
    # What a sanitizer keeps back of freed memory would look like a leak.
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=16")
    folder = tmp_path / "models"
    folder.mkdir()
    for name in MODELS:
        shutil.copy(DATA / f"{name}.gguf", folder)
    server = own_server("--models-dir", str(folder), "--session-dir", str(tmp_path / "sessions"), *FLAGS, model=False)
    began = time.monotonic()
    clients = [Client(server, i) for i in range(N_CLIENTS)]
    threads = [threading.Thread(target=client.run, args=(began + SECONDS,)) for client in clients]
    for thread in threads:
        thread.start()
    resident = []
    while any(thread.is_alive() for thread in threads):
        assert server.process.poll() is None, "the server is gone"
        resident.append(resident_mib(server.process.pid))
        time.sleep(0.25)
    for thread in threads:
        thread.join()

    counts = sum((client.counts for client in clients), collections.Counter())
    print({f"{what} {status}": n for (what, status), n in sorted(counts.items())})
    assert not [fault for client in clients for fault in client.faults][:5]
    assert {what for what, _ in counts} >= {"complete", "stream", "hang up", "hold", "cancel", "constrained", "wrong"}
    assert sum(n for (_, status), n in counts.items() if status in (429, 503)) < sum(counts.values()) / 10
    quarter = len(resident) // 4
    early, late = statistics.median(resident[quarter:2 * quarter]), statistics.median(resident[-quarter:])
    print(f"resident {early:.1f} MiB in the second quarter, {late:.1f} MiB in the last, {max(resident):.1f} MiB at most")
    if SECONDS >= 300:
        assert late < 1.05 * early + 8, "memory grows"

    status = json.loads(clients[0].send("status", "GET", "/v1/generation/status"))
    deadline = time.monotonic() + 30
    while json.dumps(status).count('"request_id"') and time.monotonic() < deadline:  # of clients that hung up
        time.sleep(0.1)
        status = json.loads(clients[0].send("status", "GET", "/v1/generation/status"))
    assert '"request_id"' not in json.dumps(status)
    assert server.stop() == 0
