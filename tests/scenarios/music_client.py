"""Calls of a music server with the tiny models of tests/data/music."""

import io
import json
import pathlib
import time
import urllib.request
import wave

import pytest

MODELS = pathlib.Path(__file__).parent.parent / "data" / "music" / "models"

SONG = {
    "caption": "calm piano, soft rain", "lyrics": "[Verse]\nhello\n", "bpm": 90, "duration": 1, "keyscale": "A minor",
    "timesignature": "4", "vocal_language": "en", "seed": 7, "lm_seed": 1, "lm_temperature": 0.0, "lm_cfg_scale": 1.0,
    "inference_steps": 2, "output_format": "wav16", "synth_model": "dit-turbo.gguf",
}
LONG = {**SONG, "duration": 20, "inference_steps": 100, "synth_batch_size": 9}
FLAGS = ("--music-models", str(MODELS), "--music-threads", "1")


def call(server, path, body=None, method=None, content_type="application/json"):
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": content_type} if data else {},
                                     method=method)
    with urllib.request.urlopen(request, timeout=300) as response:
        return response.status, response.headers, response.read()


def call_json(server, path, body=None, method=None, **kw):
    return json.loads(call(server, path, body, method, **kw)[2])


def form(**parts):
    body = b"".join(b'--bnd\r\nContent-Disposition: form-data; name="%s"; filename="x"\r\n\r\n%s\r\n' % (k.encode(), v)
                    for k, v in parts.items())
    return body + b"--bnd--\r\n"


def post_form(server, path, **parts):
    return call_json(server, path, form(**parts), content_type="multipart/form-data; boundary=bnd")


def wait(server, job, limit=120):
    until = time.monotonic() + limit
    while time.monotonic() < until:
        status = call_json(server, "/job?id=" + job["id"])
        if status["status"] != "running":
            return status
        time.sleep(0.02)
    pytest.fail(f"the job did not end: {status}")


def wait_until_runs(server, job):
    for _ in range(6000):
        status = call_json(server, "/job?id=" + job["id"])
        if status["state"] == "running" and "progress" in status:
            return
        time.sleep(0.01)
    pytest.fail("the job did not start")


def frames(sound):
    with wave.open(io.BytesIO(sound)) as file:
        assert (file.getframerate(), file.getnchannels()) == (48000, 2)
        return file.getnframes()


def parts_of(body):
    pieces = body.split(b"--ace-batch-boundary")
    assert pieces[0] == b"" and pieces[-1] == b"--\r\n"
    return [piece.split(b"\r\n\r\n", 1)[1][:-2] for piece in pieces[1:-1]]
