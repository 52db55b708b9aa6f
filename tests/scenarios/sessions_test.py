"""Sessions that last: through restarts, forks, exports, and kills at any moment.

HOCKET_CRASH_ROUNDS  how often the server is killed in the crash test (5)
"""

import json
import os
import random
import signal
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "lm"
EXACT = ("-ctk", "f32", "-ctv", "f32", "-t", "1", "-b", "16", "-ub", "16", "-c", "256", "-np", "4")
PROMPT = "hello world, this is a test of twenty and more tokens in several batches"
ROUNDS = int(os.environ.get("HOCKET_CRASH_ROUNDS", "5"))


def call(server, method, path, body=None, kind="application/json", timeout=60):
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": kind} if data is not None else {}, method=method)
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        answer = reply.read()
        return json.loads(answer) if reply.headers["Content-Type"].startswith("application/json") else answer


def refused(server, *arguments, **settings):
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(server, *arguments, **settings)
    return caught.value.code, json.load(caught.value)["error"]["code"]


def complete(server, model, prompt, session=None, **fields):
    body = {"model": model, "prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True, **fields}
    if session:
        body["session_id"] = session
    return call(server, "POST", "/v1/completions", body)


def text(answer):
    return answer["choices"][0]["text"]


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def tiny(name):
    return str(DATA / f"{name}.gguf")


def ask(messages):
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": m} for i, m in enumerate(messages)]


def chat(server, messages, session, **fields):
    body = {"model": call(server, "GET", "/v1/models")["data"][0]["id"], "messages": ask(messages), "max_tokens": 8,
            "temperature": 0, "session_id": session, **fields}
    answer = call(server, "POST", "/v1/chat/completions", body, timeout=300)
    return answer["choices"][0]["message"]["content"], answer


def test_a_conversation_goes_on_after_a_restart(own_server, tmp_path):
    turns = ["Tell me a short story about a fox. " + "Make it a calm one, with rain and a river. " * 3,
             "And now one about an owl."]
    whole = own_server("-c", "512", "-ub", "32")
    first, _ = chat(whole, turns[:1], "talk")
    second, _ = chat(whole, [turns[0], first, turns[1]], "talk")
    assert whole.stop() == 0

    arguments = ("-c", "512", "-ub", "32", "--session-dir", str(tmp_path / "sessions"))
    before = own_server(*arguments)
    said, answer = chat(before, turns[:1], "talk")
    assert said == first
    assert answer["hocket"]["session"]["stored"] == "disk" and answer["hocket"]["session"]["bytes"] > 0
    assert before.stop() == 0

    after = own_server(*arguments)
    assert [s["id"] for s in call(after, "GET", "/v1/sessions")["data"]] == ["talk"]
    said, answer = chat(after, [turns[0], first, turns[1]], "talk")
    assert cached(answer) > 0 and answer["hocket"]["session"]["restored"]
    assert answer["hocket"]["state_lineage"] == "strict"
    if answer["hocket"]["determinism"] == "exact":
        assert said == second
    assert after.stop() == 0


@pytest.mark.parametrize("name", ["llama", "qwen35", "bailingmoe3", "gemma3"])
def test_restored_tokens_are_those_of_a_cold_server(own_server, tmp_path, name):
    arguments = (*EXACT, "--session-dir", str(tmp_path / "sessions"))
    cold = own_server(*EXACT, model=tiny(name))
    expected = text(complete(cold, name, PROMPT + " and on"))
    assert cold.stop() == 0
    first = own_server(*arguments, model=tiny(name))
    complete(first, name, PROMPT, "s")
    assert first.stop() == 0
    second = own_server(*arguments, model=tiny(name))
    answer = complete(second, name, PROMPT + " and on", "s")
    assert cached(answer) > 0 and answer["hocket"]["session"]["restored"]
    assert text(answer) == expected
    assert second.stop() == 0


def test_forks_exports_and_tenants(own_server, tmp_path):
    arguments = (*EXACT, "--session-dir", str(tmp_path / "sessions"))
    server = own_server(*arguments, model=tiny("llama"))
    complete(server, "llama", PROMPT, "a", user="ann")
    call(server, "POST", "/v1/cache/fork", {"user": "ann", "source_session_id": "a", "target_session_id": "b/2"})
    assert refused(server, "POST", "/v1/cache/fork", {"source_session_id": "a", "target_session_id": "c"}) == \
        (404, "session_not_found")
    ways = {s: text(complete(server, "llama", PROMPT + f" {s}" * 12, s, user="ann")) for s in ("a", "b/2")}
    state = call(server, "GET", "/v1/sessions/b%2F2/state?user=ann")
    assert server.stop() == 0

    server = own_server(*arguments, model=tiny("llama"))
    assert {s["id"] for s in call(server, "GET", "/v1/sessions?user=ann")["data"]} == {"a", "b/2"}
    assert call(server, "GET", "/v1/sessions")["data"] == []
    assert cached(complete(server, "llama", PROMPT + " a" * 12, "a", user="bob")) == 0
    for s, said in ways.items():
        answer = complete(server, "llama", PROMPT + f" {s}" * 12, s, user="ann")
        assert answer["hocket"]["cache_status"] == "exact_prompt_hit" and text(answer) == said
    call(server, "DELETE", "/v1/sessions/a?user=ann")
    assert refused(server, "GET", "/v1/sessions/a/state?user=ann") == (404, "session_not_found")

    call(server, "PUT", "/v1/sessions/copy/state?user=carl", state, "application/octet-stream")
    answer = complete(server, "llama", PROMPT + " b/2" * 12, "copy", user="carl")
    assert answer["hocket"]["cache_status"] == "exact_prompt_hit" and text(answer) == ways["b/2"]
    assert refused(server, "PUT", "/v1/sessions/copy/state", state[:-1], "application/octet-stream") == \
        (400, "session_damaged")
    other = own_server(*EXACT, model=tiny("qwen3"))
    assert refused(other, "PUT", "/v1/sessions/x/state", state, "application/octet-stream") == (409, "session_model")
    status = call(server, "GET", "/v1/cache/status")
    assert status["persistent"] and status["sessions"]["sessions"] == 3
    assert call(server, "POST", "/v1/cache/clear", {})["sessions"] == 3
    assert server.stop() == 0 and other.stop() == 0


def test_a_folder_has_one_server(own_server, tmp_path):
    folder = str(tmp_path / "sessions")
    server = own_server(*EXACT, "--session-dir", folder, model=tiny("llama"))
    second = subprocess.run([os.environ["HOCKET_BINARY"], "serve", "-m", tiny("llama"), "--port", "0", "--session-dir",
                             folder], capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert "another server uses the session folder" in second.stderr
    assert server.stop() == 0


class Acknowledged:
    """What clients were told of their sessions: the prompt that each can go on from, or that it has gone.

    A client notes what it is about to do, and what came of it. Whatever it was not told about may have happened or not.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.certain = {}  # session → prompt, or None
        self.open = {}     # session → what may have become of it

    def begin(self, session, outcome):
        with self.lock:
            self.open[session] = outcome

    def end(self, session, outcome):
        with self.lock:
            self.certain[session] = outcome
            del self.open[session]

    def possible(self, session):
        outcomes = {self.certain.get(session)}
        if session in self.open:
            outcomes.add(self.open[session])
        return outcomes


def client(server, model, known, names, seed, stop):
    """One of several clients, each with sessions of its own. Ends when the server is gone."""
    rng = random.Random(seed)
    try:
        while not stop.is_set():
            session = rng.choice(names)
            action = rng.random()
            if action < 0.6 or not known.certain.get(session):
                prompt = f"{PROMPT} number {rng.randrange(1000)}."
                known.begin(session, prompt)
                told = complete(server, model, prompt, session, max_tokens=4)["hocket"]["session"]
                assert told["stored"] == "disk", told
                known.end(session, prompt)
            elif action < 0.8:
                target = rng.choice([n for n in names if n != session])
                known.begin(target, known.certain[session])
                call(server, "POST", "/v1/cache/fork", {"source_session_id": session, "target_session_id": target})
                known.end(target, known.certain[session])
            else:
                known.begin(session, None)
                call(server, "DELETE", "/v1/sessions/" + urllib.parse.quote(session, safe=""))
                known.end(session, None)
    except urllib.error.HTTPError:
        raise
    except (OSError, json.JSONDecodeError):
        assert stop.is_set(), "the server went away by itself"
    except Exception as error:  # http.client.IncompleteRead and its kin
        assert stop.is_set(), error


def is_of(server, session, prompt):
    """Whether a session's state, as it is exported, has the tokens of this prompt."""
    ids = call(server, "POST", "/tokenize", {"content": prompt, "add_special": False})["tokens"]
    state = call(server, "GET", f"/v1/sessions/{urllib.parse.quote(session, safe='')}/state")
    return struct.pack(f"<{len(ids)}i", *ids) in state


@pytest.mark.parametrize("name", ["llama", "qwen35"])
def test_a_kill_loses_nothing_that_was_acknowledged(own_server, tmp_path, name):
    arguments = (*EXACT, "--session-dir", str(tmp_path / "sessions"))
    seed = int(os.environ.get("HOCKET_CRASH_SEED", random.randrange(1 << 30)))
    print("HOCKET_CRASH_SEED", seed)
    rng = random.Random(seed)
    known = Acknowledged()
    names = [[f"{name}/{c}{i}" for i in range(3)] for c in range(2)]
    reference = own_server(*EXACT, model=tiny(name))  # keeps nothing of what is asked
    n_checked = 0
    for _ in range(ROUNDS + 1):
        server = own_server(*arguments, model=tiny(name))
        # Every session is one of the things that it may be, and goes on as on a server that has never seen it.
        present = {s["id"]: s for s in call(server, "GET", "/v1/sessions")["data"]}
        asked = set()
        for session in [s for group in names for s in group]:
            outcomes = known.possible(session)
            known.open.pop(session, None)
            known.certain[session] = None
            if session not in present:
                assert None in outcomes, (session, outcomes)
                continue
            assert present[session]["usable"], present[session]
            prompts = [p for p in outcomes if p and is_of(server, session, p)]
            assert len(prompts) == 1, (session, outcomes)
            answer = complete(server, name, prompts[0], session)
            assert answer["hocket"]["cache_status"] == "exact_prompt_hit", answer["hocket"]
            assert answer["hocket"]["session"]["restored"] or prompts[0] in asked
            assert text(answer) == text(complete(reference, name, prompts[0], cache_prompt=False))
            asked.add(prompts[0])
            known.certain[session] = prompts[0]
            n_checked += 1
        stop = threading.Event()
        with ThreadPoolExecutor(len(names)) as pool:
            work = [pool.submit(client, server, name, known, group, rng.randrange(1 << 30), stop) for group in names]
            time.sleep(rng.uniform(0.05, 0.6))
            stop.set()
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(30)
            for w in work:
                w.result()
    assert reference.stop() == 0
    assert n_checked > 0
