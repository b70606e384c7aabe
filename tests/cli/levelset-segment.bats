#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# levelset-segment: from an image with seeds to labels, level set, surface, report and pictures; lists.

load helpers

setup_file() { make_balls; }

# dice FILE: of its voxels above 0 with the ball, as `dice`; then the rest of the code.
dice() {
  python "
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (32, 30, 28)), indexing='ij'), axis=-1)
truth = numpy.linalg.norm(at - [15, 14, 13], axis=-1) < 9
image = nibabel.load('$1')
found = numpy.asarray(image.dataobj) > 0
dice = 2 * (found & truth).sum() / (found.sum() + truth.sum())
$2"
}

@test "an image is opened twice: for its header, and for its voxels and their digest" {
  strace -o /dev/null true || skip "strace cannot trace here"
  "$BIN/make-samples" -o s --training 1 --test 1 --size 32,28,20 --format dicom -q
  sleep 2.1  # headers of files that were just written are not kept
  local traced=(strace -f -qq -e trace=openat -o opens.txt "$BIN/levelset-segment" -q)
  expect 0 "${traced[@]}" --input image_0.nii.gz --sphere-mm 20,8,21,6 --lower 60 --upper 140 --output seg.nii.gz \
    --mesh ball.vtk --qc qc.png
  [ "$(grep -c '"image_0.nii.gz"' opens.txt)" -eq 2 ]
  python "assert load('seg.nii.gz.json')['Larch']['Inputs'][0]['SHA256'] == '$(sha256sum < image_0.nii.gz | cut -c-64)'"
  expect 0 "${traced[@]}" --input s/images/case_000 --init-labelmap s/labels/case_000.nii.gz --output dicom.nii.gz
  [ "$(grep -c '0001.dcm"' opens.txt)" -eq 2 ]
  [ "$(grep -c 'labels/case_000.nii.gz"' opens.txt)" -le 3 ]
  cp -r s/images/case_000 copy
  expect 0 "$BIN/levelset-segment" -q --input copy --init-labelmap s/labels/case_000.nii.gz --output other.nii.gz
  python "
one, other = (load(f)['Larch']['Inputs'][0]['SHA256'] for f in ('dicom.nii.gz.json', 'other.nii.gz.json'))
assert one == other"  # the files of the copy are too young for their headers to be kept
}

@test "the line of the page: labels, mesh, report, picture, level set, distance and plot" {
  # Index (15, 14, 13) of this RAS affine is LPS (20, 8, 21).
  expect 0 segment --input image_0.nii.gz --sphere-mm 20,8,21,6 --lower 60 --upper 140 --curvature-weight 0.03 \
    --output seg.nii.gz --mesh ball.vtk --report r.json --qc qc.png --level-set phi.nii.gz --distance d.nii.gz \
    --plot plot.png
  has err.txt ", touches_border 0, seconds: reading 0."
  dice seg.nii.gz "
assert dice > 0.97, dice
assert image.get_data_dtype() == numpy.uint8
phi = nibabel.load('phi.nii.gz')
assert b'in mm, phi < 0 inside' in bytes(phi.header['descrip']), phi.header['descrip']
values = numpy.asarray(phi.dataobj)
assert ((values < 0) == found).all()
assert abs(values).max() == 6, 'clamp 3 in voxels of 2 mm'
distance = numpy.asarray(nibabel.load('d.nii.gz').dataobj)
assert (distance[~found] > 0).all() and (distance[found] < 0).all() and distance.min() < -12
assert abs(numpy.clip(distance, -6, 6) - values).max() < 1e-6, 'the level set is the distance, held'
assert (image.affine == phi.affine).all()
vertices = open('ball.vtk', 'rb').read()
assert b'POLYDATA' in vertices
report = load('r.json')
metrics, about = report['metrics'], report['segmentation']
steps = {'starting', 'opening', 'reading', 'speed and seeds', 'solver', 'labels', 'surface', 'writing'}
assert set(report['steps']) == steps and sum(report['steps'].values()) <= report['seconds'] + 0.01, report['steps']
assert metrics['voxels'] == found.sum() and abs(metrics['volume_ml'] - found.sum() * 0.008) < 1e-9
label, = about['labels']
assert label['label'] == 1 and label['stopped_by'] in ('at rest: no voxel changed', 'labels unchanged')
assert label['window'] == {'lower': 60, 'upper': 140, 'is_automatic': False}
history = label['history']
assert history['iteration'][-1] == label['iterations'] == metrics['iterations']
assert history['inside'][-1] == label['voxels'] and history['active'][0] > 0
assert about['time_step'] < about['largest_stable_step'] and about['slowest_front'] > 0
"
  python "
for name in ('qc.png', 'plot.png'):
    assert open(name, 'rb').read(8) == b'\x89PNG\r\n\x1a\n', name"
  [ "$(echo *.json)" = "r.json seg.nii.gz.json" ]
  python "
roles = {o['Name']: o['Role'] for o in load('seg.nii.gz.json')['Larch']['Outputs']}
assert roles == {'seg.nii.gz': 'output', 'phi.nii.gz': 'level-set', 'd.nii.gz': 'distance', 'ball.vtk': 'mesh',
                 'qc.png': 'qc', 'plot.png': 'plot', 'r.json': 'report'}, roles"
  no_temporaries
}

@test "trackers and numbers of threads give the same bytes" {
  expect 0 ball -o brick.nii.gz --level-set brick.phi.nii.gz -t 1
  for tracker in "buffers" "buffers -t 2" "brick -t 2"; do
    expect 0 ball -o t.nii.gz --level-set t.phi.nii.gz --tracker $tracker -f
    cmp t.nii.gz brick.nii.gz
    cmp t.phi.nii.gz brick.phi.nii.gz
  done
}

@test "without lower and upper the window comes from the seed" {
  expect 0 segment -i image_0.nii.gz --init-labelmap start_0.nii.gz -o seg.nii.gz --report r.json
  dice seg.nii.gz "assert dice > 0.97, dice
label, = load('r.json')['segmentation']['labels']
assert label['window']['is_automatic'] and label['window']['lower'] > 30 and label['window']['upper'] > 110"
}

@test "a level set is a start again, and moves no further" {
  expect 0 ball -o a.nii.gz --level-set a.phi.nii.gz
  expect 0 segment -i image_0.nii.gz --init-level-set a.phi.nii.gz --lower 60 --upper 140 -o b.nii.gz
  dice a.nii.gz "
again = numpy.asarray(nibabel.load('b.nii.gz').dataobj) > 0
assert (again != found).sum() < 0.01 * found.sum()"
  expect 2 ball -o c.nii.gz --init-level-mm 1
  has err.txt "--init-level-mm goes with --init-level-set"
}

@test "several labels do not overlap, and masks and frozen labels are kept out" {
  expect 0 segment -i image_0.nii.gz --init-labelmap halves.nii.gz --lower 60 --upper 140 -o seg.nii.gz --report r.json
  dice seg.nii.gz "
values = numpy.asarray(image.dataobj)
assert set(numpy.unique(values)) == {0, 1, 7}
assert dice > 0.93, dice
assert [l['label'] for l in load('r.json')['segmentation']['labels']] == [1, 7]"
  expect 0 ball -o masked.nii.gz --mask start_0.nii.gz
  expect 0 ball --sphere-index 15,14,21,3 -o frozen.nii.gz --frozen start_0.nii.gz
  dice masked.nii.gz "
start = numpy.asarray(nibabel.load('start_0.nii.gz').dataobj) > 0
frozen = numpy.asarray(nibabel.load('frozen.nii.gz').dataobj) > 0
assert found.any() and not (found & ~start).any()
assert frozen.any() and not (frozen & start).any()"
  # Two balls with labels of their own, and a window for one of them that fits nothing.
  expect 7 ball --sphere-index 15,14,18,2,3 -o two.nii.gz --window 3,200,300
  has err.txt "nothing is left of label 3"
  dice two.nii.gz "assert set(numpy.unique(numpy.asarray(image.dataobj))) == {0, 1}"
}

@test "a list: the bytes of each image by itself, and a table" {
  expect 0 segment --list cases.tsv --output-dir out --write labels,level-set,distance,mesh,qc,plot --lower 60 --upper 140
  for i in 0 1 2; do
    expect 0 segment -i image_$i.nii.gz --init-labelmap start_$i.nii.gz -o one.nii.gz --level-set one.phi.nii.gz \
      --distance one.distance.nii.gz --mesh one.vtk --qc one.png --lower 60 --upper 140 -f
    for ending in .nii.gz .phi.nii.gz .distance.nii.gz .vtk .png; do cmp "out/image_$i$ending" one$ending; done
    [ -s out/image_$i.plot.png ]
  done
  python "
import csv
rows = list(csv.DictReader(open('out/status.tsv'), delimiter='\t'))
assert [r['status'] for r in rows] == ['ok'] * 3
assert all(int(r['voxels']) > 2000 and int(r['iterations']) > 0 for r in rows)
assert all(r['volume_ml: label 1'] == r['volume_ml'] != 'n/a' for r in rows)
assert load('out/image_0.larch.json')['Larch']['Structures'][0]['VolumeMl'] > 0"
  printf 'image\nimage_0.nii.gz\n' > bare.tsv
  expect 3 segment --list bare.tsv --output-dir o2
  has err.txt "has nothing to start from"
  expect 0 segment --list bare.tsv --output-dir o2 --sphere-index 15,14,13,3
  expect 2 segment --list cases.tsv --output-dir o3 --mask start_0.nii.gz
  has err.txt "for one image"
}

@test "a list with spheres of its own for each image" {
  printf 'image\tsphere_mm\tsphere_index\tlabel\n' > seeds.tsv
  # Index (15, 14, 13) is LPS (20, 8, 21).
  printf 'image_0.nii.gz\t20,8,21,6\tn/a\t\n' >> seeds.tsv
  printf 'image_1.nii.gz\t\t11,14,13,2 ; 19, 14, 13, 2, 7\t\n' >> seeds.tsv
  printf 'image_2.nii.gz\t\t15,14,17,2\tstart_2.nii.gz\n' >> seeds.tsv
  expect 0 segment --list seeds.tsv --output-dir out --write labels,level-set --lower 60 --upper 140
  one() { expect 0 segment -i "image_$1.nii.gz" -o one.nii.gz --level-set one.phi.nii.gz --lower 60 --upper 140 -f "${@:2}"; }
  one 0 --sphere-mm 20,8,21,6
  for ending in .nii.gz .phi.nii.gz; do cmp out/image_0$ending one$ending; done
  one 1 --sphere-index 11,14,13,2 --sphere-index 19,14,13,2,7
  for ending in .nii.gz .phi.nii.gz; do cmp out/image_1$ending one$ending; done
  one 2 --sphere-index 15,14,17,2 --init-labelmap start_2.nii.gz
  for ending in .nii.gz .phi.nii.gz; do cmp out/image_2$ending one$ending; done
  # Spheres of all images are added to them; a CSV has them in quotes, and the flag's spelling is taken too.
  printf 'image,sphere-index\nimage_0.nii.gz,"11,14,13,2"\n' > seeds.csv
  expect 0 segment --list seeds.csv --output-dir both --lower 60 --upper 140 --sphere-index 19,14,13,2,7
  one 0 --sphere-index 19,14,13,2,7 --sphere-index 11,14,13,2
  cmp both/image_0.nii.gz one.nii.gz
  # What the cells say is in the record of a case: other seeds are another case.
  expect 0 segment --list seeds.tsv --output-dir out --write labels,level-set --lower 60 --upper 140 --skip-existing
  has err.txt "skipped 3"
  python "
record = load('out/image_1.larch.json')
inputs = record['Larch']['Inputs']
assert [i for i in inputs if i['Role'] == 'sphere_index'][0]['Text'].startswith('11,14,13,2'), inputs
assert record['Sources'] == ['seeds.tsv', 'image_1.nii.gz'], record['Sources']"
  sed -i 's/20,8,21,6/20,8,21,5/' seeds.tsv
  expect 7 segment --list seeds.tsv --output-dir out --write labels,level-set --lower 60 --upper 140 --skip-existing
  grep -q "^image_0.failed.*sphere_mm" out/status.tsv
  has err.txt "skipped 2"
}

@test "seeds of a list that cannot be" {
  list() { printf 'image\tsphere_index\n%s\t%s\n%s\t15,14,13,3\n' image_0.nii.gz "$1" image_1.nii.gz > bad.tsv; }
  run_list() { segment --list bad.tsv --output-dir out --lower 60 --upper 140 "$@"; }
  # One that lies outside is the failure of its case, in a dry run as well.
  list 15,14,40,3
  expect 7 run_list -n
  has err.txt "case 'image_0'"
  has err.txt "outside of the image"
  expect 7 run_list
  [ -s out/image_1.nii.gz ]
  absent out/image_0.nii.gz
  has out/status.tsv "outside of the image"
  # What is no sphere is an error of the list, before anything is done.
  for cell in 1,2,3 1,2,3,4,5,6 1,2,x,4 1,2,nan,4 1,2,3,-4 "1,2,3,4,0.5" ";" "1,2,3,4;" "1,2,3,4;;5,6,7,8" "1e999,2,3,4"; do
    list "$cell"
    expect 3 segment --list bad.tsv --output-dir o2
    has err.txt "case 'image_0', column 'sphere_index', '$cell'"
    absent o2/image_1.nii.gz
  done
  list ""
  expect 3 segment --list bad.tsv --output-dir o2
  has err.txt "'image_0.nii.gz' has nothing to start from"
}

@test "a time series: every frame from the surfaces of the last one" {
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (32, 30, 28)), indexing='ij'), axis=-1)
frames = [numpy.where(numpy.linalg.norm(at - [11 + 3 * t, 14, 13], axis=-1) < 8, 100, 20) for t in range(4)]
beating = nibabel.Nifti1Image(numpy.stack(frames, axis=-1).astype('int16'), numpy.eye(4))
beating.header.set_xyzt_units('mm', 'sec')
beating.header.set_zooms((1, 1, 1, 2.5))
beating.header['toffset'] = 0.5
nibabel.save(beating, 'beating.nii.gz')
beating.header.set_xyzt_units('mm')  # of no unit of time
nibabel.save(beating, 'unitless.nii.gz')
frames[2][:] = 20
nibabel.save(nibabel.Nifti1Image(numpy.stack(frames, axis=-1).astype('int16'), numpy.eye(4)), 'gap.nii.gz')
PY
  series() { segment --time-series --sphere-index 11,14,13,3 --lower 60 --upper 140 -o series.nii.gz "$@"; }
  expect 0 series -i beating.nii.gz -n
  expect 0 series -i beating.nii.gz --report r.json --qc qc.png
  python "
