"""Many jobs of every kind with random cancels and a kill in the middle: nothing is lost, every result is whole.

HOCKET_MIXED_JOBS   how many jobs (15); 100 is what a release gets
HOCKET_MIXED_SEED   of the order and the cancels (a new one each time)
"""

import json
import os
import random
import signal
import time

import pytest

from music_client import FLAGS, SONG, call, call_json, parts_of, post_form, wait

pytestmark = pytest.mark.skipif(not os.environ.get("HOCKET_BINARY"), reason="HOCKET_BINARY is not set")

N_JOBS = int(os.environ.get("HOCKET_MIXED_JOBS", "15"))
SEED = int(os.environ.get("HOCKET_MIXED_SEED", str(random.randrange(1 << 30))))
ENDED = {"done", "failed", "cancelled", "interrupted"}


def requests_with(latent, sound):
    """Functions that submit one of the jobs, by name. Seeds are fixed, so that each has one right result."""
    short = {**SONG, "duration": 0.4}
    synth = {**short, "audio_codes": "1,2,3"}
    return {
        "lm": lambda server: call_json(server, "/lm", SONG),
        "two songs of words": lambda server: call_json(server, "/lm", {**SONG, "lm_batch_size": 2, "lm_temperature": 0.9}),
        "synth": lambda server: call_json(server, "/synth", synth),
        "flac": lambda server: call_json(server, "/synth", {**synth, "output_format": "flac", "solver": "stork4"}),
        "mp3 batch": lambda server: call_json(server, "/synth", {**short, "output_format": "mp3", "synth_batch_size": 3}),
        "cover": lambda server: post_form(server, "/synth", audio=sound,
                                          request=json.dumps({**short, "task_type": "cover"}).encode()),
        "understand": lambda server: post_form(server, "/understand", src_latents=latent,
                                               request=b'{"lm_temperature":0,"lm_seed":1}'),
        "understand sound": lambda server: post_form(server, "/understand", audio=sound,
                                                     request=b'{"lm_temperature":0.8,"lm_seed":5}'),
        "encode": lambda server: post_form(server, "/vae", audio=sound),
        "decode": lambda server: post_form(server, "/vae", src_latents=latent, request=b'{"output_format":"wav24"}'),
    }


def files_of(server, status):
    return [(file["name"], call(server, file["url"])[2]) for file in status["files"]]


def state(server, job):
    return call_json(server, "/job?id=" + job["id"])


def cancel(server, job):
    call_json(server, f"/job?id={job['id']}&cancel=1", b"", method="POST")


def test_mixed_jobs_survive_cancels_and_a_kill(own_server, tmp_path):
    print("HOCKET_MIXED_SEED", SEED)
    dice = random.Random(SEED)
    folder = tmp_path / "jobs"
    flags = (*FLAGS, "--job-dir", str(folder), "--max-jobs", str(N_JOBS + 20))
    server = own_server(*flags, model=False)

    first = call_json(server, "/synth", {**SONG, "duration": 0.4, "audio_codes": "1,2,3"})
    assert wait(server, first)["status"] == "done"
    sound, latent = parts_of(call(server, "/job?result=1&id=" + first["id"])[2])
    submit = requests_with(latent, sound)
    right = {}
    for name, send in submit.items():
        job = send(server)
        status = wait(server, job)
        assert status["status"] == "done", (name, status)
        right[name] = files_of(server, status)
        assert right[name] and all(content for _, content in right[name])

    jobs = []  # [name, job, whether its cancel was asked for, whether that had ended it]

    def send_some(server, n):
        for _ in range(n):
            name = dice.choice(sorted(submit))
            jobs.append([name, submit[name](server), False, False])
            if dice.random() < 0.3:
                entry = dice.choice(jobs)
                cancel(server, entry[1])
                entry[2] = True
                entry[3] = entry[3] or state(server, entry[1])["state"] == "cancelled"
            time.sleep(dice.random() * 0.05)

    send_some(server, N_JOBS // 2)
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(state(server, job)["state"] == "running" for _, job, _, _ in jobs):
        if all(state(server, job)["state"] in ENDED for _, job, _, _ in jobs):
            send_some(server, 1)
    before = {job["id"]: state(server, job)["state"] for _, job, _, _ in jobs}
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()

    server = own_server(*flags, model=False)
    for _, job, _, _ in jobs:  # none is lost, and what had ended stays as it was
        now = state(server, job)["state"]
        assert now == before[job["id"]] or before[job["id"]] in ("queued", "running"), (before[job["id"]], now)
    send_some(server, N_JOBS - len(jobs))
    assert len(jobs) >= N_JOBS

    counts = {}
    for name, job, asked, ended in jobs:
        status = wait(server, job, limit=600)
        counts[status["state"]] = counts.get(status["state"], 0) + 1
        if ended:
            assert status["state"] == "cancelled", (name, status)
        elif asked:  # it may have been done before, or the kill came before its next step
            assert status["state"] in ("cancelled", "done"), (name, status)
        else:
            assert status["state"] == "done", (name, status)
        if status["state"] == "done":
            assert files_of(server, status) == right[name], name
    print(counts)
    assert counts.get("done", 0) > 0
    assert len(call_json(server, "/v1/jobs")["data"]) == len(jobs) + len(submit) + 1
    assert server.stop() == 0

    # Another start finds the same, and nothing half written.
    server = own_server(*flags, model=False)
    for name, job, _, _ in jobs:
        status = state(server, job)
        if status["state"] == "done":
            assert files_of(server, status) == right[name], name
    assert not [path for path in folder.iterdir() if ".tmp-" in path.name]
    assert server.stop() == 0
