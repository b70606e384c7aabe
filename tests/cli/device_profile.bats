#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/device-profile, in a small tree with benchmarks and an ncu that only say what they were asked.

load helpers

bundle() {
  mkdir -p tree/bin tree/libexec/larch tools
  cp "$LARCH_SOURCE_DIR"/scripts/device-profile "$LARCH_SOURCE_DIR"/scripts/larch_runs.py tree/libexec/larch/
  touch tree/bin/pbt-detect
  cat > tree/libexec/larch/larch-benchmarks <<'SH'
#!/bin/sh
echo "grow/radius:3/cuda:0"
SH
  cat > tools/ncu <<'SH'
#!/bin/sh
echo "$@" >> asked.txt
case "$*" in
  *details*)
    echo '==PROF== Connected'
    echo '"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'
    [ -z "$EMPTY" ] && echo '"0","grow","Scheduler Statistics","Issued Warp Per Scheduler","inst/cycle","0.73"'
    echo '"0","grow","Source Counters","Branches","inst","4"' ;;
  *source*)
    echo '"Kernel Name","void grow<(bool)1>(Run)",'
    echo '"Address","Source","Warp Stall Sampling (All Samples)","Warp Stall Sampling (Not-issued Samples)"'
    echo '"0x10","FADD R1, R2, R3","1","1"'
    echo '"0x20","BAR.SYNC 0x0","3","2"' ;;
  *)
    while [ $# -gt 0 ]; do [ "$1" = --export ] && touch "$2.ncu-rep"; shift; done ;;
esac
SH
  chmod +x tree/libexec/larch/larch-benchmarks tools/ncu
}

@test "counters and the instructions with most samples are printed for each benchmark" {
  bundle
  PATH=$PWD/tools:$PATH expect 0 tree/libexec/larch/device-profile 'grow' grow_kernel --keep reports
  /usr/bin/python3 - <<'PY'
import json
found = json.load(open('out.txt'))['grow/radius:3/cuda:0']
assert found['metrics'] == {'Scheduler Statistics: Issued Warp Per Scheduler': '0.73 inst/cycle'}, found
assert found['instructions'] == [['25.0 %', 0, 'FADD R1, R2, R3'], ['75.0 %', 1, 'BAR.SYNC 0x0']], found
PY
  has asked.txt "--kernel-name regex:grow_kernel --launch-skip 1 --launch-count 1"
  has asked.txt "--benchmark_filter=^grow/radius:3/cuda:0$"
  [ -e reports/grow_radius_3_cuda_0.ncu-rep ]
}

@test "a kernel that is never launched is an error with the reason" {
  bundle
  EMPTY=1 PATH=$PWD/tools:$PATH expect 3 tree/libexec/larch/device-profile 'grow' other_kernel
  has out.txt "no launch of a kernel that matches other_kernel"
}

@test "without ncu the exit code is 77" {
  bundle
  [ ! -e /usr/local/cuda/bin/ncu ] || skip "there is one"
  PATH=/usr/bin:/bin expect 77 tree/libexec/larch/device-profile 'grow' grow_kernel
  has err.txt "ncu is not installed"
}