import nibabel, numpy
header = nibabel.load('series.nii.gz').header
assert header.get_xyzt_units() == ('mm', 'sec') and header.get_zooms()[3] == 2.5 and header['toffset'] == 0.5, header
found = numpy.asarray(nibabel.load('series.nii.gz').dataobj)
truth = numpy.asarray(nibabel.load('beating.nii.gz').dataobj) == 100
assert found.shape == truth.shape
for t in range(4):
    f, u = found[..., t] > 0, truth[..., t]
    assert 2 * (f & u).sum() / (f.sum() + u.sum()) > 0.97, t
report = load('r.json')
assert report['metrics']['frames'] == 4 and len(report['frames']) == 4
# A picture: the frames in rows of one size, each with a title.
size = numpy.frombuffer(open('qc.png', 'rb').read(24)[16:], '>u4')
assert size[0] >= 900 and size[1] % 4 == 0 and size[1] > 4 * 250, size"
  rm series*
  expect 0 series -i unitless.nii.gz
  python "
import nibabel
header = nibabel.load('series.nii.gz').header
assert header.get_xyzt_units() == ('mm', 'unknown') and header.get_zooms()[3] == 2.5, header"
  rm series*
  # A gap: what there is until then is written, and the frames from there on are empty.
  expect 7 series -i gap.nii.gz --report gap.json
  has err.txt "frame 3: nothing is left of label 1; it is missing from there on"
  python "
