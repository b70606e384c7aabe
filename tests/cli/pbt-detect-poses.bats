#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-detect --poses and --roi: each structure in its own box, by flags, by columns and by a folder.

load helpers

# two.forest of two objects, one.pbt of the first; s/ with 6 cases, and 2 to test: a copy of object_2 lies elsewhere.
# near.json has the true boxes of case_006; shifted.json has them 10 mm off; alone.json has object_1, but
# object_2 was not found; beside.json lacks it; away.json has object_1 outside of the image; other.json has a heart.
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir s --kind poses --poses.structures 2 --poses.distractors 1 --training 6 --test 2 \
    --poses.size 40,40,40 --poses.spacing_mm 2,2,2 -q
  cut -f 1,2 s/train.tsv > s/labels.tsv
  cut -f 1,2 s/test.tsv > s/images.tsv
  cat > forest.json <<'JSON'
{"classifier": "decision-forest", "space": {"spacing_mm": [2, 2, 2]}, "validation": {"fraction": 0},
 "labels": {"names": [{"value": 1, "name": "object_1"}, {"value": 2, "name": "object_2"}]},
 "forest": {"trees": 3, "depth": 8, "samples_per_volume": 2000}}
JSON
  "$BIN/pbt-train" --list s/labels.tsv --output two.forest --config forest.json -q
  "$BIN/pbt-train" --list s/labels.tsv --output one.pbt --labels.positive 1 --labels.class_name object_1 -q \
    --space.spacing_mm 2,2,2 --features.count 200 --features.window 5 --features.sizes 1,2 --tree.depth 1 --tree.rounds 8
  /usr/bin/python3 - <<'PY'
import json
boxes = json.load(open('s/poses/case_006.mrk.json'))['markups']
def pose(name, box, **changed):
    one = {'name': name, 'status': 'found', 'confidence': 0.9, 'center_mm': box['center'], 'size_mm': box['size'],
           'quaternion_wxyz': [1, 0, 0, 0]}
    one.update(changed)
    return {key: value for key, value in one.items() if value is not None}
def poses(file, *all):
    json.dump({'frame': 'LPS', 'structures': list(all)}, open(file + '.json', 'w'))
a, b = [box for box in boxes if box['type'] == 'ROI'][:2]
lost = {'status': 'not found', 'confidence': None, 'center_mm': None, 'size_mm': None, 'quaternion_wxyz': None}
poses('near', pose('object_1', a), pose('object_2', b))
def off(box): return {'center_mm': [box['center'][0] + 10, *box['center'][1:]]}
poses('shifted', pose('object_1', a, **off(a)), pose('object_2', b, **off(b)))
poses('alone', pose('object_1', a), pose('object_2', b, **lost))
poses('beside', pose('object_1', a))
poses('away', pose('object_1', a, center_mm=[900, 0, 0]), pose('object_2', b))
poses('other', pose('heart', a))
PY
}

detect() { timeout 60 "$BIN/pbt-detect" --model two.forest "$@"; }
one() { detect --input s/images/case_006.nii.gz --margin_mm 4 "$@"; }

# PYTHON: read(FILE) are voxels; box(FILE, NAME) is where its box, 4 mm wider, holds the centre of a voxel.
BOXES='
import nibabel, numpy
def read(name): return numpy.asarray(nibabel.load(name).dataobj)
def box(file, name):
    affine = nibabel.load("s/images/case_006.nii.gz").affine
    at = numpy.stack(numpy.indices((40, 40, 40)), -1) @ affine[:3, :3].T + affine[:3, 3]
    pose = [p for p in load(file)["structures"] if p["name"] == name][0]
    away = abs(at * [-1, -1, 1] - pose["center_mm"])
    return (away <= numpy.array(pose["size_mm"]) / 2 + 4).all(-1)
'

@test "no voxel outside of the box of a class is of it, and its probability there is that of the background" {
  expect 0 one --output plain.nii.gz --distribution plain_p.nii.gz
  for poses in near shifted; do
    expect 0 one --poses $poses.json --output $poses.nii.gz --distribution ${poses}_p.nii.gz --probability ${poses}_any.nii.gz
  done
  expect 0 one --poses shifted.json --output again.nii.gz --threads 1 --memory 40M
  cmp again.nii.gz shifted.nii.gz
  python "$BOXES
plain, p = read('plain.nii.gz'), read('plain_p.nii.gz')
for file in ('near', 'shifted'):
    a, b = (box(file + '.json', name) for name in ('object_1', 'object_2'))
    labels, q, any = read(file + '.nii.gz'), read(file + '_p.nii.gz'), read(file + '_any.nii.gz')
    assert not (labels[~a] == 1).any() and not (labels[~b] == 2).any(), file
    assert (q[~(a | b)] == 0).all() and (any[~(a | b)] == 0).all(), file
    assert (q[~a][:, 1] == 0).all() and (q[~b][:, 2] == 0).all(), file
    inside = a & ~b
    assert abs(q[inside][:, 0] - p[inside][:, 0] - p[inside][:, 2]).max() < 1e-5, file
    assert abs(1 - q[..., 0] - any)[a | b].max() < 1e-5, file
    assert (q[a & b] == p[a & b]).all(), file
assert (read('near.nii.gz') == 2).any()
"
}

