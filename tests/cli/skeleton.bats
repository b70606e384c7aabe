#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# The skeleton of every executable, tried with skeleton_app.cpp.

load helpers

app() { "$SKELETON" "$@"; }

text_file() { printf 'hello' > a.txt; }

# --- exit codes

@test "0: done, and the output is there" {
  text_file
  expect 0 app --input a.txt --output b.txt
  [ "$(cat b.txt)" = hellohello ]
  [ ! -s out.txt ]
}

@test "1: a bug" {
  text_file
  expect 1 app -i a.txt -o b.txt --fail bug
  has err.txt "skeleton-app: error: unexpected: two and two are five"
  absent b.txt b.txt.json
}

@test "2: usage, thrown by the app and by its check" {
  text_file
  expect 2 app -i a.txt -o b.txt --fail usage
  has err.txt "skeleton-app: error: told to fail: usage"
  expect 2 app -i a.txt -o b.txt --copy c.txt --folder d
  has err.txt "give either --copy or --folder"
  absent b.txt c.txt d
}

@test "2: every kind of wrong command line" {
  text_file
  expect 2 app
  has err.txt "--input is missing"
  expect 2 app -i a.txt
  has err.txt "--output is missing"
  expect 2 app -i a.txt -o b.txt --depth 3
  has err.txt "unknown flag --depth"
  expect 2 app -i a.txt -o b.txt --tiems 3
  has err.txt "did you mean '--times'?"
  expect 2 app -i a.txt -o b.txt stray
  has err.txt "unexpected argument 'stray'"
  expect 2 app -i a.txt -o b.txt --times
  has err.txt "--times: the value is missing"
  expect 2 app -i a.txt -o b.txt --times 10
  has err.txt "--times: 10 is out of range [1, 9]"
  expect 2 app -i a.txt -o b.txt --times 2 --times 3
  has err.txt "--times: given more than once"
  expect 2 app -i a.txt -o b.txt --threads 0
  expect 2 app -i a.txt -o b.txt --seed -1
  expect 2 app -i a.txt -o b.txt --device gpu
  expect 2 app -i a.txt -o b.txt --log-format xml
  has err.txt "allowed: text, json"
  expect 2 app -i a.txt -o b.txt --quiet --verbose
  expect 2 app -i a.txt -o b.txt --copy ./b.txt
  has err.txt "'./b.txt' would be written twice"
  expect 2 app -i a.txt -o b.txt --json
  expect 2 app -i "" -o b.txt
  expect 2 env LARCH_THREADS=many "$SKELETON" -i a.txt -o b.txt
  has err.txt "LARCH_THREADS"
  expect 2 env LARCH_LOGLEVEL=loud "$SKELETON" -i a.txt -o b.txt
  has err.txt "LARCH_LOGLEVEL"
  absent b.txt
}

@test "3: input that is missing, a folder, or refused by the app" {
  text_file
  expect 3 app -i none.txt -o b.txt
  has err.txt "--input: 'none.txt' does not exist"
  expect 3 app -i . -o b.txt
  has err.txt "is a folder"
  expect 3 app -i a.txt -o b.txt --fail input
  absent b.txt
}

@test "4: --device cuda where there is no GPU, and no falling back" {
  text_file
  if nvidia-smi -L >/dev/null 2>&1; then skip "there is a GPU"; fi
  expect 4 app -i a.txt -o b.txt --device cuda
  expect 4 app -i a.txt -o b.txt --device cuda:all
  has err.txt "use --device cpu"
  absent b.txt
  expect 4 env LARCH_DEVICE=cuda "$SKELETON" -i a.txt -o b.txt
  expect 0 env LARCH_DEVICE=cuda "$SKELETON" -i a.txt -o b.txt --device cpu
  expect 4 app -i a.txt -o c.txt --fail device
}

@test "4: a build without CUDA code asks for another build, one with it for another machine" {
  text_file
  if nvidia-smi -L >/dev/null 2>&1; then skip "there is a GPU"; fi
  expect 4 app -i a.txt -o b.txt --device cuda
  if "$SKELETON" --version | grep -q 'without CUDA'; then
    has err.txt "this build has no CUDA code; build it again where the CUDA toolkit is installed (nvcc 12"
    lacks err.txt "NVIDIA GPU"
  else
    has err.txt "machine with an NVIDIA GPU"
    lacks err.txt "build it again"
  fi
}