import nibabel, numpy
found = numpy.asarray(nibabel.load('series.nii.gz').dataobj)
assert found.shape == (32, 30, 28, 4)
assert (found[..., :2].sum(axis=(0, 1, 2)) > 1500).all() and not found[..., 2:].any()
report = load('gap.json')
assert report['status'] == 'rejected' and len(report['frames']) == 4
assert report['frames'][2]['labels'][0]['voxels'] == 0 and report['frames'][3] == {'labels': []}
assert load('series.nii.gz.json')['Larch']['Status'] == 'rejected'"
  rm series*
  # A gap of one label of two: the other goes on, the same as by itself.
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (40, 20, 20)), indexing='ij'), axis=-1)
ball = lambda x, frames: numpy.stack([
    (numpy.linalg.norm(at - [x, 10, 10], axis=-1) < 6) & (t in frames) for t in range(4)], axis=-1)
image = 20 + 80 * ball(10, (0, 2, 3)) + 80 * ball(30, (0, 1, 2, 3))
nibabel.save(nibabel.Nifti1Image(image.astype('int16'), numpy.eye(4)), 'one_gap.nii.gz')
PY
  two() { segment -i one_gap.nii.gz --time-series --lower 60 --upper 140 --sphere-index 30,10,10,3,9 "$@"; }
  expect 7 two --sphere-index 10,10,10,3,4 -o series.nii.gz
  has err.txt "frame 2: nothing is left of label 4; it is missing from there on"
  lacks err.txt "label 9: nothing"
  expect 0 two -o alone.nii.gz
  python "
