#!/usr/bin/env bash
# From a fresh clone to test results: installs, fetches, builds what is missing, then runs ctest.
#
#   scripts/test.sh                    every test but those labelled slow or fuzz
#   scripts/test.sh asan               the tests that need no real model, with AddressSanitizer and UBSan (or tsan)
#   scripts/test.sh fuzz               a minute of every libFuzzer target, built with clang
#   scripts/test.sh aarch64            the CPU kernels and the golden models on emulated 64-bit Arm CPUs
#   scripts/test.sh -R Tokenizer       further arguments go to ctest; -L or -LE replaces the choice of labels
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=dev
case ${1:-} in dev | asan | tsan | fuzz | aarch64) preset=$1; shift ;; esac

if [[ $preset == fuzz ]]; then
  install_packages "${BUILD_PACKAGES[@]}" "${FUZZ_PACKAGES[@]}"
  build fuzz -- fuzz
  exec ctest --test-dir build/fuzz --output-on-failure --no-tests=error --label-regex '^fuzz$' "$@"
fi

if [[ $preset == aarch64 ]]; then
  install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${CROSS_PACKAGES[@]}"
  build aarch64 -- compute_test lm_tiny_test
  # One with the dot product of bytes alone, and one with all that the emulator knows.
  failed=0
  for cpu in neoverse-n1 max; do
    say "On the emulated CPU $cpu"
    QEMU_CPU=$cpu ctest --test-dir build/aarch64 --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" || failed=1
  done
  exit "$failed"
fi

install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
HOCKET_TEST_SMOLLM2=$(fetch smollm2)
HOCKET_TEST_GEMMA3=$(fetch gemma3)
export HOCKET_TEST_SMOLLM2 HOCKET_TEST_GEMMA3
mkdir -p build
test_venv
build "$preset" "-DHOCKET_TEST_PYTHON=$HOCKET_ROOT/build/venv/bin/python"

# A finding of a sanitizer fails the test that met it.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

# A real model takes many times as long in such a build.
left_out='slow|fuzz'
[[ $preset == dev ]] || left_out+='|real|scenario'
labels=(--label-exclude "^($left_out)\$")
for argument in "$@"; do
  case $argument in -L | -LE | --label-regex | --label-exclude) labels=() ;; esac
done
exec ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$(nproc)" "${labels[@]}" "$@"
