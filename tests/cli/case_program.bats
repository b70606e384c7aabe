#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# What every program over cases does, tried with smooth_app.cpp.

load helpers

app() { "$SMOOTH" "$@"; }
list() { app --list list.tsv --output-dir out "$@"; }

# images NAME...: NAME.nii holds a small volume of its own; list.tsv names them all.
images() {
  /usr/bin/python3 - "$@" <<'PY'
import sys, nibabel, numpy
for number, name in enumerate(sys.argv[1:]):
    values = numpy.arange(4 * 3 * 2, dtype='float32').reshape(4, 3, 2) + number + 1
    nibabel.save(nibabel.Nifti1Image(values, numpy.eye(4)), name + '.nii')
rows = [('image', 'site')] + [(f'{name}.nii', f'at {name}') for name in sys.argv[1:]]
open('list.tsv', 'w').writelines('\t'.join(row) + '\n' for row in rows)
PY
}

# The columns id and status of the table.
rows() { cut -f 1,2 out/status.tsv | tail -n +2 | tr '\t\n' ' ;'; }

@test "one image: its files, one record, report and flags of the products" {
  images a
  expect 0 app -i a.nii -o b.nii.gz --picture b.png --report r.json
  python "
l = load('b.nii.gz.json')['Larch']
assert [(o['Name'], o['Role']) for o in l['Outputs']] == [
    ('b.nii.gz', 'output'), ('b.png', 'picture'), ('r.json', 'report')], l['Outputs']
assert l['Metrics'] == load('r.json')['metrics'] and load('r.json')['outputs'] == ['b.nii.gz', 'b.png']"
  absent b.png.json r.json.json
  expect 2 app -i a.nii
  expect 2 app -i a.nii -o b.txt
  expect 2 app -i a.nii -o c.nii --write picture
  expect 2 app -o c.nii
}

@test "a list gives the bytes of single images, whatever the threads, and records alone" {
  images a b c
  for name in a b c; do app -i $name.nii -o one_$name.nii.gz --picture one_$name.png -q; done
  for threads in 1 4; do
    rm -rf out r.json
    expect 0 list --write image,picture --threads $threads --carry site --report r.json
    for name in a b c; do
      cmp out/$name.nii.gz one_$name.nii.gz
      cmp out/$name.png one_$name.png
    done
    [ "$(ls -A out | wc -l)" -eq 11 ]  # two files and a record of each, table and page
    [ "$(head -n 1 out/status.tsv)" = "$(printf 'id\tstatus\tmessage\tseconds\tcode\tcorner\tsite\tended')" ]
    [ "$(cut -f 1,2,3,5,7 out/status.tsv | sed -n 2p)" = "$(printf 'a\tok\tn/a\t0\tat a')" ]
  done
  python "r = load('r.json')['metrics']; assert (r['cases'], r['ok']) == (3, 3), r
s = load('out/b.larch.json')['Larch']
assert [i['Path'] for i in s['Inputs'] if i['Role'] == 'input'] == ['b.nii'], s['Inputs']
assert s['Row']['site'] == 'at b' and s['Status'] == 'done'"
  no_temporaries
}

