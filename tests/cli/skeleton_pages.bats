#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# What the skeleton of every executable tells: sidecars, reports, logs, pages.

load helpers

app() { "$SKELETON" "$@"; }

text_file() { printf 'hello' > a.txt; }

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
import os
t = os.stat('a.txt')
assert l['Inputs'] == [{'Role': 'input', 'Path': 'a.txt', 'Bytes': 5, 'Modified': t.st_mtime_ns,
                        'Changed': t.st_ctime_ns, 'Inode': t.st_ino,
                        'SHA256': hashlib.sha256(b'hello').hexdigest(),
                        'Grid': 'one line'}], l['Inputs']
assert l['ResultsVersion'] == 1 and l['Options']['megabytes'] == 0 and 'input' not in l['Options'], l
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
  script -qec true /dev/null >/dev/null 2>&1 </dev/null || skip "no pseudo-terminals here"
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
  head -7 out.txt | grep -qF "Usage: skeleton-app [flags]"
  "$BIN/make-samples" --help | head -7 | grep -qF "Usage: make-samples --output-dir FOLDER [flags]"
  head -7 out.txt | grep -qF "skeleton-app --input a.txt --output b.txt"
  for flag in --input --copy --config --device --threads --seed --force --skip-existing --dry-run \
    --quiet --verbose --log-file --log-format --progress --report --no-sidecar --print-config \
    --print-schema --slicer-xml --manual-page --completion --version --help --help-config; do
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
assert by_flag['--style_widths'].tag == 'integer-vector' and by_flag['--style_widths'].find('default').text == '3,5'
assert 'Configuration: style' in [group[0].text for group in root.iter('parameters')]
names = [p.find('name').text for p in by_flag.values()]
assert len(set(names)) == len(names) and all(n.isidentifier() for n in names), names"
  done
}

@test "the manual page has all of the help, and the keys" {
  expect 0 app --manual-page
  mv out.txt page.1
  python "
import re, subprocess
page = open('page.1').read().replace('\\\\-', '-')
for flag in ('--help', '--help-config'):
  text = subprocess.run(['$SKELETON', flag], capture_output=True, text=True).stdout
  for name in re.findall(r'^  (?:-\\w, |    )?(--[\\w.-]+)', text, re.M):
    assert re.search(r'^\\.B .*' + re.escape(name) + r'\\b', page, re.M), name"
  command -v man >/dev/null || skip "man is not installed"
  MANWIDTH=80 man --warnings --local-file page.1 >text.txt 2>warnings.txt
  [ ! -s warnings.txt ]
  grep -q -e '--style.widths' text.txt
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
