#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# --skip-existing believes the record of what made an output, not its name.

load helpers

app() { "$SKELETON" "$@"; }

# Makes b.txt, which a second run would put another file in the place of.
made() {
  printf 'hello' > a.txt
  expect 0 app -i a.txt -o b.txt "$@"
  ln -f b.txt .made
}
kept() { [ b.txt -ef .made ] || { echo "b.txt was computed again"; return 1; }; }

@test "the same run is skipped: device, threads, log, report on stdout and folders do not count" {
  made --seed 3
  expect 0 app -i a.txt -o b.txt --seed 3 --skip-existing
  has err.txt "all outputs are there, from the same inputs and configuration; nothing to do"
  kept
  expect 0 app -i a.txt -o b.txt --seed 3 --skip-existing --device cpu --threads 1 -v \
    --log-file l.txt --report - --progress none --dry-run
  mkdir elsewhere
  cp a.txt elsewhere/other.txt
  expect 0 app -i elsewhere/other.txt -o b.txt --seed 3 --skip-existing=same
  kept
  cd elsewhere
  expect 0 app -i ../a.txt -o ../b.txt --seed 3 --skip-existing
}

@test "6: what differs is named, and nothing is replaced; --force beside it recomputes" {
  made
  expect 6 app -i a.txt -o b.txt --skip-existing --threshold 0.6 --style.letters upper --seed 4
  has err.txt "outputs of another run are there ('b.txt')"
  has err.txt "threshold: 0.5 there, 0.6 now"
  has err.txt 'style.letters: "as-is" there, "upper" now'
  has err.txt "--seed: 0 there, 4 now"
  has err.txt "--force recomputes"
  expect 6 app -i a.txt -o b.txt --skip-existing --megabytes 1
  has err.txt "--megabytes: 0 there, 1 now"
  kept
  expect 0 app -i a.txt -o b.txt --skip-existing --force
  kept
  expect 0 app -i a.txt -o b.txt --skip-existing --force --times 3
  [ "$(cat b.txt)" = hellohellohello ]
  expect 0 app -i a.txt -o b.txt --skip-existing --times 3
}

@test "6: another content of the input, also of the same size and time; the same content is enough" {
  made
  touch -d 2001-01-01 a.txt
  expect 0 app -i a.txt -o b.txt --skip-existing
  kept
  printf 'jello' > a.txt
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "input 'a.txt': other content"
  printf 'hello' > c.txt
  touch -r c.txt a.txt
  expect 6 app -i a.txt -o b.txt --skip-existing
  expect 0 app -i c.txt -o b.txt --skip-existing
  kept
}

@test "files are compared by size and time first: no content is read where these are the same" {
  made
  python "
s = load('b.txt.json')
i = s['Larch']['Inputs'][0]
import os
t = os.stat('a.txt')
assert (i['Bytes'], i['Modified'], i['Role']) == (t.st_size, t.st_mtime_ns, 'input'), i
i['SHA256'] = 'f' * 64
json.dump(s, open('b.txt.json', 'w'))"
  expect 0 app -i a.txt -o b.txt --skip-existing
  touch -d 2001-01-01 a.txt
  expect 6 app -i a.txt -o b.txt --skip-existing
}

@test "6: another version of the results, another program" {
  made
  sed -i 's/"ResultsVersion": 1/"ResultsVersion": 0/' b.txt.json
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "version of the results: 0 there, 1 now"
  sed -i 's/"App": "skeleton-app"/"App": "other"/' b.txt.json
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt 'made by "other", not by skeleton-app'
  kept
}

@test "6: without a sidecar, or with one that cannot be understood; =name goes by the name" {
  made --no-sidecar
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "there is no 'b.txt.json' to tell what made it"
  has err.txt "--skip-existing=name"
  expect 0 app -i a.txt -o b.txt --skip-existing=name --times 5
  has err.txt "by name alone; nothing to do"
  for text in '' '{' '[]' '{"Larch": 1}' '{"Larch": {"Status": 1}}' '{"Larch": {"Status": "odd"}}' \
      '{"Larch": {"Status": "done"}}' "$(printf '[%.0s' $(seq 1 100))" \
      '{"Larch": {"App": "skeleton-app", "Status": "done", "Inputs": {"a": 1}, "Config": [1], "Options": 7}}' \
      '{"Larch": {"App": "skeleton-app", "Status": "done", "Inputs": [1, {"Role": 2, "Listing": 3}]}}'; do
    printf '%s' "$text" > b.txt.json
    expect 6 app -i a.txt -o b.txt --skip-existing
  done
  head -c 5000 /dev/urandom > b.txt.json
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "'b.txt.json' does not tell what made it"
  rm b.txt.json
  mkfifo b.txt.json
  expect 6 timeout 60 "$SKELETON" -i a.txt -o b.txt --skip-existing
  kept
  rm b.txt.json
  expect 2 app -i a.txt -o b.txt --skip-existing=maybe
  expect 0 app -i a.txt -o b.txt --force --skip-existing
  [ "$(cat b.txt)" = hellohello ]
}

