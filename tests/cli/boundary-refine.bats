#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# boundary-refine, and what pbt-train does for it: models of an ellipsoid that are trained on few
# small volumes.

load helpers

# organ.bnd of two levels from 12 label maps; few.bnd from three and two.bnd from two cases, which have a mean and no
# modes; in s/ the volumes, of which case_012 and case_013 are to test; first.vtk, the mesh of case_012, and what
# variants and pose_variants.py make of it.
setup_file() {
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  cd "$BATS_FILE_TMPDIR" || return 1
  cat > bnd.json <<'JSON'
{
  "model": "boundary",
  "boundary": {
    "structures": ["object_1"], "labels": [1], "halvings": [0, 0], "folds": 2, "starts": 1,
    "refine": {"search_modes": 1},
    "positives_per_volume": 100, "negatives_per_volume": 200
  },
  "tree": {"depth": 2, "rounds": [10], "prior": "half", "min_samples": 20, "min_class_samples": 5}
}
JSON
  "$BIN/make-samples" --output-dir s --kind poses --training 12 --test 2 -q --poses.size 36,34,32 \
    --poses.object_scale 0.5 --poses.balls false --poses.rotation_deg 15 --poses.shift_mm 2 --poses.snr 6
  cut -f 1,2 s/train.tsv > s/labels.tsv
  head -n 4 s/labels.tsv > s/few.tsv
  head -n 3 s/labels.tsv > s/two.tsv
  train labels organ --threads 2 --report organ.report.json --plot modes.png
  train few few --threads 2 2> few.txt
  train two two --boundary.halvings 0 2> two.txt
  "$BIN/boundary-refine" --model organ.bnd --input s/images/case_012.nii.gz -q \
    --poses s/poses/case_012.mrk.json --output first.vtk
  "$BIN/boundary-refine" --model two.bnd --input s/images/case_012.nii.gz -q \
    --poses s/poses/case_012.mrk.json --output coarse.vtk
  "$BIN/pbt-train" --list s/two.tsv --output voxels.pbt --labels.positive 1 --features.count 50 -q \
    --features.window 5 --features.sizes 1 --tree.depth 1 --tree.rounds 2
  /usr/bin/python3 "$source/tests/cli/tools/pose_variants.py" s/images/case_012.nii.gz s/poses/case_012.mrk.json
  variants
}

train() { "$BIN/pbt-train" --list "s/$1.tsv" --output "$2.bnd" --config bnd.json -q "${@:3}"; }
refine() { timeout 60 "$BIN/boundary-refine" --model organ.bnd "$@"; }
# one FILE FLAG...: the mesh of the first image to test.
one() { refine --input s/images/case_012.nii.gz --output "$@"; }
posed() { one "$1" --poses s/poses/case_012.mrk.json "${@:2}"; }

# PYTHON: mesh(name) are vertices, triangles and point data of a file that Larch wrote.
MESH='
import numpy
def mesh(name):
    data = open(name, "rb").read()
    def array(word, kind, width):
        at = data.index(word)
        end = data.index(b"\n", at) + 1
        if word.startswith(b"SCALARS"): end = data.index(b"\n", end) + 1
        count = width * (len(points) if word.startswith(b"SCALARS") else int(data[at:end].split()[1]))
        return numpy.frombuffer(data, kind, count, end).reshape(-1, width)
    points = array(b"POINTS", ">f4", 3)
    triangles = array(b"POLYGONS", ">i4", 4)[:, 1:]
    scalars = {word: array(b"SCALARS " + word.encode(), ">f4", 1)[:, 0] for word in ("probability", "displacement_mm")}
    return points, triangles, scalars
def apart(a, b): return numpy.linalg.norm(mesh(a)[0] - mesh(b)[0], axis=1)
'

