#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-detect on lists of images.

load helpers

setup_file() { make_detect_cases; }

@test "a list: the same bytes as image by image, for any number of threads" {
  for threads in 1 2 5; do
    expect 0 batch --write labels,probability,mesh,qc,candidates --threads $threads --force
    same_as_single .nii.gz .tsv .probability.nii.gz .vtk .png .candidates.tsv
    no_temporaries
  done
  status "
assert [r['id'] for r in table] == ['image_0', 'image_1', 'image_2', 'image_3']
import nibabel
for r in table:
    assert r['status'] == 'ok' and r['message'] == 'n/a' and float(r['seconds']) > 0, r
    seg = nibabel.load('out/' + r['id'] + '.nii.gz')
    voxels = int((seg.get_fdata() > 0).sum())
    assert voxels == int(r['voxels']) > 0 and abs(voxels * 12 / 1000 - float(r['volume_ml'])) < 1e-3
    for ending in ('.nii.gz', '.probability.nii.gz', '.vtk', '.png', '.candidates.tsv'):
        larch = load('out/' + r['id'] + ending + '.json')['Larch']
        inputs = [i['Path'] for i in larch['Inputs']]
        assert r['id'] + '.nii.gz' in inputs and 'm.pbt' in inputs, inputs
        assert larch['Metrics']['voxels'] == voxels and larch['Status'] == 'done'
assert load('out/larch.json')['Larch']['Metrics']['ok'] == 4"
}

@test "only labels unless more is asked for; other formats; the report" {
  expect 0 batch --report r.json
  same_as_single .nii.gz .tsv
  [ "$(ls out | grep -c image_0)" -eq 3 ]
  python "
m = load('r.json')['metrics']
assert m['cases'] == m['ok'] == 4 and m['failed'] == m['skipped'] == m['rejected'] == 0
assert m['cases_per_second'] > 0 and 0 <= m['share_waiting_for_reading'] <= 1"
  expect 0 detect --list cases.tsv --output-dir other --write probability,mesh --format nrrd \
    --mesh-format ply --no-sidecar
  [ "$(ls other | grep image_1 | tr '\n' ' ')" = "image_1.ply image_1.probability.nrrd " ]
}

@test "--dataset: the training cases of a dataset.json; a folder in a list" {
  cat > dataset.json <<'JSON'
{"labels": {"0": "background", "1": "ball"}, "modality": {"0": "MR"},
 "training": [{"image": "./image_1.nii.gz", "label": "./label_1.nii.gz"}]}
JSON
  expect 0 detect --dataset dataset.json --output-dir out
  cmp out/image_1.nii.gz one_1.nii.gz
  mkdir empty
  printf 'image,id\nempty,e\nimage_2.nii.gz,x\n' > l.csv
  expect 7 detect --list l.csv --output-dir other
  cmp other/x.nii.gz one_2.nii.gz
  grep -q "^e.failed" other/status.tsv
}

@test "2: flags that name images in another way are refused, not passed over" {
  expect 2 batch --channel 1
  has err.txt "--channel goes with --dataset"
  expect 2 detect -i image_0.nii.gz -o o.nii.gz --channel 1
  has err.txt "--channel goes with --dataset"
  expect 2 detect -i image_0.nii.gz -o o.nii.gz --carry age
  has err.txt "--carry goes with --list"
  expect 2 batch --series 1.2.3
  has err.txt "--series is for one image"
  # Two channels in one file: the channel is the volume.
  python "
import nibabel, numpy
image = nibabel.load('image_0.nii.gz')
values = numpy.asarray(image.dataobj)
both = numpy.stack([0 * values, values], 3)
nibabel.save(nibabel.Nifti1Image(both, image.affine, image.header), 'both.nii.gz')
json.dump({'modality': {'0': 'none', '1': 'MRI'}, 'training': [{'image': 'both.nii.gz', 'label': 'label_0.nii.gz'}]},
          open('two.json', 'w'))"
  expect 2 detect --dataset two.json --channel MRI --frame 1 --output-dir out
  has err.txt "--channel chooses one; leave --frame out"
  absent o.nii.gz out
  expect 0 detect --dataset two.json --channel MRI --output-dir out
  cmp out/both.nii.gz one_0.nii.gz
}

