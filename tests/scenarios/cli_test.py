"""The program from outside: exit codes, help, where settings come from, and each command on the small real model.

HOCKET_BINARY names the program, HOCKET_TEST_SMOLLM2 the model file.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.request

import pytest

BINARY = os.environ.get("HOCKET_BINARY", "")
MODEL = os.environ.get("HOCKET_TEST_SMOLLM2", "")
OTHER_MODEL = os.environ.get("HOCKET_TEST_GEMMA3", "")
COMMANDS = ["serve", "run", "inspect", "bench", "logits", "tokenize", "perplexity"]
MUSIC_COMMANDS = ["compose", "synth", "understand", "vae"]

pytestmark = pytest.mark.skipif(not BINARY, reason="HOCKET_BINARY is not set")
needs_model = pytest.mark.skipif(not MODEL, reason="HOCKET_TEST_SMOLLM2 is not set")


def run(*args, env=None, stdin=None, timeout=120):
    """Runs the program with no HOCKET_ settings but those in `env`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")}
    clean.update(env or {})
    return subprocess.run(
        [BINARY, *map(str, args)],
        env=clean,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def settings(*args, env=None):
    """What `serve --print-config` says is in force."""
    result = run("serve", *args, "--print-config", env=env)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if " = " in line]
    return {key: value.strip('"') for key, value in (line.split(" = ", 1) for line in lines)}


# ---- usage


@pytest.mark.parametrize("command", MUSIC_COMMANDS)
def test_help_of_every_music_command(command):
    result = run(command, "--help")
    assert result.returncode == 0
    assert "--models" in result.stdout
    assert "HOCKET_MODELS" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command):
    result = run(command, "--help")
    assert result.returncode == 0
    assert "--model" in result.stdout
    assert "HOCKET_MODEL" in result.stdout


def test_version():
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("hocket ")
    for word in ("compiler:", "ggml:", "CPU features:"):
        assert word in result.stdout


def test_list_devices():
    result = run("--list-devices")
    assert result.returncode == 0
    assert "CPU" in result.stdout


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["juggle"],
        ["serve", "--no-such-flag"],
        ["serve", "--port", "70000"],
        ["serve", "-c", "lots"],
        ["serve", "--cache-type-k", "f12"],
        ["serve"],
        ["serve", "-m", "x.gguf", "--top-p", "1.5"],
        ["serve", "-m", "x.gguf", "--temp", "nan"],
        ["serve", "-m", "x.gguf", "-n", "0"],
        ["run", "x.gguf", "--dry-base", "0.5"],
        ["run"],
        ["inspect"],
        ["bench", "-o", "xml"],
        ["logits", "x.gguf"],
        ["logits", "x.gguf", "--tokens", "1,two"],
        ["perplexity", "x.gguf"],
        ["serve", "--config", "/nonexistent.toml"],
        ["serve", "-m", "x.gguf", "--lookup", "-md", "y.gguf"],
        ["run", "x.gguf", "hello", "--lookup", "-md", "y.gguf"],
        ["serve", "-m", "x.gguf", "--draft-max", "65"],
        ["serve", "-m", "x.gguf", "--draft-p-min", "1.5"],
    ],
)
def test_wrong_usage_is_2(args):
    result = run(*args)
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stderr or result.stdout


@pytest.mark.parametrize("command", ["inspect", "bench", "tokenize"])
def test_a_missing_file_is_1(command):
    result = run(command, "/nonexistent.gguf")
    assert result.returncode == 1
    assert "/nonexistent.gguf" in result.stderr


def test_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 100)
    result = run("inspect", path)
    assert result.returncode == 1
    assert result.stderr.startswith("hocket: ")
    result = run("run", path, "hello")
    assert result.returncode == 1


# ---- where settings come from


def test_flag_beats_environment_beats_file(tmp_path):
    config = tmp_path / "hocket.toml"
    config.write_text('ctx-size = "2K"\nport = 1111\n\n[serve]\nport = 2222\ntimeout = 5\n')
    assert settings("--config", config)["ctx-size"] == "2048"
    assert settings("--config", config)["port"] == "2222"  # the section beats the top
    env = {"HOCKET_PORT": "3333"}
    assert settings("--config", config, env=env)["port"] == "3333"
    assert settings("--config", config, "--port", "4444", env=env)["port"] == "4444"
    assert settings(env={"HOCKET_CONFIG": str(config)})["port"] == "2222"
    assert settings()["port"] == "8080"


