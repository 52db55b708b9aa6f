#!/usr/bin/env bash
# The table of docs/performance.md: files of Qwen3-1.7B's shape in several types, what this machine can do, and Hocket
# beside llama.cpp on each of them in turns.
#
#   bench/table.sh [FOLDER] [--types q4_0,q4_1,q4_k_m,q8_0,bf16,f16] [--rounds 3] [-t 2]
#
# FOLDER (build/bench-models) keeps the files, one to four GB each. The last lines are of Q4_0 alone: eight sequences side
# by side, and one that remembers 4096 tokens.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

folder=build/bench-models types=q4_0,q4_1,q4_k_m,q8_0,bf16,f16 rounds=3 threads=$(build_jobs)
while (($#)); do
  case $1 in
    --types) types=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    -t) threads=$2; shift 2 ;;
    -*) die "usage: bench/table.sh [FOLDER] [--types LIST] [--rounds N] [-t N]" ;;
    *) folder=$1; shift ;;
  esac
done
peer=$(bench/peer.sh)
build bench -- hocket peak make_model
mkdir -p "$folder"

compare() {
  python bench/compare.py --hocket build/bench/hocket --peer "$peer/llama-bench" -t "$threads" --rounds "$rounds" "$@"
}

build/bench/bench/peak -t "$threads"
for type in ${types//,/ }; do
  file=$folder/qwen3-1.7b-$type.gguf
  [[ -e $file ]] || build/bench/bench/make_model qwen3-1.7b "$type" "$file"
  compare -m "$file" -p 512 -n 32 -d 0
done
file=$folder/qwen3-1.7b-q4_0.gguf
if [[ -e $file ]]; then
  compare -m "$file" -p 0 -n 32 -np 1,8
  compare -m "$file" -p 0 -n 32 -d 4096
fi
build/bench/bench/peak -t "$threads"
