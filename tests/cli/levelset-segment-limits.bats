#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# levelset-segment at its limits: seeds, images and settings that cannot be; a message that says what is
# wrong and what to do, the documented exit code, and no partial output.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (24, 22, 20)), indexing='ij'), axis=-1)
radius = numpy.linalg.norm(at - [12, 11, 10], axis=-1)
def save(name, voxels, affine=numpy.eye(4)):
    nibabel.save(nibabel.Nifti1Image(voxels, affine), name)
image = numpy.where(radius < 7, 100, 20).astype('float32')
save('image.nii.gz', image)
save('empty.nii.gz', numpy.zeros(image.shape, 'uint8'))
save('start.nii.gz', (radius < 4).astype('uint8'))
save('short.nii.gz', (radius < 4).astype('uint8')[:, :, 1:])
save('moved.nii.gz', (radius < 4).astype('uint8'), numpy.eye(4) + [[0, 0, 0, 2]] + numpy.zeros((4, 4)))
bad = image.copy(); bad[3, 3, 3] = numpy.inf; bad[18, 8:15, 10] = numpy.nan  # at the surface
save('nan.nii.gz', bad)
save('hole.nii.gz', numpy.where(radius < 10, numpy.nan, image).astype('float32'))
save('constant.nii.gz', numpy.full(image.shape, 50, 'float32'))
save('slice.nii.gz', image[:, :, 10:11])
PY
}

segment() { timeout 60 "$BIN/levelset-segment" --output out.nii.gz "$@"; }
ball() { segment -i image.nii.gz --sphere-index 12,11,10,3 --lower 60 --upper 140 "$@"; }
nothing_written() { absent out.nii.gz out.nii.gz.json; no_temporaries; }

@test "no seed: 2" {
  expect 2 segment -i image.nii.gz
  has err.txt "there is no seed"
  has err.txt "--sphere-mm"
  nothing_written
}

@test "a seed outside of the image: 2" {
  expect 2 segment -i image.nii.gz --sphere-mm 500,0,0,4
  has err.txt "seed 1"
  has err.txt "outside of the image"
  expect 2 segment -i image.nii.gz --sphere-index 12,11,10,3 --sphere-index 12,11,20,3
  has err.txt "seed 2"
  has err.txt "give positions in LPS mm"
  # Index (12, 11, 10) of this RAS affine is LPS (-12, -11, 10).
  expect 2 segment -i image.nii.gz --sphere-mm 12,11,10,4
  has err.txt "with the other signs of x and y it lies inside: is it RAS?"
  expect 2 segment -i image.nii.gz --sphere-index 12,11,10,1e-300
  has err.txt "so small that no voxel's centre lies in it"
  nothing_written
}

@test "a seed that is none: 2" {
  expect 2 segment -i image.nii.gz --sphere-mm 1,2,3
  has err.txt "--sphere-mm: takes x,y,z,radius"
  expect 2 segment -i image.nii.gz --sphere-index 12,11,10,0
  has err.txt "the radius"
  expect 2 segment -i image.nii.gz --sphere-index 12,11,10,3,0.5
  has err.txt "a label is a whole number"
  expect 2 segment -i image.nii.gz --sphere-index 12,x,10,3
  has err.txt "--sphere-index"
  nothing_written
}

@test "a seed in the wrong intensity: a warning that says what to do, and 7 where nothing is left" {
  expect 7 segment -i image.nii.gz --sphere-index 3,3,3,2 --lower 60 --upper 140 --report r.json
  has err.txt "put the seeds into the structure or choose another window"
  has err.txt "nothing is left"
  python "
report = load('r.json')
assert report['status'] == 'rejected' and report['metrics']['voxels'] == 0
assert report['segmentation']['labels'][0]['seed_fraction_in_window'] == 0
record = load('out.nii.gz.json')['Larch']
assert record['Status'] == 'rejected' and 'the surface has vanished' in record['Reason'], record"
  no_temporaries
  # Of a list, it is that case's row.
  printf 'image\tid\tsphere_index\nimage.nii.gz\tbad\t3,3,3,2\nimage.nii.gz\tgood\t12,11,10,3\n' > two.tsv
  expect 7 timeout 60 "$BIN/levelset-segment" --list two.tsv --output-dir many --lower 60 --upper 140
  has err.txt "in 1 nothing is left of a structure, or it fills the body"
  python "
import csv
rows = {r['id']: r for r in csv.DictReader(open('many/status.tsv'), delimiter='\\t')}
assert rows['bad']['status'] == 'rejected' and 'nothing is left' in rows['bad']['message'], rows
assert rows['good']['status'] == 'ok' and int(rows['good']['voxels']) > 1000, rows"
}