@test "of several DICOM series in a folder --series names one, and in a list the column 'series'" {
  "$BIN/make-samples" --output-dir s --size 24,20,16 --training 2 --test 1 --format dicom -q
  mkdir both
  for k in 0 1; do for file in s/images/case_00$k/*; do cp "$file" "both/$k${file##*/}"; done; done
  expect 3 app -i both -o x.nii.gz -n
  has err.txt "2 DICOM series; choose one with --series, in a list in the column 'series'"
  lacks err.txt '\x0a'
  uids=($(grep -oE '[0-9.]+ \(MR, 16 files' err.txt | cut -d ' ' -f 1))
  for k in 0 1; do app -i both --series "${uids[k]}" -o one_$k.nii.gz -q; done
  printf 'id\timage\tseries\n0\tboth\t%s\n1\tboth\t%s\nn\ts/images/case_000\tn/a\n' "${uids[@]}" > list.tsv
  expect 2 list --series "${uids[0]}"
  expect 0 list
  lacks err.txt "nobody reads"
  for k in 0 1; do cmp out/$k.nii.gz one_$k.nii.gz; done
  ! cmp -s one_0.nii.gz one_1.nii.gz
  cmp out/0.nii.gz out/n.nii.gz || cmp out/1.nii.gz out/n.nii.gz
  # Another series is another input.
  sed -i "s/${uids[0]}/${uids[1]}/" list.tsv
  expect 7 list --skip-existing
  has out/status.tsv "('out/0.larch.json'): series '${uids[1]}': other content"

  # No slice vanishes, whatever the series is that is named.
  : > both/IM0001
  expect 3 app -i both --series "${uids[0]}" -o x.nii.gz -n
  has err.txt "'both/IM0001' is empty (0 bytes)"
  rm -r out
  expect 7 list --dry-run
  rm both/IM0001
  echo text > both/notes.txt
  app -i both --series "${uids[0]}" -o x.nii.gz 2>err.txt || true
  has err.txt "1 files that are no DICOM images are passed over, such as 'notes.txt'"
  cmp x.nii.gz one_0.nii.gz
}

@test "7: a case that fails or is rejected does not stop the others, and says so until it succeeds" {
  images a b c
  cp c.nii kept.nii
  rm c.nii
  app -i a.nii -o b.nii --force -q --passes 3
  /usr/bin/python3 -c "
import nibabel; i = nibabel.load('a.nii'); nibabel.save(nibabel.Nifti1Image(-i.get_fdata(), i.affine), 'b.nii')"
  expect 7 list
  [ "$(rows)" = "a ok;b rejected;c failed;" ]
  has err.txt "out/status.tsv"
  python "f = load('out/c.failed.larch.json')['Larch']; assert f['Status'] == 'failed' and 'c.nii' in f['Reason']"
  absent out/c.nii.gz out/c.larch.json
  expect 7 list --skip-existing
  [ "$(rows)" = "a ok;b rejected;c failed;" ]
  mv kept.nii c.nii
  echo '{"app": "smooth-app"}' > r.json
  expect 7 list --skip-existing --report r.json
  [ "$(rows)" = "a ok;b rejected;c ok;" ]
  absent out/c.failed.larch.json
  python "r = load('r.json')['metrics']; assert (r['ok'], r['rejected'], r['skipped']) == (1, 1, 1), r"
}

@test "--reject-code 0: results that are rejected do not fail the run, cases that fail do" {
  images a b
  /usr/bin/python3 -c "
import nibabel; i = nibabel.load('a.nii'); nibabel.save(nibabel.Nifti1Image(-i.get_fdata(), i.affine), 'b.nii')"
  expect 0 list --reject-code 0
  [ "$(rows)" = "a ok;b rejected;" ]
  has err.txt "warning: result rejected: "
  expect 0 app -i b.nii -o one.nii.gz --reject-code 0
  for more in "" --dry-run; do
    expect 7 list --skip-existing $more
    expect 0 list --skip-existing --reject-code 0 $more
  done
  expect 7 app -i b.nii -o one.nii.gz --skip-existing
  expect 0 app -i b.nii -o one.nii.gz --skip-existing --reject-code 0
  rm a.nii
  expect 7 list --force --reject-code 0
  [ "$(rows)" = "a failed;b rejected;" ]
  expect 2 list --force --reject-code 1
}

@test "--part: runs over the parts of a list do each case once, and a dry run tells the cases that are missing" {
  images a b c d e
  expect 0 list --part 2,3
  [ "$(rows)" = "b ok;e ok;" ]
  expect 0 list --skip-existing --dry-run
  [ "$(cut -d ' ' -f 1 out.txt | xargs)" = "id a c d" ]
  expect 0 list --part 1,3
  expect 0 list --part 3,3
  expect 0 list --part 6,6
  [ "$(rows)" = "a ok;b ok;c ok;d ok;e ok;" ]
  expect 0 list --skip-existing --dry-run
  [ ! -s out.txt ]
  for part in 0,3 4,3 1; do expect 2 list --force --part $part; done
  expect 2 app -i a.nii -o one.nii.gz --part 1,2
  # Names are those of all parts.
  printf 'id\timage\nx\ta.nii\ny\tb.nii\nx\tc.nii\n' > list.tsv
  expect 3 app --list list.tsv --output-dir new --part 2,3
  absent new
}