# Images: noise.nii.gz has no structure, flat.nii.gz is constant, crop.nii.gz ends within it, tiny.nii.gz shows one end.
# Label maps: none.nii.gz is empty, coarse.nii.gz has voxels of 2 mm and another value. Poses: near.json is about right,
# away.json lies beyond the image, lost.json was not found, other.json is of another structure. Meshes: own.ply is
# first.vtk; open.ply lacks a triangle, mirrored.ply is turned inside out, turned.ply has its triangles turned over,
# box.ply is another one.
variants() {
  /usr/bin/python3 - <<PY
$MESH
import json, nibabel
image, labels = (nibabel.load(f's/{kind}/case_012.nii.gz') for kind in ('images', 'labels'))
voxels, truth, affine = numpy.asarray(image.dataobj), numpy.asarray(labels.dataobj), image.affine
def save(name, data, where=affine): nibabel.save(nibabel.Nifti1Image(data.astype('int16'), where), name + '.nii.gz')
inside = numpy.argwhere(truth)
save('noise', numpy.random.default_rng(1).normal(numpy.median(voxels), voxels[truth == 0].std(), voxels.shape))
save('crop', voxels[:, :, :inside[:, 2].max()])
save('none', truth * 0)
save('coarse', 9 * truth[::2, ::2, ::2], affine @ numpy.diag([2, 2, 2, 1]))
end = inside[inside[:, 0].argmax()]
low = end - [4, 2, 2]
at = affine.copy()
at[:3, 3] = (affine @ [*low, 1])[:3]
save('tiny', voxels[low[0]:low[0] + 6, low[1]:low[1] + 5, low[2]:low[2] + 5], at)

box = json.load(open('s/poses/case_012.mrk.json'))['markups'][0]
def poses(file, **changed):
    pose = {'name': 'object_1', 'status': 'found', 'confidence': 0.9, 'center_mm': box['center'],
            'quaternion_wxyz': [1, 0, 0, 0], 'size_mm': box['size']}
    pose.update(changed)
    kept = {key: value for key, value in pose.items() if value is not None}
    json.dump({'frame': 'LPS', 'structures': [kept]}, open(file + '.json', 'w'))
poses('near')
poses('away', center_mm=[500, 500, 500])
poses('lost', status='not found', confidence=None, center_mm=None, quaternion_wxyz=None, size_mm=None)
poses('other', name='heart')

def ply(name, points, triangles):
    with open(name + '.ply', 'w') as file:
        print('ply\nformat ascii 1.0\nelement vertex', len(points), file=file)
        print('property double x\nproperty double y\nproperty double z\nelement face', len(triangles), file=file)
        print('property list uchar int vertex_indices\nend_header', file=file)
        for p in points: print(*map(float, p), file=file)
        for t in triangles: print(3, *t, file=file)
points, triangles, _ = mesh('first.vtk')
ply('own', points, triangles)
ply('open', points, triangles[:-1])
ply('mirrored', points * [-1, 1, 1], triangles)
ply('turned', points, triangles[:, ::-1])
ply('box', points[:4], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
PY
}

# with_mesh CODE: asserts on meshes.
with_mesh() { python "$MESH$1"; }

# --- training

@test "the report tells of the shape and of each level; --inspect prints what a model is" {
  python "
t = load('organ.report.json')
assert t['metrics']['training_cases'] == 12 and t['metrics']['modes'] == 11, t['metrics']
[s] = t['structures']
assert s['name'] == 'object_1' and s['shape']['accepted'] == 12 and s['shape']['rejected'] == [], s
assert s['shape']['distance_voxels'] < 0.5 and s['shape']['generalisation_mm'] < 0.5
assert [l['vertices'] for l in s['levels']] == [602, 1202]
for l in s['levels']:
    assert 4 <= l['range_voxels'] <= 12 and l['positives'] == 1200 and l['recall'] > 0.7, l
    assert l['distance_after_mm'] < l['distance_before_mm'], l
assert t['metrics']['distance_mm'] == s['levels'][1]['distance_after_mm'] < 0.6
assert open('modes.png', 'rb').read(4) == b'\x89PNG'"
  expect 0 "$BIN/pbt-train" --inspect organ.bnd
  has out.txt "shapes and boundaries of structures, kind boundary 3"
  has out.txt "modes (11)"
  has out.txt "shape/quality: cases 12"
  expect 0 "$BIN/pbt-train" --inspect organ.bnd --export-json m.json
  python "assert load('m.json')['structures'][0]['name'] == 'object_1', load('m.json').keys()"
}

@test "the same model for any number of threads, order of the list, and after a stop" {
  { head -n 1 s/few.tsv; tail -n +2 s/few.tsv | tac; } > s/turned.tsv
  train turned turned --threads 1
  cmp turned.bnd few.bnd
  start_training m.bnd --list s/few.tsv --config bnd.json
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  has log.txt "--resume"
  absent m.bnd
  expect 3 train few m --resume --boundary.gain 0.2
  has err.txt "other settings"
  expect 3 "$BIN/boundary-refine" --model m.bnd.ckpt --input flat.nii.gz --poses near.json --output p.vtk
  has err.txt "--resume"
  expect 0 "$BIN/pbt-train" --list s/few.tsv --output m.bnd --config bnd.json --resume --threads 2
  has err.txt "going on from 'm.bnd.ckpt'"
  cmp m.bnd few.bnd
  absent m.bnd.ckpt
  no_temporaries
}

@test "two cases are enough for a mean without modes, which is warned of" {
  has two.txt "fewer than 10 shapes: the model has a mean and no modes"
  expect 0 "$BIN/pbt-train" --inspect two.bnd
  has out.txt "modes []"
  has out.txt "shape/quality: cases 2,"
  with_mesh "assert mesh('coarse.vtk')[0].shape == (602, 3)"
  expect 0 "$BIN/evaluate" --kind meshes --prediction coarse.vtk --reference s/labels/case_012.nii.gz --report r.json
  python "assert load('r.json')['metrics']['mssd_mm'] < 1, load('r.json')['metrics']"
}

@test "2 and 3: keys of another model, cases without label maps, a start model of another kind" {
  cut -f 1 s/few.tsv > s/truthless.tsv
  expect 3 train truthless m
  has err.txt "label"
  expect 2 train few m --hdn.folds 2
  has err.txt "--hdn.folds is of model hdn"
  expect 2 train few m --boundary.halvings 0,0,0,0
  expect 3 train few m --start-model voxels.pbt
  has err.txt "of the kind 'pbt', not 'hdn'"
  absent m.bnd
}

# --- refinement

@test "mesh, label map, picture and report of one image agree, and lie on the true surface" {
  expect 0 posed one.vtk --labelmap b.nii.gz --qc q.png --report r.json
  expect 0 "$BIN/evaluate" --kind meshes --prediction one.vtk --reference s/labels/case_012.nii.gz --report e.json
  with_mesh "
import nibabel, struct
m, e = load('r.json')['metrics'], load('e.json')['metrics']
assert e['mssd_mm'] < 0.5 and e['dice'] > 0.93, e
points, triangles, data = mesh('one.vtk')
assert points.shape == (1202, 3) and triangles.shape == (2400, 3)
a, b, c = (points[triangles[:, k]].astype(float) for k in range(3))
volume = numpy.einsum('ij,ij->i', a, numpy.cross(b, c)).sum() / 6000
assert abs(volume - m['volume_ml']) < 1e-4, (volume, m)
area = numpy.linalg.norm(numpy.cross(b - a, c - a), axis=1).sum() / 200
assert abs(area - m['area_cm2']) < 1e-3, (area, m)
assert m['flipped_triangles'] == 0 and m['without_boundary'] < 0.05, m
assert abs(data['probability'].mean() - m['probability']) < 1e-5 and m['probability'] > 0.9
assert abs(numpy.abs(data['displacement_mm']).mean() - m['displacement_mm']) < 1e-5 and m['displacement_mm'] > 0
labels, image = nibabel.load('b.nii.gz'), nibabel.load('s/images/case_012.nii.gz')
assert labels.shape == image.shape and numpy.abs(labels.affine - image.affine).max() < 1e-6
inside = numpy.asarray(labels.dataobj)
assert set(numpy.unique(inside)) == {0, 1} and abs(inside.sum() / 1000 / volume - 1) < 0.03
assert [line.split('\t')[:2] for line in open('b.tsv')][1:] == [['1', 'object_1']]
png = open('q.png', 'rb').read()
assert png[:8] == b'\x89PNG\r\n\x1a\n' and min(struct.unpack('>II', png[16:24])) > 100"
  expect 0 posed two.ply
  grep -aq "property float displacement_mm" two.ply
}

@test "alone or in a list, with any number of threads, the files are the same" {
  expect 0 posed one.vtk --labelmap b.nii.gz --qc q.png --threads 1
  cmp one.vtk first.vtk
  refine --input s/images/case_013.nii.gz --start-labels s/labels/case_013.nii.gz --output by_labels.vtk
  one by_mesh.vtk --mesh first.vtk
  local s=$PWD/s
  {
    printf 'id\timage\tposes\tlabel\tmesh\n'
    printf 'a\t%s\t%s\t\t\n' "$s/images/case_012.nii.gz" "$s/poses/case_012.mrk.json"
    printf 'b\t%s\t\t%s\t\n' "$s/images/case_013.nii.gz" "$s/labels/case_013.nii.gz"
    printf 'c\t%s\t\t\t%s\n' "$s/images/case_012.nii.gz" "$PWD/first.vtk"
  } > cases.tsv
  for threads in 1 2; do
    expect 0 refine --list cases.tsv --output-dir out$threads --write mesh,labelmap,qc --threads $threads
    cmp first.vtk out$threads/a.vtk
    cmp b.nii.gz out$threads/a.nii.gz
    cmp b.tsv out$threads/a.tsv
    cmp q.png out$threads/a.png
    cmp by_labels.vtk out$threads/b.vtk
    cmp by_mesh.vtk out$threads/c.vtk
  done
  [ "$(head -n 1 out1/status.tsv | cut -f 1,2,6-)" = \
    "$(printf 'id\tstatus\tvolume_ml\tprobability\tdisplacement_mm\tflipped_triangles\twithout_boundary\tconfidence\tended\tvolume_ml: object_1')" ]
}

@test "a list starts from the folder of a run of hdn-detect, by id, whatever its other columns say" {
  mkdir found
  cp near.json found/case_012.poses.json
  one alone.vtk --poses near.json
  expect 7 refine --list s/test.tsv --output-dir chain --poses found
  cmp alone.vtk chain/case_012.vtk
  grep -q "^case_013.failed.*found/case_013.poses.json' does not exist" chain/status.tsv
  cp s/poses/case_013.mrk.json found
  expect 0 refine --list s/test.tsv --output-dir chain --poses found --skip-existing
  cp lost.json found/case_012.poses.json
  expect 7 refine --list s/test.tsv --output-dir chain --poses found --skip-existing
  has err.txt "case 'case_012' failed"
  has err.txt "poses"
}

@test "label maps and meshes of a first run are starts that lead to the same surface" {
  one labels.vtk --start-labels s/labels/case_012.nii.gz
  # Another program's grid and label value.
  one coarse_labels.vtk --start-labels coarse.nii.gz
  expect 0 one again.vtk --mesh first.vtk --report r.json
  expect 0 one from_602.vtk --mesh coarse.vtk
  one own.vtk --mesh own.ply
  with_mesh "
assert load('r.json')['metrics']['displacement_mm'] < 0.1
assert apart('again.vtk', 'first.vtk').max() < 0.5
assert apart('own.vtk', 'again.vtk').max() < 0.1
for name in ('labels', 'coarse_labels', 'from_602'):
    assert apart(f'{name}.vtk', 'first.vtk').mean() < 0.5, (name, apart(f'{name}.vtk', 'first.vtk').mean())"
}

@test "axes and turns of the grid do not change where the surface is" {
  one plain.vtk --poses near.json
  for way in ras permuted flipped oblique; do
    expect 0 refine --input turned_$way.nii.gz --poses near.json --output $way.vtk --labelmap $way.nii.gz
  done
  with_mesh "
import nibabel
for way in ('ras', 'permuted', 'flipped', 'oblique'):
    assert apart(f'{way}.vtk', 'plain.vtk').max() < (0.5 if way == 'oblique' else 1e-3), way
    image, labels = nibabel.load(f'turned_{way}.nii.gz'), nibabel.load(f'{way}.nii.gz')
    assert labels.shape == image.shape and numpy.abs(labels.affine - image.affine).max() < 1e-6, way"
}

# --- what goes wrong

@test "2: two starts or none, and starts beside a list" {
  expect 2 one one.vtk
  has err.txt "give one start: --poses, --start-labels or --mesh"
  expect 2 posed one.vtk --mesh first.vtk
  has err.txt "give one start"
  expect 2 one one.vtk --mesh first.vtk --start-labels s/labels/case_012.nii.gz
  printf 'image\n%s\n' "$PWD/flat.nii.gz" > list.tsv
  expect 2 refine --list list.tsv --output-dir out --poses near.json
  has err.txt "with --list give the folder of a run of hdn-detect"
  expect 2 refine --list list.tsv --output-dir out --mesh first.vtk
  has err.txt "the starts stand in columns of the list"
  expect 2 one one.vtk --poses s
  has err.txt "'s' is a folder, which goes with --list"
  absent one.vtk
  expect 7 refine --list list.tsv --output-dir out
  grep -q "flat.*failed.*here are 0" out/status.tsv
  printf 'image\tposes\tmesh\n%s\t%s\t%s\n' "$PWD/flat.nii.gz" "$PWD/near.json" "$PWD/first.vtk" > both.tsv
  expect 7 refine --list both.tsv --output-dir both
  grep -q "flat.*failed.*here are 2" both/status.tsv
}

# refused FLAG...: by the run and by its dry run.
refused() {
  expect 3 one one.vtk "$@"
  expect 3 one one.vtk "$@" --dry-run
}

@test "3: poses beyond the image, of another structure or not found" {
  refused --poses away.json
  has err.txt "the start lies outside of the image"
  refused --poses other.json
  has err.txt "'other.json' has no structure 'object_1'; it has heart"
  refused --poses lost.json
  has err.txt "'object_1' is not found; there is no pose to start from"
  head -c 60 near.json > cut.json
  refused --poses cut.json
  has err.txt "cut.json"
  absent one.vtk
}

@test "3: meshes of another program, open ones and those inside out; empty label maps" {
  refused --mesh box.ply
  has err.txt "'box.ply' has 4 vertices and is no mesh of boundary-refine"
  has err.txt "--start-labels"
  refused --mesh open.ply
  has err.txt "is no mesh of boundary-refine"
  refused --mesh turned.ply
  has err.txt "is no mesh of boundary-refine"
  refused --mesh mirrored.ply
  has err.txt "'mirrored.ply' is turned inside out"
  refused --start-labels none.nii.gz
  has err.txt "'none.nii.gz' is empty"
  expect 0 posed one.vtk --dry-run
  printf 'id\timage\tmesh\nwell\t%s\t%s\nill\t%s\t%s\n' "$PWD/flat.nii.gz" "$PWD/first.vtk" "$PWD/flat.nii.gz" \
    "$PWD/box.ply" > list.tsv
  expect 7 refine --list list.tsv --output-dir out --dry-run
  has err.txt "case 'ill': '$PWD/box.ply' has 4 vertices"
  has err.txt "1 problem"
  absent one.vtk
}

@test "3: models of another kind" {
  expect 3 "$BIN/boundary-refine" --model voxels.pbt --input flat.nii.gz --poses near.json --output p.vtk
  has err.txt "of the kind 'pbt', not 'boundary'; pbt-detect reads it"
  expect 3 "$BIN/pbt-detect" --model organ.bnd --input flat.nii.gz --output p.nii.gz
  has err.txt "of the kind 'boundary', not 'pbt'; boundary-refine reads it"
  absent p.vtk p.nii.gz
}

@test "starts in the wrong place are not called found, and right ones are; the message of a case says why" {
  python "
near = load('near.json')
def off(name, *mm):
    pose = load('near.json')
    pose['structures'][0]['center_mm'] = [a + b for a, b in zip(near['structures'][0]['center_mm'], mm)]
    json.dump(pose, open(name + '.json', 'w'))
off('off', 0, 14, 10)
off('beside', 1, -1, 1)"
  {
    printf 'id\timage\tposes\n'
    for id in near beside off; do
      printf '%s\t%s\t%s\n' "$id" "$PWD/s/images/case_012.nii.gz" "$PWD/$id.json"
    done
    printf 'noise\t%s\t%s\n' "$PWD/noise.nii.gz" "$PWD/near.json"
  } > places.tsv
  expect 7 refine --list places.tsv --output-dir places --report r.json
  has err.txt "case 'off': a part of the start lies outside of the image"
  python "
cases = {c['id']: c for c in load('r.json')['cases']}
status = {id: c['structures'][0]['status'] for id, c in cases.items()}
assert status['near'] == status['beside'] == 'found' and status['off'] == 'not found', status
assert status['noise'] != 'found', status
assert cases['near']['metrics']['confidence'] > 0.8 > 0.5 > cases['off']['metrics']['confidence'], cases
row = [line for line in open('places/status.tsv') if line.startswith('off')][0]
assert 'object_1\' is not found (confidence ' in row and 'outside of the image' in row, row"
}

@test "a model of few cases does not tell whether it is in the right place" {
  has few.txt "boundary-refine will not tell whether it is in the right place"
  expect 0 "$BIN/boundary-refine" --model few.bnd --input s/images/case_012.nii.gz --poses near.json \
    --output few.vtk --report f.json
  python "
f = load('f.json')
[s] = f['structures']
assert (s['name'], s['status']) == ('object_1', 'found') and 'confidence' not in {*s, *f['metrics']}, f"
}

@test "7: an image without contrast is rejected, and the mesh stays where it was put" {
  expect 7 refine --input flat.nii.gz --poses near.json --output flat.vtk --report r.json
  has err.txt "'object_1' is not found"
  python "
r = load('r.json')
assert r['status'] == 'rejected' and r['metrics']['displacement_mm'] < 0.5, r
assert r['metrics']['without_boundary'] == 1 and r['metrics']['flipped_triangles'] == 0, r"
  printf 'image\tposes\n%s\t%s\n' "$PWD/flat.nii.gz" "$PWD/near.json" > list.tsv
  expect 7 refine --list list.tsv --output-dir out
  grep -q "^flat.rejected" out/status.tsv
  cmp out/flat.vtk flat.vtk
}

@test "in noise alone the mesh moves less than a voxel" {
  expect 7 refine --input noise.nii.gz --poses near.json --output noise.vtk --report r.json
  python "
m = load('r.json')['metrics']
assert m['displacement_voxels'] < 1 and m['flipped_triangles'] == 0, m"
}

@test "a structure that the image cuts is refined with a warning; one smaller than the search is rejected" {
  expect 0 refine --input crop.nii.gz --poses near.json --output crop.vtk --labelmap crop_labels.nii.gz
  has err.txt "a part of the start lies outside of the image"
  with_mesh "
import nibabel
assert numpy.isfinite(mesh('crop.vtk')[0]).all()
assert nibabel.load('crop_labels.nii.gz').shape == nibabel.load('crop.nii.gz').shape"
  expect 7 refine --input tiny.nii.gz --poses near.json --output tiny.vtk
  has err.txt "a part of the start lies outside of the image"
  with_mesh "assert numpy.isfinite(mesh('tiny.vtk')[0]).all()"
}

# --- several structures

@test "two structures in one run have the meshes that each has alone; one without a start is left out" {
  "$BIN/make-samples" --output-dir t --kind poses --training 4 --test 1 -q --poses.structures 2 --poses.size 40,40,40 \
    --poses.spacing_mm 2.5,2.5,2.5 --poses.snr 20
  cut -f 1,2 t/train.tsv > t/labels.tsv
  "$BIN/pbt-train" --list t/labels.tsv --output t.hdn -q --model hdn --hdn.finest_spacing_mm 4 --hdn.folds 1 \
    --hdn.halvings 0 --hdn.structures '[{"name": "object_1", "labels": [1]}, {"name": "object_2", "labels": [2]}]' \
    --features.count 100 --features.window 5 --tree.depth 1 --tree.rounds 3
  sed 's/"structures": .*"halvings": .0, 0./"finest_spacing_mm": 2.5, "halvings": [0]/' bnd.json > both.json
  both() { "$BIN/pbt-train" --list t/labels.tsv --output "$1.bnd" --config both.json -q --start-model t.hdn "${@:2}"; }
  expect 2 both t --boundary.structures object_1,object_2 --boundary.labels 1
  has err.txt "several structures have the labels that --start-model knows"
  both t --report t.json --plot both.png
  absent t.bnd.ckpt t.bnd.ckpt.2
  both t2 --boundary.structures object_2
  refine_t() { "$BIN/boundary-refine" --model "$1.bnd" --input t/images/case_004.nii.gz "${@:2}"; }
  expect 0 refine_t t --start-labels t/labels/case_004.nii.gz --output t.vtk --labelmap t.nii.gz --qc q.png --report r.json
  refine_t t2 --start-labels t/labels/case_004.nii.gz --output t2.vtk
  cmp t.class-2.vtk t2.vtk
  with_mesh "
import nibabel
assert [s['name'] for s in load('t.json')['structures']] == ['object_1', 'object_2']
one, two, both = (mesh(f't{part}.vtk') for part in ('.class-1', '.class-2', ''))
assert (both[0] == numpy.concatenate([one[0], two[0]])).all()
assert (both[1] == numpy.concatenate([one[1], two[1] + len(one[0])])).all()
labels, truth = (numpy.asarray(nibabel.load(f't{at}.nii.gz').dataobj) for at in ('', '/labels/case_004'))
for value in (1, 2): assert 2 * ((labels == value) & (truth == value)).sum() > 0.8 * ((labels == value).sum() + (truth == value).sum())
ml = [s['volume_ml'] for s in load('r.json')['structures']]
assert abs(sum(ml) - load('r.json')['metrics']['volume_ml']) < 1e-9 and min(ml) > 0, ml"
  python "
poses = load('t/poses/case_004.mrk.json')
poses['markups'] = [m for m in poses['markups'] if not m['name'].startswith('object_1')]
json.dump(poses, open('two.mrk.json', 'w'))"
  expect 0 refine_t t --poses two.mrk.json --output p.vtk --labelmap p.nii.gz --report p.json
  has err.txt "'two.mrk.json' has no structure 'object_1'"
  refine_t t2 --poses two.mrk.json --output p2.vtk
  cmp p.class-2.vtk p2.vtk
  absent p.class-1.vtk
  python "assert [s['status'] for s in load('p.json')['structures']][0] == 'without a start', load('p.json')"
  expect 7 refine_t t --poses other.json --output none.vtk --labelmap none_found.nii.gz
  has err.txt "'object_2' is without a start"
  expect 3 refine_t t --mesh p2.vtk --output m.vtk
  has err.txt "a mesh is a start for one structure, and the model has 2"
}
