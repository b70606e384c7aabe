#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Files that several processes share, that killed ones left behind, and that are not regular.

load helpers

app() { "$SKELETON" "$@"; }

text_file() { printf 'hello' > a.txt; }

samples() { "$BIN/make-samples" --output-dir "$1" --training 1 --test 0 --size 16,16,16 -q "${@:2}"; }

# leftover FOLDER: what a run that is killed while it writes leaves in the folder, two hours old.
leftover() {
  printf 'hello' > a.txt
  "$SKELETON" -i a.txt -o "$1/killed.txt" --deaf --sleep 60 -q 2>/dev/null &
  local child=$!
  for _ in $(seq 400); do
    if [ -n "$(find "$1" -name '.larch-*.txt' -size +0)" ]; then break; fi
    sleep 0.05
  done
  kill -KILL "$child"
  wait "$child" || true
  left=$(find "$1" -name '.larch-*')
  [ -n "$left" ]
  touch -d '2 hours ago' $left
}

@test "files of another process with the same number stop nobody and stay" {
  samples truth
  mkdir -p s/images s/labels
  # The shell's process number becomes that of the program.
  BIN=$BIN bash -c 'for i in 0 1 2 3 4 5; do
      for d in images labels; do echo "of another container" > "s/$d/.larch-$$-$i.nii.gz"; done
    done
    exec "$BIN/make-samples" --output-dir s --training 1 --test 0 --size 16,16,16 -q --force'
  [ "$(grep -l 'of another container' s/*/.larch-* | wc -l)" -eq 12 ]
  cmp truth/images/case_000.nii.gz s/images/case_000.nii.gz
  cmp truth/labels/case_000.nii.gz s/labels/case_000.nii.gz
}

@test "four processes, each number 1 of its own container, in one folder: each its own case" {
  unshare --pid --fork true 2>/dev/null || skip "process namespaces need a privilege that is missing here"
  for i in 1 2 3 4; do samples "truth$i" --seed "$i"; done
  for round in 1 2 3; do
    rm -rf s
    for i in 1 2 3 4; do
      unshare --pid --fork "$BIN/make-samples" --output-dir s --training 1 --test 0 --size 16,16,16 \
        --seed "$i" --force -q &
    done
    wait
    # All wrote the same names: each file is whole and that of one of them.
    for file in images/case_000.nii.gz labels/case_000.nii.gz; do
      cmp -s truth1/$file s/$file || cmp -s truth2/$file s/$file || cmp -s truth3/$file s/$file ||
        cmp truth4/$file s/$file
    done
    no_temporaries s
  done
}

@test "what a killed run left behind is removed by the next one after an hour, and told" {
  mkdir out
  leftover out
  expect 0 app -i a.txt -o out/b.txt
  has err.txt "removed what an interrupted run left behind: '$left'"
  no_temporaries
  leftover out
  touch $left
  expect 0 app -i a.txt -o out/c.txt
  lacks err.txt "left behind"
  [ -e "$left" ]
}

@test "a temporary that is old but locked, or of another host, stays" {
  mkdir out
  leftover out
  exec 9<>"$left"
  flock 9
  expect 0 app -i a.txt -o out/b.txt
  lacks err.txt "left behind"
  [ -e "$left" ]
  exec 9>&-
  other=out/.larch-0123456789abcdef-00000000000000000000000000000000.txt
  mv "$left" "$other"
  expect 0 app -i a.txt -o out/c.txt
  has err.txt "may belong to another machine are left alone: '$other'"
  [ -e "$other" ]
}
