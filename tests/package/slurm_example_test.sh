#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/examples/slurm-array.sh, as Slurm would call it. Usage: slurm_example_test.sh BIN SCRIPT
set -euo pipefail
export PATH=$1:$PATH SLURM_CPUS_PER_TASK=1 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=2
script=$2
source "$(dirname "$0")/example_cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
make_example_cases
for task in 1 2; do
  SLURM_ARRAY_TASK_ID=$task bash "$script" m.pbt cases.tsv out
done
for case in 1 2; do
  cmp "wanted_$case.nii.gz" "out/a.$case.nii.gz"
  for file in out/a.$case.{vtk,png,larch.json}; do
    [[ -s $file ]] || fail_test "$file is missing"
  done
  [[ $(cut -f 1 out/status.tsv) == *"a.$case"* ]] || fail_test "a.$case is not in status.tsv"
done
before=$(stat -c %Y.%i out/a.2.nii.gz)
SLURM_ARRAY_TASK_ID=2 bash "$script" m.pbt cases.tsv out  # again: skipped
[[ $before == "$(stat -c %Y.%i out/a.2.nii.gz)" ]] || fail_test "not skipped"
SLURM_ARRAY_TASK_COUNT=5 SLURM_ARRAY_TASK_ID=5 bash "$script" m.pbt cases.tsv out |
  grep -q "no case of cases.tsv" || fail_test "a task beyond the list says nothing"

if SLURM_ARRAY_TASK_ID=7 bash "$script" m.pbt cases.tsv out 2>err.txt; then
  fail_test "a gap in the numbers of the tasks was taken"
fi

# Without ids both are 't1': refused by whichever task comes first, before anything is written.
cut -f 2 cases.tsv >names.tsv
for task in 1 2; do
  if SLURM_ARRAY_TASK_ID=$task bash "$script" m.pbt names.tsv out2 2>err.txt; then
    fail_test "two cases of one name were taken"
  fi
  grep -q "the id 't1' stands in line 2 already" err.txt || fail_test "$(cat err.txt)"
done
[[ ! -e out2 ]] || fail_test "out2 was written"
compgen -G '.part-*' && fail_test "a part of the list was left behind"
exit 0