def test_settings_of_other_commands_are_left_alone(tmp_path):
    config = tmp_path / "hocket.toml"
    config.write_text("[run]\ntemp = 0.5\n\n[bench]\nrepetitions = 3\n")
    assert "temp" not in settings("--config", config)


@pytest.mark.parametrize("text", ["prot = 1\n", "[serve]\nrepetitions = 3\n", "[juggle]\nport = 1\n", "port = many\n"])
def test_unknown_keys_are_refused(tmp_path, text):
    config = tmp_path / "hocket.toml"
    config.write_text(text)
    result = run("serve", "--config", config, "--print-config")
    assert result.returncode == 2, result.stdout


def test_switches_and_short_names():
    assert settings("-ctk", "f32", "-fa", "off", "-to", "7") | {} == settings(
        "--cache-type-k", "f32", "--flash-attn", "off", "--timeout", "7"
    )
    assert settings(env={"HOCKET_INSECURE": "true"})["insecure"] == "true"
    assert settings("-md", "a.gguf", "--draft", "5") == settings("--model-draft", "a.gguf", "--draft-max", "5")
    drafts = settings(env={"HOCKET_DRAFT_MODEL": "a.gguf", "HOCKET_DRAFT_P_MIN": "0.5"})
    assert drafts["draft-model"] == "a.gguf" and float(drafts["draft-p-min"]) == 0.5


def test_keys_are_not_printed():
    result = run("serve", "--api-key", "secret-key", "--print-config")
    assert "secret-key" not in result.stdout


# ---- the commands


@needs_model
def test_inspect_json():
    result = run("inspect", MODEL, "--json", "--tensors", "-c", "4K")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["can_run"] is True
    assert report["problems"] == []
    assert report["model"]["architecture"] == "llama"
    assert report["memory"]["n_ctx"] == 4096
    assert report["memory"]["total_bytes"] > report["memory"]["cache_bytes"] > 0
    assert report["tokenizer"]["kind"] == "gpt2"
    assert report["chat_template"]["present"] is True
    assert len(report["tensors"]) == report["file"]["tensors"]
    assert sum(t["tensors"] for t in report["types"]) == report["file"]["tensors"]


@needs_model
def test_inspect_text():
    result = run("inspect", MODEL)
    assert result.returncode == 0
    assert "can run: yes" in result.stdout


@needs_model
def test_tokenize_and_back():
    result = run("tokenize", MODEL, "Hello, world!", "--ids")
    assert result.returncode == 0, result.stderr
    ids = json.loads(result.stdout)
    assert ids == [19556, 28, 905, 17]
    back = run("tokenize", MODEL, "--decode", ",".join(map(str, ids)))
    assert back.stdout == "Hello, world!\n"
    piped = run("tokenize", MODEL, "-", "--ids", stdin="Hello, world!")
    assert json.loads(piped.stdout) == ids
    assert json.loads(run("tokenize", MODEL, "<|im_end|>", "--ids").stdout) == [2]
    assert len(json.loads(run("tokenize", MODEL, "<|im_end|>", "--ids", "--no-parse-special").stdout)) > 1
    assert run("tokenize", MODEL, "--decode", "99999999").returncode == 1


@needs_model
def test_logits(tmp_path):
    last = tmp_path / "last.f32"
    every = tmp_path / "all.f32"
    exact = ["-ctk", "f32", "-ctv", "f32", "-fa", "off"]
    assert run("logits", MODEL, "--tokens", "19556,28,905", "-o", last, *exact).returncode == 0
    assert run("logits", MODEL, "--tokens", "19556,28,905", "--all", "-o", every, *exact).returncode == 0
    n_vocab = 49152
    assert last.stat().st_size == 4 * n_vocab
    assert every.stat().st_size == 3 * 4 * n_vocab
    row = struct.unpack(f"<{n_vocab}f", last.read_bytes())
    assert all(abs(x) < 1000 for x in row)
    assert len(set(row)) > n_vocab // 2
    tail = struct.unpack(f"<{n_vocab}f", every.read_bytes()[-4 * n_vocab :])
    assert max(range(n_vocab), key=row.__getitem__) == max(range(n_vocab), key=tail.__getitem__)
    assert run("logits", MODEL, "--tokens", "99999999", "-o", last).returncode == 1
    assert run("logits", MODEL, "--tokens", "1", "-o", tmp_path / "no" / "such").returncode == 1


@needs_model
def test_perplexity(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 8)
    result = run("perplexity", MODEL, "-f", text, "--json")
    assert result.returncode == 0, result.stderr
    values = json.loads(result.stdout)
    assert 1.0 < values["perplexity"] < 20.0  # it repeats itself
    assert values["n_scored"] == values["n_tokens"] - 1


