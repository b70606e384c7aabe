# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# evaluate: figures of known boxes, lists, and its refusals.

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
def save(name, low, high, value=1, shape=(30, 30, 20), affine=None):
    data = numpy.zeros(shape, numpy.uint8)
    data[low[0]:high[0], low[1]:high[1], low[2]:high[2]] = value
    nibabel.save(nibabel.Nifti1Image(data, numpy.diag([1, 1, 3, 1]) if affine is None else affine), name)
save("a.nii.gz", (5, 5, 5), (15, 15, 15))
save("b.nii.gz", (5, 5, 6), (15, 15, 16))       # one slice = 3 mm higher
save("b5.nii.gz", (5, 5, 6), (15, 15, 16), 5)   # the same as label 5
save("none.nii.gz", (0, 0, 0), (0, 0, 0))
two = numpy.zeros((30, 30, 20), numpy.uint8)
two[5:15, 5:15, 5:10], two[5:15, 5:15, 10:15] = 1, 2
nibabel.save(nibabel.Nifti1Image(two, numpy.diag([1, 1, 3, 1])), "two.nii.gz")
open("cases.tsv", "w").write("id\tprediction\treference\nsame\ta.nii.gz\ta.nii.gz\nshifted\ta.nii.gz\tb.nii.gz\nlost\tnone.nii.gz\ta.nii.gz\n")
PY
}

setup() { cd "$BATS_FILE_TMPDIR"; }

check() {  # check 'python expression over r' report.json
  /usr/bin/python3 -c "import json, sys; r = json.load(open('$2')); u = r.get('cases', [{'structures': {}}])[0]['structures'].get('union'); assert $1, json.dumps(r, indent=1)"
}

@test "evaluate gives the figures of two shifted boxes" {
  run "$BIN/evaluate" --prediction a.nii.gz --reference b.nii.gz --report shift.json
  [ "$status" -eq 0 ]
  check "u['dice'] == 0.9 and abs(u['jaccard'] - 9 / 11) < 1e-12" shift.json
  check "u['prediction_mm3'] == 3000 and u['volume_difference_mm3'] == 0" shift.json
  check "abs(u['surface_max_mm'] - 3) < 1e-9 and 0.3 < u['assd_mm'] < 1.5" shift.json
  check "abs(u['hd95_mm'] - 3) < 1e-9 and u['sensitivity'] == u['precision'] == 0.9" shift.json
  for mm in 0 2.9 3; do "$BIN/evaluate" -p a.nii.gz -r b.nii.gz --tolerance-mm $mm --report shift$mm.json -q; done
  check "0.65 < u['surface_dice'] < 0.77" shift0.json  # of 1400 mm^2 the ends and 120 mm^2 of the sides are apart
  check "0.9 < u['surface_dice'] < 0.95" shift2.9.json
  check "u['surface_dice'] == 1" shift3.json
  check "r['metrics']['dice'] == 0.9 and r['summary']['union']['dice']['cases'] == 1" shift.json
  check "r['cases'][0]['structures']['1'] == u" shift.json
}

@test "evaluate: an empty prediction has Dice 0 and no distance" {
  run "$BIN/evaluate" --prediction none.nii.gz --reference a.nii.gz --report lost.json
  [ "$status" -eq 0 ]
  check "u['dice'] == 0 and u['assd_mm'] is None and u['relative_volume_difference'] == -1" lost.json
  run "$BIN/evaluate" --prediction none.nii.gz --reference none.nii.gz --report none.json
  [ "$status" -eq 0 ]
  check "u['dice'] == 1 and u['assd_mm'] == 0" none.json
}

@test "evaluate by label and merged" {
  "$BIN/evaluate" --prediction a.nii.gz --reference two.nii.gz --report two.json
  check "u['dice'] == 1 and abs(r['cases'][0]['structures']['1']['dice'] - 2 / 3) < 1e-12" two.json
  check "r['cases'][0]['structures']['2']['dice'] == 0" two.json
  "$BIN/evaluate" --prediction a.nii.gz --reference two.nii.gz --merge --report merged.json
  check "list(r['cases'][0]['structures']) == ['union'] and u['dice'] == 1" merged.json
  "$BIN/evaluate" --prediction two.nii.gz --reference two.nii.gz --labels 2 --report second.json
  check "u['reference_mm3'] == 1500" second.json
  "$BIN/evaluate" --prediction a.nii.gz --reference b5.nii.gz --merge --labels 5 --prediction_labels 1 --report map.json
  check "u['dice'] == 0.9" map.json
  run "$BIN/evaluate" --prediction a.nii.gz --reference b5.nii.gz --prediction_labels 1
  [ "$status" -eq 2 ]
}