@test "a part that is missing: the same run is repeated, another one refused" {
  made
  expect 0 app -i a.txt -o b.txt --copy c.txt --skip-existing
  [ "$(cat b.txt)" = hellohello ]
  [ "$(cat c.txt)" = hellohello ]
  rm b.txt
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing --times 3
  has err.txt "('c.txt'): times: 2 there, 3 now"
  absent b.txt
  rm c.txt
  expect 0 app -i a.txt -o b.txt --copy c.txt --skip-existing --times 3
}

@test "7: a rejected result is rejected again when it is skipped" {
  printf 'hello' > a.txt
  expect 7 app -i a.txt -o b.txt --fail rejected
  ln -f b.txt .made
  expect 7 app -i a.txt -o b.txt --fail rejected --skip-existing
  has err.txt "nothing to do"
  has err.txt "result rejected by the run that made it: told to reject"
  kept
}

@test "a folder: its larch.json tells, and all its files must be there" {
  made --folder new/deep
  expect 0 app -i a.txt -o b.txt --folder new/deep --skip-existing
  kept
  rm new/deep/sub/a.txt
  expect 0 app -i a.txt -o b.txt --folder new/deep --skip-existing
  [ "$(cat new/deep/sub/a.txt)" = hellohello ]
  rm new/deep/larch.json
  expect 6 app -i a.txt -o b.txt --folder new/deep --skip-existing
  has err.txt "there is no 'new/deep/larch.json'"
}

@test "a report has a record of its own" {
  printf 'hello' > a.txt
  expect 0 app -i a.txt -o b.txt --report r.json
  expect 0 app -i a.txt -o b.txt --report r.json --skip-existing
  has err.txt "nothing to do"
  echo '{"status": "done"}' > r.json
  expect 6 app -i a.txt -o b.txt --report r.json --skip-existing
  has err.txt "'r.json' does not tell what made it"
}

@test "an output that is replaced is never beside the sidecar of another run" {
  made
  expect 0 app -i a.txt -o b.txt --force --no-sidecar --times 3
  absent b.txt.json
  expect 6 app -i a.txt -o b.txt --skip-existing
  expect 0 app -i a.txt -o b.txt --force
  # A run that fails leaves the old output with the old sidecar.
  cp b.txt.json before
  expect 6 app -i a.txt -o b.txt --force --fail writer --times 4
  cmp before b.txt.json
  # What a run that was killed between the two leaves: it is computed again.
  echo '{"Larch": {"App": "skeleton-app", "Status": "replacing", "Outputs": [{"Name": "b.txt"}, {"Name": "b.txt.tsv"}]}}' \
    > b.txt.json
  expect 0 app -i a.txt -o b.txt --skip-existing
  has err.txt "wrote b.txt"
  expect 0 app -i a.txt -o b.txt --skip-existing
  has err.txt "nothing to do"
  # An earlier sidecar of an output that is gone says nothing.
  rm b.txt
  expect 0 app -i a.txt -o b.txt --skip-existing --times 4
  [ "$(cat b.txt)" = hellohellohellohello ]
  expect 0 app -i a.txt -o c.txt --skip-existing --no-sidecar
  has err.txt "with --no-sidecar a later --skip-existing cannot tell"
}

# foreign FILE: puts a file of somebody else there; unharmed FILE: it is as it was.
foreign() { echo '{"Description": "mine"}' > "$1"; }
unharmed() { [ "$(cat "$1")" = '{"Description": "mine"}' ] || { echo "$1 was replaced"; return 1; }; }

