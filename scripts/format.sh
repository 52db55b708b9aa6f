#!/usr/bin/env bash
# Formats the C++ sources with the pinned clang-format; with --check it only says what differs, and exits 1 if any does.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
mkdir -p build
test_venv
mapfile -t files < <(find src tests bench \( -name '*.cpp' -o -name '*.h' \) -not -path 'tests/data/*' | sort)
case ${1:-} in
  --check) mode=(--dry-run -Werror) ;;
  '') mode=(-i) ;;
  *) say "usage: scripts/format.sh [--check]"; exit 2 ;;
esac
build/venv/bin/clang-format "${mode[@]}" "${files[@]}" || die "scripts/format.sh puts the above right"
