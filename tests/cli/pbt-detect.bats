#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-detect: its outputs, that they do not depend on how the work is divided, grids, and refusals.

load helpers

setup_file() {
  small_cases m.pbt --labels.class_name ball --labels.class_value 3
  "$BIN/pbt-detect" -m m.pbt -i image_3.nii.gz -o ref.nii.gz --probability ref_p.nii.gz \
    --mesh ref.ply --candidates ref_c.tsv -q --threads 1
}

detect() { "$BIN/pbt-detect" --model m.pbt "$@"; }
on_case() { detect --input image_3.nii.gz "$@"; }

# --- outputs

@test "all outputs at once: valid, on the grid of the input, with one record and a report" {
  expect 0 on_case --output seg.nii.gz --probability p.nii.gz --mesh s.vtk --qc qc.png \
    --candidates c.tsv --candidate_count 25 --report r.json
  no_temporaries
  python "
import nibabel, numpy, hashlib
image, seg, p = (nibabel.load(n) for n in ('image_3.nii.gz', 'seg.nii.gz', 'p.nii.gz'))
for out in (seg, p):
    assert out.shape == image.shape and numpy.allclose(out.affine, image.affine, atol=1e-5)
labels, p = numpy.asarray(seg.dataobj), p.get_fdata()
assert set(numpy.unique(labels)) == {0, 3} and seg.get_data_dtype().kind in 'iu'
assert 0 <= p.min() < 0.01 and 0.9 < p.max() <= 1
truth = numpy.asarray(nibabel.load('label_3.nii.gz').dataobj) > 0
assert 2 * (truth & (labels == 3)).sum() / (truth.sum() + (labels == 3).sum()) > 0.8
assert (labels > 0)[p > 0.99].mean() > 0.9 and not (labels > 0)[p < 0.01].any()
png = open('qc.png', 'rb').read()
assert png[:8] == b'\x89PNG\r\n\x1a\n' and png[-8:-4] == b'IEND'
rows = [l.split('\t') for l in open('c.tsv').read().splitlines()]
assert rows[0] == 'rank i j k x_mm y_mm z_mm probability'.split() and len(rows) == 26
values = [float(r[-1]) for r in rows[1:]]
assert values == sorted(values, reverse=True) and abs(values[0] - p.max()) < 1e-6
for r in rows[1:]:
    at = [int(v) for v in r[1:4]]
    assert abs(p[tuple(at)] - float(r[-1])) < 1e-6
    ras = (image.affine @ (at + [1]))[:3]
    assert numpy.allclose(ras * [-1, -1, 1], [float(v) for v in r[4:7]], atol=1e-3), r
table = [l.split('\t') for l in open('seg.tsv').read().splitlines()]
assert table[0][:2] == ['index', 'name'] and table[1][:2] == ['3', 'ball'] and len(table) == 2
digest = hashlib.sha256(open('m.pbt', 'rb').read()).hexdigest()
s = load('seg.nii.gz.json')
assert {'Description', 'Sources', 'GeneratedBy', 'Larch'} <= set(s), s
larch = s['Larch']
assert larch['App'] == 'pbt-detect' and larch['Status'] == 'done' and 'Config' in larch
assert digest in [i['SHA256'] for i in larch['Inputs']], larch['Inputs']
assert {o['Name']: o['Role'] for o in larch['Outputs']} == {
    'seg.nii.gz': 'output', 'seg.tsv': 'output', 'p.nii.gz': 'probability', 's.vtk': 'mesh', 'qc.png': 'qc',
    'c.tsv': 'candidates', 'r.json': 'report'}, larch['Outputs']
r = load('r.json')
assert r['status'] == 'done' and len(r['outputs']) == 6
assert r['metrics']['voxels'] == (labels > 0).sum()
assert abs(r['metrics']['volume_ml'] - (labels > 0).sum() * 12 / 1000) < 1e-9"
  [ "$(echo *.json)" = "m.pbt.json r.json ref.nii.gz.json seg.nii.gz.json tiny.json" ]
}

