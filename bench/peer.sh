#!/usr/bin/env bash
# Builds the peer that Hocket is compared with: llama.cpp from the same archive, as its own build has it.
#
#   bench/peer.sh                      builds into build/peer and prints that folder's bin
#   bench/peer.sh -m FILE [-p 512] …   builds both programs, then hands the arguments to bench/compare.py
#
# HOCKET_PEER_BUILD names another folder for the peer.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
caller=$OLDPWD

peer=${HOCKET_PEER_BUILD:-build/peer}
install_packages "${BUILD_PACKAGES[@]}"
source_tree=$(fetch llama)

if [[ ! -e $peer/build.ninja ]]; then
  # Upstream's defaults for a machine's own CPU (native, OpenMP); left out is what is neither run nor compared.
  cmake -S "$source_tree" -B "$peer" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF >&2
fi
cmake --build "$peer" --parallel "$(build_jobs)" \
  --target llama-bench llama-batched-bench llama-server llama-tokenize llama-perplexity >&2
peer=$(cd "$peer" && pwd)

if (($# == 0)); then
  printf '%s\n' "$peer/bin"
  exit
fi
build release -- hocket
cd "$caller"
python "$HOCKET_ROOT/bench/compare.py" --hocket "$HOCKET_ROOT/build/release/hocket" \
  --peer "$peer/bin/llama-bench" "$@"
