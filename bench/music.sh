#!/usr/bin/env bash
# What a song costs on this machine: files of real sizes with random weights, each network timed alone, then the program.
#
#   bench/music.sh [FOLDER] [--seconds 30] [--type Q8_0] [-t 2]
#
# FOLDER (build/music-models) keeps the files, about 7 GiB, and those of --type beside them. The processor's peak is
# measured before and after, in seconds of processor time, as the networks are: other work on the machine then disturbs
# less. HOCKET_BENCH_BUILD names a build folder that has the programs already.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

folder=build/music-models seconds=30 type=BF16 threads=$(build_jobs)
while (($#)); do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --type) type=$2; shift 2 ;;
    -t) threads=$2; shift 2 ;;
    -*) die "usage: bench/music.sh [FOLDER] [--seconds S] [--type TYPE] [-t N]" ;;
    *) folder=$1; shift ;;
  esac
done
programs=${HOCKET_BENCH_BUILD:-build/bench}
[[ -n ${HOCKET_BENCH_BUILD:-} ]] || build bench -- hocket peak make_music_models music_bench

[[ -e $folder/bf16/lm-0.6b-bf16.gguf ]] || "$programs/bench/make_music_models" "$folder/bf16"
models=$folder/bf16
if [[ $type != BF16 ]]; then
  models=$folder/${type,,}
  mkdir -p "$models"
  for file in "$folder"/bf16/*.gguf; do
    made=$models/$(basename "$file" -bf16.gguf)-${type,,}.gguf
    [[ -e $made || $file == *vae-* ]] || "$programs/hocket" quantize -q "$file" "$made" "$type"
  done
  ln -sf "$(cd "$folder/bf16" && pwd)/vae-bf16.gguf" "$models/"
fi

"$programs/bench/peak" --cpu-time -t "$threads"
"$programs/bench/music_bench" "$models" --seconds "$seconds" -t "$threads"
"$programs/bench/peak" --cpu-time -t "$threads"

# Then the program as its user has it, with what it said it would take and what it took.
took() {
  python - "$@" <<'PYTHON'
import resource, subprocess, sys, time
began = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{sys.argv[2]}: {time.monotonic() - began:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processor time, "
      f"{used.ru_maxrss / 1024:.0f} MiB resident at most")
sys.exit(status)
PYTHON
}
request=$models/request.json
printf '{"caption": "calm piano, soft rain", "lyrics": "[Instrumental]", "bpm": 90, "keyscale": "A minor",
  "timesignature": "4", "duration": %s, "lm_exact_duration": true, "seed": 1, "lm_seed": 1}\n' "$seconds" >"$request"
"$programs/hocket" compose --models "$models" -r "$request" -t "$threads" --plan
took "$programs/hocket" compose --models "$models" -r "$request" -t "$threads" -q -o "$models/composed.json"
"$programs/hocket" synth --models "$models" -r "$models/composed.json" -t "$threads" --plan
took "$programs/hocket" synth --models "$models" -r "$models/composed.json" -t "$threads" -q -o "$models/song.wav"