@test "the report of a list has its cases, and a case that fails is not ok because it was so before" {
  images a b c
  expect 0 list --report r.json
  python "
r = load('r.json')
assert [(c['id'], c['status']) for c in r['cases']] == [('a', 'ok'), ('b', 'ok'), ('c', 'ok')], r
assert r['cases'][0]['outputs'] == ['out/a.nii.gz'] and r['cases'][0]['seconds'] >= 0, r
assert r['cases'][1]['metrics'] == load('out/b.larch.json')['Larch']['Metrics'] != {}, r"
  /usr/bin/python3 -c "
import nibabel; i = nibabel.load('a.nii'); nibabel.save(nibabel.Nifti1Image(-i.get_fdata(), i.affine), 'b.nii')"
  rm c.nii
  mkdir out/c.failed.larch.json  # so that the failure leaves no record
  expect 7 list --force --report r.json --threads 4
  [ "$(rows)" = "a ok;b rejected;c failed;" ]
  python "
cases = load('r.json')['cases']
assert [(c['id'], c['status']) for c in cases] == [('a', 'ok'), ('b', 'rejected'), ('c', 'failed')], cases
assert cases[1]['reason'] and 'c.nii' in cases[2]['reason'] and 'reason' not in cases[0], cases"
  rmdir out/c.failed.larch.json
  cut -f 1-2,4- out/status.tsv | grep -v ^c > figures.tsv
  expect 7 list --skip-existing --report r.json
  python "
cases = load('r.json')['cases']
assert [(c['id'], c['status']) for c in cases] == [('a', 'skipped'), ('b', 'rejected'), ('c', 'failed')], cases
assert cases[0]['metrics'] == load('out/a.larch.json')['Larch']['Metrics'], cases
assert cases[0]['outputs'] == ['out/a.nii.gz'] and cases[1]['metrics'] != {}, cases"
  # Figures of cases that are skipped are those of their records.
  cut -f 1-2,4- out/status.tsv | grep -v ^c | cmp figures.tsv
}

@test "the table, the report and JSON lines of the log have the exit code of each case" {
  images a b c d
  /usr/bin/python3 -c "
import nibabel; i = nibabel.load('a.nii'); nibabel.save(nibabel.Nifti1Image(-i.get_fdata(), i.affine), 'b.nii')"
  rm c.nii
  expect 7 list --report r.json --log-format json --threads 4
  [ "$(cut -f 1,2,5 out/status.tsv | tail -n +2 | tr '\t\n' ' ;')" = "a ok 0;b rejected 7;c failed 3;d ok 0;" ]
  python "
lines = [json.loads(x) for x in open('err.txt')]
assert len({x['run'] for x in lines}) == 1 and all('case' in x or x['app'] == 'smooth-app' for x in lines), lines
ends = {x['case']: x['code'] for x in lines if 'case' in x and 'code' in x}
assert ends == {'a': 0, 'b': 7, 'c': 3, 'd': 0}, ends
assert 'case' not in lines[0] and 'case' not in lines[-1] and lines[-1]['code'] == 7, lines
assert [c['code'] for c in load('r.json')['cases']] == [0, 7, 3, 0]"
  cp err.txt first.txt
  expect 7 list --skip-existing --log-format json -t 1
  python "
first, lines = ([json.loads(x) for x in open(name)] for name in ('first.txt', 'err.txt'))
assert first[0]['run'] != lines[0]['run']
assert {x['case']: x['code'] for x in lines if 'code' in x and 'case' in x} == {'a': 0, 'b': 7, 'c': 3, 'd': 0}, lines"
  # One image: the lines of its case have the id that it would have in a list.
  expect 0 app -i a.nii -o one.nii.gz --log-format json
  python "
last = json.loads(open('err.txt').read().splitlines()[-1])
assert (last['case'], last['code']) == ('a', 0), last"
  expect 3 app -i c.nii -o two.nii.gz --log-format json
  python "assert json.loads(open('err.txt').read().splitlines()[-1])['code'] == 3"
  # People see no line for each case.
  expect 7 list --force
  lacks err.txt "case 'a' ok"
}