@test "5: memory" {
  text_file
  expect 5 app -i a.txt -o b.txt --fail memory
  has err.txt "needs 9.8 GB, free 7.7 GB"
  expect 5 app -i a.txt -o b.txt --fail bad-alloc
  has err.txt "out of memory"
  absent b.txt
}

@test "6: output, thrown by the app" {
  text_file
  expect 6 app -i a.txt -o b.txt --fail output
  absent b.txt
}

@test "7: rejected: outputs are written and say so; thrown: they are not" {
  text_file
  expect 7 app -i a.txt -o b.txt --fail rejected --report r.json
  has err.txt "result rejected: told to reject"
  python "
assert load('b.txt.json')['Larch']['Status'] == 'rejected'
assert load('r.json')['status'] == 'rejected'
assert load('r.json')['reason'] == 'told to reject'"
  [ -e b.txt ]
  expect 7 app -i a.txt -o c.txt --fail result
  absent c.txt
}

@test "130: stopped by the app with a checkpoint" {
  text_file
  expect 130 app -i a.txt -o b.txt --fail stopped
  has err.txt "told to stop"
  absent b.txt
}

@test "errors print their causes" {
  text_file
  expect 3 app -i a.txt -o b.txt --fail nested
  [ "$(tail -2 err.txt)" = "skeleton-app: error: cannot read start mesh 'a.gii'
caused by: no triangles in data array 2" ]
  expect 3 app -i a.txt -o b.txt --fail nested --log-format json
  python "
e = json.loads(open('err.txt').read().splitlines()[-1])
assert e['level'] == 'error' and e['caused_by'] == ['no triangles in data array 2'], e"
}

# --- signals

start_sleeping() {  # starts the app in the background, as a child of its own, until it is at work
  text_file
  "$SKELETON" -i a.txt -o b.txt --sleep 60 "$@" 2>err.txt &
  child=$!
  until_in_child grep -q "running on" err.txt
}

@test "143: SIGTERM ends the run after its checkpoint" {
  start_sleeping
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  has err.txt "stopped after a checkpoint"
  absent b.txt b.txt.json
  no_temporaries
}

@test "130: SIGINT likewise" {
  # Shells let background jobs ignore SIGINT; Python does not.
  text_file
  python "
import signal, subprocess, time
p = subprocess.Popen(['$SKELETON', '-i', 'a.txt', '-o', 'b.txt', '--sleep', '60'],
                     stderr=subprocess.PIPE, text=True,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
assert 'running on' in p.stderr.readline()
p.send_signal(signal.SIGINT)
assert p.wait(20) == 130, p.returncode"
  absent b.txt
}

start_writing() {  # the same, until the first temporary is there
  text_file
  "$SKELETON" -i a.txt -o b.txt --deaf "$@" 2>err.txt &
  child=$!
  until_in_child has_temporary . txt
}

@test "143: SIGTERM while outputs are written takes all of them back" {
  start_writing --sleep 1
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  absent b.txt b.txt.tsv b.txt.json
  no_temporaries
}

@test "143: a second signal ends the process at once and removes the temporaries" {
  start_writing --sleep 60
  kill -TERM "$child"
  sleep 0.2
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  [ "$SECONDS" -lt 50 ]
  absent b.txt b.txt.json
  no_temporaries
}

@test "143: what cannot be interrupted is ended in time, with a word" {
  start_writing --sleep 600
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  [ "$SECONDS" -lt 60 ]
  has err.txt "cannot be interrupted"
  absent b.txt b.txt.json
  no_temporaries
}

# --- configuration

@test "--print-config is valid input and a fixed point" {
  expect 0 app --times 3 --style.widths 7,8 --style.weight 0.25 --more '[{"letters":"lower"}]' --print-config
  cp out.txt c.json
  expect 0 app --config c.json --print-config
  cmp out.txt c.json
  python "
c = load('c.json')
assert c['times'] == 3 and c['style']['widths'] == [7, 8] and c['more'][0]['letters'] == 'lower', c"
}

@test "defaults < files in their order < flags; - is standard input" {
  echo '{"times": 3, "separator": "x" /* why */}' > one.json
  echo '{"times": 4 } // why' > two.json
  expect 0 app -c one.json -c two.json --threshold 0.75 --print-config
  python "
c = load('out.txt')
assert (c['times'], c['separator'], c['threshold']) == (4, 'x', 0.75), c"
  expect 0 app -c two.json -c one.json --newline false --print-config
  python "
c = load('out.txt')
assert (c['times'], c['newline']) == (3, False), c"
  app -c - --print-config < one.json > out.txt
  has out.txt '"times": 3'
}

@test "configuration errors name file, path and the nearest key" {
  echo '{"style": {"leters": "upper"}}' > c.json
  expect 2 app -c c.json --print-config
  has err.txt "c.json/style/leters: unknown key; did you mean 'letters'? allowed: letters, widths, weight"
  echo '{"style": {"widths": [1, 99]}}' > c.json
  expect 2 app -c c.json --print-config
  has err.txt "c.json/style/widths/1: 99 is out of range [1, 80]"
  echo '{"times": 2' > c.json
  expect 2 app -c c.json --print-config
  has err.txt "c.json: parse error at line"
  expect 2 app -c none.json --print-config
  has err.txt "none.json"
}

@test "--print-schema is draft 7 and finds the same errors" {
  expect 0 app --print-schema
  mv out.txt schema.json
  /usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
  cat > cases.py <<'PY'
import json, subprocess, sys
from jsonschema import Draft7Validator
schema = json.load(open("schema.json"))
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)
cases = [
    {}, {"times": 9}, {"times": 0}, {"times": 10}, {"times": 2.0}, {"times": 2.5}, {"times": "2"},
    {"times": True}, {"times": None}, {"threshold": 1}, {"threshold": 1.01}, {"threshold": -1},
    {"separator": "x"}, {"separator": 1}, {"newline": False}, {"newline": 0}, {"nothing": 1},
    {"style": {}}, {"style": []}, {"style": {"letters": "upper"}}, {"style": {"letters": "UPPER"}},
    {"style": {"letters": 1}}, {"style": {"widths": []}}, {"style": {"widths": [1, 80]}},
    {"style": {"widths": [81]}}, {"style": {"widths": 5}}, {"style": {"weight": None}},
    {"style": {"weight": 0.5}}, {"style": {"weight": 2}}, {"style": {"more": 1}},
    {"more": [{}, {"weight": 0.1}]}, {"more": [{"weight": "a"}]}, {"more": {}}, [], 5,
]
accepted = 0
for case in cases:
    mine = subprocess.run([sys.argv[1], "-c", "-", "--print-config"], input=json.dumps(case),
                          text=True, capture_output=True).returncode
    theirs = 0 if validator.is_valid(case) else 2
    assert mine == theirs, (case, mine, theirs)
    accepted += mine == 0
assert 10 < accepted < len(cases) - 10, accepted
defaults = json.loads(subprocess.run([sys.argv[1], "--print-config"], capture_output=True).stdout)
assert validator.is_valid(defaults)
assert schema["properties"]["times"]["default"] == defaults["times"]
PY
  /usr/bin/python3 cases.py "$SKELETON"
}

# --- outputs

@test "existing outputs are refused, replaced or kept" {
  text_file
  echo old > b.txt
  expect 6 app -i a.txt -o b.txt
  has err.txt "output 'b.txt' exists; use --force to replace it or --skip-existing to keep it"
  [ "$(cat b.txt)" = old ]
  expect 6 app -i a.txt -o b.txt --skip-existing
  has err.txt "b.txt.json"
  [ "$(cat b.txt)" = old ]
  expect 0 app -i a.txt -o b.txt --force
  [ "$(cat b.txt)" = hellohello ]
}

@test "records, companions and the report are not replaced unasked" {
  text_file
  for name in b.txt.json b.txt.tsv r.json; do
    echo old > $name
    expect 6 app -i a.txt -o b.txt --report r.json
    has err.txt "'$name'"
    [ "$(cat $name)" = old ]
    rm $name
  done
  absent b.txt
  expect 0 app -i a.txt -o b.txt --report r.json
}

@test "a missing folder is an error, except for an output folder" {
  text_file
  expect 6 app -i a.txt -o no/b.txt
  has err.txt "'no/b.txt'"
  absent no
  expect 6 app -i a.txt -o a.txt/b.txt
  expect 6 app -i a.txt -o .
  expect 6 app -i a.txt -o . --force
  has err.txt "is a folder"
  expect 0 app -i a.txt -o b.txt --folder new/deep
  [ "$(cat new/deep/sub/a.txt)" = hellohello ]
  [ -e new/deep/larch.json ]
  expect 6 app -i a.txt -o c.txt --folder new/deep
  has err.txt "new/deep"
  expect 0 app -i a.txt -o c.txt --folder new/deep --force
}

@test "a failed run takes away the folders that it made" {
  text_file
  expect 3 app -i a.txt -o b.txt --folder new/deep --fail input
  absent new b.txt
  expect 6 app -i a.txt -o b.txt --folder new/deep/ --fail writer
  absent new b.txt
  mkdir old
  expect 6 app -i a.txt -o b.txt --folder old --fail writer
  [ -z "$(ls -A old)" ]
}

@test "--dry-run checks and writes nothing" {
  text_file
  expect 0 app -i a.txt -o b.txt --folder new --report r.json --dry-run
  has err.txt "would write b.txt"
  absent b.txt b.txt.json new r.json
  expect 3 app -i none.txt -o b.txt -n
  echo old > b.txt
  expect 6 app -i a.txt -o b.txt -n
}

@test "a failing writer leaves nothing, and replaces nothing" {
  text_file
  expect 6 app -i a.txt -o b.txt --copy c.txt --report r.json --fail writer
  has err.txt "cannot write 'b.txt.second'"
  has err.txt "caused by: the writer of b.txt.second broke"
  absent b.txt b.txt.tsv b.txt.json c.txt b.txt.second
  python "r = load('r.json'); assert (r['status'], r['exit_code']) == ('failed', 6) and 'outputs' not in r, r"
  echo old > b.txt
  expect 6 app -i a.txt -o b.txt --force --fail writer
  [ "$(cat b.txt)" = old ]
  expect 6 app -i a.txt -o d.txt --fail nothing
  absent d.txt
  no_temporaries
}

@test "a limit on file sizes" {
  text_file
  (ulimit -f 1024; expect 6 app -i a.txt -o b.txt --megabytes 4)
  has err.txt "cannot write 'b.txt'"
  has err.txt "ulimit -f"
  absent b.txt
  no_temporaries
}

@test "a folder that cannot be written to is found before the run" {
  text_file
  expect 6 app -i a.txt -o /proc/b.txt --sleep 30
  has err.txt "cannot write '/proc/b.txt'"
  expect 6 app -i a.txt -o b.txt --folder /proc/new --sleep 30
  has err.txt "/proc/new"
}

@test "a file system that is read-only" {
  text_file
  small_disk disk 1024
  mount -o remount,ro disk
  expect 6 app -i a.txt -o disk/b.txt
  has err.txt "Read-only file system"
}

@test "a full disk behind standard output" {
  text_file
  code=0; "$SKELETON" --help > /dev/full 2> err.txt || code=$?
  [ "$code" -eq 6 ]
  code=0; "$SKELETON" -i a.txt -o b.txt --report - > /dev/full 2> err.txt || code=$?
  [ "$code" -eq 6 ]
}

@test "a closed stream does not pass its number on to a file: stderr stays out of it, results on stdout fail" {
  text_file
  local closed
  for closed in '2> err.txt' '2>&-' '<&- 2>&-' '<&- >&- 2>&-'; do
    rm -f log.txt
    eval "app -i a.txt -o b.txt --report r.json --force -v --log-file log.txt $closed"
    [ "$(grep -c 'a warning' log.txt)" -eq 1 ]  # and the line for stderr is not there beside it
    has b.txt hello; lacks b.txt warning
    python "assert load('r.json')['status'] == load('b.txt.json')['Larch']['Status'] == 'done'"
  done
  for closed in '>&-' '<&- >&- 2>&-'; do
    code=0; eval "app --help $closed" || code=$?
    [ "$code" -eq 6 ]
    code=0; eval "app -i a.txt -o b.txt --force --report - $closed" || code=$?
    [ "$code" -eq 6 ]
  done
}
