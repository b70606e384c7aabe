#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Detections by a Slurm array, each task with its part of a list:
#   sbatch --array=1-20 slurm-array.sh model.pbt cases.tsv out/ [FLAG]...
# cases.tsv is a list of pbt-detect --list; its folder is only read. All tasks write into out/ and its
# status.tsv, what the flags say: without flags labels, meshes and pictures. Send it again after a
# failure: finished cases are skipped. A case in which nothing is found is no failure of its task.
# pbt-detect takes its threads from the scheduler.
#SBATCH --job-name=pbt-detect
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=00:20:00
#SBATCH --output=%x-%A_%a.log
set -euo pipefail
model=$1 cases=$2 out=$3
shift 3
task=$((SLURM_ARRAY_TASK_ID - ${SLURM_ARRAY_TASK_MIN:-1} + 1))
tasks=${SLURM_ARRAY_TASK_COUNT:-1}
if ((task > tasks)); then
  echo "the tasks of the array have no numbers one after the other; use --array=1-N" >&2
  exit 2
fi
(($# > 0)) || set -- --write labels,mesh,qc
# Exit codes: 7 says that cases failed, 5 that they did not fit into memory; status.tsv says which and why.
exec pbt-detect --model "$model" --list "$cases" --output-dir "$out" --part "$task,$tasks" \
  --skip-existing --reject-code 0 "$@"