@test "a run that fails writes its report, which the next run replaces, and no report of others" {
  images a
  expect 3 app -i none.nii -o b.nii --report r.json
  python "
r = load('r.json')
assert r['app'] == 'smooth-app' and r['status'] == 'failed' and r['exit_code'] == 3, r
assert 'none.nii' in r['reason'] and r['inputs'] == ['none.nii'], r"
  expect 3 app -i list.tsv -o b.nii --report r.json
  python "assert 'list.tsv' in load('r.json')['reason']"
  expect 0 app -i a.nii -o b.nii --report r.json
  python "assert load('r.json')['status'] == 'done'"
  cp r.json done.json
  # Without --force what is there stays; with it the old report would tell of a success.
  expect 6 app -i a.nii -o b.nii --report r.json
  cmp r.json done.json
  rm a.nii
  expect 3 app -i a.nii -o b.nii --report r.json --force
  python "assert load('r.json')['status'] == 'failed'"
  images a
  expect 0 app -i a.nii -o b.nii --report r.json --skip-existing
  python "assert load('r.json')['status'] == 'done'"
  echo mine > mine.json
  expect 3 app -i none.nii -o c.nii --report mine.json
  [ "$(cat mine.json)" = mine ]
  expect 3 app -i none.nii -o c.nii --report -
  python "assert load('out.txt')['exit_code'] == 3"
  expect 3 app -i none.nii -o c.nii --report dry.json --dry-run
  expect 2 app -i a.nii -o c.txt --report usage.json
  absent dry.json usage.json c.nii
  printf 'id\timage\n../a\ta.nii\n' > ids.tsv
  expect 3 app --list ids.tsv --output-dir out --report list.json
  python "assert load('list.json')['exit_code'] == 3"
  expect 0 list --report list.json
  python "assert load('list.json')['status'] == 'done'"
}

@test "--skip-existing: what is there stays; what is missing, changed or of other settings is told" {
  images a b c d
  expect 0 list
  cp -r out first
  expect 6 list
  rm out/d.nii.gz
  expect 0 list --skip-existing --threads 4
  cmp first/d.nii.gz out/d.nii.gz
  expect 7 list --skip-existing --passes 2
  [ "$(rows)" = "a failed;b failed;c failed;d failed;" ]
  grep -q "^a.failed.*passes: 1 there, 2 now" out/status.tsv
  for name in a b c d; do cmp first/$name.nii.gz out/$name.nii.gz; done
  expect 0 list --skip-existing
  [ "$(rows)" = "a ok;b ok;c ok;d ok;" ]
  echo changed > out/a.nii.gz
  app -i a.nii -o b.nii --force -q
  rm out/c.larch.json
  touch out/d.nii.gz d.nii
  expect 7 list --skip-existing
  [ "$(rows)" = "a failed;b failed;c failed;d ok;" ]
  expect 0 list --skip-existing --force
  [ "$(rows)" = "a ok;b ok;c ok;d ok;" ]
  cmp first/a.nii.gz out/a.nii.gz
}

@test "--skip-existing of cases that are all there removes what a run killed at its table left" {
  images a
  expect 0 list
  host=$(tr -d '\n' < /proc/sys/kernel/random/boot_id | sha256sum | cut -c 1-16)
  left=out/.larch-$host-$(printf '0%.0s' {1..32}).tsv
  touch -d '2 hours ago' "$left"
  expect 0 list --skip-existing
  absent "$left"
}

