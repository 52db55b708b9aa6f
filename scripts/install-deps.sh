#!/usr/bin/env bash
# Installs the distribution packages that a build needs, where they are missing.
#
#   scripts/install-deps.sh [test] [bench] [fuzz] [aarch64]
#
# With neither root nor sudo it prints what to install, changes nothing and exits 1.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

packages=("${BUILD_PACKAGES[@]}")
for use in "$@"; do
  case $use in
    test) packages+=("${TEST_PACKAGES[@]}") ;;
    bench) packages+=("${BENCH_PACKAGES[@]}") ;;
    fuzz) packages+=("${FUZZ_PACKAGES[@]}") ;;
    aarch64) packages+=("${CROSS_PACKAGES[@]}") ;;
    *) say "usage: scripts/install-deps.sh [test] [bench] [fuzz] [aarch64]"; exit 2 ;;
  esac
done
install_packages "${packages[@]}"
