"""What programs built on the official client do, against the real program on a real model."""

import base64
import concurrent.futures
import json
import signal
import struct
import time
import urllib.request

import pytest

openai = pytest.importorskip("openai")

HELLO = [{"role": "user", "content": "Say hello in one short sentence."}]
STORY = [{"role": "user", "content": "Write a very long story about the sea."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def wait_until_idle(base_url, limit=10):
    until = time.monotonic() + limit
    while time.monotonic() < until:
        with urllib.request.urlopen(base_url + "/v1/generation/status", timeout=5) as reply:
            if not json.load(reply)["requests"]:
                return True
        time.sleep(0.02)
    return False


def test_chat(client, model):
    reply = client.chat.completions.create(model=model, messages=HELLO, max_tokens=16, seed=1)
    choice = reply.choices[0]
    assert reply.id.startswith("chatcmpl-") and reply.object == "chat.completion" and reply.model == model
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert 1 <= reply.usage.completion_tokens <= 16
    assert reply.system_fingerprint


def test_length_limit(client, model):
    reply = client.chat.completions.create(model=model, messages=STORY, max_completion_tokens=5, max_tokens=50)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 5


def test_stream_equals_body(client, model):
    settings = dict(model=model, messages=HELLO, max_tokens=24, seed=7, temperature=0)
    body = client.chat.completions.create(**settings).choices[0].message.content
    pieces, reasons, usage = [], [], None
    for chunk in client.chat.completions.create(**settings, stream=True, stream_options={"include_usage": True}):
        if chunk.choices:
            assert chunk.usage is None
            pieces.append(chunk.choices[0].delta.content or "")
            reasons.append(chunk.choices[0].finish_reason)
        else:
            usage = chunk.usage
    assert "".join(pieces) == body
    assert reasons[-1] in ("stop", "length") and not any(reasons[:-1])
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_same_seed_same_text(client, model):
    settings = dict(model=model, messages=HELLO, max_tokens=16, seed=11, temperature=1.0)
    texts = {client.chat.completions.create(**settings).choices[0].message.content for _ in range(2)}
    assert len(texts) == 1


def test_stop_is_not_part_of_the_answer(client, model):
    whole = client.chat.completions.create(model=model, messages=STORY, max_tokens=40, temperature=0)
    text = whole.choices[0].message.content
    stop = text[len(text) // 2:][:4]
    cut = client.chat.completions.create(model=model, messages=STORY, max_tokens=40, temperature=0, stop=[stop])
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_several_choices(client, model):
    reply = client.chat.completions.create(model=model, messages=HELLO, n=3, max_tokens=8, temperature=1.0, seed=3)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    seen = set()
    for chunk in client.chat.completions.create(model=model, messages=HELLO, n=2, max_tokens=8, stream=True):
        seen.update(choice.index for choice in chunk.choices)
    assert seen == {0, 1}


def test_logprobs(client, model):
    reply = client.chat.completions.create(model=model, messages=HELLO, max_tokens=4, logprobs=True, top_logprobs=3, temperature=0)
    tokens = reply.choices[0].logprobs.content
    assert len(tokens) == reply.usage.completion_tokens or len(tokens) == reply.usage.completion_tokens - 1
    for token in tokens:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob >= token.logprob
    plain = client.chat.completions.create(model=model, messages=HELLO, max_tokens=2, logprobs=True)
    assert all(token.top_logprobs == [] for token in plain.choices[0].logprobs.content)


def test_json_schema_parses_and_validates(client, model):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    reply = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Invent a person. Answer in JSON."}],
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}},
        max_tokens=200,
        seed=5,
    )
    person = json.loads(reply.choices[0].message.content)
    assert set(person) == {"name", "age"}
    assert isinstance(person["name"], str) and len(person["name"]) <= 20
    assert isinstance(person["age"], int) and 0 <= person["age"] <= 150