@test "6: a file of somebody else beside an output that is missing is not replaced" {
  printf 'hello' > a.txt
  for file in b.txt.json b.txt.tsv; do
    for how in same name; do
      foreign $file
      expect 6 app -i a.txt -o b.txt --skip-existing=$how
      has err.txt "'$file'"
      has err.txt "--force replaces it"
      unharmed $file
      absent b.txt
    done
    expect 0 app -i a.txt -o b.txt --skip-existing --force
    rm b.txt*
  done
  # Beside the outputs of the same run that are there, and beside those that only the name tells of.
  made
  foreign c.txt.json
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing
  unharmed c.txt.json
  kept
  foreign b.txt.json
  rm c.txt.json
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing=name
  unharmed b.txt.json
  kept
  # No sidecar is written, so that this one is in nobody's way.
  rm b.txt*
  foreign b.txt.json
  expect 0 app -i a.txt -o b.txt --skip-existing --no-sidecar
  unharmed b.txt.json
}

@test "a sidecar whose output is missing is replaced without --force, and told" {
  made
  rm b.txt b.txt.tsv
  expect 0 app -i a.txt -o b.txt --times 3 --dry-run
  has err.txt "'b.txt.json' is the sidecar of an output that is not there"
  expect 0 app -i a.txt -o b.txt --times 3
  has err.txt "'b.txt.json' is the sidecar of an output that is not there"
  [ "$(cat b.txt)" = hellohellohello ]
  expect 0 app -i a.txt -o b.txt --times 3 --skip-existing
  has err.txt "nothing to do"
  # A run that fails puts nothing else there.
  rm b.txt b.txt.tsv
  cp b.txt.json before
  expect 6 app -i a.txt -o b.txt --fail writer
  cmp before b.txt.json
  # That of another output, of another program, and the table beside it.
  cp b.txt.json c.txt.json
  expect 6 app -i a.txt -o c.txt
  has err.txt "output 'c.txt.json' exists"
  cmp before c.txt.json
  foreign d.txt.json
  expect 6 app -i a.txt -o d.txt
  unharmed d.txt.json
  foreign b.txt.tsv
  expect 6 app -i a.txt -o b.txt
  has err.txt "output 'b.txt.tsv' exists; the output it belongs to is not there; move it away, or use --force"
  unharmed b.txt.tsv
  # --skip-existing makes again what an earlier run left in part: its sidecar names the table.
  expect 0 app -i a.txt -o b.txt --skip-existing
  [ "$(cat b.txt.tsv)" = $'a\tb' ]
}

@test "a label table that is missing: made again, but not where the name alone counts" {
  made
  rm b.txt.tsv
  expect 0 app -i a.txt -o b.txt --skip-existing=name
  has err.txt "by name alone; nothing to do"
  kept
  absent b.txt.tsv
  expect 0 app -i a.txt -o b.txt --skip-existing
  [ "$(cat b.txt)" = hellohello ]
  [ "$(cat b.txt.tsv)" = $'a\tb' ]
}

@test "an input that changes during the run is said, and never taken for the one that was read" {
  printf 'hello' > a.txt
  app -i a.txt -o b.txt --deaf --sleep 2 2>err.txt &
  pid=$!
  while [ -z "$(find . -name '.larch-*.txt' -size +0)" ] && kill -0 $pid; do sleep 0.02; done
  printf 'jello' > a.txt
  wait $pid
  has err.txt "'a.txt' changed during the run"
  expect 6 app -i a.txt -o b.txt --deaf --sleep 2 --skip-existing
  has err.txt "its content was not recorded"
}

@test "an input that is written over in place during the run, with its old size and time, is said" {
  printf 'hello' > a.txt
  touch -r a.txt time
  app -i a.txt -o b.txt --deaf --sleep 2 2>err.txt &
  pid=$!
  while [ -z "$(find . -name '.larch-*.txt' -size +0)" ] && kill -0 $pid; do sleep 0.02; done
  printf 'jello' > a.txt
  touch -r time a.txt
  wait $pid
  has err.txt "'a.txt' changed during the run"
  lacks b.txt.json "$(printf 'jello' | sha256sum | cut -c 1-64)"
  expect 6 app -i a.txt -o b.txt --deaf --sleep 2 --skip-existing
}

# refused WORDS: the run of made() ends with 6, says WORDS, and replaces nothing.
refused() {
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "$1"
  has err.txt "--force replaces it"
}

