"""Music from a real server with the tiny models of tests/data/music: jobs, files, a kill, a chat beside a song."""

import base64
import json
import os
import signal
import subprocess
import time
import urllib.error

import pytest

from music_client import FLAGS, LONG, SONG, call, call_json, frames, parts_of, post_form, wait, wait_until_runs

pytestmark = pytest.mark.skipif(not os.environ.get("HOCKET_BINARY"), reason="HOCKET_BINARY is not set")


def test_words_become_a_song_by_way_of_two_jobs(own_server):
    server = own_server(*FLAGS, model=False)
    job = call_json(server, "/lm", SONG)
    assert wait(server, job)["status"] == "done"
    composed = call_json(server, "/job?result=1&id=" + job["id"])
    assert len(composed) == 1 and composed[0]["audio_codes"]
    composed[0]["audio_codes"] = "1,2,3,4,5"
    job = call_json(server, "/synth", composed)
    status = wait(server, job)
    assert status["status"] == "done", status
    _, headers, body = call(server, "/job?result=1&id=" + job["id"])
    assert headers["Content-Type"] == "multipart/mixed; boundary=ace-batch-boundary"
    sound, latent = parts_of(body)
    assert frames(sound) == 26 * 1920 and len(latent) == 26 * 256  # 5 codes are 25 frames, rounded up to a patch
    _, _, same = call(server, status["files"][0]["url"])
    assert same == sound

    encoded = post_form(server, "/vae", audio=sound)
    wait(server, encoded)
    assert len(call(server, "/job?result=1&id=" + encoded["id"])[2]) == 26 * 256
    heard = post_form(server, "/understand", src_latents=latent, request=b'{"lm_temperature":0}')
    assert wait(server, heard)["status"] == "done"
    words = json.loads(parts_of(call(server, "/job?result=1&id=" + heard["id"])[2])[0])
    assert len(words[0]["audio_codes"].split(",")) in (5, 6)
    cover = post_form(server, "/synth", request=json.dumps({**SONG, "task_type": "cover"}).encode(), audio=sound)
    assert wait(server, cover)["status"] == "done"
    assert len(call_json(server, "/v1/jobs")["data"]) == 5
    assert server.stop() == 0


def test_one_call_answers_with_sound(own_server):
    server = own_server(*FLAGS, model=False)
    fields = {k: v for k, v in SONG.items() if k not in ("caption", "output_format")}
    request = {"model": "dit-turbo", "prompt": SONG["caption"], "response_format": "wav", "music": {
        **fields, "audio_codes": "1,2,3"}}
    status, headers, sound = call(server, "/v1/audio/generations", request)
    assert status == 200 and headers["Content-Type"] == "audio/wav"
    assert frames(sound) == 16 * 1920
    reply = call_json(server, "/v1/audio/generations", {**request, "output": "b64_json"})
    assert base64.b64decode(reply["data"][0]["b64_json"]) == sound
    with pytest.raises(urllib.error.HTTPError) as refused:
        call(server, "/v1/audio/generations", {**request, "model": "none"})
    assert refused.value.code == 404 and json.loads(refused.value.read())["error"]["param"] == "synth_model"


def test_a_song_can_be_cancelled(own_server):
    server = own_server(*FLAGS, model=False)
    job = call_json(server, "/synth", LONG)
    wait_until_runs(server, job)
    began = time.monotonic()
    assert call_json(server, f"/job?id={job['id']}&cancel=1", b"", method="POST")["status"] == "cancelled"
    assert wait(server, job)["status"] == "cancelled"
    assert time.monotonic() - began < 30
    with pytest.raises(urllib.error.HTTPError) as missing:
        call(server, "/job?result=1&id=" + job["id"])
    assert missing.value.code == 404


def test_nothing_is_lost_in_a_kill(own_server, tmp_path):
    flags = (*FLAGS, "--job-dir", str(tmp_path / "jobs"))
    server = own_server(*flags, model=False)
    done = call_json(server, "/synth", SONG)
    assert wait(server, done)["status"] == "done"
    sound = call(server, f"/v1/jobs/{done['id']}/files/0")[2]
    cut = call_json(server, "/synth", LONG)
    waiting = call_json(server, "/lm", SONG)
    wait_until_runs(server, cut)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()

    again = own_server(*flags, model=False)
    assert call(again, f"/v1/jobs/{done['id']}/files/0")[2] == sound
    wait_until_runs(again, cut)  # once more
    assert call_json(again, "/job?id=" + waiting["id"])["position"] == 1
    again.process.send_signal(signal.SIGKILL)
    again.process.wait()

    third = own_server(*flags, model=False)
    status = wait(third, cut)
    assert status["state"] == "interrupted" and status["status"] == "failed" and status["error"]
    assert wait(third, waiting)["status"] == "done"
    assert all((path.stat().st_mode & 0o077) == 0 for path in (tmp_path / "jobs").iterdir())
    assert third.stop() == 0


def test_chat_goes_on_beside_a_song(own_server):
    server = own_server(*FLAGS)
    job = call_json(server, "/synth", LONG)
    wait_until_runs(server, job)
    model = call_json(server, "/v1/models")["data"][0]["id"]
    reply = call_json(server, "/v1/chat/completions", {
        "model": model, "max_tokens": 8, "messages": [{"role": "user", "content": "Say hello."}]})
    assert reply["choices"][0]["message"]["content"]
    assert call_json(server, "/job?id=" + job["id"])["state"] == "running"
    props = call_json(server, "/props")
    assert "dit-turbo.gguf" in props["models"]["dit"] and props["limits"]
    call_json(server, f"/job?id={job['id']}&cancel=1", b"", method="POST")
    assert server.stop() == 0


def test_a_folder_without_models_is_refused(tmp_path):
    result = subprocess.run([os.environ["HOCKET_BINARY"], "serve", "--port", "0", "--music-models", str(tmp_path)],
                            env={k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")},
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and "no set of music models" in result.stderr


def test_a_song_and_chat_share_the_memory_budget(own_server):
    fields = {k: v for k, v in SONG.items() if k not in ("caption", "output_format", "duration")}
    song = {"model": "dit-turbo", "prompt": SONG["caption"], "response_format": "wav",
            "music": {**fields, "duration": 30, "inference_steps": 1, "lm_exact_duration": True}}
    chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}

    def model_of(server):
        return call_json(server, "/v1/models")["data"][0]

    for budget, status in ((1000, 200), (400, 200), (300, 503)):
        # The model takes about 150 MiB, the song 340.
        server = own_server(*FLAGS, "-c", "2048", "-np", "1", "--memory-budget", str(budget))
        if status == 200:
            assert frames(call(server, "/v1/audio/generations", song)[2]) == 30 * 48000
        else:
            with pytest.raises(urllib.error.HTTPError) as refused:
                call(server, "/v1/audio/generations", song)
            assert refused.value.code == status
            error = json.load(refused.value)["error"]
            assert error["code"] == "out_of_memory" and "--memory-budget" in error["message"]
        model = model_of(server)
        assert model["status"]["value"] == ("unloaded" if budget == 400 else "loaded")
        chat["model"] = model["id"]
        assert call_json(server, "/v1/chat/completions", chat)["usage"]["completion_tokens"] == 4
        assert server.stop() == 0
