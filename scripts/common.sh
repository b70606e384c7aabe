# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: messages, timed steps, and where things are.

script_name=$(basename "$0")
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Debian's own interpreter: another python3 on the PATH would not see Debian's numpy and nibabel.
python=/usr/bin/python3

# fail CODE MESSAGE...: ends the script with a message.
fail() {
  local code=$1
  shift
  echo "$script_name: error: $*" >&2
  exit "$code"
}

# step NAME COMMAND...: prints one line before the command and its time after it.
step() {
  local name=$1 start=$SECONDS code=0
  shift
  echo "==> $name"
  "$@" || code=$?
  if ((code != 0)); then
    echo "$script_name: error: '$name' failed with exit code $code after $((SECONDS - start)) s" >&2
    exit "$code"
  fi
  echo "    done in $((SECONDS - start)) s"
}

# Threads that this process may use.
threads=$(nproc)

# configure_quickstart LARCH_WITH_CUDA ARCHITECTURES [CMAKE ARGUMENT]...: configures build/quickstart. Where a
# card answers, CUDA code is built for that card; elsewhere as the first two arguments say. The variable
# LARCH_WITH_CUDA goes before both.
configure_quickstart() {
  local with_cuda=$1 architectures=$2 card='no card answers' cuda_flags='' nvcc
  shift 2
  if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
    with_cuda=AUTO architectures=native card='a card answers'
  fi
  with_cuda=${LARCH_WITH_CUDA:-$with_cuda}
  case $with_cuda in
    OFF) echo "    $card: CUDA code is left out; LARCH_WITH_CUDA=ON builds it" ;;
    *) echo "    $card: CUDA code is built where nvcc is, for ${architectures:-cards of several kinds}" ;;
  esac
  # Kernels for one architecture whose card is missing only have to compile: quickly, if nvcc can.
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  if [[ $architectures == *-real && $("$nvcc" --help 2>/dev/null) == *--Ofast-compile* ]]; then
    cuda_flags=--Ofast-compile=max
  fi
  mkdir -p build/quickstart
  # Without a value CMake chooses as for a release.
  cmake --preset quickstart "-DLARCH_WITH_CUDA=$with_cuda" "-DCMAKE_CUDA_ARCHITECTURES=$architectures" \
    "-DCMAKE_CUDA_FLAGS=$cuda_flags" "$@" \
    >build/quickstart/configure.txt 2>&1 || { tail -n 40 build/quickstart/configure.txt >&2; return 1; }
}
