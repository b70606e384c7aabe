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
  has err.txt "named for two outputs"
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
  has err.txt "use --device cpu"
  absent b.txt
  expect 4 env LARCH_DEVICE=cuda "$SKELETON" -i a.txt -o b.txt
  expect 0 env LARCH_DEVICE=cuda "$SKELETON" -i a.txt -o b.txt --device cpu
  expect 4 app -i a.txt -o c.txt --fail device
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
  for _ in $(seq 200); do
    if grep -q "running on" err.txt; then break; fi
    sleep 0.05
  done
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
  for _ in $(seq 200); do
    if [ -n "$(find . -name '.larch-*.txt' -size +0)" ]; then return 0; fi
    sleep 0.05
  done
  echo "no temporary appeared"
  return 1
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
  expect 0 app -i a.txt -o b.txt --skip-existing
  has err.txt "nothing to do"
  [ "$(cat b.txt)" = old ]
  absent b.txt.json
  expect 0 app -i a.txt -o b.txt --force
  [ "$(cat b.txt)" = hellohello ]
}

@test "--skip-existing repeats a run of which only a part is there" {
  text_file
  echo old > b.txt
  expect 0 app -i a.txt -o b.txt --copy c.txt --skip-existing
  [ "$(cat b.txt)" = hellohello ]
  [ "$(cat c.txt)" = hellohello ]
}

@test "sidecars, companions and the report are not replaced unasked" {
  text_file
  for name in b.txt.json b.txt.tsv r.json; do
    echo old > $name
    expect 6 app -i a.txt -o b.txt --report r.json
    has err.txt "output '$name' exists"
    [ "$(cat $name)" = old ]
    rm $name
  done
  absent b.txt
  expect 0 app -i a.txt -o b.txt --report r.json
}

@test "a missing folder is an error, except for an output folder" {
  text_file
  expect 6 app -i a.txt -o no/b.txt
  has err.txt "folder 'no' does not exist"
  absent no
  expect 6 app -i a.txt -o a.txt/b.txt
  expect 6 app -i a.txt -o .
  has err.txt "is a folder"
  expect 0 app -i a.txt -o b.txt --folder new/deep
  [ "$(cat new/deep/a.txt)" = hellohello ]
  [ -e new/deep/larch.json ]
  expect 6 app -i a.txt -o c.txt --folder new/deep
  has err.txt "is not empty"
  expect 0 app -i a.txt -o c.txt --folder new/deep --force
}

@test "a failed run takes away the folder that it made" {
  text_file
  expect 3 app -i a.txt -o b.txt --folder new --fail input
  absent new b.txt
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
  absent b.txt b.txt.tsv b.txt.json c.txt r.json b.txt.second
  echo old > b.txt
  expect 6 app -i a.txt -o b.txt --force --fail writer
  [ "$(cat b.txt)" = old ]
  expect 6 app -i a.txt -o d.txt --fail nothing
  absent d.txt
  no_temporaries
}

