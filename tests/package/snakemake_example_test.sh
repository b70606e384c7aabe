#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/examples/Snakefile with two cases of one file name in two folders.
# Usage: snakemake_example_test.sh BIN SNAKEFILE
set -euo pipefail
command -v snakemake >/dev/null || { echo "skipped: snakemake is not installed"; exit 77; }
export PATH=$1:$PATH
snakefile=$2
source "$(dirname "$0")/example_cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CACHE_HOME=$work/cache
cd "$work"
make_example_cases
snakemake --snakefile "$snakefile" --cores 2 --config model=m.pbt images=images labels=labels out=out \
  >log.txt 2>&1 || fail_test "$(cat log.txt)"
for case in 1 2; do
  cmp "wanted_$case.nii.gz" "out/s$case/t1.nii.gz"
  grep -q "^s$case/t1	" out/scores.tsv || fail_test "$(cat out/scores.tsv)"
done