import nibabel, numpy
found, alone = (numpy.asarray(nibabel.load(n + '.nii.gz').dataobj) for n in ('series', 'alone'))
assert ((found == 9) == (alone == 9)).all() and (alone == 9).any(axis=(0, 1, 2)).all()
assert list((found == 4).any(axis=(0, 1, 2))) == [True, False, False, False]"
  rm series*
  expect 3 series -i image_0.nii.gz
  has err.txt "has one frame"
  expect 2 series -i beating.nii.gz --mesh m.vtk
  expect 2 series -i beating.nii.gz --frame 2
  has err.txt "leave --frame out"
  expect 3 segment -i beating.nii.gz --sphere-index 11,14,13,3 -o one.nii.gz
  has err.txt "--frame"
}

@test "a dry run prints what would run and refuses what the run would refuse" {
  expect 0 ball -o seg.nii.gz -n
  has out.txt "32x30x28"
  absent seg.nii.gz
  expect 2 segment -i image_0.nii.gz --sphere-index 40,14,13,3 -o seg.nii.gz -n
  has err.txt "outside of the image"
  expect 2 ball -o seg.nii.gz --time-step 2 -n
  expect 0 segment --list cases.tsv --output-dir out -n
  has out.txt "image_2"
}

@test "the real head: both hemispheres from one seed each" {
  test_data head-mri-256
  expect 0 segment --input "$data/norm.nii.gz" --sphere-mm 17.6,-3,32,4 --sphere-mm -28.4,11,31,4 --lower 88 --upper 116 \
    --curvature-weight 0.03 --output seg.nii.gz
  python "
import nibabel, numpy
found = numpy.asarray(nibabel.load('seg.nii.gz').dataobj) > 0
truth = numpy.isin(numpy.asarray(nibabel.load('$data/aseg.nii.gz').dataobj), (2, 41))
dice = 2 * (found & truth).sum() / (found.sum() + truth.sum())
assert dice > 0.90, dice"
}