@test "--carry: further columns of the list are in the table, whatever becomes of the case" {
  printf 'image\tsite\tage\tid\nimage_0.nii.gz\tRoma\t60\ta\nnone.nii.gz\t\t70\tb\n' > c.tsv
  expect 7 detect --list c.tsv --output-dir out --carry age,site
  cut -f 1,2,6-9 out/status.tsv > columns.txt
  has columns.txt "$(printf 'id\tstatus\tvolume_ml\tage\tsite\tended')"
  grep -q "^a.ok.*60.Roma.20" columns.txt
  grep -q "^b.failed.n/a.70.n/a.20" columns.txt
  expect 7 detect --list c.tsv --output-dir out --carry age,site --skip-existing
  grep -q "^a.ok.*60.Roma" out/status.tsv
  expect 2 detect --list c.tsv --output-dir out2 --carry sex
  has err.txt "--carry: the list has no column 'sex'"
  expect 2 detect --list c.tsv --output-dir out2 --carry voxels
  has err.txt "--carry: status.tsv has a column 'voxels' already"
  absent out2
}

@test "7: bad cases do not stop the others; the table says what is wrong" {
  head -c 3000 "$(readlink image_1.nii.gz)" > cut.nii.gz
  printf 'id\timage\na\timage_0.nii.gz\ncut\tcut.nii.gz\nnone\tmissing.nii.gz\nb\timage_3.nii.gz\n' > l.tsv
  for threads in 1 3; do
    expect 7 detect --list l.tsv --output-dir out --threads $threads --force
    has err.txt "2 of 4 cases failed"
    has err.txt "out/status.tsv"
    cmp out/a.nii.gz one_0.nii.gz
    cmp out/b.nii.gz one_3.nii.gz
    absent out/cut.nii.gz out/cut.tsv out/none.nii.gz
    no_temporaries
    status "
assert [rows[i]['status'] for i in ('a', 'cut', 'none', 'b')] == ['ok', 'failed', 'failed', 'ok']
assert 'truncated' in rows['cut']['message'] and 'missing.nii.gz' in rows['none']['message']
assert rows['cut']['voxels'] == 'n/a' and rows['a']['message'] == 'n/a'"
  done
}

@test "7: cases in which nothing is found are written and say rejected" {
  expect 7 batch --structure.min_voxels 100000 --report r.json
  status "
assert all(r['status'] == 'rejected' and 'nothing was detected' in r['message'] for r in table)"
  same_as_single .nii.gz
  python "
assert load('out/image_0.nii.gz.json')['Larch']['Status'] == 'rejected'
assert load('r.json')['status'] == 'rejected' and load('r.json')['metrics']['rejected'] == 4"
}

