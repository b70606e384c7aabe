#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# What every executable with many cases does, tried with the batch mode of skeleton_app.cpp.

load helpers

app() { "$SKELETON" "$@"; }

# texts NAME...: NAME.txt holds its name; list.tsv names them all.
texts() {
  printf 'text\n' > list.tsv
  local name
  for name in "$@"; do
    printf '%s' "$name" > "$name.txt"
    printf '%s.txt\n' "$name" >> list.tsv
  done
}

# The columns id, status, bytes of the table.
rows() { cut -f 1,2,5 "$1/status.tsv" | tail -n +2 | tr '\t\n' ' ;'; }

@test "0: each text of a list, with sidecars and the table" {
  texts a b c
  expect 0 app --list list.tsv --output-dir out --report r.json
  [ "$(cat out/a.txt)" = aa ]
  [ "$(rows out)" = "a ok 3;b ok 3;c ok 3;" ]
  [ "$(head -n 1 out/status.tsv)" = "$(printf 'id\tstatus\tmessage\tseconds\tbytes\tended')" ]
  python "r = load('r.json')['metrics']; assert (r['cases'], r['ok']) == (3, 3)
s = load('out/b.txt.json')['Larch']
assert [i['Path'] for i in s['Inputs'] if i['Role'] == 'input'] == ['b.txt'], s['Inputs']"
  no_temporaries
}

@test "7: a case that fails or is rejected does not stop the others" {
  texts a b c
  : > b.txt
  rm c.txt
  expect 7 app --list list.tsv --output-dir out
  [ "$(rows out)" = "a ok 3;b rejected 1;c failed n/a;" ]
  has err.txt "1 of 3 cases failed and in 1 the result was rejected; see 'out/status.tsv'"
  [ -e out/b.txt ]
  absent out/c.txt
}

@test "--skip-existing goes on where a run ended, whatever the threads" {
  texts a b c d e f
  expect 0 app --list list.tsv --output-dir out --threads 1
  cp -r out first
  rm out/d.txt out/d.txt.json
  expect 0 app --list list.tsv --output-dir out --threads 4 --skip-existing --report r.json
  python "r = load('r.json')['metrics']; assert (r['ok'], r['skipped']) == (1, 5), r"
  cmp first/d.txt out/d.txt
  expect 6 app --list list.tsv --output-dir out
  has err.txt "exists"
  expect 0 app --list list.tsv --output-dir out --force
}

@test "--dry-run: the cases that would fail, and the exit code of the run" {
  texts a b c
  rm c.txt
  expect 7 app --list list.tsv --output-dir out --dry-run
  has err.txt "case 'c':"
  has err.txt "1 problem, named above"
  absent out
  sed -i '$d' list.tsv
  expect 0 app --list list.tsv --output-dir out --dry-run
  : > b.txt
  expect 7 app --list list.tsv --output-dir out
  # What is there: rejected again, or of another run.
  expect 6 app --list list.tsv --output-dir out --dry-run
  expect 7 app --list list.tsv --output-dir out --dry-run --skip-existing
  has err.txt "case 'b': the text is empty by an earlier run"
  lacks err.txt "case 'a'"
  expect 7 app --list list.tsv --output-dir out --dry-run --skip-existing --times 3
  has err.txt "case 'a': outputs of another run are there"
  expect 0 app --list list.tsv --output-dir out --dry-run --force
}

@test "143: a signal ends the run after the cases that are being computed" {
  texts $(seq 1 200)
  "$SKELETON" --list list.tsv --output-dir out --sleep 0.05 2> err.txt &
  local pid=$! code=0 i
  for i in $(seq 600); do
    [ -e out/3.txt ] && break
    sleep 0.1
  done
  kill -TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 143 ]
  has err.txt "of 200 cases; --skip-existing goes on from there"
  [ "$(($(wc -l < out/status.tsv) - 1))" -eq "$(ls out/*.txt | wc -l)" ]
  no_temporaries out
}

@test "2 and 3: names that clash, and outputs that would replace inputs" {
  texts a
  mkdir out
  expect 2 app --list list.tsv --output-dir .
  has err.txt "would be replaced"
  printf 'id\ttext\n../a\ta.txt\n' > ids.tsv
  expect 3 app --list ids.tsv --output-dir out
  has err.txt "cannot be a file name"
  [ -z "$(ls -A out)" ]
}

@test "4: a failure of the device ends the run, a bug only its case" {
  texts a b
  expect 4 app --list list.tsv --output-dir out --fail device
  expect 7 app --list list.tsv --output-dir out2 --fail bug
  has out2/status.tsv "unexpected: two and two are five"
  expect 5 app --list list.tsv --output-dir out3 --fail memory
  has err.txt "2 of 2 cases failed for want of memory"
}

@test "--skip-existing: the row of another run's result stays; what is missing, changed or of another text is failed" {
  texts a b c d
  expect 0 app --list list.tsv --output-dir out
  cp -r out first
  expect 7 app --list list.tsv --output-dir out --skip-existing --times 3 --report r.json
  has err.txt "case 'a' failed: outputs of another run are there"
  has err.txt "4 of 4 cases failed; see 'out/status.tsv'"
  python "r = load('r.json')['metrics']; assert (r['ok'], r['failed']) == (0, 4), r"
  [ "$(rows out)" = "a ok 3;b ok 3;c ok 3;d ok 3;" ]
  grep -q "^a.ok.outputs of another run are there ('out/a.txt'): times: 2 there, 3 now; --force recomputes" out/status.tsv
  # Changed by hand; of another text; without what tells of it.
  echo changed > out/b.txt
  printf x > c.txt
  rm out/d.txt.json
  expect 7 app --list list.tsv --output-dir out --skip-existing --times 3
  [ "$(rows out)" = "a ok 3;b failed n/a;c failed n/a;d failed n/a;" ]
  expect 7 app --list list.tsv --output-dir out --skip-existing
  [ "$(rows out)" = "a ok 3;b failed n/a;c failed n/a;d failed n/a;" ]
  cmp out/a.txt first/a.txt
}
