"""Runs the real program on a real model, once for all scenarios.

HOCKET_BINARY         the program (required)
HOCKET_TEST_SMOLLM2   the model file (required)
HOCKET_TEST_BASE_URL  use a server that runs already instead, e.g. http://127.0.0.1:8080
"""

import os
import re
import signal
import subprocess
import threading
import urllib.parse

import pytest

READY = re.compile(r"hocket ready on (http://\S+)")


class RunningServer:
    def __init__(self, *arguments, model=None):
        """model: a file; None: the real one; False: a server without a language model."""
        binary = os.environ.get("HOCKET_BINARY")
        model = os.environ.get("HOCKET_TEST_SMOLLM2") if model is None else model
        if not binary or model is None:
            pytest.skip("HOCKET_BINARY and HOCKET_TEST_SMOLLM2 are not set")
        command = [binary, "serve", *(["-m", model] if model else []), "--port", "0", *arguments]
        clean = {k: v for k, v in os.environ.items() if model or k != "HOCKET_MODEL"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean)
        self.url = None
        ready = threading.Event()

        def read_output():
            for line in self.process.stdout:
                found = READY.search(line)
                if found and not self.url:
                    self.url = found.group(1).rstrip("/")
                    ready.set()
            ready.set()

        threading.Thread(target=read_output, daemon=True).start()
        if not ready.wait(120) or not self.url:
            self.process.kill()
            pytest.fail("the server did not become ready")

    def stop(self, timeout=30):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)


@pytest.fixture
def own_server():
    """A function that starts a server of the test's own with extra arguments."""
    servers = []

    def start(*arguments, model=None):
        servers.append(RunningServer(*arguments, model=model))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@pytest.fixture(scope="session")
def base_url():
    given = os.environ.get("HOCKET_TEST_BASE_URL")
    if given:
        yield given.rstrip("/")
        return
    server = RunningServer()
    yield server.url
    assert server.stop() == 0


@pytest.fixture(scope="session")
def address(base_url):
    parts = urllib.parse.urlsplit(base_url)
    return parts.hostname, parts.port


@pytest.fixture(scope="session")
def client(base_url):
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=base_url + "/v1", api_key="none", max_retries=0, timeout=300)


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id