@test "a mesh lies in LPS mm where the label map is, and has its volume" {
  expect 0 on_case --mesh s.gii
  [ -s s.gii.json ]
  python "
import nibabel, numpy
g = nibabel.load('s.gii')
points, triangles = g.agg_data('pointset') * [-1, -1, 1], g.agg_data('triangle')  # GIFTI is RAS by its standard
seg = nibabel.load('ref.nii.gz')
at = numpy.argwhere(numpy.asarray(seg.dataobj) > 0)
lps = nibabel.affines.apply_affine(seg.affine, at) * [-1, -1, 1]
for box in (points.min(0) - lps.min(0), points.max(0) - lps.max(0)):
    assert numpy.abs(box).max() < 3, box
# Closed, with its triangles looking outwards.
a, b, c = (points[triangles[:, i]] for i in range(3))
volume = numpy.einsum('ij,ij->i', a, numpy.cross(b, c)).sum() / 6
assert abs(volume / (12 * len(at)) - 1) < 0.15, (volume, 12 * len(at))"
}

@test "probabilities as uint8, uint16 and float32 agree" {
  for type in uint8 uint16 float32; do
    expect 0 on_case --probability "$type.nii.gz" --probability_type "$type"
  done
  cmp float32.nii.gz "$BATS_FILE_TMPDIR/ref_p.nii.gz"
  python "
import nibabel, numpy
p = numpy.asarray(nibabel.load('float32.nii.gz').dataobj).astype(float)
for name, top in (('uint8', 255), ('uint16', 65535)):
    out = nibabel.load(name + '.nii.gz')
    assert out.get_data_dtype() == name
    values = numpy.asarray(out.dataobj.get_unscaled()).astype(float)
    assert numpy.abs(values - p * top).max() <= 0.5 + 1e-6 and values.max() > 0.9 * top"
  expect 2 on_case --probability x.nii.gz --probability_type int8
  has err.txt "uint16"
}

# --- the same bytes, and where they have to differ

same_as_reference() {
  cmp seg.nii.gz "$BATS_FILE_TMPDIR/ref.nii.gz" && cmp p.nii.gz "$BATS_FILE_TMPDIR/ref_p.nii.gz" &&
    cmp s.ply "$BATS_FILE_TMPDIR/ref.ply" && cmp c.tsv "$BATS_FILE_TMPDIR/ref_c.tsv"
}

all_outputs() {
  expect 0 on_case -o seg.nii.gz --probability p.nii.gz --mesh s.ply --candidates c.tsv --force "$@"
}

@test "same bytes for any number of threads" {
  for threads in 2 5; do
    all_outputs --threads "$threads"
    same_as_reference
  done
}

@test "hard evaluation differs from soft; evaluate.e2 takes the place of the e2 of the model" {
  all_outputs --evaluate.hard
  ! cmp -s p.nii.gz "$BATS_FILE_TMPDIR/ref_p.nii.gz"
  all_outputs --evaluate.e2 0.1  # as the model has it
  same_as_reference
  all_outputs --evaluate.e2 0
  ! cmp -s p.nii.gz "$BATS_FILE_TMPDIR/ref_p.nii.gz"
}

# --- from probability to structure

@test "a higher threshold gives less; the graph cut gives another result than the threshold" {
  expect 0 on_case -o raw.nii.gz --structure.regularise=false --structure.keep_components 0 \
    --structure.fill_holes=false
  expect 0 on_case -o high.nii.gz --structure.regularise=false --structure.threshold 0.9 \
    --structure.keep_components 0 --structure.fill_holes=false
  python "
import nibabel, numpy
raw, high, cut = (numpy.asarray(nibabel.load(n).dataobj) > 0
                  for n in ('raw.nii.gz', 'high.nii.gz', 'ref.nii.gz'))
p = nibabel.load('ref_p.nii.gz').get_fdata()
assert numpy.array_equal(raw, p > 0.5)
assert high.sum() < raw.sum() and not (high & ~raw).any() and numpy.array_equal(high, p > 0.9)
assert not numpy.array_equal(raw, cut)"
}

@test "--roi: probability and labels are 0 outside and unchanged inside; other grids are refused" {
  expect 0 on_case -o seg.nii.gz --probability p.nii.gz --roi roi.nii.gz
  python "
import nibabel, numpy
roi, p, seg, whole = (numpy.asarray(nibabel.load(n).dataobj)
                      for n in ('roi.nii.gz', 'p.nii.gz', 'seg.nii.gz', 'ref_p.nii.gz'))
assert (p[roi == 0] == 0).all() and (seg[roi == 0] == 0).all()
assert numpy.array_equal(p[roi > 0], whole[roi > 0]) and (seg > 0).any()"
  expect 3 on_case -o x.nii.gz --roi roi_short.nii.gz
  has err.txt "'roi_short.nii.gz' is not on the grid of 'image_3.nii.gz'"
  has err.txt "22x20x15"
  expect 3 on_case -o x.nii.gz --roi roi_moved.nii.gz
  has err.txt "origin differs"
  expect 3 on_case -o x.nii.gz --roi none.nii.gz
  absent x.nii.gz x.nii.gz.json
}

