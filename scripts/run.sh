#!/usr/bin/env bash
# From a fresh clone to a running program: installs, fetches, builds what is missing, then starts hocket.
#
#   scripts/run.sh                     serves the default model on 127.0.0.1:8080
#   scripts/run.sh run "Say hello"     arguments go to the program …
#   scripts/run.sh serve -m FILE.gguf  … and the default model is used where they name none
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
caller=$OLDPWD  # paths in the arguments are relative to it

# The default model is not fetched for a call that names its own model, or that needs none.
needs_default_model() {
  [[ -z ${HOCKET_MODEL:-} ]] || return 1
  case ${1:-serve} in -h | --help | --version) return 1 ;; esac
  local argument
  for argument in "$@"; do
    case $argument in -m | -m?* | --model | --model=* | *.gguf) return 1 ;; esac
  done
}

install_packages "${BUILD_PACKAGES[@]}"
if needs_default_model "$@"; then
  HOCKET_MODEL=$(fetch smollm2)
  export HOCKET_MODEL
fi
build release -- hocket
cd "$caller"
(($#)) || set -- serve
exec "$HOCKET_ROOT/build/release/hocket" "$@"
