#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/examples/main.nf with two cases of one file name. Nextflow itself is not packaged for Debian:
# where it is missing, the command of the process is run for each case as Nextflow would, in a folder
# of its own, and the files that match `output:` are published into one folder.
# Usage: nextflow_example_test.sh BIN MAIN_NF
set -euo pipefail
export PATH=$1:$PATH
workflow=$2
source "$(dirname "$0")/example_cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
make_example_cases
if command -v nextflow >/dev/null; then
  NXF_OFFLINE=true nextflow run "$workflow" --model m.pbt --list cases.tsv --out out >log.txt 2>&1 ||
    fail_test "$(cat log.txt)"
else
  mkdir out
  /usr/bin/python3 - "$workflow" >command.sh <<'PYTHON'
import re, sys
text = open(sys.argv[1]).read()
script = re.search(r'script:\s+"""(.*?)"""', text, re.S).group(1)
output = re.search(r'output:\s+path "(.*?)"', text, re.S).group(1)
script = script.replace('\\\n', '').replace('${task.cpus}', '1')  # the rest are variables of the shell
print(script.replace("'", '"'))
print('cp ' + output + ' "$out"')
PYTHON
  for case in 1 2; do
    mkdir -p "task$case/model" "task$case/image"
    cp m.pbt "task$case/model/"
    cp "images/s$case/t1.nii.gz" "task$case/image/"
    (cd "task$case" && id=a.$case model=model/m.pbt image=image/t1.nii.gz out=../out bash -e ../command.sh)
  done
fi
for case in 1 2; do
  cmp "wanted_$case.nii.gz" "out/a.$case.nii.gz"
  [[ -s out/a.$case.vtk ]] || fail_test "out/a.$case.vtk is missing"
done