@test "evaluate: a label of --labels that no file holds is exit code 3; one that a reference lacks is named" {
  for kind in "--prediction a.nii.gz --reference b.nii.gz" "--list cases.tsv" "--list cases.tsv --merge" \
    "--prediction a.nii.gz --reference b5.nii.gz --merge --prediction_labels 9"; do
    for flag in "" --dry-run; do
      run "$BIN/evaluate" $kind --labels 1,9 --table nine.tsv $flag
      [[ "$status" -eq 3 && "$output" == *"--labels: no label map holds "[19]";"* && ! -e nine.tsv ]]
    done
  done
  # In the second case it is in neither file, where both agree.
  printf 'id\tprediction\treference\nfive\ta.nii.gz\tb5.nii.gz\nnone\ta.nii.gz\tb.nii.gz\n' > five.tsv
  run "$BIN/evaluate" --list five.tsv --labels 5 --report five.json
  [[ "$status" -eq 0 && "$output" == *"case 'none': the reference '"*"b.nii.gz' has no label 5"* ]]
  [[ "$output" != *"case 'five': the reference"* ]]
  run "$BIN/evaluate" --prediction a.nii.gz --reference b5.nii.gz
  [[ "$status" -eq 0 && "$output" == *"the reference 'b5.nii.gz' has no label 1"* ]]
  for flag in --merge "--labels 0"; do
    run "$BIN/evaluate" --prediction a.nii.gz --reference b5.nii.gz $flag
    [[ "$status" -eq 0 && "$output" != *"no label"* ]]
  done
}

@test "evaluate gives the total correct fraction, which counts the background too" {
  "$BIN/evaluate" --prediction a.nii.gz --reference b.nii.gz --report fraction.json
  check "abs(u['total_correct_fraction'] - (1 - 200 / 18000)) < 1e-15 and list(u)[-1] == 'total_correct_fraction'" fraction.json
  check "r['metrics']['total_correct_fraction'] == u['total_correct_fraction']" fraction.json
}

@test "evaluate without surfaces" {
  "$BIN/evaluate" --prediction a.nii.gz --reference b.nii.gz --surfaces=false --report fast.json
  check "'assd_mm' not in u and u['dice'] == 0.9" fast.json
}

@test "evaluate over a list: report and table" {
  run "$BIN/evaluate" --list cases.tsv --merge --report list.json --table list.tsv
  [ "$status" -eq 0 ]
  check "[c['id'] for c in r['cases']] == ['same', 'shifted', 'lost']" list.json
  check "abs(r['summary']['union']['dice']['mean'] - 1.9 / 3) < 1e-12 and r['summary']['union']['dice']['median'] == 0.9" list.json
  check "abs(r['summary']['union']['dice']['sd'] - 0.5507570547) < 1e-9" list.json
  check "r['summary']['union']['assd_mm']['cases'] == 2" list.json
  [ "$(wc -l < list.tsv)" -eq 4 ]
  [ "$(head -n 1 list.tsv | cut -f 1-4)" = "$(printf 'id\tstructure\tdice\tjaccard')" ]
  [ "$(sed -n 3p list.tsv | cut -f 1-3)" = "$(printf 'shifted\tunion\t0.9')" ]
  [[ "$(sed -n 4p list.tsv)" == *n/a* ]]
}

@test "7: a prediction that is missing is a row with Dice 0; a label that a prediction lacks is named" {
  printf 'id\tprediction\treference\nthere\ta.nii.gz\tb.nii.gz\ngone\tgone.nii.gz\ttwo.nii.gz\n' > gone.tsv
  for flags in "--labels 1,2" --merge; do
    run "$BIN/evaluate" --list gone.tsv $flags --table gone.out.tsv --report gone.json -f
    [[ "$status" -eq 7 && "$output" == *"1 of 2 predictions do not exist, such as '"*"gone.nii.gz'"* ]]
    check "r['status'] == 'rejected' and [c['structures']['union']['dice'] for c in r['cases']] == [0.9, 0]" gone.json
    check "r['metrics']['dice'] == 0.45 and r['summary']['union']['assd_mm']['cases'] == 1" gone.json
    grep -Pq "^gone\tunion\t0\t0\tn/a\t3000\tn/a\tn/a\tn/a\tn/a\tn/a\tn/a\tn/a\t0\t0\tn/a\t0$" gone.out.tsv
    run "$BIN/evaluate" --list gone.tsv $flags --table new.tsv --dry-run
    [[ "$status" -eq 7 && "$output" == *"1 of 2 predictions do not exist"* ]]
  done
  # Once it is there the result is another one.
  cp two.nii.gz gone.nii.gz
  run "$BIN/evaluate" --list gone.tsv --merge --table gone.out.tsv --report gone.json --skip-existing
  [[ "$status" -eq 6 && "$output" == *gone.nii.gz* ]]
  rm gone.nii.gz
  printf 'prediction\treference\na.nii.gz\tgone.nii.gz\n' > truth.tsv
  run "$BIN/evaluate" --list truth.tsv
  [[ "$status" -eq 3 && "$output" == *"gone.nii.gz'"* && "$output" != *predictions* ]]
  mkdir -p gone && cd gone && boxes && poses LPS 'liver 0' > truth.json
  printf 'prediction\treference\nbox.obj\tbox.obj\ngone.obj\t../a.nii.gz\ngone2.obj\tbox.obj\n' > meshes.tsv
  run "$BIN/evaluate" --kind meshes --list meshes.tsv --table m.tsv
  [[ "$status" -eq 7 && "$(grep -Pc "^gone2?\tsurface(\tn/a){8}\t1\tn/a\t0$" m.tsv)" -eq 2 ]]
  printf 'prediction\treference\ngone.json\ttruth.json\n' > poses.tsv
  run "$BIN/evaluate" --kind poses --list poses.tsv --table p.tsv
  [[ "$status" -eq 7 && "$(sed -n 2p p.tsv)" == "$(printf 'gone\tliver\tn/a\tn/a\tn/a\tn/a\t0\t1\t1\tn/a')" ]]
  cd ..
  run "$BIN/evaluate" --prediction b5.nii.gz --reference a.nii.gz --labels 1
  [[ "$status" -eq 0 && "$output" == *"the prediction 'b5.nii.gz' has no label 1; it holds 5"* ]]
  run "$BIN/evaluate" --prediction b5.nii.gz --reference a.nii.gz --merge --prediction_labels 3
  [[ "$status" -eq 0 && "$output" == *"the prediction 'b5.nii.gz' has no label 3; it holds 5"* ]]
  run "$BIN/evaluate" --prediction none.nii.gz --reference a.nii.gz --merge
  [[ "$status" -eq 0 && "$output" == *"has no label 1; it holds none"* ]]
}