@test "an empty label map to start from: 3" {
  expect 3 segment -i image.nii.gz --init-labelmap empty.nii.gz
  has err.txt "'empty.nii.gz' is empty"
  nothing_written
}

@test "a label map of more labels than can grow together: 3" {
  /usr/bin/python3 -c "
import nibabel, numpy
image = nibabel.load('image.nii.gz')
labels = numpy.minimum(numpy.arange(numpy.prod(image.shape)), 256).reshape(image.shape).astype('int16')
nibabel.save(nibabel.Nifti1Image(labels, image.affine), 'crowd.nii.gz')"
  expect 3 segment -i image.nii.gz --init-labelmap crowd.nii.gz
  has err.txt "'crowd.nii.gz' has 256 labels, and at most 255 grow together"
  nothing_written
}

@test "grids that differ: 3, for every image beside the input" {
  for flag in --init-labelmap --init-level-set --speed-image --mask --frozen; do
    for file in short.nii.gz moved.nii.gz; do
      expect 3 segment -i image.nii.gz --sphere-index 12,11,10,3 $flag $file
      has err.txt "'$file' is not on the grid of 'image.nii.gz'"
      expect 3 segment -i image.nii.gz --sphere-index 12,11,10,3 $flag $file -n
    done
  done
  nothing_written
}

@test "voxels that are not numbers: counted, outside at the end, the same for all trackers; or a value of their own" {
  for terms in "" "--advection-weight 0.5"; do
    expect 0 segment -i nan.nii.gz --sphere-index 12,11,10,3 $terms --level-set phi.nii.gz --report r.json -f
    has err.txt "8 voxels are NaN or infinite"
    has err.txt "data speed -1"
    lacks err.txt "touches the border"
    python "
import nibabel, numpy
found = numpy.asarray(nibabel.load('out.nii.gz').dataobj) > 0
image = numpy.asarray(nibabel.load('nan.nii.gz').dataobj)
phi = numpy.asarray(nibabel.load('phi.nii.gz').dataobj)
assert numpy.isfinite(phi).all() and not found[~numpy.isfinite(image)].any()
ball = image == 100
assert 2 * (found & ball).sum() / (found.sum() + ball.sum()) > 0.96, '$terms'
report = load('r.json')['segmentation']
assert report['voxels_not_a_number'] == 8 and report['labels'][0]['seed_not_a_number'] == 0"
    expect 0 segment -i nan.nii.gz --sphere-index 12,11,10,3 $terms --level-set t.phi.nii.gz --tracker buffers -f
    cmp t.phi.nii.gz phi.nii.gz
  done
  expect 0 segment -i nan.nii.gz --sphere-index 12,11,10,3 --nan-value 100 --report r.json -f
  lacks err.txt "NaN"
  python "
import nibabel, numpy
assert load('r.json')['segmentation']['voxels_not_a_number'] == 0
found = numpy.asarray(nibabel.load('out.nii.gz').dataobj)
assert found[18, 11, 10] == 1, 'it has an intensity of the ball now'"
}

@test "seeds without a number: 3 where the window is to come from them, 7 where it is given" {
  expect 3 segment -i hole.nii.gz --sphere-index 12,11,10,3
  has err.txt "no voxel of its seeds has a number"
  nothing_written
  expect 7 segment -i hole.nii.gz --sphere-index 12,11,10,3 --lower 60 --upper 140
  has err.txt "93 voxels that are not a number"
  has err.txt "nothing is left"
}

@test "images beside the input with voxels that are not numbers: taken as speeds, else 3" {
  expect 0 segment -i image.nii.gz --sphere-index 12,11,10,3 --speed-image nan.nii.gz
  has err.txt "8 voxels are NaN or infinite"
  rm out.*
  expect 3 segment -i image.nii.gz --init-level-set nan.nii.gz
  has err.txt "'nan.nii.gz': 7 voxels are NaN"
  for flag in --mask --frozen --init-labelmap; do
    expect 3 ball $flag nan.nii.gz
    has err.txt "'nan.nii.gz'"
  done
  nothing_written
}