@test "ITK's scalings are a curvature weight" {
  expect 0 ball -o a.nii.gz --level-set a.phi.nii.gz --propagation 2 --curvature 5 --report r.json
  # 5 / (5 + 2 x 40 x 2 mm)
  expect 0 ball -o b.nii.gz --level-set b.phi.nii.gz --curvature-weight 0.030303030303030304
  cmp a.phi.nii.gz b.phi.nii.gz
  python "
assert abs(load('r.json')['segmentation']['curvature_weight'] - 5 / 165) < 1e-15"
  expect 2 ball -o c.nii.gz --propagation 2
  has err.txt "go together"
  expect 2 ball -o c.nii.gz --propagation 0 --curvature 0
  has err.txt "nothing would move"
  expect 2 ball -o c.nii.gz --propagation 2 --curvature 5 --curvature-weight 0.1
  has err.txt "give either"
  # The default, given, is given too; a file may hold it, as that of --print-config does.
  for weight in --curvature-weight=0.03 "--curvature_weight 0.03"; do
    expect 2 ball -o c.nii.gz --propagation 2 --curvature 5 $weight
    has err.txt "leave --curvature-weight out for ITK's scalings, or --propagation and --curvature"
  done
  "$BIN/levelset-segment" --print-config > all.json
  expect 0 ball -o d.nii.gz --propagation 2 --curvature 5 --config all.json
  cmp a.nii.gz d.nii.gz
  sed -i 's/"curvature_weight": 0.03/"curvature_weight": 0.1/' all.json
  expect 2 ball -o c.nii.gz --propagation 2 --curvature 5 --config all.json
  expect 2 ball -o c.nii.gz --propagation 2 --curvature 5 --window 1,60,140
  expect 2 segment -i image_0.nii.gz --sphere-index 15,14,13,3 -o c.nii.gz --propagation 2 --curvature 5 -n
  has err.txt "need --lower and --upper"
  absent c.nii.gz
}

