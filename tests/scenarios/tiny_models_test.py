"""Tiny models of other families through the whole server: recurrent states, latents and drafts behind the API."""

import json
import urllib.request
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "lm"
EXACT = ("-ctk", "f32", "-ctv", "f32", "-t", "1", "-b", "16", "-c", "256")
ALWAYS = ("--draft-min", "3", "--draft-p-min", "0")  # a step of a tiny model is too cheap for drafts to pay
PROMPT = "hello world, this is a test of twenty and more tokens in several batches"


def complete(server, model, prompt=PROMPT, **fields):
    body = {"model": model, "prompt": prompt, "max_tokens": 24, "temperature": 0, "ignore_eos": True, **fields}
    request = urllib.request.Request(
        server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def text_of(answer):
    return [choice["text"] for choice in answer["choices"]]


@pytest.mark.parametrize("name", ["bailingmoe3", "kimi", "qwen35moe", "qwen3next", "lfm2", "dsa", "gptoss", "gemma4"])
def test_answers_do_not_depend_on_what_is_remembered(own_server, name):
    server = own_server(*EXACT, model=str(DATA / f"{name}.gguf"))
    cold = complete(server, name)
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    again = complete(server, name)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == cold["usage"]["prompt_tokens"]
    assert text_of(again) == text_of(cold)

    # Another ending: whole batches of the beginning are kept, and the answer is that of a cold server.
    other = complete(server, name, PROMPT + "!")
    cached = other["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 0 and cached % 16 == 0
    assert text_of(own_answer(own_server, name)) == text_of(other)

    both = complete(server, name, n=2)
    assert text_of(both) == text_of(cold) * 2
    assert server.stop() == 0


def own_answer(own_server, name):
    return complete(own_server(*EXACT, model=str(DATA / f"{name}.gguf")), name, PROMPT + "!")


@pytest.mark.parametrize("name", ["qwen35-mtp", "glm4moe-mtp", "deepseek2-mtp"])
def test_a_nextn_block_changes_steps_and_not_the_text(own_server, name):
    model = str(DATA / "mtp" / f"{name}.gguf")
    plain = own_server(*EXACT, "--mtp", "off", model=model)
    drafting = own_server(*EXACT, *ALWAYS, model=model)
    expected = complete(plain, name, max_tokens=100)
    assert expected["hocket"]["draft_n"] == 0
    for _ in range(2):  # cold, and from what is remembered
        answer = complete(drafting, name, max_tokens=100)
        assert text_of(answer) == text_of(expected)
        assert answer["hocket"]["draft_n"] >= answer["hocket"]["draft_n_accepted"] > 0
        assert answer["timings"]["draft_n"] == answer["hocket"]["draft_n"]
    with urllib.request.urlopen(drafting.url + "/props", timeout=10) as response:
        assert json.load(response)["drafts"]["source"] == "mtp"
    with urllib.request.urlopen(drafting.url + "/metrics", timeout=10) as response:
        assert ',result="accepted"}' in response.read().decode()
    assert drafting.stop() == 0 and plain.stop() == 0


def test_a_block_in_a_file_of_its_own(own_server):
    model = str(DATA / "mtp" / "qwen35-mtp.gguf")
    server = own_server(*EXACT, "--mtp", model, *ALWAYS, model=model)
    assert complete(server, "qwen35-mtp", max_tokens=50)["hocket"]["draft_n"] > 0
    assert server.stop() == 0