def test_impossible_schema_is_refused(client, model):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=model,
            messages=HELLO,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "#/nowhere"}}},
        )
    assert caught.value.param


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_forced_tool(client, model, choice):
    settings = dict(
        model=model,
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        tools=[WEATHER],
        tool_choice=choice,
        max_tokens=200,
        temperature=0,
    )
    reply = client.chat.completions.create(**settings)
    assert reply.choices[0].finish_reason == "tool_calls"
    call = reply.choices[0].message.tool_calls[0]
    assert call.id and call.type == "function" and call.function.name == "get_weather"
    assert isinstance(json.loads(call.function.arguments)["city"], str)

    names, arguments, reason = [], "", None
    for chunk in client.chat.completions.create(**settings, stream=True):
        for delta in chunk.choices[0].delta.tool_calls or []:
            if delta.index == 0:
                if delta.id:
                    names.append(delta.function.name)
                arguments += delta.function.arguments or ""
        reason = chunk.choices[0].finish_reason or reason
    assert names == ["get_weather"] and reason == "tool_calls"
    assert isinstance(json.loads(arguments)["city"], str)


def test_closing_a_stream_cancels_it(client, model, base_url):
    stream = client.chat.completions.create(model=model, messages=STORY, stream=True, max_tokens=2000)
    next(iter(stream))
    stream.close()
    assert wait_until_idle(base_url)


def test_cancel_by_id(client, model, base_url):
    stream = client.chat.completions.create(
        model=model, messages=STORY, stream=True, max_tokens=2000, extra_headers={"X-Request-Id": "scenario-1"}
    )
    iterator = iter(stream)
    next(iterator)
    request = urllib.request.Request(
        base_url + "/v1/cancel", b'{"request_id":"scenario-1"}', {"Content-Type": "application/json"}
    )
    assert urllib.request.urlopen(request, timeout=5).status == 200
    with pytest.raises(openai.APIError):
        for _ in iterator:
            pass
    assert wait_until_idle(base_url)


def test_errors(client, model):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no-such-model", messages=HELLO)
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=[])
    assert caught.value.param == "messages"
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=HELLO, temperature=9)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "word " * 200_000}])
    assert caught.value.code == "context_length_exceeded"


def test_fifty_at_once_and_health_beside_them(client, model, base_url):
    slowest = 0.0
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        replies = [
            pool.submit(client.chat.completions.create, model=model, messages=HELLO, max_tokens=4) for _ in range(50)
        ]
        while not all(reply.done() for reply in replies):
            start = time.monotonic()
            assert urllib.request.urlopen(base_url + "/health", timeout=5).status == 200
            slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.05)
        assert all(reply.result().usage.completion_tokens >= 1 for reply in replies)
    assert slowest < 1.0


def test_embeddings(client, model):
    texts = ["The cat sits on the mat.", "A cat is on a mat.", "Stock prices fell sharply."]
    plain = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert [entry.index for entry in plain.data] == [0, 1, 2]
    packed = client.embeddings.with_raw_response.create(model=model, input=texts, encoding_format="base64")
    raw = json.loads(packed.text if isinstance(packed.text, str) else packed.text())["data"]
    for entry, text in zip(plain.data, raw):
        data = base64.b64decode(text["embedding"])
        assert list(struct.unpack(f"<{len(data) // 4}f", data)) == pytest.approx(entry.embedding, rel=1e-6)
        assert sum(x * x for x in entry.embedding) == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model=model, input="")


def test_completions(client, model):
    reply = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, temperature=0, logprobs=2)
    choice = reply.choices[0]
    assert reply.object == "text_completion" and choice.text
    assert len(choice.logprobs.tokens) == len(choice.logprobs.token_logprobs) == len(choice.logprobs.text_offset)
    streamed = "".join(
        chunk.choices[0].text
        for chunk in client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, temperature=0, stream=True)
    )
    assert streamed == choice.text
    two = client.completions.create(model=model, prompt=["One", "Two"], max_tokens=2)
    assert [c.index for c in two.choices] == [0, 1]


def test_models(client, model):
    assert client.models.retrieve(model).id == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no/such:model")


def test_sigterm_ends_a_stream_and_exits_zero(own_server):
    server = own_server("--drain-timeout", "1")
    own = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60)
    name = own.models.list().data[0].id
    stream = iter(own.chat.completions.create(model=name, messages=STORY, stream=True, max_tokens=7000))
    next(stream)
    start = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    try:
        for _ in stream:
            pass
    except openai.APIError:
        pass  # ended by the shutdown; a short story may have ended by itself
    assert server.process.wait(20) == 0
    assert time.monotonic() - start < 15


def test_api_key(own_server):
    server = own_server("--api-key", "sesame")
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=server.url + "/v1", api_key="wrong", max_retries=0).models.list()
    assert openai.OpenAI(base_url=server.url + "/v1", api_key="sesame", max_retries=0).models.list().data
