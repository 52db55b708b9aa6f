"""Music from the command line with the tiny models of tests/data/music: from words to files and back."""

import json
import os
import pathlib
import subprocess
import wave

import pytest

BINARY = os.environ.get("HOCKET_BINARY")
MODELS = pathlib.Path(__file__).parent.parent / "data" / "music" / "models"

pytestmark = pytest.mark.skipif(not BINARY, reason="HOCKET_BINARY is not set")

SONG = {
    "caption": "calm piano, soft rain", "lyrics": "[Verse]\nhello\n", "bpm": 90, "duration": 2, "keyscale": "A minor",
    "timesignature": "4", "vocal_language": "en", "seed": 7, "lm_seed": 1, "lm_temperature": 0.0, "lm_cfg_scale": 1.0,
    "inference_steps": 2,
}


def run(*args):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HOCKET_")}
    return subprocess.run([BINARY, *map(str, args)], env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)


def ok(*args):
    result = run(*args, "-t", "1")
    assert result.returncode == 0, result.stderr
    return result.stdout


def synth(*args):
    return ok("synth", "--models", MODELS, "--dit", "dit-turbo.gguf", *args)


def test_words_become_codes_and_codes_a_song(tmp_path):
    request = tmp_path / "song.json"
    request.write_text(json.dumps(SONG))
    assert ok("compose", "--models", MODELS, "-r", request).strip() == str(tmp_path / "song0.json")
    composed = json.loads((tmp_path / "song0.json").read_text())
    codes = composed["audio_codes"].split(",")
    assert 1 <= len(codes) <= 111
    assert composed["seed"] == 7 and composed["caption"] == SONG["caption"]

    composed["audio_codes"] = ",".join(codes[:3])
    request.write_text(json.dumps(composed))
    mp3 = tmp_path / "song.mp3"
    assert synth("-r", request, "-o", mp3, "--keep-latent").split() == [str(mp3), str(tmp_path / "song.latent")]
    assert b'"audio_codes"' in mp3.read_bytes()[:4096]
    assert (tmp_path / "song.latent").stat().st_size == 16 * 256  # 15 frames, rounded up to a patch


def test_one_call_makes_tracks_from_flags(tmp_path):
    written = synth("--caption", "x", "--lyrics", "[Instrumental]", "--duration", "1", "--seed", "3", "--steps", "1",
                    "--tracks", "2", "-o", tmp_path / "rain.wav").split()
    assert written == [str(tmp_path / "rain0.wav"), str(tmp_path / "rain1.wav")]
    sounds = []
    for path in written:
        with wave.open(path) as file:
            assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (48000, 2, 26 * 1920)
            sounds.append(file.readframes(26 * 1920))
    assert sounds[0] != sounds[1]
    assert max(sounds[0]) > 0


def test_sound_goes_to_a_latent_and_back_and_is_understood(tmp_path):
    synth("--caption", "x", "--duration", "0.4", "--seed", "3", "--steps", "1", "--format", "wav32", "-o",
          tmp_path / "a.wav")
    latent = tmp_path / "a.latent"
    ok("vae", "--models", MODELS, "--encode", "-i", tmp_path / "a.wav", "-o", latent)
    assert latent.stat().st_size == 10 * 256
    ok("vae", "--models", MODELS, "--encode", "--q8", "-i", tmp_path / "a.wav", "-o", tmp_path / "a.nac8")
    assert (tmp_path / "a.nac8").read_bytes()[:4] == b"NAC8"
    for source in (latent, tmp_path / "a.nac8"):
        ok("vae", "--models", MODELS, "--decode", "-i", source, "-o", tmp_path / "b.wav", "--format", "wav24")
        with wave.open(str(tmp_path / "b.wav")) as file:
            assert file.getnframes() == 10 * 1920


def test_the_memory_is_planned_without_making_a_song(tmp_path):
    plan = synth("--caption", "x", "--duration", "2", "--plan", "-o", tmp_path / "planned.wav")
    assert [line.split("  ")[0] for line in plan.splitlines()][1:5] == [
        "text encoder", "condition encoder", "transformer", "VAE decoder"]
    assert "most, with one network at a time" in plan and not list(tmp_path.glob("planned*"))
    planner = ok("compose", "--models", MODELS, "--caption", "x", "--duration", "2", "--plan")
    rows = [line.split() for line in planner.splitlines()]
    assert [row[0] for row in rows] == ["weights", "cache", "compute", "program", "total"]
    assert float(rows[4][1]) == pytest.approx(sum(float(row[1]) for row in rows[:4]), abs=0.3)


def test_what_is_wrong_is_named(tmp_path):
    missing = run("synth", "--caption", "x")
    assert missing.returncode == 1 and "--models DIR or --text-encoder FILE" in missing.stderr
    bad = run("synth", "--models", MODELS, "--dit", "dit-turbo.gguf", "--caption", "x", "--format", "ogg")
    assert bad.returncode == 1 and "output_format must be one of" in bad.stderr
    kind = run("synth", "--models", MODELS, "--dit", MODELS / "vae.gguf", "--caption", "x")
    assert kind.returncode == 1 and "acestep-dit" in kind.stderr
    task = run("synth", "--models", MODELS, "--dit", "dit-turbo.gguf", "--caption", "")
    assert task.returncode == 1 and "Caption is required" in task.stderr
    assert run("vae", "--models", MODELS, "-i", "a", "-o", "b").returncode == 2
    assert run("understand", "--models", MODELS).returncode == 2
    (tmp_path / "bad.json").write_text("[1]")
    broken = run("compose", "--models", MODELS, "-r", tmp_path / "bad.json")
    assert broken.returncode == 1 and "Invalid JSON" in broken.stderr
