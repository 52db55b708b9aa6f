# Steps shared by run.sh, test.sh, install-deps.sh and .ci/run; sourced by bash, from any folder.
#
# Progress goes to stderr, so that the program's own output stays alone on stdout.

set -euo pipefail
HOCKET_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$HOCKET_ROOT"

# Names that are the same in Debian 12, Debian 13 and Ubuntu 24.04.
BUILD_PACKAGES=(g++ cmake ninja-build ccache pkg-config python3 python3-pip
                libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libpcre2-dev libxxhash-dev libssl-dev libedit-dev
                libsndfile1-dev libsoxr-dev libmp3lame-dev libsqlitecpp-dev libsqlite3-dev)
TEST_PACKAGES=(python3-venv libgtest-dev libgmock-dev)
BENCH_PACKAGES=(libbenchmark-dev)
FUZZ_PACKAGES=(clang libclang-rt-dev llvm)  # compiler, libFuzzer with the sanitizers, and what names the lines of a report
CROSS_PACKAGES=(g++-aarch64-linux-gnu qemu-user-static googletest)  # compiler, emulator, and what tests are linked with

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# ---- distribution packages

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s\n' "$package"
  done
}

# install_packages NAME…: installs what is missing, or says what to install and fails without changing anything.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian or Ubuntu: install the equivalents of these packages yourself: $*"
    return 0
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      as_root=(sudo)
    else
      say "These packages are missing and this user may not install them:"
      say "  apt-get install --no-install-recommends ${missing[*]}"
      say "Nothing was changed."
      return 1
    fi
  fi
  say "Installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  "${apt[@]}" update </dev/null >&2 || say "apt-get update failed; trying with the package lists at hand"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2 ||
    die "apt-get could not install ${missing[*]}"
}

# ---- Python

# The distribution's interpreter has pip and venv from the packages above; another one first in PATH may not.
python() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
      "$candidate" "$@"
      return
    fi
  done
  die "Python 3.9 or newer is needed"
}

fetch() { python scripts/fetch.py "$@"; }

# test_venv: build/venv with exactly what tests/requirements.txt pins.
test_venv() {
  local stamp
  stamp=$(cat tests/requirements.txt <(python -c 'import sys; print(sys.version, sys.executable)') | sha256sum)
  [[ -x build/venv/bin/python && $(cat build/venv/.stamp 2>/dev/null) == "$stamp" ]] && return
  say "Preparing build/venv for the tests"
  rm -rf build/venv
  python -m venv build/venv
  build/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
    -r tests/requirements.txt >&2 || die "the packages of tests/requirements.txt could not be installed"
  printf '%s\n' "$stamp" >build/venv/.stamp
}

# ---- build

# A compiler job takes up to about 1 GB, so memory bounds the jobs on small machines.
build_jobs() {
  local memory_gb
  memory_gb=$(awk '/^MemAvailable:/ {print int($2 / 1000000)}' /proc/meminfo)
  local jobs
  jobs=$(nproc)
  ((memory_gb < jobs)) && jobs=$memory_gb
  ((jobs > 0)) || jobs=1
  printf '%s' "${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}"
}

# build PRESET [-DNAME=VALUE…] [-- TARGET…]: configures when the options or the archives' places are new, then builds.
build() {
  local preset=$1 options=() targets=()
  shift
  while (($#)) && [[ $1 != -- ]]; do options+=("$1"); shift; done
  if (($# > 1)); then targets=(--target "${@:2}"); fi

  options+=("-DPython3_EXECUTABLE=$(python -c 'import sys; print(sys.executable)')")
  local wanted stamp=build/$preset/.configured-with
  wanted="$(fetch llama xgrammar) ${options[*]} $(cksum <CMakePresets.json)"
  if [[ ! -e build/$preset/build.ninja || $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
    cmake --preset "$preset" "${options[@]}" >&2
    printf '%s\n' "$wanted" >"$stamp"
  fi
  # ccache keeps its hits when the checkout is cloned to another folder.
  CCACHE_BASEDIR=$HOCKET_ROOT CCACHE_NOHASHDIR=1 \
    cmake --build "build/$preset" --parallel "$(build_jobs)" "${targets[@]}" >&2
}