@test "evaluate --prediction-dir: what a list run wrote, by id; the table per structure with names and the worst case" {
  mkdir -p folder/out && cd folder
  for id in x y z; do cp ../a.nii.gz out/$id.nii.gz; done
  printf 'image\tlabel\nx.nii.gz\t../a.nii.gz\ny.nii.gz\t../b.nii.gz\nz.nii.gz\t../two.nii.gz\n' > test.tsv
  printf 'index\tname\tcolor\n1\tliver\t#000000\n' > out/x.tsv
  touch out/x.png out/x.larch.json out/status.tsv
  run "$BIN/evaluate" --list test.tsv --prediction-dir out --table t.tsv --report t.json
  [[ "$status" -eq 0 && "$output" != *"nobody reads"* ]]
  grep -Eq '^structure +score +n +mean +sd +median +mean from +to 95 % +worst +case$' <<< "$output"
  grep -Eq '^1 liver +dice +3 +0.8556 +0.1711 +0.9 +[0-9.]+ +1 +0.6667 +z$' <<< "$output"
  grep -Eq '^1 liver +sensitivity +3 +0.9667 +0.05774 +1 +0.9 +1 +0.9 +y$' <<< "$output"
  grep -Eq '^2 +dice +1 +0 +n/a +0 +n/a +n/a +0 +z$' <<< "$output"
  grep -Eq '^2 +hd95_mm +0( +n/a){6} +$' <<< "$output"
  check "r['summary']['1']['dice']['worst_case'] == 'z' and r['summary']['union']['dice']['worst'] == 0.9" t.json
  printf 'id\tprediction\treference\nx\tout/x.nii.gz\t../a.nii.gz\ny\tout/y.nii.gz\t../b.nii.gz\nz\tout/z.nii.gz\t../two.nii.gz\n' > pairs.tsv
  "$BIN/evaluate" --list pairs.tsv --table pairs.out.tsv -q
  cmp t.tsv pairs.out.tsv
  # Stdout has the table alone; --quiet takes it away, and a report on stdout has it for itself.
  "$BIN/evaluate" --list test.tsv --prediction-dir out 2>/dev/null | head -n 1 | grep -q ^structure
  [ -z "$("$BIN/evaluate" --list test.tsv --prediction-dir out -q)" ]
  "$BIN/evaluate" --list test.tsv --prediction-dir out --report - 2>/dev/null | /usr/bin/python3 -m json.tool > /dev/null
  # What is missing counts and is named; what may be two files, and a folder of others, is refused.
  rm out/y.nii.gz
  run "$BIN/evaluate" --list test.tsv --prediction-dir out --report m.json
  [[ "$status" -eq 7 && "$output" == *"1 of 3 predictions do not exist, such as 'out/y.nii.gz'"* ]]
  grep -Eq '^1 liver +dice +3 +0.5556 +0.5092 +0.6667 +0 +1 +0 +y$' <<< "$output"
  check "r['missing'] == ['y']" m.json
  cp ../a.nii.gz out/z.nii.gz && gunzip -k out/z.nii.gz
  run "$BIN/evaluate" --list test.tsv --prediction-dir out
  [[ "$status" -eq 3 && "$output" == *"case 'z': 'out/z.nii.gz' and 'out/z.nii' may both be"* ]]
  mkdir empty
  run "$BIN/evaluate" --list test.tsv --prediction-dir empty
  [[ "$status" -eq 3 && "$output" == *"'empty' holds no prediction of 3 cases, such as 'empty/x.nii.gz'"* ]]
  printf 'id\timage\tlabel\n../x\tx.nii.gz\t../a.nii.gz\n' > up.tsv
  run "$BIN/evaluate" --list up.tsv --prediction-dir out
  [[ "$status" -eq 3 && "$output" == *"cannot be a file name"* ]]
  for flags in "--prediction-dir out" "--list test.tsv --dataset pairs.tsv --prediction-dir out" "--dataset pairs.tsv" \
    "--prediction-dir out -p a -r b"; do
    run "$BIN/evaluate" $flags
    [ "$status" -eq 2 ]
  done
}