@needs_model
def test_bench_json():
    result = run("bench", MODEL, "-p", "16,32", "-n", "4", "-r", "2", "-t", "2", "-o", "json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [(row["n_prompt"], row["n_gen"]) for row in rows] == [(16, 0), (32, 0), (0, 4)]
    for row in rows:
        assert row["n_threads"] == 2
        assert len(row["samples_ns"]) == len(row["samples_ts"]) == 2
        assert row["avg_ts"] > 0 and row["median_ts"] > 0
    lanes = run("bench", MODEL, "-p", "0", "-n", "8", "-np", "1,4", "-d", "20", "-r", "1", "-o", "json")
    alone, together = json.loads(lanes.stdout)
    assert [alone["n_parallel"], together["n_parallel"], together["n_depth"]] == [1, 4, 20]
    for row, n in ((alone, 1), (together, 4)):
        assert row["avg_ts"] == pytest.approx(8 * n * 1e9 / row["samples_ns"][0], rel=1e-3)
    table = run("bench", MODEL, "-p", "16", "-n", "0", "-r", "1")
    assert "pp16" in table.stdout
    csv = run("bench", MODEL, "-p", "16", "-n", "0", "-r", "1", "-o", "csv")
    assert len(csv.stdout.splitlines()) == 2


# Greedy and on one thread, an answer repeats whatever it says.
ONE_SHOT = ["--temp", "0", "-n", "24", "-t", "1"]
PROMPT = "What is the capital of France?"


@pytest.fixture(scope="module")
def answer():
    result = run("run", MODEL, PROMPT, *ONE_SHOT)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.strip()) > 3
    assert "tokens/s" in result.stderr and "24 tokens" in result.stderr and "length" in result.stderr
    return result.stdout


@needs_model
def test_run_quietly(answer):
    quiet = run("run", MODEL, PROMPT, "-q", *ONE_SHOT)
    assert quiet.stdout == answer
    assert quiet.stderr == ""


@needs_model
def test_run_finds_model_and_prompt(answer):
    env = {"HOCKET_MODEL": MODEL}
    assert run("run", PROMPT, *ONE_SHOT, env=env).stdout == answer
    assert run("run", "-m", MODEL, PROMPT, *ONE_SHOT).stdout == answer
    assert run("run", "-", *ONE_SHOT, env=env, stdin=PROMPT + "\n").stdout == answer
    assert run("run", MODEL, "-", *ONE_SHOT, stdin=PROMPT).stdout == answer
    # The command line beats the environment.
    assert run("run", MODEL, PROMPT, *ONE_SHOT, env={"HOCKET_MODEL": "/nonexistent.gguf"}).stdout == answer
    assert run("run", "-", *ONE_SHOT, stdin=PROMPT).returncode == 2
    assert run("run", MODEL, "-", *ONE_SHOT, stdin="").returncode == 2


@needs_model
def test_run_with_drafts(answer):
    # A model that drafts for itself costs more than it saves: it is not asked, and the steps are the same.
    by_model = run("run", MODEL, PROMPT, *ONE_SHOT, "--model-draft", MODEL)
    assert by_model.returncode == 0, by_model.stderr
    assert by_model.stdout == answer
    text = "The red fox, the blue bird and the green frog went to the old mill by the river."
    by_lookup = run("run", MODEL, f"Repeat three times: {text}", *ONE_SHOT, env={"HOCKET_LOOKUP": "true"})
    assert by_lookup.returncode == 0, by_lookup.stderr
    assert "drafted tokens taken" in by_lookup.stderr
    plan = run("serve", "-m", MODEL, "--plan", "-md", MODEL)
    assert "drafts" in plan.stdout, plan.stderr
    assert run("run", MODEL, PROMPT, "-md", "/nonexistent.gguf").returncode == 1


@needs_model
@pytest.mark.skipif(not OTHER_MODEL, reason="HOCKET_TEST_GEMMA3 is not set")
def test_a_draft_model_of_another_vocabulary():
    result = run("run", MODEL, PROMPT, *ONE_SHOT, "-md", OTHER_MODEL)
    assert result.returncode == 1
    assert "draft model cannot be used" in result.stderr and "tokenizer" in result.stderr


