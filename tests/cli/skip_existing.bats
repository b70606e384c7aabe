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
skipped() {
  expect 0 app -i a.txt -o b.txt --skip-existing "$@"
  has err.txt "nothing to do"
  kept
}
# refused NAME: the run of made() ends with 6, names the file, and replaces nothing.
refused() {
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "'$1'"
}

@test "the same run is skipped: device, threads, log, report on stdout and folders do not count" {
  made --seed 3
  skipped --seed 3
  skipped --seed 3 --device cpu --threads 1 -v --log-file l.txt --report - --progress none --dry-run
  mkdir elsewhere
  cp a.txt elsewhere/other.txt
  expect 0 app -i elsewhere/other.txt -o b.txt --seed 3 --skip-existing
  kept
  cd elsewhere
  expect 0 app -i ../a.txt -o ../b.txt --seed 3 --skip-existing
}

@test "6: what differs is named, and nothing is replaced; --force beside it recomputes" {
  made
  expect 6 app -i a.txt -o b.txt --skip-existing --threshold 0.6 --style.letters upper --seed 4
  for what in b.txt.json threshold style.letters --seed; do has err.txt "$what"; done
  expect 6 app -i a.txt -o b.txt --skip-existing --megabytes 1
  has err.txt "--megabytes"
  sed -i 's/"ResultsVersion": 1/"ResultsVersion": 0/' b.txt.json
  refused b.txt.json
  sed -i 's/"App": "skeleton-app"/"App": "other"/' b.txt.json
  refused b.txt.json
  kept
  expect 0 app -i a.txt -o b.txt --skip-existing --force --times 3
  [ "$(cat b.txt)" = hellohellohello ]
  expect 0 app -i a.txt -o b.txt --skip-existing --times 3
}

@test "6: another content of the input, also of the same size and time; the same content is enough" {
  made
  touch -d 2001-01-01 a.txt
  skipped
  printf 'jello' > a.txt
  refused a.txt
  printf 'hello' > c.txt
  touch -r c.txt a.txt
  refused a.txt
  expect 0 app -i c.txt -o b.txt --skip-existing
  kept
}

@test "the record tells names, roles, sizes and contents; nothing is read where sizes and times are the same" {
  made --copy c.txt --report r.json
  python "
import hashlib, os
larch = load('b.txt.json')['Larch']
assert [(o['Name'], o['Role']) for o in larch['Outputs']] == [
    ('b.txt', 'output'), ('b.txt.tsv', 'output'), ('c.txt', 'copy'), ('r.json', 'report')], larch['Outputs']
for o in larch['Outputs']:
    t = os.stat(o['Name'])
    assert (o['Bytes'], o['Modified'], o['Inode']) == (t.st_size, t.st_mtime_ns, t.st_ino), o
    assert o['SHA256'] == hashlib.sha256(open(o['Name'], 'rb').read()).hexdigest(), o
i, t = larch['Inputs'][0], os.stat('a.txt')
assert (i['Bytes'], i['Modified'], i['Role']) == (t.st_size, t.st_mtime_ns, 'input'), i"
  [ "$(echo *.json)" = "b.txt.json r.json" ]
  cp b.txt.json whole
  sed -i 's/"SHA256": "[0-9a-f]*"/"SHA256": "0"/' b.txt.json
  skipped --copy c.txt --report r.json
  touch b.txt
  refused b.txt
  cp whole b.txt.json
  skipped --copy c.txt
  sed -i 's/"SHA256": "[0-9a-f]*"/"SHA256": "0"/' b.txt.json
  touch -d 2001-01-01 a.txt
  refused a.txt
  cp whole b.txt.json
  echo '{"status": "done"}' > r.json
  expect 6 app -i a.txt -o b.txt --report r.json --skip-existing
  has err.txt "'r.json'"
}

@test "6: a record that is missing or cannot be understood; --force replaces it" {
  made --no-sidecar
  refused b.txt
  for text in '' '{' '[]' '{"Larch": 1}' '{"Larch": {"Status": 1}}' '{"Larch": {"Status": "odd"}}' \
      '{"Larch": {"Status": "done"}}' "$(printf '[%.0s' $(seq 1 100))" \
      '{"Larch": {"App": "skeleton-app", "Status": "done", "Inputs": {"a": 1}, "Config": [1], "Options": 7}}' \
      '{"Larch": {"App": "skeleton-app", "Status": "done", "Inputs": [1, {"Role": 2, "Listing": 3}]}}' \
      '{"Larch": {"App": "skeleton-app", "Status": "writing", "Outputs": [7, {"Name": 1}, {"Name": ""}]}}'; do
    printf '%s' "$text" > b.txt.json
    expect 6 app -i a.txt -o b.txt --skip-existing
    kept
  done
  head -c 5000 /dev/urandom > b.txt.json
  refused b.txt
  rm b.txt.json
  mkfifo b.txt.json
  expect 6 timeout 60 "$SKELETON" -i a.txt -o b.txt --skip-existing
  kept
  rm b.txt.json
  expect 2 app -i a.txt -o b.txt --skip-existing=same
  expect 2 app -i a.txt -o c.txt --skip-existing --no-sidecar
  expect 0 app -i a.txt -o b.txt --force --skip-existing
  [ "$(cat b.txt)" = hellohello ]
}