@test "evaluate --prediction-dir: poses and meshes of a folder, and both forms of dataset.json" {
  mkdir -p sets/out sets/labelsTs sets/imagesTs && cd sets && boxes && poses LPS 'liver 0' > truth.json
  cp box.obj out/c.obj && cp truth.json out/c.poses.json && cp truth.json out/c.mrk.json
  printf 'image\tlabel\tposes\nc.nii.gz\t../a.nii.gz\ttruth.json\n' > test.tsv
  run "$BIN/evaluate" --kind poses --list test.tsv --prediction-dir out
  [[ "$status" -eq 0 && "$output" != *"nobody reads"* ]]
  grep -Eq '^liver +centre_error_mm +1 +0 ' <<< "$output"
  run "$BIN/evaluate" --kind meshes --list test.tsv --prediction-dir out
  [ "$status" -eq 0 ]
  grep -Eq '^surface +hd95_mm +1 ' <<< "$output"
  for id in t u; do cp ../a.nii.gz $id.nii.gz; cp ../a.nii.gz out/$id.nii.gz; done
  echo '{"labels": {"0": "background", "1": "spleen"}, "training": [{"image": "t.nii.gz", "label": "../b.nii.gz"}], "test": []}' > dataset.json
  run "$BIN/evaluate" --dataset dataset.json --prediction-dir out --report d.json
  [[ "$status" -eq 0 && "$output" == *"1 training cases of 'dataset.json'"* ]]
  grep -Eq '^1 spleen +dice +1 +0.9 ' <<< "$output"
  # Labels of test images count where the folder has predictions of test images.
  cp ../a.nii.gz imagesTs/u_0000.nii.gz && cp ../a.nii.gz labelsTs/u.nii.gz
  echo '{"file_ending": ".nii.gz", "labels": {"background": 0, "spleen": 1, "both": [1, 2]}, "training": [{"image": "t.nii.gz", "label": "../b.nii.gz"}]}' > dataset.json
  run "$BIN/evaluate" --dataset . --prediction-dir out
  [[ "$status" -eq 0 && "$output" == *"1 test cases of"* ]]
  grep -Eq '^1 spleen +dice +1 +1 ' <<< "$output"
  rm out/u.nii.gz
  run "$BIN/evaluate" --dataset dataset.json --prediction-dir out
  [[ "$status" -eq 0 && "$output" == *"1 training cases of"* ]]
}

@test "evaluate --baseline: paired differences with their interval, the same bytes for any threads" {
  "$BIN/evaluate" --list cases.tsv --table base.tsv -q
  printf 'id\tprediction\treference\nsame\tb.nii.gz\ta.nii.gz\nshifted\tb.nii.gz\tb.nii.gz\nnew\ta.nii.gz\ta.nii.gz\n' > better.tsv
  for threads in 1 4; do
    run "$BIN/evaluate" --list better.tsv --baseline base.tsv --report diff$threads.json --threads $threads
    [[ "$status" -eq 0 && "$output" == *"'base.tsv': 2 of 3 cases are among its 3"* ]]
    sed -n '/less baseline/,$p' <<< "$output" | grep -v evaluate: > diff$threads.txt
  done
  cmp diff1.txt diff4.txt
  grep -Eq '^1 +dice +2 +(-?[0-9.e-]+) +0.1414 +(-?[0-9.e-]+) +-0.1 +0.1 +-0.1 +same$' diff1.txt
  check "r['differences']['1']['hd95_mm']['cases'] == 2 and r['differences']['union']['dice']['mean_ci_high'] == 1 - 0.9" diff1.json
  /usr/bin/python3 -c "
import json; a, b = (json.load(open(f'diff{n}.json')) for n in (1, 4))
assert a['differences'] == b['differences'] and a['summary'] == b['summary']"
  for bad in 'id\tdice\nsame\t1\n' 'id\tstructure\tdice\nother\t1\t1\n' 'id\tstructure\tdice\nsame\t1\tgood\n' \
    'id\tstructure\tdice\nsame\t1\t1\nsame\t1\t1\n' 'id\tstructure\tdice\nsame\t1\tinf\n'; do
    printf "$bad" > bad.tsv
    run "$BIN/evaluate" --list better.tsv --baseline bad.tsv --dry-run
    [[ "$status" -eq 3 && "$output" == *bad.tsv* ]]
  done
}

@test "evaluate --ignore leaves out what nobody has annotated; not a label that is scored" {
  for flag in "" --merge; do
    run "$BIN/evaluate" --prediction a.nii.gz --reference two.nii.gz --ignore 2 $flag --report ignore.json -f
    [[ "$status" -eq 0 && "$output" != *"no label"* ]]
    check "u['dice'] == 1 and u['prediction_mm3'] == 1500 and u['surface_max_mm'] == 0" ignore.json
    check "'2' not in r['summary'] and u['total_correct_fraction'] == 1" ignore.json
  done
  run "$BIN/evaluate" --prediction a.nii.gz --reference two.nii.gz --ignore 2 --labels 1,2
  [ "$status" -eq 2 ]
}

@test "evaluate shows ids with control characters escaped" {
  /usr/bin/python3 -c "
open('control.csv', 'w').write('id,prediction,reference\n\"a\x1b[31m\nb\tc\",a.nii.gz,b5.nii.gz\n')"
  run "$BIN/evaluate" --list control.csv --table control.tsv --report control.json
  [[ "$status" -eq 0 && "$output" == *"case 'a\x1b[31m\x0ab\x09c': the reference"* && "$output" != *$'\x1b[31m'* ]]
  [ "$(wc -l < control.tsv)" -eq 4 ]
  [ "$(sed -n 2p control.tsv | cut -f 1)" = 'a\x1b[31m\x0ab\x09c' ]
  /usr/bin/python3 -c "import json; assert json.load(open('control.json'))['cases'][0]['id'] == 'a\x1b[31m\nb\tc'"
  run "$BIN/evaluate" --list control.csv --dry-run
  [[ "$status" -eq 0 && "$output" == *'a\x1b[31m\x0ab\x09c  30x30x20'* && "$output" != *$'\x1b[31m'* ]]
}

