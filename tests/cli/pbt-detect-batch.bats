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
  [ "$(ls -A out | wc -l)" -eq $((4 * 7 + 2)) ]
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
