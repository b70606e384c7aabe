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
  until_in_child has_temporary "$1" txt
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
  has err.txt "perhaps of another machine or user, are left alone: '$other'"
  [ -e "$other" ]
}

# --- what is no regular file

# null NAME: a node like /dev/null under another name.
null() { mknod "$1" c 1 3 2>/dev/null || skip "making a device node needs a privilege that is missing here"; }

@test "6: pipes, devices and descriptors are no outputs, and stay; --report - is standard output" {
  text_file
  mkfifo pipe
  null null.txt
  ln -s null.txt link.txt
  for name in pipe null.txt link.txt /dev/null /dev/stdout /dev/fd/1; do
    for flags in "--output $name" "--output b.txt --copy $name" "--output b.txt --report $name"; do
      expect 6 timeout 60 "$SKELETON" -i a.txt $flags
      has err.txt "'$name'"
      expect 6 timeout 60 "$SKELETON" -i a.txt $flags --force
      has err.txt "'$name'"
    done
  done
  [ -p pipe ] && [ -c null.txt ] && [ -L link.txt ] && [ -c /dev/null ]
  absent b.txt b.txt.json null.txt.json pipe.json
  no_temporaries
  app -i a.txt -o b.txt --report - -q > r.json
  python "assert load('r.json')['status'] == 'done'"
}

@test "a link keeps pointing where it points: its target is replaced or made" {
  text_file
  mkdir data
  echo old > data/old.txt
  ln -s data/old.txt b.txt
  ln -s data/new.txt c.txt
  expect 6 app -i a.txt -o b.txt
  [ "$(cat data/old.txt)" = old ]
  expect 0 app -i a.txt -o b.txt --copy c.txt --force
  [ -L b.txt ]
  [ -L c.txt ]
  [ "$(cat data/old.txt)" = hellohello ]
  [ "$(cat data/new.txt)" = hellohello ]
  ln -s data/new.txt d.txt
  expect 2 app -i a.txt -o c.txt --copy d.txt --force
  has err.txt "would be written twice"
}

# --- the log

@test "a log is not appended to an input or an output, however it is named" {
  text_file
  echo '{}' > c.json
  ln -s a.txt link.txt
  ln a.txt hard.txt
  for log in a.txt ./a.txt link.txt hard.txt b.txt b.txt.tsv r.json c.json new/larch.json; do
    expect 2 app -i a.txt -o b.txt --report r.json --folder new -c c.json --log-file $log
    has err.txt "--log-file: '$log'"
    [ "$(cat a.txt)" = hello ]
    [ "$(cat c.json)" = '{}' ]
    absent b.txt b.txt.json r.json new
  done
  expect 2 app -i a.txt -o b.txt --log-file b.txt.json
  expect 0 app -i a.txt -o b.txt --log-file run.log
  expect 0 app -i a.txt -o b.txt --log-file run.log --force
  [ "$(grep -c 'wrote b.txt' run.log)" -eq 2 ]
  expect 0 app -i a.txt -o b.txt --log-file /dev/null --force
}

@test "a log is not appended to an image that only a list names" {
  samples s --seed 1
  sum=$(sha256sum < s/images/case_000.nii.gz)
  expect 2 "$BIN/pbt-train" --list s/train.tsv --output m.pbt --labels.positive 1 \
    --log-file s/images/case_000.nii.gz
  has err.txt "holds no text"
  [ "$(sha256sum < s/images/case_000.nii.gz)" = "$sum" ]
}

@test "a log in an output folder ends with .log or .txt" {
  mkdir o
  for log in o/c1.nii.gz.json ./o/c1; do
    expect 2 samples o --log-file $log --force
    has err.txt "end its name with .log or .txt"
    absent $log
  done
  expect 0 "$BIN/make-samples" --output-dir o --training 1 --test 0 --size 16,16,16 --log-file o/run.log --force
  has o/run.log "running on"
}

# --- names that the file system refuses

@test "names that are too long and links that go round: 3 for inputs, 6 for outputs, with the name" {
  text_file
  long=$(printf 'n%.0s' $(seq 300)).nii.gz
  ln -s round.nii.gz round.nii.gz
  ln -s folder folder
  for bad in "$long" round.nii.gz folder/x.nii.gz; do
    expect 3 app -i "$bad" -o b.txt
    has err.txt "$bad"
    expect 6 app -i a.txt -o "$bad"
    has err.txt "$bad"
    expect 6 app -i a.txt -o b.txt --folder "$bad"
    has err.txt "$bad"
    expect 6 app -i a.txt -o b.txt --log-file "$bad"
    has err.txt "$bad"
    expect 3 "$BIN/evaluate" --prediction "$bad" --reference "$bad"
    has err.txt "$bad"
    printf 'image\tlabel\n%s\t%s\n' "$bad" "$bad" > l.tsv
    expect 3 "$BIN/pbt-train" --list l.tsv --output m.pbt
    has err.txt "$bad"
    echo "{\"training\": [{\"image\": \"$bad\", \"label\": \"$bad\"}]}" > d.json
    expect 3 "$BIN/pbt-train" --dataset d.json --output m.pbt
    has err.txt "$bad"
    printf 'prediction\treference\n%s\t%s\n' "$bad" "$bad" > p.tsv
    expect 3 "$BIN/evaluate" --list p.tsv
    has err.txt "$bad"
  done
  absent b.txt m.pbt
}

@test "a current folder that was deleted: 6 and no endless search" {
  mkdir gone
  cd gone
  rmdir ../gone
  code=0
  timeout 10 "$BIN/make-samples" --output-dir out --training 1 --test 0 --size 16,16,16 2>"$BATS_TEST_TMPDIR/err.txt" ||
    code=$?
  cd "$BATS_TEST_TMPDIR"
  [ "$code" -eq 6 ]
  has err.txt "change into a folder that exists"
}

@test "headers that name data files which cannot be looked at: 3 with the header's name" {
  long=$(printf 'n%.0s' $(seq 300)).raw
  ln -s round.raw round.raw
  for bad in "$long" round.raw; do
    printf 'ObjectType = Image\nNDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\nElementDataFile = %s\n' "$bad" > x.mhd
    printf 'NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 2\nencoding: raw\ndata file: %s\n\n' "$bad" > x.nhdr
    for name in x.mhd x.nhdr; do
      expect 3 "$BIN/evaluate" --prediction $name --reference $name
      has err.txt "$name"
    done
  done
}

@test "one case of a batch with a name that is too long fails alone" {
  samples s --seed 1
  "$BIN/pbt-train" --list s/train.tsv --output m.pbt --labels.positive 1 \
    --labels.border_voxels 0 --features.count 100 --tree.depth 1 --tree.min_class_samples 1 -q
  long=$(printf 'n%.0s' $(seq 300)).nii.gz
  printf 'image\tid\n%s\tlong\ns/images/case_000.nii.gz\tgood\n' "$long" > l.tsv
  expect 7 "$BIN/pbt-detect" --model m.pbt --list l.tsv --output-dir out
  grep -q "^long	failed	.*$long" out/status.tsv
  [ -s out/good.nii.gz ]
  printf 'image\n%s\ns/images/case_000.nii.gz\n' "$long" > l.tsv
  expect 7 "$BIN/pbt-detect" --model m.pbt --list l.tsv --output-dir out2
  [ -s out2/case_000.nii.gz ]
  no_temporaries
}