@test "evaluate: the report does not depend on the threads" {
  "$BIN/evaluate" --list cases.tsv --table t1.tsv --threads 1
  "$BIN/evaluate" --list cases.tsv --table t2.tsv --threads 2
  cmp t1.tsv t2.tsv
}

@test "label maps that --memory cannot hold are warned of" {
  run "$BIN/evaluate" --prediction a.nii.gz --reference b.nii.gz --surfaces=false --memory 100K --report big.json
  [ "$status" -eq 0 ]
  [[ "$output" == *"warning: 'a.nii.gz' has 18000 voxels: it takes more than the 102400 bytes of --memory"* ]]
}

@test "5: --memory holds for rough surfaces, and the error says what they take" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  mkdir -p memory && cd memory
  /usr/bin/python3 -c "
import nibabel, numpy
with open('rough.tsv', 'w') as table:
    table.write('prediction\treference\n')
    for i in range(2):
        for name in 'pr':
            speckled = numpy.random.default_rng(i + 10 * (name == 'r')).integers(0, 2, (40, 40, 40)).astype('u1')
            nibabel.save(nibabel.Nifti1Image(speckled, numpy.diag([1, 1, 2, 1])), f'{name}{i}.nii')
        table.write(f'p{i}.nii\tr{i}.nii\n')"
  measured() {
    /usr/bin/python3 "${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/tests/cli/tools/peak.py" "$1.peak" \
      "$BIN/evaluate" --list rough.tsv --merge --table "$1.tsv" -q --threads 2 "${@:2}"
  }
  measured unlimited
  measured without --surfaces=false
  run "$BIN/evaluate" --list rough.tsv --merge --table t.tsv --memory 10M --threads 2
  [ "$status" -eq 5 ]
  [[ "$output" == *"case 'p0': the surfaces of structure 'union', "*" vertices and "*"; allow more memory"* ]]
  [ ! -e t.tsv ]
  # The label maps and masks take ten bytes per voxel. The second case may need a little more.
  local surfaces memory
  surfaces=$(sed -n 's/.* take up to \([0-9]*\) bytes.*/\1/p' <<< "$output")
  memory=$((surfaces * 102 / 100 + 10 * 40 * 40 * 40))
  measured limited --memory $memory
  cmp limited.tsv unlimited.tsv
  echo "peak $(cat limited.peak), without surfaces $(cat without.peak), of $memory"
  [ $(($(cat limited.peak) - $(cat without.peak))) -lt "$memory" ]
  [ $(($(cat limited.peak) - $(cat without.peak))) -gt $((memory / 3)) ]
  run "$BIN/evaluate" --prediction p0.nii --reference r0.nii --merge --memory $surfaces --threads 2
  [ "$status" -eq 5 ]
  # A case that is larger than all of it goes alone.
  measured small --surfaces=false --memory 200K
}

@test "evaluate refuses half a question" {
  run "$BIN/evaluate" --prediction a.nii.gz
  [ "$status" -eq 2 ]
  run "$BIN/evaluate" --list cases.tsv --prediction a.nii.gz --reference b.nii.gz
  [ "$status" -eq 2 ]
  run "$BIN/evaluate" --prediction a.nii.gz --reference missing.nii.gz
  [ "$status" -eq 3 ]
}

@test "evaluate --skip-existing: the list's files, ids and order count; one record names table and report" {
  mkdir -p skip
  rows() { { printf 'id\tprediction\treference\n'; printf "$1"; } > list.tsv; }
  evaluate() { run "$BIN/evaluate" --list list.tsv --skip-existing "$@"; }
  rows 'x\ta.nii.gz\tb.nii.gz\ny\tb.nii.gz\ta.nii.gz\n'
  evaluate --table skip/t.tsv --report skip/r.json
  [ "$status" -eq 0 ]
  /usr/bin/python3 -c "
import json
outputs = json.load(open('skip/t.tsv.json'))['Larch']['Outputs']
assert [(o['Name'], o['Role']) for o in outputs] == [('t.tsv', 'table'), ('r.json', 'report')], outputs"
  [ "$(ls skip)" = "$(printf 'r.json\nt.tsv\nt.tsv.json')" ]
  cp skip/t.tsv skip/before.tsv
  evaluate --table skip/t.tsv --report skip/r.json --threads 1 --seed 4
  [ "$status" -eq 0 ]
  [[ "$output" == *"nothing to do"* ]]
  # Without the table its record is that of the report.
  evaluate --report skip/alone.json
  evaluate --report skip/alone.json
  [[ "$status" -eq 0 && "$output" == *"nothing to do"* && -s skip/alone.json.json ]]
  evaluate --report skip/alone.json --merge
  [[ "$status" -eq 6 && "$output" == *skip/alone.json*merge* ]]
  rows 'y\tb.nii.gz\ta.nii.gz\nx\ta.nii.gz\tb.nii.gz\n'
  evaluate --table skip/t.tsv --report skip/r.json
  [[ "$status" -eq 6 && "$output" == *"case 'x'"*"'y'"* ]]
  rows 'x\ta.nii.gz\tb5.nii.gz\ny\tb.nii.gz\ta.nii.gz\n'
  evaluate --table skip/t.tsv
  [[ "$status" -eq 6 && "$output" == *b5.nii.gz* ]]
  cmp skip/t.tsv skip/before.tsv
}

