# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of scripts/examples: a model m.pbt and two cases of one file name that differ,
# images/s1/t1.nii.gz and images/s2/t1.nii.gz with labels, and what a detection of each gives.
fail_test() {
  echo "$*" >&2
  exit 1
}

make_example_cases() {
  make-samples --output-dir s --training 3 --test 0 --size 32,32,20 --spacing_mm 4,4,6 --quiet
  pbt-train --list s/train.tsv --output m.pbt --labels.positive 1 --labels.border_voxels 0 \
    --features.count 1000 --tree.depth 3 --tree.rounds 10 --tree.min_class_samples 1 --quiet
  local case kind
  for case in 1 2; do
    for kind in images labels; do
      mkdir -p "$kind/s$case"
      cp "s/$kind/case_00$case.nii.gz" "$kind/s$case/t1.nii.gz"
    done
    pbt-detect --model m.pbt --input "images/s$case/t1.nii.gz" --output "wanted_$case.nii.gz" --quiet
  done
  ! cmp -s wanted_1.nii.gz wanted_2.nii.gz || fail_test "the two cases do not differ"
  printf 'id\timage\na.1\timages/s1/t1.nii.gz\na.2\timages/s2/t1.nii.gz\n' >cases.tsv
}
