#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-detect --poses and --roi: each structure in its own box, by flags, by a column and by a folder.

load helpers

# two.forest of two objects, one.pbt of the first. Poses of case_006: near.json is right; shifted.json is 10 mm off; in
# lost.json object_2 was not found, in lacking.json it is not; in away.json object_1 is outside; other.json has a heart.
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir s --kind poses --poses.structures 2 --poses.distractors 1 --training 6 --test 2 \
    --poses.size 40,40,40 --poses.spacing_mm 2,2,2 -q
  cut -f 1,2 s/train.tsv > s/labels.tsv
  "$BIN/pbt-train" --list s/labels.tsv --output two.forest -q --classifier decision-forest --space.spacing_mm 2,2,2 \
    --labels.names '[{"value": 1, "name": "object_1"}, {"value": 2, "name": "object_2"}]' --validation.fraction 0 \
    --forest.trees 3 --forest.depth 8 --forest.samples_per_volume 2000
  "$BIN/pbt-train" --list s/labels.tsv --output one.pbt --labels.positive 1 --labels.class_name object_1 -q \
    --space.spacing_mm 2,2,2 --features.count 200 --features.window 5 --features.sizes 1,2 --tree.depth 1 --tree.rounds 8
  /usr/bin/python3 - <<'PY'
import json
a, b = [{'name': box_name, 'status': 'found', 'confidence': 0.9, 'center_mm': box['center'], 'size_mm': box['size'],
         'quaternion_wxyz': [1, 0, 0, 0]} for box_name, box in zip(('object_1', 'object_2'), (
             m for m in json.load(open('s/poses/case_006.mrk.json'))['markups'] if m['type'] == 'ROI'))]
def off(pose, mm): return {**pose, 'center_mm': [pose['center_mm'][0] + mm, *pose['center_mm'][1:]]}
for name, poses in {'near': [a, b], 'shifted': [off(a, 10), off(b, 10)], 'lacking': [a], 'away': [off(a, 900), b],
                    'lost': [a, {'name': 'object_2', 'status': 'not found'}], 'other': [{**a, 'name': 'heart'}]}.items():
    json.dump({'frame': 'LPS', 'structures': poses}, open(name + '.json', 'w'))
PY
}

detect() { timeout 60 "$BIN/pbt-detect" --model two.forest --margin_mm 4 "$@"; }
one() { detect --input s/images/case_006.nii.gz "$@"; }

# PYTHON: read(FILE) are voxels; box(FILE, NAME) is where its box, 4 mm wider, holds the centre of a voxel.
BOXES='
import nibabel, numpy
def read(name): return numpy.asarray(nibabel.load(name).dataobj)
affine = nibabel.load("s/images/case_006.nii.gz").affine
def box(file, name):
    at = (numpy.stack(numpy.indices((40, 40, 40)), -1) @ affine[:3, :3].T + affine[:3, 3]) * [-1, -1, 1]
    pose = [p for p in load(file)["structures"] if p["name"] == name][0]
    return (abs(at - pose["center_mm"]) <= numpy.array(pose["size_mm"]) / 2 + 4).all(-1)
'

@test "no voxel outside of the box of a class is of it, and its probability there is that of the background" {
  expect 0 one --output plain.nii.gz --distribution plain_p.nii.gz
  expect 0 one --poses shifted.json --output a.nii.gz --distribution p.nii.gz --probability any.nii.gz
  expect 0 one --poses shifted.json --output again.nii.gz --threads 1 --memory 40M
  cmp again.nii.gz a.nii.gz
  expect 0 "$BIN/pbt-detect" --model one.pbt --input s/images/case_006.nii.gz --margin_mm 4 --poses near.json --output b.nii.gz
  python "$BOXES
a, b = (box('shifted.json', name) for name in ('object_1', 'object_2'))
labels, p, q, any = (read(name + '.nii.gz') for name in ('a', 'plain_p', 'p', 'any'))
assert (labels == 1).any() and not (labels[~a] == 1).any() and not (labels[~b] == 2).any()
assert (q[~(a | b)] == 0).all() and (any[~(a | b)] == 0).all()
assert (q[~a][:, 1] == 0).all() and (q[~b][:, 2] == 0).all() and (q[a & b] == p[a & b]).all()
assert abs(q[a & ~b][:, 0] - p[a & ~b][:, 0] - p[a & ~b][:, 2]).max() < 1e-5
assert abs(1 - q[..., 0] - any)[a | b].max() < 1e-5
trees = read('b.nii.gz')
assert trees.any() and not trees[~box('near.json', 'object_1')].any()"
}