# --- grids

@test "an input whose first axis runs backwards gives the same probabilities in its own grid" {
  expect 0 detect -i flipped.nii.gz -o seg.nii.gz --probability p.nii.gz --mesh s.obj
  expect 0 on_case --mesh o.obj
  python "
import nibabel, numpy
image, seg, p = (nibabel.load(n) for n in ('flipped.nii.gz', 'seg.nii.gz', 'p.nii.gz'))
for out in (seg, p):
    assert out.shape == image.shape and numpy.allclose(out.affine, image.affine, atol=1e-4)
ref = numpy.asarray(nibabel.load('ref_p.nii.gz').dataobj)
assert numpy.abs(numpy.asarray(p.dataobj)[::-1] - ref).max() < 1e-5
labels = numpy.asarray(nibabel.load('ref.nii.gz').dataobj)
assert numpy.array_equal(numpy.asarray(seg.dataobj)[::-1], labels)
a, b = (numpy.array([l.split()[1:4] for l in open(n) if l.startswith('v ')], float)
        for n in ('s.obj', 'o.obj'))
assert numpy.abs(a.min(0) - b.min(0)).max() < 0.2 and numpy.abs(a.max(0) - b.max(0)).max() < 0.2"
}

@test "an oblique input: label map and probabilities on its grid, and the ball is found" {
  expect 0 detect -i oblique.nii.gz -o seg.nii.gz --probability p.nii.gz --mesh s.obj
  python "
import nibabel, numpy
image, seg, p = (nibabel.load(n) for n in ('oblique.nii.gz', 'seg.nii.gz', 'p.nii.gz'))
for out in (seg, p):
    assert out.shape == image.shape and numpy.allclose(out.affine, image.affine, atol=1e-4)
found = numpy.asarray(seg.dataobj) > 0
truth = numpy.asarray(nibabel.load('label_3.nii.gz').dataobj) > 0
assert 2 * (truth & found).sum() / (truth.sum() + found.sum()) > 0.75
lps = nibabel.affines.apply_affine(seg.affine, numpy.argwhere(found)) * [-1, -1, 1]
v = numpy.array([l.split()[1:4] for l in open('s.obj') if l.startswith('v ')], float)
assert numpy.abs(v.min(0) - lps.min(0)).max() < 3 and numpy.abs(v.max(0) - lps.max(0)).max() < 3"
}

@test "a DICOM folder as input" {
  data=$LARCH_SOURCE_DIR/data-samples/organ-dicom/images/case_000
  code=0
  detect -i "$data" --probability p.nii.gz --qc qc.png 2>err.txt || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 7 ]
  has err.txt "52x52x20 voxels of 2.5x2.5x6 mm"
  python "
import nibabel
p = nibabel.load('p.nii.gz')
assert p.shape == (52, 52, 20) and 0 <= p.get_fdata().min() <= p.get_fdata().max() <= 1"
}

@test "--skip-existing: a slice of a DICOM folder that was replaced under the same size and time" {
  cp -rL "$LARCH_SOURCE_DIR/data-samples/organ-dicom/images/case_000" slices
  chmod -R u+w slices
  code=0
  detect -i slices --probability p.nii.gz -q 2>err.txt || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 7 ]
  expect $code detect -i slices --probability p.nii.gz --skip-existing
  has err.txt "nothing to do"
  python "
import os
name = sorted('slices/' + n for n in os.listdir('slices'))[0]
data = bytearray(open(name, 'rb').read())
data[-2] ^= 1
open('other', 'wb').write(data)
os.utime('other', ns=(os.stat(name).st_atime_ns, os.stat(name).st_mtime_ns))
open('name', 'w').write(name)"
  cp -p other "$(cat name)"
  expect 6 detect -i slices --probability p.nii.gz --skip-existing
  has err.txt "input 'slices': other content"
}

# --- nothing found

