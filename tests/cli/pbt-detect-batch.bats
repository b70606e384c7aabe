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
    larch = load('out/' + r['id'] + '.larch.json')['Larch']
    inputs = [i['Path'] for i in larch['Inputs']]
    assert r['id'] + '.nii.gz' in inputs and 'm.pbt' in inputs, inputs
    assert larch['Metrics']['voxels'] == voxels and larch['Status'] == 'done'
    endings = '.nii.gz .tsv .probability.nii.gz .vtk .png .candidates.tsv'.split()
    assert [o['Name'] for o in larch['Outputs']] == [r['id'] + ending for ending in endings], larch['Outputs']
    roles = 'output output probability mesh qc candidates'.split()
    assert [o['Role'] for o in larch['Outputs']] == roles, larch['Outputs']"
  [ "$(ls -A out | wc -l)" -eq $((4 * 7 + 1)) ]
}

@test "only labels unless more is asked for; other formats; the report" {
  expect 0 batch --report r.json
  same_as_single .nii.gz .tsv
  [ "$(ls out | grep -c image_0)" -eq 3 ]
  python "
m = load('r.json')['metrics']
assert m['cases'] == m['ok'] == 4 and m['failed'] == m['skipped'] == m['rejected'] == 0
assert m['cases_per_second'] > 0"
  expect 0 detect --list cases.tsv --output-dir other --write probability,mesh --format nrrd \
    --mesh-format ply
  [ "$(ls other | grep image_1 | tr '\n' ' ')" = "image_1.larch.json image_1.ply image_1.probability.nrrd " ]
}

@test "--dataset: the test images of a dataset.json, or the training images; a folder in a list" {
  cat > dataset.json <<'JSON'
{"labels": {"0": "background", "1": "ball"}, "modality": {"0": "MR"},
 "training": [{"image": "./image_1.nii.gz", "label": "./label_1.nii.gz"}], "test": ["./image_2.nii.gz"]}
JSON
  expect 0 detect --dataset dataset.json --output-dir out
  [ "$(ls out/*.nii.gz)" = out/image_2.nii.gz ]
  cmp out/image_2.nii.gz one_2.nii.gz
  expect 0 detect --dataset dataset.json --dataset-part training --output-dir out
  cmp out/image_1.nii.gz one_1.nii.gz
  sed -i '/"test"/s/, "test.*/}/' dataset.json
  expect 3 detect --dataset dataset.json --output-dir none
  has err.txt "--dataset-part training"
  absent none
  expect 2 batch --dataset-part training
  has err.txt "--dataset-part goes with --dataset"
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
json.dump({'modality': {'0': 'none', '1': 'MRI'}, 'test': ['both.nii.gz']}, open('two.json', 'w'))"
  expect 2 detect --dataset two.json --channel MRI --frame 1 --output-dir out
  has err.txt "--channel chooses one; leave --frame out"
  absent o.nii.gz out
  expect 0 detect --dataset two.json --channel MRI --output-dir out
  cmp out/both.nii.gz one_0.nii.gz
}

@test "columns of a list that nobody reads are named in a warning" {
  # Those of the training are no error: they are passed over as labels are.
  printf 'image\tlable\tlabel\tage\tposes\tgroup\nimage_0.nii.gz\tlabel_0.nii.gz\t\t60\tp.json\tg\n' > l.tsv
  expect 0 detect --list l.tsv --output-dir out
  has err.txt "'l.tsv': nobody reads 'age', 'lable'; the columns that are read here are image, label, image2,"
  expect 0 detect --list l.tsv --output-dir out --carry age --force
  has err.txt "'l.tsv': nobody reads 'lable'"
  expect 0 detect --list l.tsv --output-dir out --carry age,lable --force
  lacks err.txt "nobody reads"
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

@test "--skip-existing: figures of status.tsv, of rejected cases too, are those of their records" {
  local code flags
  for code in 0 7; do
    flags=(--structure.min_voxels $((code == 7 ? 100000 : 1)))
    expect $code batch --force "${flags[@]}"
    mv out/status.tsv first.tsv
    expect $code batch --skip-existing --report r.json "${flags[@]}"
    cmp out/status.tsv first.tsv
    python "
m = load('r.json')['metrics']
assert (m['ok'], m['skipped'], m['rejected']) == ((0, 4, 0), (0, 0, 4))[$code == 7], m
for c in load('r.json')['cases']:
    assert c['metrics']['voxels'] > 0 and c['status'] == ('skipped', 'rejected')[$code == 7], c"
  done
  # The report of a list has no record: one of this program is replaced, nothing else is.
  echo mine > mine.json
  expect 6 batch --skip-existing --report mine.json
  [ "$(cat mine.json)" = mine ]
}

@test "--skip-existing: a label table that is missing is made again" {
  expect 0 batch
  rm out/image_1.tsv
  expect 0 batch --skip-existing
  has err.txt "skipped 3"
  same_as_single .nii.gz .tsv
}

@test "2 and 3: lists whose results cannot be named, or that cannot be read" {
  expect 2 batch --format docx
  expect 2 batch --memory lots
  has err.txt "--memory"
  mkdir images
  cp "$(readlink image_0.nii.gz)" images/case.nii.gz
  printf 'image\nimages/case.nii.gz\n' > own.tsv
  expect 2 detect --list own.tsv --output-dir images --force
  has err.txt "images/case.nii.gz"
  cmp images/case.nii.gz image_0.nii.gz
  printf 'image\tid\nimage_0.nii.gz\tx\nimage_1.nii.gz\tx\n' > twice.tsv
  expect 3 detect --list twice.tsv --output-dir out
  printf 'image\n' > empty.tsv
  expect 3 detect --list empty.tsv --output-dir out
  absent out
}
