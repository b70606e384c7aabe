#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/examples/slurm-array.sh, as Slurm would call it. Usage: slurm_example_test.sh BIN SCRIPT
set -euo pipefail
export PATH=$1:$PATH SLURM_CPUS_PER_TASK=1
script=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
make-samples --output-dir s --training 2 --test 1 --size 24,24,16 --spacing_mm 5,5,7 --quiet
pbt-train --list s/train.tsv --output m.pbt --labels.positive 1 --labels.border_voxels 0 \
  --features.count 200 --tree.depth 1 --tree.min_class_samples 1 --quiet
printf 's/images/case_002.nii.gz\ns/images/case_001.nii.gz\n' >cases.txt
for task in 1 2; do
  SLURM_ARRAY_TASK_ID=$task bash "$script" m.pbt cases.txt out
done
for file in out/case_00{1,2}.{nii.gz,vtk,png,report.json}; do
  [[ -s $file ]] || { echo "$file is missing" >&2; exit 1; }
done
before=$(stat -c %Y.%i out/case_001.nii.gz)
SLURM_ARRAY_TASK_ID=2 bash "$script" m.pbt cases.txt out  # again: skipped
[[ $before == "$(stat -c %Y.%i out/case_001.nii.gz)" ]] || { echo 'not skipped' >&2; exit 1; }
if SLURM_ARRAY_TASK_ID=3 bash "$script" m.pbt cases.txt out; then
  echo 'a task without a case succeeded' >&2
  exit 1
fi
