"""The wire contract, checked byte by byte without a client library (docs/api.md)."""

import http.client
import json
import re
import socket
import time

import pytest


def call(address, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(*address, timeout=120)
    all_headers = {"Content-Type": "application/json"} if body is not None else {}
    all_headers.update(headers or {})
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, all_headers)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, dict(reply.getheaders()), text


def error(text):
    body = json.loads(text)["error"]
    assert isinstance(body["message"], str) and body["message"]
    assert isinstance(body["type"], str)
    assert body["code"] is None or isinstance(body["code"], str)
    assert "param" in body
    return body


@pytest.fixture
def chat(address, model):
    def send(**fields):
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, **fields}
        return call(address, "POST", "/v1/chat/completions", body)

    return send


@pytest.mark.parametrize("path", ["/health", "/livez", "/readyz"])
def test_health(address, path):
    status, _, text = call(address, "GET", path)
    assert status == 200 and json.loads(text) == {"status": "ok"}


@pytest.mark.parametrize(
    "field, value, param",
    [
        ("messages", [], "messages"),
        ("messages", None, "messages"),
        ("messages", [{"role": "wizard", "content": "x"}], "messages[0].role"),
        ("messages", [{"role": "user", "content": None}], "messages[0].content"),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "messages[0].content[0].type"),
        ("max_tokens", 0, "max_tokens"),
        ("max_tokens", -1, "max_tokens"),
        ("temperature", "hot", "temperature"),
        ("temperature", 2.5, "temperature"),
        ("top_p", -0.5, "top_p"),
        ("n", 0, "n"),
        ("n", 100, "n"),
        ("top_logprobs", 2, "top_logprobs"),
        ("stop", ["x"] * 17, "stop"),
        ("logit_bias", {"x": 1}, "logit_bias"),
        ("logit_bias", {"99999999": 1}, "logit_bias"),
        ("response_format", {"type": "yaml"}, "response_format.type"),
        ("response_format", {"type": "json_schema"}, "response_format.json_schema.schema"),
        ("tool_choice", "required", "tool_choice"),
        ("tools", [{"type": "function", "function": {"name": "no spaces"}}], "tools[0].function.name"),
        ("stream", "yes", "stream"),
        ("modalities", ["audio"], "modalities"),
    ],
)
def test_wrong_fields(chat, field, value, param):
    status, _, text = chat(**{field: value})
    assert status == 400
    assert error(text)["param"] == param


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"a":1,"a":2}', b'{"temperature":NaN}', b'{"temperature":1e999}', b'{"model":"\xff"}', b"[" * 5000],
)
def test_broken_json(address, body):
    status, _, text = call(address, "POST", "/v1/chat/completions", body)
    assert status == 400
    assert error(text)["param"] is None


def test_null_equals_absent(chat):
    names = ["temperature", "top_p", "n", "stop", "stream", "tools", "tool_choice", "response_format", "logprobs", "seed", "user"]
    assert chat(**{name: None for name in names})[0] == 200


def test_unknown_fields_are_ignored_or_strict(address, chat, model):
    assert chat(brand_new={"x": 1})[0] == 200
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "brand_new": 1}
    status, _, text = call(address, "POST", "/v1/chat/completions", body, {"X-Hocket-Strict": "true"})
    assert status == 400 and error(text)["param"] == "brand_new"


def test_paths_methods_types(address):
    assert call(address, "GET", "/nothing")[0] == 404
    status, headers, _ = call(address, "GET", "/v1/chat/completions")
    assert status == 405 and "POST" in headers["Allow"]
    assert call(address, "POST", "/v1/chat/completions", b"{}", {"Content-Type": "text/plain"})[0] == 415
    assert call(address, "POST", "/v1/cancel", {"request_id": ""})[0] == 400
    assert call(address, "POST", "/v1/cancel", {"request_id": "nobody"})[0] == 404
    status, _, text = call(address, "POST", "/v1/chat/completions", {"model": "x", "messages": [{"role": "user", "content": "x"}]})
    assert status == 404 and error(text)["code"] == "model_not_found"


def test_stream_events(address, model):
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 4,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    status, headers, text = call(address, "POST", "/v1/chat/completions", body)
    assert status == 200
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert headers["Cache-Control"] == "no-cache" and headers["X-Accel-Buffering"] == "no"
    assert text.endswith(b"data: [DONE]\n\n")
    events = [e for e in text.decode().split("\n\n") if e and e != ": ping"]
    assert events.pop() == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert len({(c["id"], c["created"], c["model"]) for c in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-2]["choices"][0]["delta"] == {} and chunks[-2]["choices"][0]["finish_reason"] in ("stop", "length")
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] > 0
    assert all(c["usage"] is None for c in chunks[:-1])
    assert chunks[-1]["timings"]["predicted_n"] >= 1 and "hocket" in chunks[-1]


def test_request_id(address):
    assert call(address, "GET", "/health", None, {"X-Request-Id": "abc.1"})[1]["X-Request-Id"] == "abc.1"
    ids = {call(address, "GET", "/health")[1]["X-Request-Id"] for _ in range(2)}
    assert len(ids) == 2 and all(len(i) >= 24 for i in ids)


def test_foreign_host_is_refused(address):
    assert call(address, "GET", "/health", None, {"Host": "evil.example"})[0] == 403


def test_half_sent_head_is_closed(address):
    start = time.monotonic()
    with socket.create_connection(address, timeout=30) as s:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        data = s.recv(4096)
    assert time.monotonic() - start < 20
    assert data == b"" or b" 408 " in data


def test_half_closed_client_gets_its_answer(address, model):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}).encode()
    with socket.create_connection(address, timeout=120) as s:
        s.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )
        s.shutdown(socket.SHUT_WR)
        data = b""
        while piece := s.recv(65536):
            data += piece
    assert b"HTTP/1.1 200 OK" in data and b'"finish_reason"' in data


def test_tokenize_round_trip(address):
    text = "Hello, wörld 🙂"
    tokens = json.loads(call(address, "POST", "/tokenize", {"content": text})[2])["tokens"]
    assert json.loads(call(address, "POST", "/detokenize", {"tokens": tokens})[2])["content"] == text
    prompt = json.loads(call(address, "POST", "/apply-template", {"messages": [{"role": "user", "content": "Hi"}]})[2])["prompt"]
    assert "Hi" in prompt


def test_metrics_count_requests(address, chat):
    def samples():
        status, headers, text = call(address, "GET", "/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
        return {re.sub(r'model="[^"]*",?', "", name).replace("{}", ""): float(value)
                for name, value in (line.rsplit(" ", 1) for line in lines)}

    before = samples()
    assert before["hocket_ready"] == 1
    status, _, text = chat(max_tokens=3, ignore_eos=True)
    assert status == 200
    own = json.loads(text)["hocket"]
    after = samples()
    grown = {name: after[name] - before[name] for name in before}
    assert grown['hocket_requests_total{outcome="length"}'] == 1
    assert grown["hocket_generated_tokens_total"] == 3
    assert grown["hocket_request_seconds_count"] == grown["hocket_time_to_first_token_seconds_count"] == 1
    assert own["effective_max_tokens"] == own["requested_max_tokens"] == 3
    assert own["sampling"]["seed"] >= 0 and own["rss_bytes"] > 1e6