@needs_model
def test_run_converses_over_a_pipe(answer):
    # After /reset the second turn is like the first of a new conversation; what follows /quit is not read.
    first, second = PROMPT.rsplit(" ", 1)
    turns = f'Say "yes".\n/reset\n{PROMPT}\n/reset\n"""{first}\n{second}"""\n/reset\n{first} \\\n{second}\n/quit\nnot read\n'
    result = run("run", MODEL, *ONE_SHOT, stdin=turns)
    assert result.returncode == 0, result.stderr
    assert answer in result.stdout
    assert result.stderr.count("tokens/s") == 4


@needs_model
def test_plan_and_check():
    result = run("serve", "-m", MODEL, "--plan", "-c", "4K")
    assert result.returncode == 0, result.stderr
    assert "4096" in result.stdout and "MiB" in result.stdout
    assert run("serve", "-m", MODEL, "--check-config").returncode == 0
    assert run("serve", "-m", MODEL, "--check-config", "--api-key-file", "/nonexistent").returncode == 1


def test_sampling_flags_are_named_before_a_model_is_read():
    result = run("run", "/nonexistent.gguf", "hello", "--typical", "2")
    assert result.returncode == 2
    assert "--typical" in result.stderr and "/nonexistent" not in result.stderr


@needs_model
def test_list_contexts():
    result = run("serve", "-m", MODEL, "--list-contexts")
    assert result.returncode == 0, result.stderr
    rows = result.stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["4K", "8K", "16K", "32K", "64K", "128K", "256K"]
    assert [("beyond" in row) for row in rows] == [False, False] + [True] * 5  # it was trained with 8192 tokens
    plan = run("serve", "-m", MODEL, "--plan", "-c", "16K").stdout.splitlines()
    assert plan[-1].split()[1] == rows[2].split()[7]


class Serving:
    """A server with extra arguments; what it prints first is in `ready`."""

    def __init__(self, *arguments):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")}
        command = [BINARY, "serve", "-m", MODEL, "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, env=clean, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self):
        self.ready = self.process.stdout.readline()
        self.example = self.process.stdout.readline()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def status(self, path, key=None):
        request = urllib.request.Request(self.ready.split()[3] + path)
        if key:
            request.add_header("Authorization", "Bearer " + key)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    assert condition()


@needs_model
def test_hangup_reloads_keys_and_logs(tmp_path):
    keys, log = tmp_path / "keys", tmp_path / "log"
    keys.write_text("old\n")
    with Serving("--api-key-file", keys, "--log-file", log) as server:
        assert server.status("/v1/models", "old") == 200
        keys.write_text("# changed\nnew\n")
        log.rename(tmp_path / "log.1")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.status("/v1/models", "new") == 200)
        assert server.status("/v1/models", "old") == 401
        wait_for(lambda: log.exists() and "reloaded" in log.read_text())
        # A file without keys must not open the server to everybody.
        keys.write_text("")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "holds no API key" in log.read_text())
        assert server.status("/v1/models", "new") == 200 and server.status("/v1/models") == 401
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0


@needs_model
def test_hangup_without_files_ends():
    with Serving() as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(timeout=30) == 0


@needs_model
def test_unix_socket(tmp_path):
    path = tmp_path / "hocket.sock"
    with Serving("--host", path) as server:
        assert server.ready.startswith(f"hocket ready on unix:{path} (model ")
        assert f"curl --unix-socket {path} http://localhost/v1/chat/completions" in server.example
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


@needs_model
def test_serve_prints_where_and_drains():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")}
    server = subprocess.Popen(
        [BINARY, "serve", "-m", MODEL, "--port", "0", "--alias", "small"],
        env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        ready = server.stdout.readline()
        assert ready.startswith("hocket ready on http://127.0.0.1:"), ready
        assert "(model small)" in ready
        url = ready.split()[3]
        body = json.dumps(
            {"model": "small", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 400, "stream": True}
        )
        request = urllib.request.Request(
            url + "/v1/chat/completions", body.encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert reply.readline().startswith(b"data: ")
            server.send_signal(signal.SIGTERM)
            rest = reply.read()  # the answer goes on to its end
        assert b"[DONE]" in rest
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
        server.communicate()


@needs_model
def test_a_second_signal_stops_at_once():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")}
    server = subprocess.Popen(
        [BINARY, "serve", "-m", MODEL, "--port", "0"],
        env=clean, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        url = server.stdout.readline().split()[3]
        body = json.dumps(
            {"model": os.path.basename(MODEL)[:-5], "stream": True, "ignore_eos": True,
             "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5000}
        )  # fmt: skip
        request = urllib.request.Request(
            url + "/v1/chat/completions", body.encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            reply.readline()
            server.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert server.poll() is None  # it drains
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=10) == 1
    finally:
        server.kill()
        server.communicate()
