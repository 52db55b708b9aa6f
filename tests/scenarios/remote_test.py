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