@test "7: nothing detected: every output is written and says rejected" {
  expect 7 on_case -o seg.nii.gz --probability p.nii.gz --mesh s.vtk --qc qc.png \
    --report r.json --structure.min_voxels 100000
  has err.txt "nothing was detected"
  python "
assert load('r.json')['status'] == 'rejected' and 'ball' in load('r.json')['reason']
for name in ('seg.nii.gz', 'p.nii.gz', 's.vtk', 'qc.png'):
    assert open(name, 'rb').read(), name
assert load('seg.nii.gz.json')['Larch']['Status'] == 'rejected'"
  # An empty region: there is no surface at all, in any format.
  python "
import nibabel, numpy
image = nibabel.load('image_3.nii.gz')
nibabel.save(nibabel.Nifti1Image(numpy.zeros(image.shape, numpy.uint8), image.affine), 'none.nii.gz')"
  for ending in vtk obj ply stl gii; do
    expect 7 on_case --roi none.nii.gz --mesh "e.$ending"
    [ -s "e.$ending" ]
  done
}

# --- refusals

@test "2: the label table has a name that no other output may have" {
  expect 2 on_case -o seg.nii.gz --candidates seg.tsv --force
  has err.txt "'seg.tsv' would be written twice"
  absent seg.nii.gz seg.tsv seg.nii.gz.json
}

@test "6: an existing label table is kept; --skip-existing compares what is computed, not how" {
  echo old > seg.tsv
  expect 6 on_case -o seg.nii.gz
  has err.txt "'seg.tsv'"
  absent seg.nii.gz
  [ "$(cat seg.tsv)" = old ]
  expect 0 on_case -o seg.nii.gz --force
  cmp seg.nii.gz "$BATS_FILE_TMPDIR/ref.nii.gz"
  expect 0 on_case -o seg.nii.gz --skip-existing --memory 1G --threads 1 --seed 5
  has err.txt "nothing to do"
  for other in "--structure.threshold 0.6" "--nan-value 3" "--roi label_3.nii.gz"; do
    expect 6 on_case -o seg.nii.gz --skip-existing $other
    has err.txt "seg.nii.gz.json"
    has err.txt "$(sed 's/^--//; s/ .*//' <<< "$other")"
  done
  cmp seg.nii.gz "$BATS_FILE_TMPDIR/ref.nii.gz"
  # A further product of the same run goes into its record.
  expect 0 on_case --output seg.nii.gz --mesh s.vtk --skip-existing
  python "
roles = [o['Role'] for o in load('seg.nii.gz.json')['Larch']['Outputs']]
assert roles == ['output', 'output', 'mesh'], roles"
}

@test "--skip-existing: the voxels of an .nhdr in a folder below, and a compressed .img, are compared" {
  python "
import gzip, nibabel, numpy, os
image = nibabel.load('image_3.nii.gz')
data = numpy.asarray(image.dataobj, dtype='<f4')
os.mkdir('below')
open('below/x.raw', 'wb').write(data.tobytes(order='F'))
head = 'NRRD0004\ntype: float\ndimension: 3\nsizes: %d %d %d\nspacings: 2 2 3\n' % data.shape
open('x.nhdr', 'w').write(head + 'endian: little\nencoding: raw\ndata file: below/x.raw\n')
nibabel.save(nibabel.Nifti1Pair(data, image.affine), 'pair.hdr')
open('pair.img.gz', 'wb').write(gzip.compress(open('pair.img', 'rb').read()))
os.remove('pair.img')"
  detect() { "$BIN/pbt-detect" -m m.pbt -i "$1" -o "$1.nii.gz" --skip-existing; }
  for name in x.nhdr pair.hdr; do
    code=0; detect $name || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 7 ]
    expect $code detect $name
    has err.txt "nothing to do"
  done
  python "
import gzip
f = open('below/x.raw', 'r+b')
f.write(b'\0\0\0\x41')
bytes = gzip.decompress(open('pair.img.gz', 'rb').read())
open('pair.img.gz', 'wb').write(gzip.compress(b'\0\0\0\x41' + bytes[4:]))"
  expect 6 detect x.nhdr
  has err.txt "input data 'below/x.raw': other content"
  expect 6 detect pair.hdr
  has err.txt "input data 'pair.img.gz': other content"
}

@test "a volume does not become a 2-D picture: said before the work" {
  expect 2 on_case --output seg.png -vv
  has err.txt "2-D pictures"
  lacks err.txt "evaluation by"
  absent seg.png seg.png.json seg.tsv
  expect 0 on_case --output seg.nii.gz -vv
  has err.txt "evaluation by"
}