@test "a constant image: a warning, and the run ends" {
  expect 0 segment -i constant.nii.gz --sphere-index 12,11,10,3 --lower 40 --upper 60 --report r.json
  has err.txt "touches the border"
  python "
metrics = load('r.json')['metrics']
assert metrics['voxels'] == 24 * 22 * 20 and metrics['touches_border'] == 1"
  rm out.*
  expect 7 segment -i constant.nii.gz --sphere-index 12,11,10,3
  has err.txt "give lower and upper"
  has err.txt "a third of the body"
  rm out.*
  expect 7 segment -i constant.nii.gz --sphere-index 12,11,10,3 --lower 90 --upper 100
  has err.txt "nothing is left"
}

@test "lower above upper: 2" {
  expect 2 segment -i image.nii.gz --sphere-index 12,11,10,3 --lower 140 --upper 60
  has err.txt "is not less than upper"
  expect 2 ball --window 1,9,3
  has err.txt "--window"
  nothing_written
}

@test "a flag that would be passed over: 2, with what it goes with" {
  for flag in --edge_scale_mm --edge-contrast; do
    expect 2 ball $flag 3
    has err.txt "has no effect without"
  done
  expect 0 ball --edge-contrast 1 --advection-weight 0.1
  rm out.*
  for flag in "--write mesh" "--format mha" "--mesh-format ply" "--carry age"; do
    expect 2 ball $flag
    has err.txt "goes with --list"
  done
  expect 2 ball --speed-image image.nii.gz
  has err.txt "leave --lower and --upper out"
  # A file of all keys, as --print-config writes it, says nothing that is passed over, nor do all flags with
  # their defaults, as 3D Slicer gives them.
  "$BIN/levelset-segment" --print-config > all.json
  expect 0 ball --config all.json
  rm out.*
  "$BIN/levelset-segment" --slicer-xml > slicer.xml
  python "
import xml.etree.ElementTree as tree
words = []
for one in tree.parse('slicer.xml').iter():
    flag, default = one.find('longflag'), one.find('default')
    if flag is None or default is None or not default.text or one.tag == 'boolean': continue
    words += [flag.text, default.text]
assert '--edge_contrast' in words and '--format' not in words, words
open('slicer.txt', 'w').write('\\n'.join(words))"
  mapfile -t words < slicer.txt
  expect 0 ball "${words[@]}"
  rm out.*
  nothing_written
}

@test "a time step above the stable one, or with which the speed drowns: 2" {
  expect 2 ball --time-step 2
  has err.txt "the largest stable one is"
  expect 2 ball --time-step 0.01
  has err.txt "at least"
  nothing_written
}

@test "a time step that a slow speed image allows, and one that it does not" {
  python "
import nibabel, numpy
image = nibabel.load('image.nii.gz')
inside = numpy.asarray(image.dataobj) > 60
nibabel.save(nibabel.Nifti1Image(numpy.where(inside, 0.25, -0.25).astype('float32'), image.affine), 'slow.nii.gz')"
  slow() { segment -i image.nii.gz --sphere-index 12,11,10,3 --speed-image slow.nii.gz "$@"; }
  # Without curvature 1 / (0.25 sqrt(3)) is stable, and 3 / (6 x 0.25) outruns nothing.
  expect 0 slow --curvature-weight 0 --time-step 1.5 -n
  expect 0 slow --curvature-weight 0 --time-step 1.5
  rm out.*
  expect 2 slow --curvature-weight 0 --time-step 2.5
  has err.txt "time_step 2.5: the largest stable one is 2;"
  nothing_written
}

@test "a picture: one slice" {
  expect 0 segment -i slice.nii.gz --sphere-index 12,11,0,3 --lower 60 --upper 140 --mesh out.vtk --qc out.png
  python "
import nibabel, numpy
found = numpy.asarray(nibabel.load('out.nii.gz').dataobj)
assert found.shape[:2] == (24, 22) and 130 < (found > 0).sum() < 170, (found > 0).sum()"
}

@test "a region that touches the border is flagged" {
  expect 0 segment -i image.nii.gz --sphere-index 2,2,2,2 --lower 0 --upper 40 --report r.json
  has err.txt "touches the border of the image"
  python "
report = load('r.json')
assert report['segmentation']['labels'][0]['touches_border'] is True"
  rm out.*
  expect 0 ball --report s.json
  lacks err.txt "touches the border"
  python "
assert load('s.json')['segmentation']['labels'][0]['touches_border'] is False"
}

@test "more iterations than are allowed: a warning" {
  expect 0 ball --max-iterations 2
  has err.txt "stopped at max_iterations (2) before it was at rest; raise it"
}