@test "boosting trees look for their class alone in its box" {
  expect 0 "$BIN/pbt-detect" --model one.pbt --input s/images/case_006.nii.gz --margin_mm 4 --poses near.json \
    --output a.nii.gz --structure.keep_components 0
  expect 0 "$BIN/pbt-detect" --model one.pbt --input s/images/case_006.nii.gz --output b.nii.gz --structure.keep_components 0
  python "$BOXES
a, b, inside = read('a.nii.gz'), read('b.nii.gz'), box('near.json', 'object_1')
assert a.any() and not a[~inside].any() and b[~inside].any()
"
}

@test "a class that was not found, has no pose, or whose box is outside is not looked for, and a note says so" {
  expect 0 one --poses alone.json --output a.nii.gz --report a.json
  expect 0 one --poses beside.json --output b.nii.gz --report b.json
  expect 0 one --poses away.json --output c.nii.gz --report c.json
  cmp a.nii.gz b.nii.gz
  python "$BOXES
assert set(numpy.unique(read('a.nii.gz'))) == {0, 1} and set(numpy.unique(read('c.nii.gz'))) == {0, 2}
assert load('a.json')['notes'] == [\"'alone.json': 'object_2' is not found, and is not looked for\"], load('a.json')
assert load('b.json')['notes'] == [\"'beside.json': 'object_2' is not there, and is not looked for\"]
assert load('c.json')['notes'] == [\"the box of 'object_1' lies outside of the image\"]
"
  expect 7 "$BIN/pbt-detect" --model one.pbt --input s/images/case_006.nii.gz --poses away.json --output d.nii.gz
  has err.txt "nothing was detected"
  for dry in "" --dry-run; do
    expect 3 one --poses other.json --output e.nii.gz $dry
    has err.txt "'other.json' has no structure 'object_1' or 'object_2'; it has heart"
  done
  absent e.nii.gz
}

@test "a list takes the poses of a folder or of a column, with the bytes of one image; a case without them fails" {
  mkdir found
  cp near.json found/case_006.poses.json
  expect 0 detect --input s/images/case_006.nii.gz --poses near.json --output alone.nii.gz
  expect 7 detect --list s/test.tsv --output-dir folder --poses found
  cmp alone.nii.gz folder/case_006.nii.gz
  grep -q "^case_007.failed.*the poses of the case: 'found/case_007.poses.json' does not exist" folder/status.tsv
  cp s/poses/case_007.mrk.json found
  expect 0 detect --list s/test.tsv --output-dir folder --poses found --skip-existing
  # The poses are inputs of their case.
  cp shifted.json found/case_006.poses.json
  expect 7 detect --list s/test.tsv --output-dir folder --poses found --skip-existing
  has err.txt "found/case_006.poses.json': other content"
  expect 0 detect --list s/test.tsv --output-dir column
  cmp folder/case_007.nii.gz column/case_007.nii.gz
  has err.txt "warning: 's/test.tsv' has a column 'poses': each structure is looked for in its box of these files alone"
  expect 2 detect --list s/test.tsv --output-dir out --poses near.json
  has err.txt "with --list give the folder of a run of hdn-detect"
}

@test "masks of a list stand in its column roi, and hold beside boxes" {
  python "$BOXES
half = (numpy.indices((40, 40, 40))[0] < 20).astype('u1')
nibabel.save(nibabel.Nifti1Image(half, nibabel.load('s/images/case_006.nii.gz').affine), 'half.nii.gz')"
  expect 0 one --roi half.nii.gz --output a.nii.gz
  expect 0 one --roi half.nii.gz --poses near.json --output both.nii.gz
  printf 'id\timage\troi\tposes\na\t%s\t%s\t\nb\t%s\t%s\t%s\n' "$PWD/s/images/case_006.nii.gz" "$PWD/half.nii.gz" \
    "$PWD/s/images/case_006.nii.gz" "$PWD/half.nii.gz" "$PWD/near.json" > list.tsv
  expect 0 detect --list list.tsv --output-dir out --margin_mm 4
  cmp a.nii.gz out/a.nii.gz
  cmp both.nii.gz out/b.nii.gz
  python "$BOXES
both, half = read('both.nii.gz'), read('half.nii.gz')
assert both.any() and not both[half == 0].any() and not (both == 2)[~box('near.json', 'object_2')].any()"
  expect 2 detect --list list.tsv --output-dir out --roi half.nii.gz
  has err.txt "give the list a column 'roi'"
}
