#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# When CUDA code is built (scripts/cmake/LarchCuda.cmake), with pretended compilers on the PATH, and
# that the build says it at its end. Usage: cuda_rule_test.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CUDACXX
real=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc || true)

# fake_nvcc FOLDER VERSION: says that it is that version, and compiles nothing.
fake_nvcc() {
  mkdir -p "$work/$1"
  printf '#!/bin/sh\n[ "$1" = --version ] || exit 1\necho "Cuda compilation tools, release %s, V%s.89"\n' \
    "$2" "$2" >"$work/$1/nvcc"
  chmod +x "$work/$1/nvcc"
}

# configure NAME PATH ARGUMENT...: the output of cmake, in $output; the build is in $work/NAME.
configure() {
  local name=$1 path=$2
  shift 2
  code=0
  output=$(PATH=$path cmake -S "$source_dir" -B "$work/$name" -G Ninja -DLARCH_WITH_ITK=OFF \
    -DLARCH_BUILD_TESTS=OFF "$@" 2>&1) || code=$?
}

# expect CODE TEXT...: the texts, in the output of the last configuration.
expect() {
  local text
  if ((code != $1)); then
    echo "exit code $code, expected $1: $output" >&2
    exit 1
  fi
  for text in "${@:2}"; do
    # Messages of errors are broken into lines by CMake.
    if ! tr -s ' \n' ' ' <<<"$output" | grep -qF -e "$text"; then
      printf "'%s' is not in:\n%s\n" "$text" "$output" >&2
      exit 1
    fi
  done
}

# A PATH without the nvcc of this machine.
clean=$work/clean
mkdir "$clean"
for tool in cmake ninja c++ g++ cc gcc git; do
  [[ -z $(command -v $tool) ]] || ln -s "$(command -v $tool)" "$clean/$tool"
done
if [[ -e /usr/bin/nvcc || -e /bin/nvcc ]]; then
  echo "skipped: nvcc is in /usr/bin, beside the tools that the test needs"
  exit 77
fi
clean=$clean:/usr/bin:/bin
fake_nvcc old 11.8
fake_nvcc broken 12.4

configure none "$clean" -DLARCH_NVCC_FOLDERS="$work/nowhere"
expect 0 "without CUDA code: no nvcc is on the PATH or in $work/nowhere"
# The last lines of a whole build, which Ninja would run here.
last=$(ninja -C "$work/none" -n | tail -n 1)
[[ $last == *"without CUDA code: no nvcc"* ]] || { echo "the build ends with: $last" >&2; exit 1; }

configure old "$work/old:$clean" -DLARCH_NVCC_FOLDERS="$work/nowhere"
expect 0 "passed over: nvcc 11.8 ($work/old/nvcc) is too old, 12.0 or newer is needed" \
  "without CUDA code: nvcc 11.8"
grep -qF "without CUDA code: nvcc 11.8" "$work/old/built.txt"

configure broken "$work/broken:$clean" -DLARCH_NVCC_FOLDERS="$work/nowhere"
expect 0 "without CUDA code: nvcc 12.4 ($work/broken/nvcc) cannot compile a test program"
configure broken "$clean" -DLARCH_NVCC_FOLDERS="$work/nowhere"  # what was found before does not stay
expect 0 "without CUDA code: no nvcc"

configure insists "$work/old:$clean" -DLARCH_NVCC_FOLDERS="$work/nowhere" -DLARCH_WITH_CUDA=ON
expect 1 "LARCH_WITH_CUDA is ON, but nvcc 11.8"
configure none "$work/old:$clean" -DLARCH_WITH_CUDA=OFF
expect 0 "without CUDA code: LARCH_WITH_CUDA is OFF"

# An old one on the PATH does not hide a new one in the folder of the toolkit.
if [[ -n $real ]] && "$real" --version | grep -qE 'release (1[2-9]|[2-9][0-9])\.'; then
  configure real "$work/old:$clean" -DLARCH_NVCC_FOLDERS="$(dirname "$real")" \
    -DCMAKE_CUDA_ARCHITECTURES=90-real
  expect 0 "passed over: nvcc 11.8" "with CUDA code: nvcc" "architectures 90-real"
fi