poses() {  # poses frame 'name x' ...: a file of boxes of 60x30x40 mm along the axes of LPS, at x; a name alone: not found
  /usr/bin/python3 - "$@" <<'PY'
import json, sys
found, turn = [], [1, 0, 0, 0] if sys.argv[1] == "LPS" else [0, 0, 0, 1]
for words in map(str.split, sys.argv[2:]):
    found.append({"name": words[0], "status": "uncertain" if words[1:] else "not found", "confidence": 0.5})
    if words[1:]:
        found[-1].update(center_mm=[float(words[1]), 0, 0], quaternion_wxyz=turn, size_mm=[60, 30, 40])
print(json.dumps({"frame": sys.argv[1], "structures": found}))
PY
}

@test "evaluate --kind poses: errors by structure, what is missing is a failure" {
  mkdir -p poses && cd poses
  poses LPS 'liver 0' 'kidney 100' 'heart -50' > truth.json
  poses RAS 'heart 50' 'other 1' 'liver 6' 'kidney' > found.json
  run "$BIN/evaluate" --kind poses --prediction found.json --reference truth.json --report r.json --table t.tsv
  [ "$status" -eq 0 ]
  /usr/bin/python3 - <<'PY'
import json
r = json.load(open("r.json"))
s = r["cases"][0]["structures"]
assert list(s) == ["liver", "kidney", "heart"], s
assert s["liver"]["centre_error_mm"] == 6 and s["liver"]["line_error_mm"] == 6 and s["liver"]["failure"] == 0
assert abs(s["liver"]["box_iou"] - 54 / 66) < 1e-9 and s["liver"]["scale_error"] == 0
assert s["kidney"] == {"centre_error_mm": None, "line_error_mm": None, "rotation_error_deg": None,
                       "scale_error": None, "box_iou": 0, "failure": 1, "missed": 1, "false_positive": None}, s
assert s["heart"]["centre_error_mm"] == 0 and s["heart"]["rotation_error_deg"] == 0
assert r["summary"]["kidney"]["failure"]["cases"] == 1 and r["summary"]["kidney"]["line_error_mm"]["cases"] == 0
assert abs(r["metrics"]["failure"] - 1 / 3) < 1e-12 and r["metrics"]["centre_error_mm"] == 3
PY
  [ "$(head -n 1 t.tsv | cut -f 1-3)" = "$(printf 'id\tstructure\tcentre_error_mm')" ]
  [ "$(sed -n 3p t.tsv)" = "$(printf 'found.json\tkidney\tn/a\tn/a\tn/a\tn/a\t0\t1\t1\tn/a')" ]
}

@test "evaluate --kind poses: what is found where nothing is, and how well the confidence tells" {
  mkdir -p absent && cd absent
  poses LPS liver kidney > none.json
  poses LPS 'liver 0' kidney > there.json
  poses LPS 'liver 3' kidney > found.json
  printf 'id\tprediction\treference\na\tfound.json\tnone.json\nb\tfound.json\tthere.json\nc\tnone.json\tnone.json\n' > l.tsv
  run "$BIN/evaluate" --kind poses --list l.tsv --report r.json
  [ "$status" -eq 0 ]
  /usr/bin/python3 - <<'PY'
import json
r = json.load(open("r.json"))
liver = [c["structures"]["liver"] for c in r["cases"]]
assert [s["false_positive"] for s in liver] == [1, None, 0] and [s["missed"] for s in liver] == [None, 0, None], liver
assert [s["failure"] for s in liver] == [None, 0, None] and liver[1]["centre_error_mm"] == 3
assert r["summary"]["liver"]["false_positive"]["mean"] == 0.5
assert r["confidence_auc"] == {"liver": 0.5}, r["confidence_auc"]  # all have 0.5
PY
  [ "$("$BIN/evaluate" --kind poses --prediction none.json --reference none.json -q; echo $?)" = 0 ]
}

@test "evaluate --kind poses over a list: percentile, interval of the mean, boxes of Slicer; dry runs" {
  mkdir -p pose_list && cd pose_list
  printf 'id\tprediction\treference\n' > list.tsv
  for i in 1 2 3 4 5 6 7 8; do
    poses LPS "liver $i" > $i.json
    printf 'c%s\t%s.json\ttruth.mrk.json\n' $i $i >> list.tsv
  done
  printf '%s' '{"markups": [{"type": "ROI", "name": "liver", "coordinateSystem": "LPS", "center": [0, 0, 0],
    "size": [60, 30, 40]}]}' > truth.mrk.json
  "$BIN/evaluate" --kind poses --list list.tsv --report r.json --table t1.tsv --threads 1
  "$BIN/evaluate" --kind poses --list list.tsv --table t2.tsv --threads 2
  cmp t1.tsv t2.tsv
  /usr/bin/python3 - <<'PY'
