#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# One detection a task of a Slurm array:
#   sbatch --array=1-$(wc -l < cases.txt) slurm-array.sh model.pbt cases.txt out/
# cases.txt holds one image or DICOM folder a line. Send it again after a failure: finished cases are
# skipped, outputs are whole or not there, and pbt-detect takes its threads from the scheduler.
#SBATCH --job-name=pbt-detect
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=00:20:00
#SBATCH --output=%x-%A_%a.log
set -euo pipefail
model=$1 cases=$2 out=$3
image=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$cases")
[[ -n $image ]] || { echo "line $SLURM_ARRAY_TASK_ID of $cases is empty" >&2; exit 2; }
name=$(basename "$image")
name=${name%%.*}
mkdir -p "$out"
code=0
pbt-detect --model "$model" --input "$image" --output "$out/$name.nii.gz" --mesh "$out/$name.vtk" \
  --qc "$out/$name.png" --report "$out/$name.report.json" --skip-existing || code=$?
# 7: it ran and found nothing; that is a result, not a failure of the task.
if ((code == 7)); then
  echo "$image: nothing found"
  exit 0
fi
exit "$code"
