"""Several models in one server: a folder of them, loaded when they are named, unloaded when others need the room."""

import json
import os
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "lm"
TINY = ("-ctk", "f32", "-ctv", "f32", "-t", "1", "-b", "16", "-c", "256", "-np", "4")
PROMPT = "hello world, this is a test of twenty and more tokens in several batches"


def call(server, method, path, body=None, timeout=60):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        server.url + path, data, {"Content-Type": "application/json"} if data else {}, method=method
    )
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        text = reply.read()
        return json.loads(text) if reply.headers["Content-Type"].startswith("application/json") else text.decode()


def complete(server, model, **fields):
    body = {"model": model, "prompt": PROMPT, "max_tokens": 12, "temperature": 0, "ignore_eos": True, **fields}
    return call(server, "POST", "/v1/completions", body)


def text_of(answer):
    return answer["choices"][0]["text"]


def states(server):
    return {model["id"]: model["status"]["value"] for model in call(server, "GET", "/v1/models")["data"]}


def resident_mib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def eventually(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path):
    for name in ("kimi", "lfm2", "qwen3"):
        os.symlink(DATA / f"{name}.gguf", tmp_path / f"{name}.gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF, or so it says")
    return tmp_path


def test_models_of_a_folder_answer_by_name(own_server, folder):
    server = own_server("--models-dir", str(folder), "-a", "gpt-4o=lfm2", *TINY, model=False)
    assert states(server) == {"kimi": "unloaded", "lfm2": "unloaded", "qwen3": "unloaded"}
    alone = {}
    for name in ("kimi", "lfm2"):
        answer = complete(server, name)
        assert answer["model"] == name
        alone[name] = text_of(answer)
    assert alone["kimi"] != alone["lfm2"]
    assert states(server) == {"kimi": "loaded", "lfm2": "loaded", "qwen3": "unloaded"}
    # Both at the same time, by alias too.
    with_both = {}
    threads = [
        threading.Thread(target=lambda name=name, ask=ask: with_both.update({name: text_of(complete(server, ask))}))
        for name, ask in (("kimi", "kimi"), ("lfm2", "gpt-4o"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert with_both == alone
    for body, status, code in (
        ({"model": "llama", "prompt": "x"}, 404, "model_not_found"),
        ({"prompt": "x"}, 400, None),
        ({"model": "../kimi", "prompt": "x"}, 404, "model_not_found"),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            call(server, "POST", "/v1/completions", body)
        error = json.load(caught.value)["error"]
        assert (caught.value.code, error["code"], error["param"]) == (status, code, "model")
        assert '"kimi", "lfm2", "qwen3"' in error["message"]
    assert call(server, "GET", "/props?model=kimi")["model_alias"] == "kimi"
    assert call(server, "GET", "/props?model=qwen3")["loaded"] is False
    assert call(server, "GET", "/v1/cache/status?model=lfm2")["cached_tokens"] > 0
    metrics = call(server, "GET", "/metrics")
    for name in ("kimi", "lfm2"):
        assert f'hocket_requests_total{{model="{name}",outcome="length"}} 2' in metrics
    assert server.stop() == 0


def test_sessions_belong_to_their_model(own_server, folder, tmp_path):
    arguments = ("--models-dir", str(folder), "--session-dir", str(tmp_path / "sessions"), *TINY)
    server = own_server(*arguments, model=False)
    for name in ("kimi", "lfm2"):
        complete(server, name, session_id="same name")
    assert server.stop() == 0
    server = own_server(*arguments, model=False)
    for name in ("kimi", "lfm2"):
        found = call(server, "GET", f"/v1/sessions?model={name}")["data"]
        assert [session["id"] for session in found] == ["same name"] and found[0]["usable"]
        assert complete(server, name, session_id="same name")["hocket"]["cache_status"] == "exact_prompt_hit"
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(server, "GET", "/v1/sessions")
    assert json.load(caught.value)["error"]["param"] == "model"
    assert server.stop() == 0


def test_one_model_makes_room_for_another(own_server, folder):
    server = own_server("--models-dir", str(folder), "--models-max", "1", *TINY, model=False)
    texts = {name: text_of(complete(server, name)) for name in ("kimi", "lfm2", "qwen3")}
    assert sorted(states(server).values()) == ["loaded", "unloaded", "unloaded"]
    results = []

    def client(number):
        for turn in range(4):
            name = ("kimi", "lfm2", "qwen3")[(number + turn) % 3]
            results.append(text_of(complete(server, name)) == texts[name])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 24
    assert list(states(server).values()).count("loaded") == 1
    assert server.stop() == 0


def test_an_idle_model_gives_its_memory_back(own_server):
    server = own_server("--keep-alive", "1", "-c", "2048")
    name = call(server, "GET", "/v1/models")["data"][0]["id"]
    cold = text_of(complete(server, name))
    loaded = resident_mib(server)
    eventually(lambda: states(server)[name] == "unloaded")
    assert call(server, "GET", "/health") == {"status": "ok"}
    assert resident_mib(server) < loaded - 60  # weights of some 90 MiB
    assert text_of(complete(server, name)) == cold
    assert server.stop() == 0


def test_a_load_does_not_hold_up_a_stream(own_server, folder):
    """The stream of one model goes on while others are loaded, used and unloaded."""
    server = own_server("--models-dir", str(folder), "--models-max", "2")
    name = next(iter(states(server)))
    body = {"model": name, "prompt": PROMPT, "max_tokens": 150, "temperature": 0, "ignore_eos": True, "stream": True}
    request = urllib.request.Request(
        server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    arrivals = []
    with urllib.request.urlopen(request, timeout=60) as stream:
        for line in stream:
            if not line.startswith(b"data: {"):
                continue
            arrivals.append(time.monotonic())
            if len(arrivals) == 5:
                others = threading.Thread(target=lambda: [complete(server, other) for other in ("kimi", "lfm2", "qwen3")])
                others.start()
    others.join()
    assert len(arrivals) >= 100  # some chunks hold more than a token
    assert max(b - a for a, b in zip(arrivals, arrivals[1:])) < 5
    assert states(server)[name] == "loaded"
    assert server.stop() == 0


def test_a_budget_of_memory_is_kept(own_server, folder):
    server = own_server("--models-dir", str(folder), "--memory-budget", "1", *TINY, model=False)
    with pytest.raises(urllib.error.HTTPError) as caught:
        complete(server, "kimi", max_tokens=1)
    error = json.load(caught.value)["error"]
    assert (caught.value.code, error["code"], error["param"]) == (503, "out_of_memory", "model")
    assert "--memory-budget" in error["message"]
    assert server.stop() == 0
