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
# In a third image nothing is found.
mkdir images/s3 labels/s3
cp labels/s1/t1.nii.gz labels/s3/
/usr/bin/python3 -c "import nibabel
one = nibabel.load('labels/s1/t1.nii.gz')
nibabel.save(nibabel.Nifti1Image(one.get_fdata().astype('i2') * 0, one.affine), 'images/s3/t1.nii.gz')"
workflow() {
  snakemake "$@" --snakefile "$snakefile" --cores 2 --config model=m.pbt images=images labels=labels out=out >log.txt 2>&1
}
workflow || fail_test "$(cat log.txt)"
for case in 1 2; do
  cmp "wanted_$case.nii.gz" "out/s$case/t1.nii.gz"
done
[[ -s out/s3/t1.nii.gz ]] || fail_test "the outputs of a rejected case are gone: $(cat log.txt)"
for case in 1 2 3; do
  grep -q "^s$case/t1	" out/scores.tsv || fail_test "$(cat out/scores.tsv)"
done

# Scores are not those of earlier cases or references, also if the run ends between the two.
workflow --force out/s1/t1.nii.gz || fail_test "$(cat log.txt)"
[[ ! -e out/scores.tsv ]] || fail_test "the scores are older than their cases"
workflow || fail_test "$(cat log.txt)"
cp labels/s1/t1.nii.gz labels/s2/t1.nii.gz
before=$(cat out/scores.tsv)
workflow || fail_test "$(cat log.txt)"
[[ $before != "$(cat out/scores.tsv)" ]] || fail_test "a new reference is not scored"