@test "a full disk" {
  text_file
  small_disk disk 1024
  expect 6 app -i a.txt -o disk/b.txt --megabytes 4
  has err.txt "cannot write 'disk/b.txt'"
  has err.txt "No space left on device"
  [ -z "$(ls -A disk)" ]
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

# --- records

@test "the sidecar tells how the output came about" {
  text_file
  expect 0 app -i a.txt -o b.txt --seed 7 -t 2 --device cpu --times 3
  python "
import hashlib
s = load('b.txt.json')
l = s['Larch']
assert s['Description'] == 'Repeat a text.' and s['Sources'] == ['a.txt'], s
assert s['GeneratedBy'][0]['Name'] == 'Larch skeleton-app' and s['GeneratedBy'][0]['Version']
assert l['App'] == 'skeleton-app' and l['Build']['GitRevision'] and l['Build']['CUDA'] in (True, False)
assert l['CommandLine'] == 'skeleton-app -i a.txt -o b.txt --seed 7 -t 2 --device cpu --times 3', l
assert l['Config']['times'] == 3 and l['Seed'] == 7 and l['Threads'] == 2 and l['Device'].startswith('cpu')
assert l['Inputs'] == [{'Path': 'a.txt', 'SHA256': hashlib.sha256(b'hello').hexdigest(),
                        'Grid': 'one line'}], l['Inputs']
assert l['Metrics'] == {'bytes': 16, 'undefined': None} and l['Seconds'] >= 0 and l['Status'] == 'done'"
  absent b.txt.tsv.json
  expect 0 app -i a.txt -o c.txt --no-sidecar
  absent c.txt.json
  [ -e c.txt ]
}

@test "the report, in a file and on standard output" {
  text_file
  expect 0 app -i a.txt -o b.txt --report r.json
  [ ! -s out.txt ]
  expect 0 app -i a.txt -o c.txt --report -
  python "
for name, out in (('r.json', 'b.txt'), ('out.txt', 'c.txt')):
  r = load(name)
  assert r['app'] == 'skeleton-app' and r['status'] == 'done' and r['seconds'] >= 0
  assert r['outputs'] == [out, out + '.tsv'] and r['metrics']['bytes'] == 11
  assert r['lines'] == {'count': 1} and r['notes'] == ['a note']"
}

@test "odd bytes in names do no harm" {
  name=$(printf 'a\xff "b'"'"'.txt')
  printf 'hello' > "$name"
  expect 0 app -i "$name" -o b.txt --report r.json
  python "load('b.txt.json'); load('r.json')"
}

# --- streams

@test "the first line names device and reason, the last outputs and seconds" {
  text_file
  expect 0 app -i a.txt -o b.txt --device cpu --threads 2
  [[ "$(head -1 err.txt)" == "skeleton-app: running on cpu, 2 threads (--device cpu)"* ]]
  [[ "$(tail -1 err.txt)" == "skeleton-app: wrote b.txt, b.txt.tsv in "*" s" ]]
  expect 0 env LARCH_THREADS=3 "$SKELETON" -i a.txt -o c.txt --device auto
  [[ "$(head -1 err.txt)" == *"(auto: "* ]]
  expect 0 env LARCH_DEVICE=cpu LARCH_THREADS=3 SLURM_CPUS_PER_TASK=4 "$SKELETON" -i a.txt -o d.txt
  has err.txt "cpu, 3 threads (LARCH_DEVICE cpu)"
  expect 0 env LARCH_DEVICE=cpu SLURM_CPUS_PER_TASK=4 "$SKELETON" -i a.txt -o e.txt
  has err.txt "cpu, 4 threads"
  expect 0 env LARCH_DEVICE=cpu taskset -c 0 "$SKELETON" -i a.txt -o f.txt
  has err.txt "cpu, 1 thread ("
}

@test "quiet, verbose and LARCH_LOGLEVEL" {
  text_file
  expect 0 app -i a.txt -o b.txt --quiet
  [ "$(cat err.txt)" = "skeleton-app: warning: a warning" ]
  expect 0 app -i a.txt -o b.txt -f
  lacks err.txt "a line for -v"
  expect 0 app -i a.txt -o b.txt -fvv
  has err.txt "debug: a line for -v"
  expect 0 env LARCH_LOGLEVEL=error "$SKELETON" -i a.txt -o b.txt -f
  [ ! -s err.txt ]
  expect 0 env LARCH_LOGLEVEL=error "$SKELETON" -i a.txt -o b.txt -fv
  has err.txt "debug: a line for -v"
}

@test "log file and JSON lines" {
  text_file
  expect 0 app -i a.txt -o b.txt --log-file l.txt --log-format json
  python "
for name in ('l.txt', 'err.txt'):
  lines = [json.loads(x) for x in open(name)]
  assert len(lines) >= 3 and {x['level'] for x in lines} == {'info', 'warning'}
  assert all(x['app'] == 'skeleton-app' and x['time'] and x['message'] for x in lines)"
  expect 0 app -i a.txt -o c.txt --log-file m.txt
  grep -qE '^20[0-9]{2}-.* skeleton-app: running on' m.txt
  expect 6 app -i a.txt -o d.txt --log-file no/l.txt
  has err.txt "log file 'no/l.txt' cannot be written"
}

@test "no bar and no colour where stderr is no terminal" {
  text_file
  expect 0 app -i a.txt -o b.txt --sleep 0.3
  [ "$(tr -d '\n\t[:print:]' < err.txt | wc -c)" -eq 0 ]
  lacks err.txt "sleeping"
  expect 0 app -i a.txt -o c.txt --sleep 0.3 --progress slicer
  has out.txt "<filter-progress>1.000</filter-progress>"
  expect 0 app -i a.txt -o d.txt --sleep 0.3 --progress bar
  has err.txt "100 %"
  expect 0 app -i a.txt -o e.txt --sleep 0.3 --progress bar --quiet
  lacks err.txt "100 %"
}

@test "a bar and colour on a terminal; NO_COLOR is respected" {
  command -v script >/dev/null || skip "script is not installed"
  text_file
  script -qec "'$SKELETON' -i a.txt -o b.txt --sleep 0.3" /dev/null > tty.txt </dev/null
  has tty.txt "100 %"
  has tty.txt $'\033[1;33m'
  NO_COLOR=1 script -qec "'$SKELETON' -i a.txt -o c.txt --sleep 0.3" /dev/null > tty.txt </dev/null
  has tty.txt "100 %"
  lacks tty.txt $'\033[1;33m'
  script -qec "'$SKELETON' -i a.txt -o d.txt --sleep 0.3 --progress none" /dev/null > tty.txt </dev/null
  lacks tty.txt "100 %"
}

# --- pages

@test "--version: the first line is fixed; --json has the build" {
  expect 0 app --version
  head -1 out.txt | grep -qE '^larch [0-9]+\.[0-9]+\.[0-9]+$'
  [ ! -s err.txt ]
  expect 0 app --version --json
  python "
v = load('out.txt')
assert {'App', 'Version', 'GitRevision', 'Compiler', 'CUDA'} <= set(v), v"
}

@test "--help begins with synopsis and examples and names every flag" {
  expect 0 app --help
  head -7 out.txt | grep -qF "Usage: skeleton-app --input FILE --output FILE [flags]"
  head -7 out.txt | grep -qF "skeleton-app --input a.txt --output b.txt"
  for flag in --input --copy --config --device --threads --seed --force --skip-existing --dry-run \
    --quiet --verbose --log-file --log-format --progress --report --no-sidecar --print-config \
    --print-schema --slicer-xml --completion --version --help --help-config; do
    has out.txt " $flag"
  done
  [ "$(awk '{ if (length($0) > 100) print }' out.txt | wc -l)" -eq 0 ]
  [ ! -s err.txt ]
  expect 0 app --help-config
  has out.txt "--style.widths"
  has out.txt "list of INT in [1, 80]; default [3,5]"
}

@test "--slicer-xml is well-formed and has the channels" {
  for flag in --slicer-xml --xml; do
    expect 0 app $flag
    [ ! -s err.txt ]
    python "
import xml.etree.ElementTree as tree
root = tree.parse('out.txt').getroot()
assert root.tag == 'executable' and root.find('title').text == 'skeleton-app'
by_flag = {p.find('longflag').text: p for g in root.iter('parameters') for p in g if p.find('longflag') is not None}
assert by_flag['--input'].tag == 'file' and by_flag['--input'].find('channel').text == 'input'
assert by_flag['--output'].find('channel').text == 'output'
assert by_flag['--times'].tag == 'integer' and by_flag['--times'].find('constraints/maximum').text == '9'
assert by_flag['--fail'].tag == 'string-enumeration' and len(by_flag['--fail'].findall('element')) == 14
assert by_flag['--threshold'].find('description').text == 'a number <not> used & kept'
assert '--style.widths' not in by_flag
names = [p.find('name').text for p in by_flag.values()]
assert len(set(names)) == len(names) and all(n.isidentifier() for n in names), names"
  done
}

@test "the completion script is valid and completes flags and words" {
  expect 0 app --completion bash
  mv out.txt completion.bash
  bash -n completion.bash
  cat > try.bash <<'SH'
source completion.bash
complete -p skeleton-app >/dev/null || exit 1
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _larch_skeleton_app; echo "${COMPREPLY[*]}"; }
[ "$(try skeleton-app --skip-)" = --skip-existing ] || exit 2
[ "$(try skeleton-app --style.l)" = --style.letters ] || exit 3
[ "$(try skeleton-app --style.letters u)" = upper ] || exit 4
[ "$(try skeleton-app -d cp)" = cpu ] || exit 5
[ -z "$(try skeleton-app --input a)" ] || exit 6
SH
  bash try.bash
}