@test "--skip-existing does what is missing; --force does all again; neither: refused" {
  expect 0 batch --write labels,mesh
  rm out/image_1.vtk out/image_2.nii.gz
  ln out/image_0.nii.gz kept
  expect 6 batch --write labels,mesh
  has err.txt "output 'out/image_0.nii.gz' exists"
  expect 0 batch --write labels,mesh --skip-existing
  [ out/image_0.nii.gz -ef kept ]
  cmp out/image_1.vtk one_1.vtk
  cmp out/image_2.nii.gz one_2.nii.gz
  status "
assert [r['status'] for r in table] == ['ok'] * 4
json.dump({i: [r['voxels'], r['volume_ml']] for i, r in rows.items()}, open('first.json', 'w'))"
  rm out/status.tsv
  expect 0 batch --write labels,mesh --skip-existing --report r.json
  # What a sidecar confirms is a result, with its figures; what only the name tells of is not.
  status "
assert [r['status'] for r in table] == ['ok'] * 4
assert all('computed by an earlier run' in r['message'] for r in table), table
assert {i: [r['voxels'], r['volume_ml']] for i, r in rows.items()} == load('first.json'), table
for i, r in rows.items():
    assert float(r['seconds']) == load(f'out/{i}.nii.gz.json')['Larch']['Seconds'], r
m = load('r.json')['metrics']
assert (m['ok'], m['skipped']) == (0, 4), m"
  rm out/status.tsv
  expect 0 batch --write labels,mesh --skip-existing=name
  status "
assert [r['status'] for r in table] == ['skipped'] * 4
assert [r['voxels'] for r in table] == ['n/a'] * 4"
  expect 0 batch --write labels,mesh --force
  same_as_single .nii.gz .vtk
}

@test "--skip-existing: a label table that is missing is made again" {
  expect 0 batch
  rm out/image_1.tsv
  expect 0 batch --skip-existing --report r.json
  same_as_single .nii.gz .tsv
  python "
m = load('r.json')['metrics']
assert m['ok'] == 1 and m['skipped'] == 3, m"
}

@test "--skip-existing=name: a label table that is missing does not count" {
  expect 0 batch
  rm out/image_1.tsv
  echo kept > out/image_1.nii.gz
  expect 0 batch --skip-existing=name
  [ "$(cat out/image_1.nii.gz)" = kept ]
  absent out/image_1.tsv
}

@test "--skip-existing: a file of somebody else beside a missing output fails the case" {
  expect 0 batch
  for file in out/image_1.tsv out/image_1.nii.gz.json; do
    rm -f out/image_1.*
    echo mine > $file
    expect 7 batch --skip-existing --dry-run
    expect 7 batch --skip-existing
    status "
assert '$file' in rows['image_1']['message'], rows
assert [r['status'] for r in table] == ['ok', 'failed', 'ok', 'ok'], table"
    [ "$(cat $file)" = mine ]
    absent out/image_1.nii.gz
  done
  rm out/image_1.*
  expect 0 batch --skip-existing
  same_as_single .nii.gz .tsv
}