@test "the smallest ball that survives is the same at every spacing, and noise is smoothed away before" {
  python "
import nibabel, numpy
for h in (1, 2):
    at = numpy.stack(numpy.meshgrid(*[h * numpy.arange(40 // h)] * 3, indexing='ij'), axis=-1)
    for radius in (3, 9):
        ball = 100.0 * (numpy.linalg.norm(at - 20, axis=-1) < radius)
        nibabel.save(nibabel.Nifti1Image(ball.astype('float32'), numpy.diag([h, h, h, 1])), f'b{radius}_{h}.nii.gz')
noise = numpy.random.default_rng(0).normal(0, 100, ball.shape)
nibabel.save(nibabel.Nifti1Image((ball + noise).astype('float32'), numpy.diag([h, h, h, 1])), 'noise.nii.gz')"
  for h in 1 2; do
    segment -i b3_$h.nii.gz --sphere-mm -20,-20,20,3 --lower 50 --upper 150 --curvature-mm 6 -o gone$h.nii.gz || [ $? -eq 7 ]
    expect 0 segment -i b9_$h.nii.gz --sphere-mm -20,-20,20,6 --lower 50 --upper 150 --curvature-mm 3 -o o$h.nii.gz
  done
  expect 2 ball --curvature-mm 3 --curvature-weight 0.1 -o c.nii.gz
  has err.txt "--curvature-mm stands for --curvature-weight"
  expect 0 segment -i noise.nii.gz --sphere-mm -20,-20,20,4 --lower 50 --upper 150 --smooth-mm 3 -o s.nii.gz
  python "
import nibabel, numpy
found, truth, one, *gone = [numpy.asarray(nibabel.load(n + '.nii.gz').dataobj) > 0 for n in ('s', 'o2', 'o1', 'gone1', 'gone2')]
assert max(g.sum() for g in gone) <= 1 and abs(one.sum() / truth.sum() / 8 - 1) < 0.1, (one.sum(), truth.sum())
assert 2 * (found & truth).sum() > 0.8 * (found.sum() + truth.sum()), (found.sum(), truth.sum())"
}

@test "a probability is a speed" {
  python "
import nibabel, numpy
image = nibabel.load('image_0.nii.gz')
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (32, 30, 28)), indexing='ij'), axis=-1)
p = numpy.clip(0.5 + (7 - numpy.linalg.norm(at - [15, 14, 13], axis=-1)) / 4, 0, 1).astype('float32')
for name, values in (('p', p), ('speed', 2 * p - 1), ('percent', 100 * p)):
    nibabel.save(nibabel.Nifti1Image(values, image.affine), name + '.nii.gz')"
  expect 0 segment -i image_0.nii.gz --sphere-index 15,14,13,3 --probability p.nii.gz -o a.nii.gz
  expect 0 segment -i image_0.nii.gz --sphere-index 15,14,13,3 --speed-image speed.nii.gz -o b.nii.gz
  cmp a.nii.gz b.nii.gz
  expect 3 segment -i image_0.nii.gz --sphere-index 15,14,13,3 --probability percent.nii.gz -o c.nii.gz
  has err.txt "a probability is from 0 to 1"
  expect 2 ball --probability p.nii.gz -o c.nii.gz
  expect 2 segment -i image_0.nii.gz --sphere-index 15,14,13,3 --probability p.nii.gz --speed-image p.nii.gz -o c.nii.gz
}

@test "points of 3D Slicer are seeds, and its form has seeds and window" {
  python "
points = [{'id': '1', 'position': [-20, -8, 21], 'positionStatus': 'defined'}]
json.dump({'@schema': 'https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema/markups-schema-v1.0.3.json#',
           'markups': [{'type': 'Fiducial', 'coordinateSystem': 'RAS', 'controlPoints': points}]}, open('p.mrk.json', 'w'))"
  expect 0 segment -i image_0.nii.gz --points p.mrk.json --point-radius-mm 6 --lower 60 --upper 140 -o a.nii.gz
  expect 0 segment -i image_0.nii.gz --sphere-mm 20,8,21,6 --lower 60 --upper 140 -o b.nii.gz
  cmp a.nii.gz b.nii.gz
  expect 0 segment --slicer-xml
  for flag in sphere_mm points window lower upper propagation; do has out.txt "<longflag>--$flag</longflag>"; done
}

@test "background is held outside, and the window ends half way to it" {
  # A ball of 100 in 20, and beside it one of 80: near enough in intensity to be taken with it.
  python "
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (40, 24, 24)), indexing='ij'), axis=-1)
ball, beside = (numpy.linalg.norm(at - [x, 12, 12], axis=-1) < 8 for x in (12, 26))
image = numpy.select([ball, beside], [100, 80], 20) + numpy.random.default_rng(0).normal(0, 2, ball.shape)
nibabel.save(nibabel.Nifti1Image(image.astype('float32'), numpy.eye(4)), 'pair.nii.gz')
nibabel.save(nibabel.Nifti1Image((ball + 2 * beside).astype('uint8'), numpy.eye(4)), 'pair_truth.nii.gz')
points = [{'id': '1', 'position': [26, 12, 12], 'positionStatus': 'defined'}]
json.dump({'markups': [{'type': 'Fiducial', 'coordinateSystem': 'RAS', 'controlPoints': points}]}, open('b.mrk.json', 'w'))"
  pair() { segment -i pair.nii.gz --sphere-index 12,12,12,4 --report r.json -f "$@"; }
  expect 0 pair -o both.nii.gz
  expect 0 pair -o points.nii.gz --background b.mrk.json
  expect 0 pair -o sphere.nii.gz --sphere-index 26,12,12,4,0
  cmp points.nii.gz sphere.nii.gz
  python "
