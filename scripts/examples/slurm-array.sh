#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Detections by a Slurm array, each task with its part of a list:
#   sbatch --array=1-20 slurm-array.sh model.pbt cases.tsv out/
# cases.tsv is a list of pbt-detect --list, one line per case: a column image, and id where two images
# have one name.
# The names of the outputs are those ids; all tasks write into out/ and its status.tsv. Send it again
# after a failure: finished cases are skipped. pbt-detect takes its threads from the scheduler.
#SBATCH --job-name=pbt-detect
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=00:20:00
#SBATCH --output=%x-%A_%a.log
set -euo pipefail
model=$1 cases=$2 out=$3
task=$((SLURM_ARRAY_TASK_ID - ${SLURM_ARRAY_TASK_MIN:-1}))
tasks=${SLURM_ARRAY_TASK_COUNT:-1}
if ((task >= tasks)); then
  echo "the tasks of the array have no numbers one after the other; use --array=1-N" >&2
  exit 2
fi

# The whole list is checked by every task before it takes its lines: two cases of one id, in whatever
# tasks they were, are an error and not one file. 5 and 7: cases that do not fit into memory or cannot
# be read are the batch's to tell, after the others are done.
code=0
pbt-detect --model "$model" --list "$cases" --output-dir "$out" --write labels,mesh,qc \
  --skip-existing --dry-run --quiet >/dev/null || code=$?
((code == 0 || code == 5 || code == 7)) || exit "$code"

# The header and every line of this task. The part lies beside the list, since paths are relative to
# it; the ending says whether it is TSV or CSV.
base=${cases##*/} ending=tsv
[[ $base == *.* ]] && ending=${base##*.}
part=$(mktemp "$(dirname "$cases")/.part-XXXXXXXX.$ending")
trap 'rm -f "$part"' EXIT
awk -v task="$task" -v tasks="$tasks" \
  'NR == 1 || (NF && n++ % tasks == task)' "$cases" >"$part"
if (($(wc -l <"$part") < 2)); then
  echo "task $SLURM_ARRAY_TASK_ID: no case of $cases is left for it"
  exit 0
fi
code=0
pbt-detect --model "$model" --list "$part" --output-dir "$out" --write labels,mesh,qc \
  --skip-existing || code=$?
# 5 and 7: cases failed, or nothing was found in them; status.tsv says which and why.
exit "$code"
