"""What is kept of a conversation saves work and changes no token, where rows do not depend on their steps."""

import json
import random
import urllib.request
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "lm"


def call(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)


def chat(server, messages, **fields):
    body = {"model": "any", "messages": messages, "max_tokens": 24, "temperature": 0, **fields}
    return call(server, "/v1/chat/completions", body)


def said(answer):
    return answer["choices"][0]["message"]["content"]


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_a_conversation_evaluates_only_what_is_new(own_server):
    server = own_server("--any-model")
    messages = [{"role": "system", "content": "You are a helpful assistant who likes short answers. " * 5}]
    before = 0
    for turn in range(5):
        messages.append({"role": "user", "content": f"Question {turn}: tell me something about the number {turn * 7}."})
        cold = chat(server, messages, cache_prompt=False)
        warm = chat(server, messages)
        assert warm["hocket"]["determinism"] == "exact"
        assert said(warm) == said(cold) and cached(cold) == 0
        # All but the new question: of the answer before the last token was not evaluated.
        assert cached(warm) >= before - 2
        if turn > 0:
            assert warm["hocket"]["cache_status"] == "generated_prefix_hit"
        before = warm["usage"]["total_tokens"]
        messages.append({"role": "assistant", "content": said(warm)})
    # The last question asked otherwise: all that comes before it is there.
    messages = messages[:-2] + [{"role": "user", "content": "Something else: which day is it?"}]
    other = chat(server, messages)
    assert said(other) == said(chat(server, messages, cache_prompt=False))
    assert cached(other) > before - 60
    assert server.stop() == 0


@pytest.mark.parametrize("name", ["qwen35", "lfm2", "gemma3", "llama", "gptoss"])
def test_random_conversations_of_every_kind_of_memory(own_server, name):
    """Prompts that begin like earlier prompts and answers, cut anywhere: the tokens are those of a cold run."""
    server = own_server("-t", "2", "-b", "64", "-ub", "16", "-c", "512", "--any-model", model=str(DATA / f"{name}.gguf"))
    ends = [call(server, "/tokenize", {"content": text})["tokens"] for text in ("<|im_end|>", "</s>", "<|endoftext|>")]
    end = next((ids for ids in ends if len(ids) == 1), [0])
    seed = random.randrange(1 << 30)
    choose = random.Random(seed)
    known = [[choose.randrange(5, 60) for _ in range(120)]]
    n_cached = 0
    for _ in range(40):
        base = choose.choice(known)
        prompt = base[: choose.randrange(1, len(base) + 1)]
        if choose.random() < 0.5:
            prompt = prompt + end
        prompt = (prompt + [choose.randrange(5, 60) for _ in range(choose.randrange(0, 30))])[:400]
        body = {"model": "any", "prompt": prompt, "max_tokens": choose.randrange(1, 20), "temperature": 0}
        body |= {"ignore_eos": True, "logprobs": 1}
        warm = call(server, "/v1/completions", body)
        cold = call(server, "/v1/completions", {**body, "cache_prompt": False})
        assert warm["hocket"]["determinism"] == "exact"
        assert warm["choices"][0]["text"] == cold["choices"][0]["text"], f"seed {seed}"
        logprobs = [answer["choices"][0]["logprobs"]["token_logprobs"] for answer in (warm, cold)]
        assert logprobs[0] == logprobs[1], f"seed {seed}"
        n_cached += cached(warm)
        answer = call(server, "/tokenize", {"content": cold["choices"][0]["text"], "parse_special": True})["tokens"]
        known.append(prompt + answer)
    assert n_cached > 100, f"seed {seed}"
    assert server.stop() == 0