import json
s = json.load(open("r.json"))["summary"]["liver"]["centre_error_mm"]
assert list(s) == ["cases", "mean", "sd", "median", "p95", "mean_ci_low", "mean_ci_high", "worst", "worst_case"], s
assert (s["cases"], s["mean"], s["median"]) == (8, 4.5, 4.5) and abs(s["p95"] - 7.65) < 1e-12
# Normal: 4.5 -+ 1.96 * 2.2913 / sqrt(8)
assert abs(s["mean_ci_low"] - 2.91) < 0.2 and abs(s["mean_ci_high"] - 6.09) < 0.2, s
PY
  run "$BIN/evaluate" --kind poses --list list.tsv --dry-run
  [[ "$status" -eq 0 && "$output" == *structures*found* ]]
  poses LPS > truth.json
  run "$BIN/evaluate" --kind poses --prediction 1.json --reference truth.json --dry-run
  [[ "$status" -eq 3 && "$output" == *"truth.json': it names no structure"* ]]
}

@test "evaluate --kind poses refuses keys of labels, damaged files and images" {
  poses LPS 'liver 0' > p.json
  run "$BIN/evaluate" --kind poses --prediction p.json --reference p.json --surfaces=false
  [[ "$status" -eq 2 && "$output" == *"--surfaces is of --kind labels"* ]]
  run "$BIN/evaluate" --kind poses --prediction p.json --reference p.json --allow slice-spacing
  [[ "$status" -eq 2 && "$output" == *"--allow is of --kind labels"* ]]
  sed 's/60, 30/60, -30/' p.json > damaged.json
  run "$BIN/evaluate" --kind poses --prediction damaged.json --reference p.json --report damaged-report.json
  [[ "$status" -eq 3 && "$output" == *damaged.json*liver* ]]
  check "r['status'] == 'failed' and r['exit_code'] == 3 and 'liver' in r['reason']" damaged-report.json
  run "$BIN/evaluate" --kind poses --prediction a.nii.gz --reference p.json
  [[ "$status" -eq 3 && "$output" == *"a.nii.gz' is no file of poses"* ]]
}

boxes() {  # box.obj, the surface of the box in a.nii.gz (1400 mm^2, 12 triangles), and far.obj, the same 2 mm to the left
  /usr/bin/python3 - <<'PY'
def box(name, shift):
    with open(name, "w") as out:
        for x in (-14.5 + shift, -4.5 + shift):
            for y in (-14.5, -4.5):
                for z in (13.5, 43.5):
                    out.write(f"v {x} {y} {z}\n")
        for face in ("1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"):
            out.write(f"f {face}\n")
box("box.obj", 0)
box("far.obj", 2)
PY
}

@test "evaluate --kind meshes: a mesh against a mesh and against a label map, whose labels are joined" {
  mkdir -p meshes && cd meshes && boxes
  "$BIN/evaluate" --kind meshes --prediction far.obj --reference box.obj --report m.json --table m.tsv
  "$BIN/evaluate" --kind meshes --prediction box.obj --reference ../a.nii.gz --report map.json
  "$BIN/evaluate" --kind meshes --prediction box.obj --reference ../two.nii.gz --report two.json
  "$BIN/evaluate" --kind meshes --prediction box.obj --reference ../two.nii.gz --labels 1,2 --report both.json
  "$BIN/evaluate" --kind meshes --prediction box.obj --reference ../two.nii.gz --labels 2 --report half.json
  "$BIN/evaluate" --kind meshes --prediction box.obj --reference ../none.nii.gz --report none.json
  /usr/bin/python3 - <<'PY'
import json
def surface(name):
    report = json.load(open(name))
    assert list(report["cases"][0]["structures"]) == ["surface"]
    assert report["metrics"]["mssd_mm"] == report["cases"][0]["structures"]["surface"]["mssd_mm"]
    return report["cases"][0]["structures"]["surface"]
m = surface("m.json")
assert list(m) == ["mssd_mm", "rms_mm", "hd95_mm", "hd_mm", "assd_mm", "surface_median_mm", "surface_p95_mm",
                   "surface_max_mm", "missed", "false_positive", "dice"], m
# Of each box one end of 10 x 30 mm is 2 mm away, the other one lies within, at min(2, distance to its
# rim), and a strip of 2 mm round 80 mm sticks out by 1 mm on average.
within = 2 * 300 - 2 * 2 ** 2 * (10 + 30) / 2 + 4 * 2 ** 3 / 3
assert abs(m["mssd_mm"] - (2 * 300 + within + 80 * 2 * 1) / (600 + 80 * 10)) < 0.01, m
assert abs(m["hd_mm"] - 2) < 1e-9 and abs(m["hd95_mm"] - 2) < 1e-9 and m["dice"] is None, m
a = surface("map.json")
assert a["dice"] == 1 and a["mssd_mm"] < 0.1 and a == surface("two.json") == surface("both.json"), a
half = surface("half.json")
assert abs(half["dice"] - 2 / 3) < 1e-12 and 14 < half["hd_mm"] < 16, half
none = surface("none.json")
assert none["mssd_mm"] is None and none["dice"] == 0 and none["false_positive"] == 1, none
PY
  [ "$(sed -n 2p m.tsv | cut -f 1-2)" = "$(printf 'far.obj\tsurface')" ]
  [[ "$(sed -n 2p m.tsv)" == *n/a ]]
}

