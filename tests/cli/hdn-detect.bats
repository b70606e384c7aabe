#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# hdn-detect, and what pbt-train and evaluate do for it: networks of two objects that are trained on
# few small volumes.

load helpers

# net.hdn from poses, body.hdn from label maps, few.hdn from six cases, alone.hdn whose child is not
# found without its parent; in s/ the volumes, and what pose_variants.py makes of the first to test.
setup_file() {
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  cd "$BATS_FILE_TMPDIR" || return 1
  cat > net.json <<'JSON'
{
  "model": "hdn",
  "hdn": {
    "structures": [
      {"name": "object_1", "labels": [1], "stages": ["all", "position"]},
      {"name": "object_2", "labels": [2], "stages": ["all", "position"], "parent": "object_1"}
    ],
    "finest_spacing_mm": 2.5, "halvings": 1, "folds": 2,
    "rotation_step_deg": [10], "keep_first": [60, 30, 30], "keep": [30, 15, 15],
    "positives_per_volume": 20, "negatives_per_volume": 150
  },
  "features": {"count": 300, "window": 9},
  "tree": {"depth": 2, "rounds": [10], "min_samples": 20, "min_class_samples": 5}
}
JSON
  cat > body.json <<'JSON'
{
  "hdn": {
    "structures": [{"name": "body", "labels": [1], "stages": ["position-orientation", "position"],
                    "symmetric": true}]
  }
}
JSON
  "$BIN/make-samples" --output-dir s --kind poses --training 20 --test 4 --poses.structures 2 -q \
    --poses.size 48,48,48 --poses.spacing_mm 2.5,2.5,2.5 --poses.snr 30 --poses.rotation_deg 20
  cut -f 1,3 s/train.tsv > s/poses.tsv
  cut -f 1,2 s/train.tsv | head -n 7 > s/labels.tsv
  head -n 7 s/poses.tsv > s/few.tsv
  head -n 4 s/poses.tsv > s/three.tsv
  cut -f 1 s/test.tsv > s/images.tsv
  train poses net --threads 2 --report net.report.json
  train few alone --hdn.fallback false
  train labels body --config body.json
  train few few
  "$BIN/pbt-train" --list s/labels.tsv --output voxels.pbt --labels.positive 1 --features.count 50 -q \
    --features.window 5 --features.sizes 1 --tree.depth 1 --tree.rounds 2
  /usr/bin/python3 "$source/tests/cli/tools/pose_variants.py" s/images/case_020.nii.gz s/poses/case_020.mrk.json
}

train() { "$BIN/pbt-train" --list "s/$1.tsv" --output "$2.hdn" --config net.json -q "${@:3}"; }
detect() { "$BIN/hdn-detect" --model net.hdn "$@"; }
one() { detect --input s/images/case_020.nii.gz --output one.json "$@"; }