@test "6: an output that is not what its run wrote: other content, cut off, by hand" {
  made
  cp b.txt whole
  # Another run's output of the same size, with its time.
  printf 'jello' > other.txt
  expect 0 app -i other.txt -o c.txt
  cp -p c.txt b.txt
  refused "output 'b.txt' is not what its run wrote: it has other content"
  cmp b.txt c.txt
  : > b.txt
  refused "it has 0 bytes, and "
  echo by hand > b.txt
  refused "output 'b.txt' is not what its run wrote"
  [ "$(cat b.txt)" = "by hand" ]
  # Not either because a part is missing, be it the table or a further output.
  rm b.txt.tsv
  refused "output 'b.txt' is not what its run wrote"
  expect 6 app -i a.txt -o b.txt --copy d.txt --skip-existing
  [ "$(cat b.txt)" = "by hand" ]
  absent d.txt
  # A copy of what was written is what was written.
  cp whole b.txt
  expect 0 app -i a.txt -o b.txt --skip-existing
  echo by hand > b.txt.tsv
  refused "output 'b.txt.tsv' is not what its run wrote"
  expect 0 app -i a.txt -o b.txt --skip-existing --force
  expect 0 app -i a.txt -o b.txt --skip-existing
  has err.txt "nothing to do"
}

@test "a folder, a pipe or a link to nothing is no output that is there" {
  made
  cp b.txt whole
  rm b.txt
  mkdir b.txt
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "is no regular file"
  rmdir b.txt
  ln -s nowhere b.txt
  expect 0 app -i a.txt -o b.txt --skip-existing
  cmp nowhere whole
  # Behind the link is what was written.
  expect 0 app -i a.txt -o b.txt --skip-existing
  has err.txt "nothing to do"
}

@test "6: a file of a folder that is not what its run wrote" {
  made --folder new
  echo by hand > new/sub/a.txt
  expect 6 app -i a.txt -o b.txt --folder new --skip-existing
  has err.txt "output 'new/sub/a.txt' is not what its run wrote"
  [ "$(cat new/sub/a.txt)" = "by hand" ]
}

@test "6: the output of another flag of the same run is not the one that is asked for" {
  printf 'hello' > a.txt
  expect 0 app -i a.txt -o x.txt --copy y.txt
  expect 6 app -i a.txt -o y.txt --copy z.txt --skip-existing
  has err.txt "output 'y.txt' is not what its run wrote: it was its --copy, not --output"
  absent z.txt
}

@test "a sidecar tells names, roles, sizes and contents of its outputs" {
  made --copy c.txt
  python "
import hashlib, os
for name, role, files in (('b.txt', 'output', ['b.txt', 'b.txt.tsv']), ('c.txt', 'copy', ['c.txt'])):
    outputs = load(name + '.json')['Larch']['Outputs']
    assert [o['Name'] for o in outputs] == files, outputs
    assert [o.get('Role') for o in outputs] == [role, None][:len(files)], outputs
    for o in outputs:
        t = os.stat(o['Name'])
        assert (o['Bytes'], o['Modified'], o['Inode']) == (t.st_size, t.st_mtime_ns, t.st_ino), o
        assert o['SHA256'] == hashlib.sha256(open(o['Name'], 'rb').read()).hexdigest(), o"
  # An output with the size, time and inode of then is not read.
  sed -i 's/"SHA256": "[0-9a-f]*"/"SHA256": "0"/' c.txt.json b.txt.json
  expect 0 app -i a.txt -o b.txt --copy c.txt --skip-existing
  touch b.txt
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing
  has err.txt "'b.txt' is not what its run wrote"
}

@test "6: =name replaces nothing that is there, unless its sidecar tells of the same run" {
  printf 'hello' > a.txt
  echo mine > b.txt
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing=name
  has err.txt "'c.txt' is missing, and what is there is not replaced unasked: output 'b.txt' exists"
  has err.txt "--force computes it again"
  lacks err.txt "by its name alone"
  [ "$(cat b.txt)" = mine ]
  absent c.txt
  expect 0 app -i a.txt -o b.txt --copy c.txt --skip-existing=name --force
  rm c.txt
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing=name --times 3
  has err.txt "times: 2 there, 3 now"
  expect 0 app -i a.txt -o b.txt --copy c.txt --skip-existing=name
  cmp b.txt c.txt
  # Nor are an empty file or a folder an output by their names.
  : > b.txt
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing=name
  has err.txt "output 'b.txt' is empty"
  rm b.txt
  mkdir b.txt
  expect 6 app -i a.txt -o b.txt --copy c.txt --skip-existing=name
  has err.txt "output 'b.txt' is no regular file"
}