@test "evaluate --kind meshes over a list: the threads do not count; dry runs count vertices and triangles" {
  mkdir -p mesh_list && cd mesh_list && boxes
  printf 'id\tprediction\treference\nmap\tbox.obj\t../a.nii.gz\nmesh\tfar.obj\tbox.obj\n' > list.tsv
  "$BIN/evaluate" --kind meshes --list list.tsv --table t1.tsv --report r.json --threads 1
  "$BIN/evaluate" --kind meshes --list list.tsv --table t2.tsv --threads 2
  cmp t1.tsv t2.tsv
  /usr/bin/python3 -c "
import json
s = json.load(open('r.json'))['summary']['surface']
assert s['mssd_mm']['cases'] == 2 and s['dice']['cases'] == 1, s"
  run "$BIN/evaluate" --kind meshes --list list.tsv --dry-run
  [[ "$status" -eq 0 && "$output" == *vertices*triangles*reference* && "$output" == *"30x30x20 voxels"* ]]
  [[ "$output" == *8*12*"8 vertices and 12 triangles"* ]]
}

@test "evaluate --kind meshes refuses what is no mesh, and options that do not apply" {
  mkdir -p mesh_refused && cd mesh_refused && boxes
  meshes() { run "$BIN/evaluate" --kind meshes --prediction box.obj "$@"; }
  run "$BIN/evaluate" --kind meshes --prediction ../a.nii.gz --reference box.obj
  [[ "$status" -eq 3 && "$output" == *a.nii.gz*"mesh ending"* ]]
  meshes --reference ../a.nii.gz --merge
  [[ "$status" -eq 2 && "$output" == *"--merge is of --kind labels"* ]]
  meshes --reference ../a.nii.gz --surfaces=false
  [[ "$status" -eq 2 && "$output" == *"--surfaces is of --kind labels"* ]]
  meshes --reference ../a.nii.gz --model m.hdn
  [ "$status" -eq 2 ]
  for flag in "" --dry-run; do
    meshes --reference ../a.nii.gz --labels 9 $flag
    [[ "$status" -eq 3 && "$output" == *"no label map holds 9"* ]]
  done
  meshes --reference far.obj --labels 1
  [[ "$status" -eq 2 && "$output" == *"label maps; here are none"* ]]
  meshes --reference far.obj --allow slice-spacing --dry-run
  [[ "$status" -eq 2 && "$output" == *"label maps; here are none"* ]]
  meshes --reference ../a.nii.gz --allow slice-spacing --labels 1 --table t.tsv
  [ "$status" -eq 0 ]
  printf 'v 0 0 0\nf 1 2 3\n' > damaged.obj
  meshes --reference damaged.obj
  [[ "$status" -eq 3 && "$output" == *damaged.obj* ]]
  # A surface of kilometres is told from one of mm.
  sed '/^v/s/$/e9/' box.obj > huge.obj
  meshes --reference huge.obj
  [[ "$status" -eq 3 && "$output" == *"other units than mm"* ]]
  # Points without a surface have no distance, in a dry run neither.
  sed '/^f/d' box.obj > points.obj
  for flag in "" --dry-run; do
    meshes --reference points.obj $flag
    [[ "$status" -eq 3 && "$output" == *"points.obj': there are 8 vertices and no triangle"* ]]
  done
}

@test "evaluate: a DICOM segmentation without its empty slices is on the grid of the other image, and its segments are named" {
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
def item(**values):
    d = Dataset()
    for name, value in values.items(): setattr(d, name, value)
    return [d]
two = numpy.asarray(nibabel.load("two.nii.gz").dataobj)
meta = FileMetaDataset()
meta.TransferSyntaxUID, meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = "1.2.840.10008.1.2.1", "1.2.840.10008.5.1.4.1.1.66.4", "1.2.3"
d = FileDataset(None, {}, file_meta=meta, preamble=bytes(128))
d.is_little_endian, d.is_implicit_VR, d.SOPClassUID, d.SegmentationType = True, False, meta.MediaStorageSOPClassUID, "BINARY"
d.Rows = d.Columns = 30
d.NumberOfFrames, d.SamplesPerPixel, d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 10, 1, 1, 1, 0, 0
d.PhotometricInterpretation = "MONOCHROME2"
d.SegmentSequence = item(SegmentNumber=1, SegmentLabel="liver") + item(SegmentNumber=2, SegmentLabel="spleen")
d.SharedFunctionalGroupsSequence = item(PlaneOrientationSequence=item(ImageOrientationPatient=[-1, 0, 0, 0, -1, 0]),
                                        PixelMeasuresSequence=item(PixelSpacing=[1, 1], SpacingBetweenSlices=3, SliceThickness=3))
slices = [14, 5, 6, 7, 8, 9, 10, 11, 12, 13]
d.PerFrameFunctionalGroupsSequence = [item(PlanePositionSequence=item(ImagePositionPatient=[0, 0, 3 * k]),
    SegmentIdentificationSequence=item(ReferencedSegmentNumber=int(two[:, :, k].max())))[0] for k in slices]
d.PixelData = numpy.packbits((two.T[slices] > 0).ravel(), bitorder="little").tobytes() + b"\0"
d.save_as("seg.dcm", write_like_original=False)
PY
  for flag in "" --dry-run; do
    run "$BIN/evaluate" --prediction seg.dcm --reference two.nii.gz --table seg.tsv $flag
    [ "$status" -eq 0 ]
    [[ "$output" == *"segments of 'seg.dcm': 1 liver, 2 spleen"* ]]
    rm -f seg.tsv
  done
  "$BIN/evaluate" --prediction two.nii.gz --reference seg.dcm --report seg.json
  check "[s['dice'] for s in r['cases'][0]['structures'].values()] == [1, 1, 1]" seg.json
}