@test "other products of the same settings join the record; other settings replace it and name what they leave" {
  images a b
  expect 0 list
  expect 0 list --write picture
  python "
names = [o['Name'] for o in load('out/a.larch.json')['Larch']['Outputs']]
assert sorted(names) == ['a.nii.gz', 'a.png'], names"
  expect 0 list --write image,picture --skip-existing --report r.json
  python "assert load('r.json')['metrics']['skipped'] == 2"
  expect 7 list --skip-existing --write picture --passes 2
  expect 0 list --force --passes 2
  has err.txt "out/a.png"
  python "assert [o['Name'] for o in load('out/a.larch.json')['Larch']['Outputs']] == ['a.nii.gz']"
}

@test "a record that says 'writing' is that of a killed run: what it names may be replaced" {
  images a
  mkdir out
  echo half > out/a.nii.gz
  expect 6 list
  expect 7 list --skip-existing
  rm out/*.json
  echo '{"Larch": {"Status": "writing", "Outputs": [{"Name": "a.nii.gz", "Role": "output"}]}}' > out/a.larch.json
  expect 0 list
  [ "$(rows)" = "a ok;" ]
  echo '{"Larch": {"Status": "writing", "Outputs": [{"Name": "other", "Role": "output"}]}}' > out/a.larch.json
  expect 7 list --write picture,image
  has out/status.tsv "out/a.nii.gz"
}

@test "status.tsv is derived from all records of the folder, and is not taken from somebody else" {
  images c10 c2 c1
  expect 0 list
  [ "$(rows)" = "c1 ok;c2 ok;c10 ok;" ]
  sed -i '2d' list.tsv
  rm out/status.tsv
  expect 0 list --skip-existing
  [ "$(rows)" = "c1 ok;c2 ok;c10 ok;" ]
  mkdir other
  echo 'my notes' > other/status.tsv
  expect 6 app --list list.tsv --output-dir other
  [ "$(cat other/status.tsv)" = 'my notes' ]
  [ "$(ls other)" = status.tsv ]
}

@test "--dry-run: a table from headers, the cases that would fail, the exit code of the run" {
  images a b c
  rm c.nii
  expect 7 list --dry-run
  has err.txt "case 'c':"
  absent out
  grep -q "^a *4x3x2 *1x1x1 *a.nii" out.txt
  sed -i '$d' list.tsv
  expect 0 list --dry-run
  expect 0 list
  expect 6 list --dry-run
  expect 0 list --dry-run --skip-existing
  expect 7 list --dry-run --skip-existing --passes 3
  expect 0 list --dry-run --force
  expect 0 app -i a.nii -o one.nii --dry-run
  expect 3 app -i list.tsv -o one.nii --dry-run
  absent one.nii
}

@test "143: a signal ends the run; what is whole stays" {
  images $(seq 1 200)
  "$SMOOTH" --list list.tsv --output-dir out --passes 400000 2> err.txt &
  local child=$! code=0
  until_in_child test -e out/3.nii.gz
  kill -TERM "$child"
  wait "$child" || code=$?
  [ "$code" -eq 143 ]
  [ "$(($(wc -l < out/status.tsv) - 1))" -eq "$(ls out/*.nii.gz | wc -l)" ]
  [ "$(ls out/*.nii.gz | wc -l)" -lt 200 ]
  no_temporaries out
}

@test "2 and 3: names that clash, and outputs that would replace inputs" {
  images a
  expect 2 app --list list.tsv --output-dir . --format nii
  printf 'id\timage\n../a\ta.nii\n' > ids.tsv
  expect 3 app --list ids.tsv --output-dir out
  printf 'id\timage\nb\ta.nii\nb.failed\ta.nii\n' > ids.tsv
  expect 2 app --list ids.tsv --output-dir out
  expect 2 list --no-sidecar
  expect 2 list --carry nothing
  has err.txt "--carry: the list has no column 'nothing'"
  sed 's/site/corner/' list.tsv > clash.tsv
  expect 2 app --list clash.tsv --output-dir out --carry corner
  has err.txt "--carry: status.tsv has a column 'corner' already"
  expect 2 list -o b.nii
  absent out
}

@test "help, configuration and the description for 3D Slicer come from the declarations" {
  expect 0 app --help
  for flag in --input --output --picture --list --output-dir --write --passes; do has out.txt "$flag"; done
  expect 0 app --slicer-xml
  command -v xmllint >/dev/null && xmllint --noout out.txt
  has out.txt "<longflag>--picture</longflag>"
  has out.txt "<name>passes</name>"
  images a
  echo '{"passes": 2}' > two.json
  expect 0 app -i a.nii -o b.nii -c two.json
  expect 2 app -i a.nii -o c.nii --write nothing
  expect 2 list --write nothing
}

@test "2: --force replaces no input: configuration, list, image, by whatever link" {
  images a b
  echo '{"passes": 2}' > c.json
  ln -s c.json link.nii
  ln a.nii hard.nii
  ln -s later.nii to_later.nii
  expect 2 app -i a.nii -o c.json.nii --report c.json --config c.json --force
  has err.txt "'c.json' is read as --config and would be replaced"
  expect 2 app -i a.nii -o link.nii --config c.json --force
  expect 2 app -i a.nii -o hard.nii --force
  has err.txt "'hard.nii' is read as --input"
  expect 2 app -i a.nii -o to_later.nii --report later.nii --force
  has err.txt "would be written twice"
  mkdir out
  for name in a.larch.json a.failed.larch.json a.nii.gz status.tsv; do
    ln -f c.json out/$name
    expect 2 list --config out/$name --force
    has err.txt "is read as --config"
    rm out/$name
  done
  ln -s ../a.nii out/b.nii.gz
  expect 2 list --force
  has err.txt "'out/b.nii.gz' is an input of the list"
  [ "$(cat c.json)" = '{"passes": 2}' ]
}

@test "the name of a record of a failure is taken from no other file, and a result keeps its row" {
  images a b
  mv b.nii kept.nii
  mkdir out
  echo '{"notes": "mine"}' > out/b.failed.larch.json
  echo mine > mine.txt
  ln -s ../mine.txt out/a.failed.larch.json
  expect 7 list
  has err.txt "'out/b.failed.larch.json' is no record of Larch"
  [ "$(rows)" = "a ok;b failed;" ]
  mv kept.nii b.nii
  expect 0 list --skip-existing
  [ "$(cat out/b.failed.larch.json mine.txt)" = "$(printf '{"notes": "mine"}\nmine')" ]
  [ -L out/a.failed.larch.json ]
}

@test "two runs over one folder at a time: a case with a result is ok, though one of them may not write it" {
  images $(seq 40)
  list -q 2>first.txt &
  list -q 2>second.txt || true
  wait $! || true
  [ "$(rows)" = "$(for i in $(seq 40); do printf '%s ok;' "$i"; done)" ]
}

@test "--report with --force replaces no input, neither with figures nor with the reason of a failure" {
  images a b
  sha256sum a.nii list.tsv > all.txt
  for report in a.nii list.tsv; do
    expect 2 list --report $report --force
    sha256sum --check --quiet all.txt
  done
  printf 'image\na.nii\nb.nii\ta\n' > broken.tsv
  expect 3 app --list broken.tsv --output-dir out --report a.nii --force
  sha256sum --check --quiet all.txt
  # The record of the result of another id is no record of a failure.
  mkdir own
  app -i a.nii -o own/x.nii -q
  mv own/x.nii.json own/a.failed.larch.json
  cp own/a.failed.larch.json kept.json
  expect 0 app --list list.tsv --output-dir own
  cmp kept.json own/a.failed.larch.json
}

@test "an image that --memory cannot hold is warned of, alone and in a list" {
  images a b
  expect 0 app -i a.nii -o one.nii.gz --memory 95
  has err.txt "warning: 'a.nii' has 24 voxels: it takes more than the 95 bytes of --memory"
  expect 0 list --memory 95
  has err.txt "warning: 'b.nii' has 24 voxels"
  expect 0 app -i a.nii -o two.nii.gz --memory 96
  lacks err.txt "warning"
}
