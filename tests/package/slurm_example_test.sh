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
# The folder of the list is only read; a third case, in which nothing is found, is no failure of its task.
mkdir lists
sed 's|images/|../images/|' cases.tsv >lists/cases.tsv
/usr/bin/python3 -c "import nibabel, numpy
nibabel.save(nibabel.Nifti1Image(numpy.zeros((16, 16, 16), 'i2'), numpy.diag([4, 4, 6, 1])), 'images/zeros.nii.gz')"
printf 'none\t../images/zeros.nii.gz\n' >>lists/cases.tsv
before=$(stat -c %y lists)
for task in 1 2; do
  SLURM_ARRAY_TASK_ID=$task bash "$script" m.pbt lists/cases.tsv out
done
for case in 1 2; do
  cmp "wanted_$case.nii.gz" "out/a.$case.nii.gz"
  for file in out/a.$case.{vtk,png,larch.json}; do
    [[ -s $file ]] || fail_test "$file is missing"
  done
done
[[ $(cut -f 1,2 out/status.tsv | tail -n +2 | xargs) == "a.1 ok a.2 ok none rejected" ]] || fail_test "$(cat out/status.tsv)"
before_2=$(stat -c %Y.%i out/a.2.nii.gz)
SLURM_ARRAY_TASK_ID=2 bash "$script" m.pbt lists/cases.tsv out  # again: skipped
[[ $before_2 == "$(stat -c %Y.%i out/a.2.nii.gz)" ]] || fail_test "not skipped"
SLURM_ARRAY_TASK_COUNT=5 SLURM_ARRAY_TASK_ID=5 bash "$script" m.pbt lists/cases.tsv out ||
  fail_test "a task beyond the list fails"
[[ $before == "$(stat -c %y lists)" ]] || fail_test "something was written beside the list"

# Flags of the array are those of the program.
SLURM_ARRAY_TASK_COUNT=1 SLURM_ARRAY_TASK_ID=1 bash "$script" m.pbt lists/cases.tsv flags --write probability --format nrrd
[[ -s flags/a.1.probability.nrrd && ! -e flags/a.1.nii.gz ]] || fail_test "$(ls flags)"

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