import nibabel, numpy
both, one, truth = (numpy.asarray(nibabel.load(n + '.nii.gz').dataobj) for n in ('both', 'sphere', 'pair_truth'))
assert (both[truth == 2] > 0).mean() > 0.8, 'without background the neighbour is taken'
assert not one[truth == 2].any() and (one[truth == 1] > 0).mean() > 0.9
window = load('r.json')['segmentation']['labels'][0]['window']
assert abs(window['lower'] - 90) < 1, window"
  # With a window that is given, in a series and in a list it is held outside all the same.
  expect 0 pair -o given.nii.gz --lower 60 --upper 140 --sphere-index 26,12,12,4,0
  python "
import nibabel, numpy
given = numpy.asarray(nibabel.load('given.nii.gz').dataobj)
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, given.shape), indexing='ij'), axis=-1)
held = numpy.linalg.norm(at - [26, 12, 12], axis=-1) < 4
assert given[26, 12, 18] and not given[held].any()"
  printf 'image\tsphere_index\npair.nii.gz\t12,12,12,4;26,12,12,4,0\n' > background.tsv
  expect 0 segment --list background.tsv --output-dir listed
  cmp listed/pair.nii.gz sphere.nii.gz
  expect 2 segment -i pair.nii.gz --background b.mrk.json -o none.nii.gz
  has err.txt "there is no seed"
  expect 2 pair -o none.nii.gz --sphere-index 60,12,12,4,0
  has err.txt "background 1: its centre lies at index 60, 12, 12, outside of the image"
}

