"""`hocket run --url`: the console of a server that runs."""

import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

BINARY = os.environ.get("HOCKET_BINARY", "")
MODEL = os.environ.get("HOCKET_TEST_SMOLLM2", "")

pytestmark = pytest.mark.skipif(not (BINARY and MODEL), reason="HOCKET_BINARY and HOCKET_TEST_SMOLLM2 are not set")
SETTINGS = ("--temp", "0", "-n", "24")


def run(*arguments, text=None, **settings):
    clean = {k: v for k, v in os.environ.items() if k != "HOCKET_MODEL"}
    return subprocess.run(
        [BINARY, "run", *arguments], input=text, capture_output=True, text=True, timeout=120, env=clean, **settings
    )


def running(server):
    with urllib.request.urlopen(server.url + "/v1/generation/status", timeout=10) as reply:
        return json.load(reply)["n_running"]


def test_answers_are_those_of_a_model_loaded_here(own_server):
    server = own_server("-a", "small,other", "--api-key", "sesame")
    here = run("-q", *SETTINGS, "-m", MODEL, "Say hello to a cat.")
    there = run("--url", server.url, "--api-key", "sesame", *SETTINGS, "Say hello to a cat.")
    assert there.returncode == 0 and there.stdout == here.stdout
    assert "tokens/s" in there.stderr and "24 tokens" in there.stderr
    piped = run("--url", server.url, "--api-key", "sesame", "-q", *SETTINGS, "-m", "other", "-", text="Say hello to a cat.\n")
    assert piped.stdout == here.stdout
    # A conversation with two turns: the second answer knows the first.
    talk = run("--url", server.url, "--api-key", "sesame", *SETTINGS, text="My name is Ada.\nWhat is my name?\n")
    alone = run("-q", *SETTINGS, "-m", MODEL, text="My name is Ada.\nWhat is my name?\n")
    assert talk.stdout == alone.stdout
    for arguments, what in (
        (("--url", server.url, "Hi"), "API key"),
        (("--url", server.url, "--api-key", "sesame", "-m", "nothing", "Hi"), 'no model "nothing"; it has small'),
        (("--url", "http://127.0.0.1:1", "Hi"), "cannot reach http://127.0.0.1:1"),
        (("--url", server.url + "/v1", "Hi"), "no address"),
    ):
        failed = run(*arguments)
        assert failed.returncode == 1 and what in failed.stderr, failed.stderr
    assert server.stop() == 0


def test_an_interrupt_ends_the_request(own_server):
    server = own_server()
    command = [BINARY, "run", "--url", server.url, "--temp", "0", "-n", "4000", "Count as far as you can."]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running(server) == 0:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1 and "[stopped]" in errors
    until = time.monotonic() + 10
    while running(server) > 0:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert server.stop() == 0


def test_the_console_of_a_server_in_its_own_terminal():
    command = [BINARY, "serve", "-m", MODEL, "--port", "0", "--console", *SETTINGS]
    talk = "My name is Ada.\nWhat is my name?\n"
    alone = run("-q", *SETTINGS, "-m", MODEL, text=talk)
    # The end of the input ends the server; answers are those of `hocket run`.
    piped = subprocess.run(command, input=talk, capture_output=True, text=True, timeout=120)
    ready, answers = piped.stdout.split("}'\n", 1)
    assert piped.returncode == 0 and "hocket ready on" in ready and answers == alone.stdout, piped.stderr
    assert piped.stderr.count("tokens/s") == 2

    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = process.stdout.readline().split()[3]
    process.stdin.write("/set max_tokens 4000\nCount as far as you can.\n")
    process.stdin.flush()

    def status():
        with urllib.request.urlopen(url + "/v1/generation/status", timeout=10) as reply:
            return json.load(reply)["n_running"]

    def wait_for(n):
        until = time.monotonic() + 30
        while status() != n:
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.05)

    wait_for(1)
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "model": "x"}).encode()
    with urllib.request.urlopen(url + "/v1/models", timeout=10) as reply:
        body = body.replace(b'"x"', json.dumps(json.load(reply)["data"][0]["id"]).encode())
    request = urllib.request.Request(url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert json.load(reply)["usage"]["completion_tokens"] == 4
    process.send_signal(signal.SIGINT)  # stops the answer, not the server
    wait_for(0)
    process.stdin.write("Count again.\n")
    process.stdin.flush()
    wait_for(1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and errors.count("[stopped]") == 2, errors

    music = subprocess.run([BINARY, "serve", "--music-models", "/nowhere", "--console"], capture_output=True, text=True,
                           timeout=60, env={k: v for k, v in os.environ.items() if k != "HOCKET_MODEL"})
    assert music.returncode == 2 and "--console talks with a language model" in music.stderr