# structures CODE: asserts on what a file of poses has, by name.
structures() { python "
import numpy
def poses(name): return {s['name']: s for s in load(name)['structures']}
def apart(a, b): return float(numpy.linalg.norm(numpy.subtract(a['center_mm'], b['center_mm'])))
$1"; }

# --- training

@test "all detectors for which the truth had to be added are one warning, which names the worst" {
  expect 0 train few weak --hdn.keep_first 2,1,1 --hdn.keep 2,1,1 --report weak.json
  python "
import re
detectors = load('weak.json')['detectors']
weak = [d['cases_without_positive'] for d in detectors if d['cases_without_positive'] * 20 > d['cases']]
lines = [line for line in open('err.txt') if 'no candidate was near the truth' in line]
assert len(weak) > 1 and len(lines) == 1, (weak, lines)
assert re.search(f'of {len(weak)} of {len(detectors)} detectors, the most in .*: {max(weak)} of 6$', lines[0]), (lines, weak)"
}

@test "poses that are found are near the true ones; the report tells of each detector" {
  expect 0 detect --list s/test.tsv --output-dir out -q
  lacks err.txt "nobody reads"  # s/test.tsv has the column poses
  printf 'id\tprediction\treference\n' > pairs.tsv
  for i in 020 021 022 023; do
    printf "$i\tout/case_$i.poses.json\ts/poses/case_$i.mrk.json\n" >> pairs.tsv
  done
  expect 0 "$BIN/evaluate" --kind poses --list pairs.tsv --report r.json
  python "
r = load('r.json')['summary']
for name in ('object_1', 'object_2'):
    assert r[name]['centre_error_mm']['cases'] == 4 and r[name]['centre_error_mm']['mean'] < 2.5, r
    assert r[name]['failure']['mean'] == 0, r
t = load('net.report.json')
assert t['metrics'] == {'training_cases': 20, 'structures': 2, 'detectors': 9}, t['metrics']
assert set(t['cross_validation']) == {'object_1', 'object_2'}
first = t['detectors'][0]
assert (first['structure'], first['spacing_mm'], first['stage'], first['cases']) == ('object_1', 5, 'position', 20)
assert 0 <= first['recall_1'] <= first['recall_10'] <= first['recall_50'] <= 1
"
}

@test "label maps are enough; evaluate fits them to the mean shape that the network has" {
  expect 0 "$BIN/hdn-detect" --model body.hdn --list s/images.tsv --output-dir out -q
  printf 'prediction\treference\n' > pairs.tsv
  printf 'out/case_02%s.poses.json\ts/labels/case_02%s.nii.gz\n' 0 0 1 1 2 2 >> pairs.tsv
  expect 0 "$BIN/evaluate" --kind poses --list pairs.tsv --model body.hdn --report r.json
  # A mean shape that is turned onto itself makes no error of the rotation.
  python "
r = load('r.json')['summary']['body']
assert r['centre_error_mm']['cases'] == 3 and r['centre_error_mm']['median'] < 7.5, r
assert r['rotation_error_deg']['median'] < 30, r"
  expect 3 "$BIN/evaluate" --kind poses --list pairs.tsv
  has err.txt "labels/case_020.nii.gz"
}

@test "the same bytes for any number of threads, order of the list, and after a stop" {
  { head -n 1 s/few.tsv; tail -n +2 s/few.tsv | tac; } > s/turned.tsv
  train turned turned --threads 1
  cmp turned.hdn few.hdn
  start_training m.hdn --list s/few.tsv --config net.json
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  has log.txt "--resume"
  absent m.hdn
  expect 3 "$BIN/pbt-train" --list s/few.tsv --output m.hdn --config net.json --resume --hdn.gain 0.2
  has err.txt "other settings"
  expect 3 "$BIN/hdn-detect" --model m.hdn.ckpt --input flat.nii.gz --output p.json
  has err.txt "--resume"
  expect 0 "$BIN/pbt-train" --list s/few.tsv --output m.hdn --config net.json --resume --threads 2
  has err.txt "going on from 'm.hdn.ckpt'"
  cmp m.hdn few.hdn
  absent m.hdn.ckpt
  no_temporaries
}

@test "three cases are enough to train; --inspect prints what a network is" {
  train three three
  python "
inputs = [i['Path'] for i in load('three.hdn.json')['Larch']['Inputs']]
assert sum(path.endswith('.mrk.json') for path in inputs) == 3, inputs"
  expect 0 "$BIN/hdn-detect" --model three.hdn --input s/images/case_020.nii.gz --output p.json
  expect 0 "$BIN/pbt-train" --inspect net.hdn
  has out.txt "hierarchical detection network, kind hdn 3"
  has out.txt "name object_2"
  has out.txt "structures/1/root_position/0: "
  grep -Eq "^ *position +1 +30 " out.txt
  expect 0 "$BIN/pbt-train" --inspect net.hdn --export-json net.model.json
  python "
m = load('net.model.json')
assert [s['name'] for s in m['structures']] == ['object_1', 'object_2'], m.keys()"
}

@test "decision forests in place of boosting trees; what has no effect on them is refused" {
  python "
net = load('net.json')
del net['tree']
json.dump(net, open('forest.json', 'w'))"
  forest() { "$BIN/pbt-train" --list s/few.tsv --output forest.hdn --config forest.json --classifier decision-forest \
    --forest.trees 5 --forest.depth 8 --forest.min_leaf 3 "$@"; }
  expect 0 forest
  expect 0 "$BIN/hdn-detect" --model forest.hdn --input s/images/case_020.nii.gz --output forest.poses.json
  structures "
found, true = poses('forest.poses.json'), {m['name']: m for m in load('s/poses/case_020.mrk.json')['markups']}
for name, s in found.items():
    assert numpy.linalg.norm(numpy.subtract(s['center_mm'], true[name]['center'])) < 5, s"
  expect 2 "$BIN/hdn-detect" --model forest.hdn --input flat.nii.gz --output p.json --evaluate.hard true
  has err.txt "--evaluate.hard is of networks of boosting trees"
  expect 2 detect --input flat.nii.gz --output p.json --device cpu --gpu_share 0.5
  has err.txt "--gpu_share is of --device cuda"
  expect 2 forest --tree.depth 3
  has err.txt "--tree.depth is of boosting trees"
  expect 2 forest --forest.reach 3
  has err.txt "--forest.reach is of model voxels"
  expect 2 "$BIN/pbt-train" --list s/labels.tsv --output m.bnd --model boundary --classifier decision-forest
  has err.txt "boundary models have boosting trees"
}

@test "2 and 3: keys of another model, cases without truth" {
  expect 2 "$BIN/pbt-train" --list s/few.tsv --output m.hdn --config net.json --labels.positive 1
  has err.txt "--labels.positive is of model voxels"
  expect 2 "$BIN/pbt-train" --list s/few.tsv --output m.hdn --config net.json --space.spacing_mm 1,1,1
  has err.txt "--hdn.finest_spacing_mm"
  expect 2 "$BIN/pbt-train" --list s/labels.tsv --output m.bnd --model boundary --start-model body.hdn --boundary.error_mm 3
  has err.txt "--boundary.error_mm is of trainings without the errors of --start-model"
  expect 2 "$BIN/pbt-train" --list s/labels.tsv --output m.pbt --hdn.folds 2
  has err.txt "--hdn.folds is of model hdn"
  cut -f 1 s/few.tsv > s/truthless.tsv
  expect 3 "$BIN/pbt-train" --list s/truthless.tsv --output m.hdn --config net.json
  has err.txt "add a column label or poses"
  absent m.hdn m.pbt
}

# --- detection

@test "poses, boxes for 3D Slicer, label map and picture of one image agree" {
  expect 0 one --markups m.mrk.json --labelmap b.nii.gz --qc q.png --report r.json
  structures "
import nibabel, struct
found, boxes = poses('one.json'), {m['name']: m for m in load('m.mrk.json')['markups']}
assert load('one.json')['frame'] == 'LPS' and list(found) == ['object_1', 'object_2']
labels, image = nibabel.load('b.nii.gz'), nibabel.load('s/images/case_020.nii.gz')
assert labels.shape == image.shape and numpy.abs(labels.affine - image.affine).max() < 1e-6
values = numpy.asarray(labels.dataobj)
assert set(numpy.unique(values)) == {0, 1, 2}
lps = numpy.diag([-1, -1, 1, 1]) @ image.affine
report = {s['name']: s for s in load('r.json')['structures']}
for k, (name, s) in enumerate(found.items()):
    assert s['status'] == 'found' and 0.5 < s['confidence'] <= 1, s
    assert {'support', 'spread_mm', 'spread_deg', 'truncated', 'searched_everywhere', 'kept_5mm_position',
            'kept_5mm_orientation', 'kept_5mm_scale', 'kept_2.5mm_position'} <= set(s), s
    matrix = numpy.array(s['matrix'])
    assert abs(numpy.linalg.norm(s['quaternion_wxyz']) - 1) < 1e-9
    assert numpy.allclose(numpy.linalg.norm(matrix[:3, :3], axis=0), s['size_mm'])
    assert numpy.allclose(matrix[:3, 3], s['center_mm']) and numpy.linalg.det(matrix[:3, :3]) > 0
    box = boxes[name]
    assert box['type'] == 'ROI' and numpy.allclose(box['center'], s['center_mm'])
    assert numpy.allclose(box['size'], s['size_mm']) and boxes[name + ' axis']['type'] == 'Line'
    # Voxels are labelled whose centres lie in the box, and here no other one is in the way.
    at = numpy.argwhere(values == k + 1) @ lps[:3, :3].T + lps[:3, 3] - s['center_mm']
    inside = numpy.abs(numpy.linalg.solve(matrix[:3, :3], at.T))
    assert inside.max() < 0.5 + 1e-6
    assert abs(len(at) * 2.5 ** 3 / numpy.prod(s['size_mm']) - 1) < 0.1, len(at)
    assert report[name]['center_mm'] == s['center_mm']
assert open('b.tsv').read().splitlines()[0].split('\t') == ['index', 'name', 'color']
assert [line.split('\t')[:2] for line in open('b.tsv')][1:] == [['1', 'object_1'], ['2', 'object_2']]
png = open('q.png', 'rb').read()
assert png[:8] == b'\x89PNG\r\n\x1a\n' and min(struct.unpack('>II', png[16:24])) > 100"
  # For Slicer: as segments, and as a table of colours.
  expect 0 one --labelmap b.seg.nrrd --color-table b.ctbl --force
  grep -aqx 'Segment1_Name:=object_2' b.seg.nrrd
  [ "$(sed -n 3p b.ctbl | cut -d ' ' -f 1,2)" = "2 object_2" ]
}

@test "alone or in a batch, with any number of threads, the files are the same" {
  expect 0 one --markups m.mrk.json --labelmap b.nii.gz --qc q.png --threads 1
  for threads in 1 2; do
    expect 0 detect --list s/images.tsv --output-dir out$threads --write poses,markups,labelmap,qc --threads $threads
  done
  cmp one.json out1/case_020.poses.json
  cmp m.mrk.json out1/case_020.mrk.json
  cmp b.nii.gz out1/case_020.nii.gz
  cmp b.tsv out1/case_020.tsv
  cmp q.png out1/case_020.png
  for i in 020 021 022 023; do
    for ending in poses.json mrk.json nii.gz tsv png; do cmp out1/case_$i.$ending out2/case_$i.$ending; done
  done
  [ "$(head -n 1 out1/status.tsv | cut -f 1,2,6-8)" = "$(printf 'id\tstatus\tstructures\tfound\tuncertain')" ]
}

@test "axes and turns of the grid do not change where structures are; the label map has the grid of its input" {
  for way in ras permuted flipped oblique; do
    expect 0 detect --input turned_$way.nii.gz --output $way.json --labelmap $way.nii.gz
  done
  expect 0 one --labelmap one.nii.gz
  structures "
import nibabel
one = poses('one.json')
count = numpy.bincount(numpy.asarray(nibabel.load('one.nii.gz').dataobj).ravel())
for way in ('ras', 'permuted', 'flipped', 'oblique'):
    image, labels = nibabel.load(f'turned_{way}.nii.gz'), nibabel.load(f'{way}.nii.gz')
    assert labels.shape == image.shape and numpy.abs(labels.affine - image.affine).max() < 1e-6, way
    for name, s in poses(f'{way}.json').items():
        assert apart(s, one[name]) < (2.5 if way == 'oblique' else 1e-3), (way, s, one[name])
    if way != 'oblique':
        assert (numpy.bincount(numpy.asarray(labels.dataobj).ravel()) == count).all(), way"
}

@test "7: --strict rejects an image that ends before a structure, which has no pose" {
  expect 0 detect --input crop.nii.gz --output loose.json --labelmap loose.nii.gz
  expect 7 detect --input crop.nii.gz --output strict.json --labelmap strict.nii.gz --strict
  has err.txt "object_2 not found"
  cmp loose.json strict.json
  cmp loose.nii.gz strict.nii.gz
  structures "
p = poses('loose.json')
assert p['object_1']['status'] in ('found', 'uncertain') and p['object_1']['truncated'] == 1, p
assert p['object_2']['status'] == 'not found' and 'center_mm' not in p['object_2'], p"
  printf 'image\n%s\n' "$PWD/crop.nii.gz" > list.tsv
  expect 7 detect --list list.tsv --output-dir out --strict
  grep -q "^crop.rejected.*object_2 not found" out/status.tsv
}

@test "a child whose parent is not found is searched everywhere, or not at all" {
  expect 7 detect --input noise.nii.gz --output noise.json --report noise.report.json
  expect 7 "$BIN/hdn-detect" --model alone.hdn --input flat.nii.gz --output alone.json --labelmap none.nii.gz
  has err.txt "nothing was detected"
  expect 7 detect --input flat.nii.gz --output flat.json --report flat.report.json
  structures "
import nibabel
alone, flat = poses('alone.json'), poses('flat.json')
noise = load('noise.report.json')['structures']
assert [s['status'] for s in noise] == ['not found'] * 2 and noise[1]['searched_everywhere'] == 1, noise
assert max(s['confidence'] for s in noise) < 0.1, noise
assert alone['object_1']['status'] == 'not found', alone
assert alone['object_2'] == {'name': 'object_2', 'status': 'skipped: parent object_1', 'confidence': None}, alone
assert not numpy.asarray(nibabel.load('none.nii.gz').dataobj).any()
assert [s['status'] for s in flat.values()] == ['not found', 'not found'], flat
r = load('flat.report.json')
assert r['status'] == 'rejected' and r['structures'][1]['searched_everywhere'] == 1, r"
}

@test "3: models of another kind, damaged files of poses" {
  expect 3 "$BIN/hdn-detect" --model voxels.pbt --input flat.nii.gz --output p.json
  has err.txt "of the kind 'pbt', not 'hdn'; pbt-detect reads it"
  expect 3 "$BIN/pbt-detect" --model net.hdn --input flat.nii.gz --output p.nii.gz
  has err.txt "of the kind 'hdn', not 'pbt'; hdn-detect reads it"
  absent p.json p.nii.gz
  expect 0 one
  head -c 300 one.json > damaged.json
  expect 3 "$BIN/evaluate" --kind poses --prediction damaged.json --reference s/poses/case_020.mrk.json
  has err.txt "damaged.json"
}
