"""The program under a service manager such as systemd."""

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

MODEL = str(Path(__file__).parent.parent / "data" / "lm" / "qwen3.gguf")
TINY = ("-c", "512", "--threads", "1")

# Becomes the program with descriptor sys.argv[1] as the first passed socket, as the manager would start it.
START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def with_socket(descriptor, *arguments):
    command = [sys.executable, "-c", START, str(descriptor), os.environ["HOCKET_BINARY"], "serve", "-m", MODEL, *TINY]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            pass_fds=(descriptor,))


def until_ready(server):
    for line in server.stdout:
        if "hocket ready on" in line:
            return line
    raise AssertionError(f"not ready: {server.stderr.read()}")


def ask(url, key=""):
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps({"model": "qwen3", "prompt": "a", "max_tokens": 2}).encode(),
                                     {"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["usage"]["completion_tokens"]


def test_a_service_manager_is_told(own_server, tmp_path, monkeypatch):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "400000")
        server = own_server(*TINY, model=MODEL)

        def next_with(word):
            while True:
                message = manager.recv(4096).decode()
                if word in message.split("\n"):
                    return message

        assert "STATUS=" in next_with("READY=1")
        for _ in range(3):
            next_with("WATCHDOG=1")
        server.process.terminate()
        next_with("STOPPING=1")
        assert server.process.wait(30) == 0


def test_it_answers_on_the_socket_it_was_given():
    with socket.create_server(("127.0.0.1", 0)) as held:
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        server = with_socket(held.fileno(), "--host", "0.0.0.0")  # --host does not count, so no key is wanted
        assert url in until_ready(server)
        assert ask(url) == 2
        server.terminate()
        assert server.wait(30) == 0

        # Between two servers clients wait in the socket; none is turned away.
        answers = []
        client = threading.Thread(target=lambda: answers.append(ask(url)))
        client.start()
        client.join(0.3)
        assert client.is_alive()
        server = with_socket(held.fileno(), "--port", "1")
        assert url in until_ready(server)
        client.join(60)
        server.terminate()
        assert server.wait(30) == 0
    assert answers == [2]


def test_a_unix_socket_it_was_given_stays(tmp_path):
    path = str(tmp_path / "hocket.sock")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(path)
        held.listen()
        server = with_socket(held.fileno())
        assert f"unix:{path}" in until_ready(server)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(path)
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        server.terminate()
        assert server.wait(30) == 0
        assert os.path.exists(path)


def test_what_it_cannot_listen_on_is_refused(tmp_path):
    def refusal(descriptor):
        server = with_socket(descriptor)
        _, errors = server.communicate(timeout=30)
        return server.returncode, errors

    with open(tmp_path / "file", "w") as file:
        code, errors = refusal(file.fileno())
    assert (code, "descriptor 3 is no socket that listens" in errors) == (2, True), errors
    with socket.socket() as idle:
        code, errors = refusal(idle.fileno())
    assert (code, "descriptor 3 is no socket that listens" in errors) == (2, True), errors
    with socket.create_server(("", 0)) as open_to_all:
        code, errors = refusal(open_to_all.fileno())
        assert (code, "0.0.0.0 can be reached by other machines" in errors) == (2, True), errors
        server = with_socket(open_to_all.fileno(), "--api-key", "secret")
        until_ready(server)
        assert ask(f"http://127.0.0.1:{open_to_all.getsockname()[1]}", "secret") == 2
        server.terminate()
        assert server.wait(30) == 0


def test_sockets_of_another_process_are_left_alone(own_server, monkeypatch):
    monkeypatch.setenv("LISTEN_FDS", "1")
    monkeypatch.setenv("LISTEN_PID", "1")
    server = own_server(*TINY, model=MODEL)
    assert ask(server.url) == 2
    assert server.stop() == 0