@test "sidecars whose outputs are missing do not stop a list, and are told" {
  expect 0 batch
  rm out/*.nii.gz out/image*.tsv
  expect 0 batch
  has err.txt "'out/image_0.nii.gz.json' and 3 more files are sidecars of outputs that are not there"
  same_as_single .nii.gz .tsv
  rm out/*.nii.gz out/image*.tsv
  echo mine > out/image_2.nii.gz.json
  expect 6 batch
  has err.txt "output 'out/image_2.nii.gz.json' exists;"
  absent out/image_0.nii.gz
}

@test "--dry-run shows no grid for an image that cannot be read" {
  printf 'image\nimage_0.nii.gz\nbroken.nii.gz\n' > list.tsv
  echo garbage > broken.nii.gz
  expect 7 detect --list list.tsv --output-dir out --dry-run
  lacks out.txt 0x0x0
  grep -q '^broken  *n/a  *n/a' out.txt
}

@test "--dry-run --skip-existing: the exit code of the run, and only what is still to be done" {
  expect 0 batch
  expect 0 batch --skip-existing --dry-run
  lacks err.txt "memory: roughly"
  expect 7 batch --skip-existing --dry-run --structure.threshold 0.6
  has err.txt "4 problems"
  has err.txt "structure.threshold: 0.5 there, 0.6 now"
  expect 7 batch --skip-existing --structure.threshold 0.6
}

@test "--skip-existing: a case with outputs of another run fails and says what differs" {
  expect 0 batch
  cp out/status.tsv first.tsv
  expect 7 batch --skip-existing --structure.threshold 0.6 --report r.json
  has err.txt "4 of 4 cases failed; see"
  # The results are still there: the table says whose they are, with their figures.
  status "
import csv
first = {r['id']: r for r in csv.DictReader(open('first.tsv'), delimiter='\t')}
for r in table:
    assert 'structure.threshold: 0.5 there, 0.6 now; --force' in r['message'], r
    assert r['status'] == 'ok' and r['voxels'] == first[r['id']]['voxels'] != 'n/a', r
assert load('r.json')['metrics']['failed'] == 4"
  # What is changed or gone is no result of anybody.
  printf x >> out/image_0.nii.gz
  rm out/image_1.nii.gz.json
  expect 7 batch --skip-existing --structure.threshold 0.6
  status "
assert [rows[f'image_{i}']['status'] for i in range(4)] == ['failed', 'failed', 'ok', 'ok'], rows"
  rm -r out
  expect 0 batch
  same_as_single .nii.gz
  # The image of another case, under the same name; the others are as they were.
  cp cases.tsv list.tsv
  cp --remove-destination "$(readlink -f image_1.nii.gz)" image_0.nii.gz
  expect 7 detect --list list.tsv --output-dir out --skip-existing
  status "
assert rows['image_0']['status'] == 'failed' and 'other content' in rows['image_0']['message']
assert all(rows[f'image_{i}']['status'] == 'ok' for i in (1, 2, 3)), rows  # confirmed since"
  expect 0 detect --list list.tsv --output-dir out --skip-existing --force
  cmp out/image_0.nii.gz one_1.nii.gz
  python "
m = load('out/larch.json')['Larch']['Metrics']
assert m['ok'] == 1 and m['skipped'] == 3, m"
  rm out/image_2.nii.gz.json
  expect 7 detect --list list.tsv --output-dir out --skip-existing
  grep -q "^image_2.failed.*there is no 'out/image_2.nii.gz.json'" out/status.tsv
  expect 0 detect --list list.tsv --output-dir out --skip-existing=name
  # A label map that was changed by hand, also where a part of the case is missing.
  cp out/image_1.nii.gz out/image_3.nii.gz
  expect 7 detect --list list.tsv --output-dir out --skip-existing --write labels,mesh
  grep -q "^image_3.failed.*'out/image_3.nii.gz' is not what its run wrote" out/status.tsv
  absent out/image_3.vtk
  cmp out/image_1.nii.gz out/image_3.nii.gz
  cp one_3.nii.gz out/image_3.nii.gz
  # An image that is gone is a matter of the list, and nothing that --force could help.
  mv image_0.nii.gz away.nii.gz
  expect 7 detect --list list.tsv --output-dir out --skip-existing
  grep -q "^image_0.failed.*image_0.nii.gz' does not exist" out/status.tsv
  ! grep "^image_0.*--force" out/status.tsv
  mv away.nii.gz image_0.nii.gz
  # One image by itself is the same run as the case of a list.
  expect 0 detect -i image_3.nii.gz -o out/image_3.nii.gz --skip-existing
  has err.txt "nothing to do"
}

@test "--skip-existing: rejected cases stay rejected, with their figures" {
  expect 7 batch --structure.min_voxels 100000
  rm out/status.tsv
  expect 7 batch --structure.min_voxels 100000 --skip-existing --report r.json
  status "
assert all(r['status'] == 'rejected' and 'earlier run' in r['message'] and int(r['voxels']) > 0 for r in table), table
assert load('r.json')['metrics']['rejected'] == 4"
}

# --- several runs into one folder

halves() {  # half1.tsv: image_1, image_3 as c1, c3 ...; half2.tsv: image_0, image_2 as c0, c2 ...
  local i
  for half in 1 2; do
    { echo -e "id\timage"
      for i in $(seq $((half % 2)) 2 19); do echo -e "c$i\timage_$((i % 4)).nii.gz"; done; } > half$half.tsv
  done
}

@test "two runs at once into one folder: status.tsv has all rows, larch.json both runs" {
  halves
  local apart=""
  unshare -p -f true 2>/dev/null && apart="unshare -p -f"  # each is pid 1, as in containers
  for round in 1 2 3 4; do
    rm -rf out
    for half in 1 2; do
      $apart "$BIN/pbt-detect" -m m.pbt --list half$half.tsv --output-dir out --threads 1 \
        --seed $half 2>err$half.txt & pids[half]=$!
    done
    for half in 1 2; do wait ${pids[half]} || { cat err$half.txt; return 1; }; done
    for i in $(seq 0 19); do cmp "out/c$i.nii.gz" "one_$((i % 4)).nii.gz"; done
    [ "$(find out/.larch -type f)" = out/.larch/lock ]
    status "
assert [r['id'] for r in table] == ['c%d' % i for i in range(20)], [r['id'] for r in table]
assert all(r['status'] == 'ok' and int(r['voxels']) > 0 for r in table)
larch = load('out/larch.json')['Larch']
assert len(larch['EarlierRuns']) == 1, larch.get('EarlierRuns')
runs = [larch] + larch['EarlierRuns']
assert sorted(r['Seed'] for r in runs) == [1, 2] and all(r['Metrics']['ok'] == 10 for r in runs)"
  done
}

@test "a folder may hold other cases; those of the list are not replaced unasked" {
  halves
  expect 0 detect --list half1.tsv --output-dir out
  echo mine > out/notes.txt
  expect 0 detect --list half2.tsv --output-dir out
  status "
assert len(table) == 20 and all(r['status'] == 'ok' for r in table)"
  expect 6 detect --list half2.tsv --output-dir out
  has err.txt "output 'out/c0.nii.gz' exists and so do"
  has err.txt "use --force to replace them or --skip-existing to keep them"
  status "
assert len(table) == 20 and all(r['status'] == 'ok' for r in table)"
}

@test "rows of a killed run are in the table after the next run" {
  { echo -e "id\timage"; for i in $(seq 1 300); do echo -e "k$i\timage_3.nii.gz"; done; } > many.tsv
  "$BIN/pbt-detect" -m m.pbt --list many.tsv --output-dir out --threads 1 2>err.txt &
  pid=$!
  while [ ! -e out/k4.nii.gz.json ] && kill -0 $pid; do sleep 0.02; done
  kill -KILL $pid
  wait $pid || true
  expect 0 batch
  lacks err.txt "warning"
  status "
assert [r['id'] for r in table][:4] == ['image_%d' % i for i in range(4)]
assert [r['id'] for r in table][4:7] == ['k1', 'k2', 'k3']
assert all(r['status'] == 'ok' for r in table)"
  [ "$(find out/.larch -type f)" = out/.larch/lock ]
}

@test "a run that holds the lock and is stopped does not hang others, and nothing is lost" {
  mkdir -p out/.larch
  exec 9>out/.larch/lock
  flock 9
  expect 0 batch 9>&-
  exec 9>&-
  has err.txt "holds the lock of 'out'"
  absent out/status.tsv out/larch.json
  head -2 cases.tsv > one.tsv
  expect 0 detect --list one.tsv --output-dir out --force
  status "
assert [r['id'] for r in table] == ['image_%d' % i for i in range(4)]
assert [r['Metrics']['ok'] for r in load('out/larch.json')['Larch']['EarlierRuns']] == [4]"
  [ "$(find out/.larch -type f)" = out/.larch/lock ]
}

@test "a status.tsv that is not ours is kept under another name; columns of other versions stay" {
  mkdir out
  printf 'id\tstatus\tseconds\tdice\nz\tok\t3\t0.9\nimage_0\tok\t3\t0.8\n' > out/status.tsv
  expect 0 batch
  python "
lines = [l.split('\t') for l in open('out/status.tsv').read().splitlines()]
assert lines[0] == 'id status message seconds voxels volume_ml ended dice'.split(), lines[0]
assert [l[0] for l in lines[1:]] == ['image_0', 'image_1', 'image_2', 'image_3', 'z']
assert lines[1][7] == 'n/a' and lines[5][1:] == 'ok n/a 3 n/a n/a n/a 0.9'.split(), lines"
  head -c 100000 /dev/urandom > out/status.tsv
  cp out/status.tsv garbage
  echo '{"Larch": [' > out/larch.json
  expect 0 batch --force
  has err.txt "is not a status table that can be understood"
  has err.txt "is no record of runs that can be understood"
  cmp garbage out/status.tsv.kept-*
  [ -s out/larch.json.kept-* ]
  status "
assert len(table) == 4 and load('out/larch.json')['Larch']['Metrics']['ok'] == 4"
}

@test "143: SIGTERM ends the run after the cases in flight, and --skip-existing completes it" {
  { echo -e "id\timage"; for i in $(seq 1 300); do echo -e "c$i\timage_3.nii.gz"; done; } > many.tsv
  for threads in 1 2; do
    rm -rf out
    "$BIN/pbt-detect" -m m.pbt --list many.tsv --output-dir out --threads $threads 2>err.txt &
    pid=$!
    while [ ! -e out/c3.nii.gz.json ] && kill -0 $pid; do sleep 0.02; done
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ "$code" -eq 143 ] || { echo "exit code $code"; cat err.txt; return 1; }
    has err.txt "of 300 cases; --skip-existing goes on from there"
    no_temporaries
    status "
import os
done = [n[:-7] for n in os.listdir('out') if n.endswith('.nii.gz')]
assert 3 <= len(done) < 300 and sorted(rows) == sorted(done), (len(done), len(rows))
assert all(r['status'] == 'ok' for r in table)
open('done.txt', 'w').write(str(len(done)))"
  done
  head -40 many.tsv > some.tsv
  expect 0 detect --list some.tsv --output-dir out --skip-existing
  for i in $(seq 1 39); do cmp "out/c$i.nii.gz" one_3.nii.gz; done
}

@test "6: a full disk fails the cases that do not fit, and leaves no part of one" {
  small_disk disk 56
  expect 7 detect --list cases.tsv --output-dir disk/out --write mesh --no-sidecar
  has err.txt "No space left on device"
  no_temporaries disk
  for file in disk/out/*.vtk; do cmp "$file" "${file/*image_/one_}"; done
}

@test "2 and 3: flags that do not go together, names that clash, lists that cannot be read" {
  expect 2 detect --list cases.tsv
  has err.txt "--output-dir is missing"
  expect 2 batch --input image_0.nii.gz
  expect 2 batch --output seg.nii.gz
  has err.txt "--write"
  expect 2 batch --write labels,meshes
  expect 2 batch --format docx
  expect 2 batch --memory lots
  has err.txt "--memory: 'lots'"
  expect 2 detect --input image_0.nii.gz --output-dir out
  mkdir images
  cp "$(readlink image_0.nii.gz)" images/case.nii.gz
  printf 'image\nimages/case.nii.gz\n' > own.tsv
  expect 2 detect --list own.tsv --output-dir images --force
  has err.txt "would be replaced"
  cmp images/case.nii.gz image_0.nii.gz
  printf 'image\tid\nimage_0.nii.gz\t../x\n' > up.tsv
  expect 3 detect --list up.tsv --output-dir out
  has err.txt "'../x' cannot be a file name"
  printf 'image\tid\nimage_0.nii.gz\tx\nimage_1.nii.gz\tx\n' > twice.tsv
  expect 3 detect --list twice.tsv --output-dir out
  printf 'image\n' > empty.tsv
  expect 3 detect --list empty.tsv --output-dir out
  absent out
}

@test "--dry-run writes nothing" {
  expect 0 batch --dry-run
  has err.txt "would write out"
  absent out
}

# --- memory
