"""Several clients at once, against the real program on a real model."""

import concurrent.futures
import json
import threading
import time
import urllib.request

import pytest

openai = pytest.importorskip("openai")


def ask(text):
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def server(request):
    import conftest

    running = conftest.RunningServer("-np", "4", "--max-queue", "1", "-c", "1024")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def openai_client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=300)


@pytest.fixture(scope="module")
def served(openai_client):
    return openai_client.models.list().data[0].id


def status(server):
    with urllib.request.urlopen(server.url + "/v1/generation/status", timeout=10) as reply:
        return json.load(reply)


def stream(client, model, text, n_tokens, first, request_id=None):
    """Reads a whole stream; `first` is set at its first text. Gives the times of all pieces and the text."""
    headers = {"X-Request-Id": request_id} if request_id else None
    times, pieces = [], []
    for chunk in client.chat.completions.create(model=model, messages=ask(text), max_tokens=n_tokens, temperature=0,
                                                stream=True, extra_headers=headers,
                                                extra_body={"ignore_eos": True}):
        if chunk.choices and chunk.choices[0].delta.content:
            first.set()
            times.append(time.monotonic())
            pieces.append(chunk.choices[0].delta.content)
    return times, "".join(pieces)


def test_streams_progress_together(server, openai_client, served):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        work = [pool.submit(stream, openai_client, served, f"Tell me about the number {i}.", 24, threading.Event())
                for i in range(4)]
        results = [w.result() for w in work]
    # Every stream has begun before any has ended.
    assert max(times[0] for times, _ in results) < min(times[-1] for times, _ in results)
    assert all(text for _, text in results)


def test_cancelling_one_leaves_the_others(server, openai_client, served):
    firsts = [threading.Event() for _ in range(3)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        work = [pool.submit(stream, openai_client, served, "Count upwards.", 40, firsts[i], f"count-{i}")
                for i in range(3)]
        for first in firsts:
            assert first.wait(120)
        body = json.dumps({"request_id": "count-1"}).encode()
        call = urllib.request.Request(server.url + "/v1/cancel", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(call, timeout=10) as reply:
            assert json.load(reply)["cancelled"]
        with pytest.raises(openai.APIError):
            work[1].result()
        assert len(work[0].result()[0]) > 20 and len(work[2].result()[0]) > 20


def test_a_full_server_says_so_and_health_answers(server, openai_client, served):
    firsts = [threading.Event() for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        work = [pool.submit(stream, openai_client, served, "Tell a very long story.", 60, firsts[i]) for i in range(4)]
        for first in firsts:
            assert first.wait(120)
        queued = pool.submit(stream, openai_client, served, "Wait.", 2, threading.Event(), "waiting")
        until = time.monotonic() + 60
        while status(server)["n_queued"] == 0 and time.monotonic() < until:
            time.sleep(0.01)
        assert status(server)["n_running"] == 4
        with pytest.raises(openai.RateLimitError) as refused:
            openai_client.chat.completions.create(model=served, messages=ask("Too much."), max_tokens=2)
        assert refused.value.response.headers["Retry-After"]
        start = time.monotonic()
        with urllib.request.urlopen(server.url + "/health", timeout=10) as reply:
            assert reply.status == 200
        assert time.monotonic() - start < 2
        for w in work:
            w.result()
        assert queued.result()[1]


def test_several_choices_beside_others(server, openai_client, served):
    first = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        work = pool.submit(stream, openai_client, served, "Tell a story.", 30, first)
        assert first.wait(120)
        reply = openai_client.chat.completions.create(model=served, messages=ask("Say a word."), max_tokens=8, n=3, seed=1)
        assert len(reply.choices) == 3
        work.result()
    assert reply.model_extra["hocket"]["determinism"] in ("exact", "steps")


def post(server, path, body):
    call = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=30) as reply:
        return json.load(reply)


def test_acknowledged_chunks_come_one_by_one(server, openai_client, served):
    post(server, "/v1/cache/clear", {})
    text = ""
    settings = dict(model=served, messages=ask("Count to five."), max_tokens=12, temperature=0)
    for chunk in openai_client.chat.completions.create(**settings, stream=True, extra_body={"flow_control": "ack"}):
        flow = chunk.model_extra.get("hocket_flow")
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        if flow:
            # Others are served while this one waits.
            if flow["sequence"] == 3:
                openai_client.chat.completions.create(model=served, messages=ask("Hello."), max_tokens=4)
            post(server, "/v1/flow/ack", flow)
    post(server, "/v1/cache/clear", {})
    plain = openai_client.chat.completions.create(**settings).choices[0].message.content
    assert text == plain


def test_pause_and_resume(server, openai_client, served):
    first = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        work = pool.submit(stream, openai_client, served, "Tell a story.", 40, first, "story")
        assert first.wait(120)
        post(server, "/v1/generation/pause", {"request_id": "story"})
        until = time.monotonic() + 30
        while status(server)["requests"][0]["phase"] != "paused" and time.monotonic() < until:
            time.sleep(0.01)
        held = status(server)["requests"][0]
        assert held["phase"] == "paused"
        time.sleep(0.3)
        assert status(server)["requests"][0]["completion_tokens"] == held["completion_tokens"]
        post(server, "/v1/generation/resume", {"request_id": "story"})
        assert len(work.result()[0]) > 20


def cache_status(server):
    with urllib.request.urlopen(server.url + "/v1/cache/status", timeout=10) as reply:
        return json.load(reply)


def test_what_is_kept_is_told_and_forgotten(server, openai_client, served):
    post(server, "/v1/cache/clear", {})
    before = cache_status(server)["prompts"]
    messages = ask("Repeat after me: " + "all work and no play makes a dull day. " * 30)
    states = [openai_client.chat.completions.create(model=served, messages=messages, max_tokens=4, temperature=0,
                                                    extra_body=extra).model_extra["hocket"]["cache_status"]
              for extra in ({}, {}, {"user": "another"}, {"cache_prompt": False})]
    assert states == ["miss", "exact_prompt_hit", "miss", "disabled"]
    kept = cache_status(server)
    assert kept["users"] == 2 and kept["tokens"] > 300
    more = {name: kept["prompts"][name] - before[name] for name in before}
    assert {name: n for name, n in more.items() if n} == {"miss": 2, "exact_prompt_hit": 1, "disabled": 1}
    post(server, "/v1/cache/clear", {})
    assert cache_status(server)["entries"] == 0