@test "each label has a level set, a distance and a mesh of its own with --by-label" {
  two() { segment -i image_0.nii.gz --lower 60 --upper 140 --by-label "$@"; }
  expect 0 two --init-labelmap halves.nii.gz -o seg.nii.gz --level-set phi.nii.gz --distance d.nii.gz --mesh m.vtk
  dice seg.nii.gz "
values = numpy.asarray(image.dataobj)
all_phi = numpy.asarray(nibabel.load('phi.nii.gz').dataobj)
least = numpy.full(all_phi.shape, numpy.inf)
for label in (1, 7):
    phi = numpy.asarray(nibabel.load(f'phi.label{label}.nii.gz').dataobj)
    assert ((phi < 0) == (values == label)).all()
    least = numpy.minimum(least, phi)
    distance = numpy.asarray(nibabel.load(f'd.label{label}.nii.gz').dataobj)
    assert (distance[values == label] < 0).all() and (distance[values != label] > 0).all()
    assert b'POLYDATA' in open(f'm.label{label}.vtk', 'rb').read()
assert ((all_phi < 0) == found).all() and (all_phi <= least + 0.05).all(), 'the surface between two labels is none of all'"
  [ "$(wc -c < m.label1.vtk)" -lt "$(wc -c < m.vtk)" ]
  # The level set of one label of two is that of the label alone.
  expect 0 segment -i image_0.nii.gz --init-level-set phi.label7.nii.gz --lower 60 --upper 140 --max-iterations 0 -o seven.nii.gz
  dice seven.nii.gz "assert (found == (numpy.asarray(nibabel.load('seg.nii.gz').dataobj) == 7)).all()"
  # What is there is not replaced.
  echo kept > n.label1.vtk
  for flag in "" --no-sidecar --skip-existing; do
    expect 6 two --init-labelmap halves.nii.gz --mesh n.vtk --max_iterations 2 $flag
    has err.txt "'n.label1.vtk'"
    [ "$(cat n.label1.vtk)" = kept ]
    absent n.vtk n.label7.vtk
  done
  no_temporaries
  expect 0 two --init-labelmap halves.nii.gz --mesh n.vtk --max_iterations 2 -f
  is_vtk() { [ "$(head -c 5 "$1")" = "# vtk" ]; }
  for name in n.vtk n.label1.vtk n.label7.vtk; do is_vtk $name; done
  # The record names the files of labels too: one that is missing is made again.
  rm n.label7.vtk
  expect 0 two --init-labelmap halves.nii.gz --mesh n.vtk --max_iterations 2 --skip-existing
  is_vtk n.label7.vtk
  # What an earlier run with more labels left is named, and stays.
  expect 0 two --sphere-index 15,14,13,3 --mesh ./n.vtk --max_iterations 2 -f
  has err.txt "n.label7.vtk'"
  lacks err.txt "n.label1.vtk'"
  is_vtk n.label7.vtk
  # Of a list, it is the failure of its case alone.
  printf 'id\timage\tlabel\na\timage_0.nii.gz\thalves.nii.gz\nb\timage_0.nii.gz\thalves.nii.gz\n' > pair.tsv
  mkdir pair; echo kept > pair/b.label7.vtk
  for flag in "" --skip-existing; do
    expect 7 segment --list pair.tsv --output-dir pair --write mesh --lower 60 --upper 140 --max_iterations 2 --by-label $flag
    has err.txt "b.label7.vtk'"
    [ "$(cat pair/b.label7.vtk)" = kept ]
    absent pair/b.vtk pair/b.label1.vtk
    is_vtk pair/a.label7.vtk
  done
  expect 2 two --sphere-index 15,14,13,3 -o only.nii.gz
  has err.txt "--by-label is for --level-set"
  expect 0 segment --list cases.tsv --output-dir out --write labels,mesh --lower 60 --upper 140 --by-label
  cmp out/image_2.vtk out/image_2.label1.vtk
  # Nothing that is there may have a name that a label's file could have, with -f neither.
  cp halves.nii.gz h.label7.nii.gz
  expect 2 two --init-labelmap h.label7.nii.gz --distance h.nii.gz -f
  has err.txt "h.label7.nii.gz'"
  cmp halves.nii.gz h.label7.nii.gz
  printf 'id\timage\tlabel\na\timage_0.nii.gz\thalves.nii.gz\na.label7\timage_0.nii.gz\thalves.nii.gz\n' > names.tsv
  expect 2 segment --list names.tsv --output-dir named --write mesh --lower 60 --upper 140 --by-label -f
  has err.txt "label7.vtk'"
  absent named/a.label7.vtk
}

@test "--skip-existing: a name belongs to the product that wrote it last" {
  grow() {
    segment --input image_0.nii.gz --sphere-mm 20,8,21,6 --lower 60 --upper 140 --max_iterations 2 -o swap.nii.gz "$@"
  }
  expect 0 grow --level-set p.nii.gz
  expect 0 grow --distance p.nii.gz --force
  expect 0 grow --distance p.nii.gz --skip-existing
  has err.txt "nothing to do"
  expect 6 grow --level-set p.nii.gz --skip-existing
}