@test "7: a rejected result is rejected again when it is skipped" {
  printf 'hello' > a.txt
  expect 7 app -i a.txt -o b.txt --fail rejected
  ln -f b.txt .made
  expect 7 app -i a.txt -o b.txt --fail rejected --skip-existing
  has err.txt "nothing to do"
  has err.txt "told to reject"
  kept
}

@test "a folder: its larch.json names all files, which must be there as they were written" {
  made --folder new/deep
  skipped --folder new/deep
  rm new/deep/sub/a.txt b.txt.tsv
  expect 0 app -i a.txt -o b.txt --folder new/deep --skip-existing
  [ "$(cat new/deep/sub/a.txt)" = hellohello ]
  [ -e b.txt.tsv ]
  echo by hand > new/deep/sub/a.txt
  expect 6 app -i a.txt -o b.txt --folder new/deep --skip-existing
  has err.txt "'new/deep/sub/a.txt'"
  [ "$(cat new/deep/sub/a.txt)" = "by hand" ]
  rm new/deep/larch.json
  expect 6 app -i a.txt -o b.txt --folder new/deep --skip-existing
  has err.txt "'new/deep/larch.json'"
}

@test "outputs and records stay together: failures, killed runs, outputs that are gone" {
  made
  cp b.txt.json before
  expect 6 app -i a.txt -o b.txt --force --fail writer --times 4
  cmp before b.txt.json
  kept
  # What a run that was killed while files got their names leaves: it is computed again.
  echo '{"Larch": {"App": "skeleton-app", "Status": "writing", "Outputs": [{"Name": "b.txt"}, {"Name": "b.txt.tsv"}]}}' \
    > b.txt.json
  for flag in "" --skip-existing; do
    cp b.txt.json writing
    expect 0 app -i a.txt -o b.txt --times 3 $flag
    [ "$(cat b.txt)" = hellohellohello ]
    expect 0 app -i a.txt -o b.txt --times 3 --skip-existing
    has err.txt "nothing to do"
    cp writing b.txt.json
  done
  expect 0 app -i a.txt -o b.txt
  # An output or a companion that is gone is made again.
  for file in b.txt b.txt.tsv; do
    rm $file
    expect 0 app -i a.txt -o b.txt --skip-existing
    [ "$(cat b.txt)" = hellohello ]
    [ "$(cat b.txt.tsv)" = $'a\tb' ]
  done
}

@test "6: an output that is not what its run wrote: other content, cut off, by hand, a folder, a link" {
  made
  cp b.txt whole
  # Another run's output of the same size, with its time.
  printf 'jello' > other.txt
  expect 0 app -i other.txt -o c.txt
  cp -p c.txt b.txt
  refused b.txt
  cmp b.txt c.txt
  : > b.txt
  refused b.txt
  echo by hand > b.txt
  refused b.txt
  # Nor if a part is missing, be it the table or a further output.
  rm b.txt.tsv
  refused b.txt
  expect 6 app -i a.txt -o b.txt --copy d.txt --skip-existing
  [ "$(cat b.txt)" = "by hand" ]
  absent d.txt
  # A copy of what was written is what was written.
  cp whole b.txt
  expect 0 app -i a.txt -o b.txt --skip-existing
  echo by hand > b.txt.tsv
  refused b.txt.tsv
  expect 0 app -i a.txt -o b.txt --skip-existing --force
  rm b.txt
  mkdir b.txt
  refused b.txt
  rmdir b.txt
  ln -s nowhere b.txt
  refused b.txt
  # Behind the link is what was written.
  ln -sf whole b.txt
  expect 0 app -i a.txt -o b.txt --skip-existing
  has err.txt "nothing to do"
}

@test "an input that changes during the run is said, and never taken for the one that was read" {
  for how in new old; do
    printf 'hello' > a.txt
    touch -r a.txt time
    app -i a.txt -o $how.txt --deaf --sleep 2 2>err.txt &
    pid=$!
    while [ -z "$(find . -name '.larch-*.txt' -size +0)" ] && kill -0 $pid; do sleep 0.02; done
    printf 'jello' > a.txt
    [ $how = new ] || touch -r time a.txt  # written over in place, with its old size and time
    wait $pid
    has err.txt "'a.txt'"
    lacks $how.txt.json "$(printf 'jello' | sha256sum | cut -c 1-64)"
    expect 6 app -i a.txt -o $how.txt --deaf --sleep 2 --skip-existing
    has err.txt "a.txt"
  done
}