@test "a class that was not found, has no pose, or whose box is outside is not looked for, and a note says so" {
  for poses in lost lacking away; do expect 0 one --poses $poses.json --output $poses.nii.gz --report $poses.report; done
  cmp lost.nii.gz lacking.nii.gz
  python "$BOXES
assert set(numpy.unique(read('lost.nii.gz'))) == {0, 1} and set(numpy.unique(read('away.nii.gz'))) == {0, 2}
assert load('lost.report')['notes'] == [\"'lost.json': 'object_2' is not found, and is not looked for\"]
assert load('lacking.report')['notes'] == [\"'lacking.json': 'object_2' is not there, and is not looked for\"]
assert load('away.report')['notes'] == [\"the box of 'object_1' lies outside of the image\"]"
  expect 7 "$BIN/pbt-detect" --model one.pbt --input s/images/case_006.nii.gz --poses away.json --output d.nii.gz
  for dry in "" --dry-run; do
    expect 3 one --poses other.json --output e.nii.gz $dry
    has err.txt "'other.json' has no structure 'object_1' or 'object_2'; it has heart"
  done
}

@test "a list takes the poses of a folder, with the bytes of one image; a case without them fails" {
  mkdir found
  cp near.json found/case_006.poses.json
  expect 0 one --poses near.json --output alone.nii.gz
  expect 7 detect --list s/test.tsv --output-dir folder --poses found
  cmp alone.nii.gz folder/case_006.nii.gz
  grep -q "^case_007.failed.*the poses of the case: 'found/case_007.poses.json' does not exist" folder/status.tsv
  cp s/poses/case_007.mrk.json found
  expect 0 detect --list s/test.tsv --output-dir folder --poses found --skip-existing
  # The poses are inputs of their case.
  cp shifted.json found/case_006.poses.json
  expect 7 detect --list s/test.tsv --output-dir folder --poses found --skip-existing
  has err.txt "found/case_006.poses.json': other content"
  # The true poses in the list have no effect.
  expect 0 detect --list s/test.tsv --output-dir plain
  expect 0 one --output plain.nii.gz
  cmp plain.nii.gz plain/case_006.nii.gz
  expect 2 detect --list s/test.tsv --output-dir out --poses near.json
  has err.txt "with --list give the folder of a run of hdn-detect"
}

@test "masks of a list stand in its column roi, and hold beside boxes" {
  python "$BOXES
nibabel.save(nibabel.Nifti1Image((numpy.indices((40, 40, 40))[0] < 20).astype('u1'), affine), 'half.nii.gz')"
  expect 0 one --roi half.nii.gz --poses near.json --output both.nii.gz
  mkdir found
  cp near.json found/case_006.poses.json
  printf 'image\troi\n%s\t%s\n' s/images/case_006.nii.gz half.nii.gz > list.tsv
  expect 0 detect --list list.tsv --poses found --output-dir out
  cmp both.nii.gz out/case_006.nii.gz
  python "$BOXES
both, half = read('both.nii.gz'), read('half.nii.gz')
assert both.any() and not both[half == 0].any() and not (both == 2)[~box('near.json', 'object_2')].any()"
  expect 2 detect --list list.tsv --output-dir out --roi half.nii.gz
  has err.txt "give the list a column 'roi'"
}
