#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# dsa-register: its outputs, that they do not depend on how the work is divided, and lists.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir made --kind angiography --cases 2 --angiography.size 192,160 \
    --angiography.frames 7 --angiography.mask_frames 2 --angiography.course constant -q --no-sidecar
  cp made/images/case_000.dcm cine.dcm
  "$BIN/dsa-register" -i cine.dcm -o ref.dcm --field ref.field.mha --grid ref.csv -q --threads 1 --batch-frames 1
}

subtract() { "$BIN/dsa-register" --input cine.dcm "$@"; }

@test "all outputs at once: valid, with one record and a report" {
  expect 0 subtract --output out.mha --field field.mha --validity validity.nrrd --grid grid.csv \
    --preview before-after.png --animation all.gif --report r.json
  no_temporaries
  python "
import csv
r = load('r.json')
assert r['status'] == 'done' and len(r['outputs']) == 6, r
assert r['metrics']['frames'] == 5 and [f['frame'] for f in r['frames']] == [2, 3, 4, 5, 6]
rows = list(csv.DictReader(open('grid.csv')))
assert list(rows[0]) == ('frame i j cx cy dx dy dx_raw dy_raw score0 score sd_least sd_most n overflow status').split()
assert len(rows) == 5 * 7 * 6 and {row['status'] for row in rows} <= {'ok', 'replaced', 'unreliable'}
assert rows[0]['cx'] == '23.5' and rows[-1]['frame'] == '6'
assert open('before-after.png', 'rb').read(8) == b'\x89PNG\r\n\x1a\n' and open('all.gif', 'rb').read(6) == b'GIF89a'
def header(name): return open(name, 'rb').read(2000)
assert b'DimSize = 192 160 5' in header('out.mha') and b'MET_SHORT' in header('out.mha')
assert b'ElementNumberOfChannels = 2' in header('field.mha') and b'MET_FLOAT' in header('field.mha')
larch = load('out.mha.json')['Larch']
assert larch['App'] == 'dsa-register'
assert {o['Name']: o['Role'] for o in larch['Outputs']} == {
    'out.mha': 'output', 'field.mha': 'field', 'validity.nrrd': 'validity', 'grid.csv': 'grid',
    'before-after.png': 'preview', 'all.gif': 'animation', 'r.json': 'report'}, larch['Outputs']"
  [ "$(echo *.json)" = "out.mha.json r.json ref.dcm.json" ]
}

@test "the report says how long each stage took, and outputs do not" {
  expect 0 subtract -o timed.mha --device cpu --report r.json --batch-frames 2
  python "
ms = load('r.json')['stages_ms']
assert list(ms) == 'open read compute score write streaming waited_for_reading waited_for_writing'.split(), ms
assert all(ms[name] > 0 for name in ('open', 'read', 'compute', 'score', 'write')), ms
assert max(ms[name] for name in ('read', 'compute', 'score', 'write')) <= ms['streaming'], ms
assert 'stages_ms' not in open('timed.mha.json').read()"
}

@test "vectors follow the true motion" {
  python "
import csv, numpy
raw = open('made/fields/case_000.mha', 'rb').read()
true = numpy.frombuffer(raw[-7 * 160 * 192 * 8:], '<f4').reshape(7, 160, 192, 2)
spacing = [float(v) for v in raw[:raw.index(b'ElementDataFile')].decode().split('ElementSpacing = ')[1].split()[:2]]
error = [numpy.hypot(*(numpy.array([float(r['dx']), float(r['dy'])])
                       - true[int(r['frame']), round(float(r['cy'])), round(float(r['cx']))] / spacing))
         for r in csv.DictReader(open('ref.csv')) if r['status'] == 'ok']
assert len(error) > 20 and numpy.median(error) < 0.25, (len(error), numpy.median(error))"
}

@test "the blurred edge of the collimator belongs to it: no rim is left by motion, and nothing else is lost" {
  python "
import numpy
y, x = numpy.mgrid[0:256, 0:288].astype(float)
def body(x): return 1500 + 300 * numpy.sin(x / 9 + x * x / 4000) + 250 * numpy.sin(y / 11 + x / 23)
passed = numpy.clip(numpy.minimum(numpy.minimum(x - 30, 257 - x), numpy.minimum(y - 30, 225 - y)) / 6, 0, 1)
noise = numpy.random.default_rng(7)
frames = [16 * noise.poisson(4 + passed * body(x + motion)) for motion in (0, 0, 3.3, -3.3, 3.3)]
frames[3][60:120, 100:110] -= 16 * 300  # a vessel
open('blurred.raw', 'wb').write(numpy.array(frames, '<u2').tobytes())
open('blurred.mhd', 'w').write('ObjectType = Image\nNDims = 3\nDimSize = 288 256 5\nElementSpacing = 1 1 1\n'
                               'ElementType = MET_USHORT\nElementDataFile = blurred.raw\n')
passed.tofile('passed.raw')"
  expect 0 "$BIN/dsa-register" -i blurred.mhd --mask-frames 1-2 --stored lin -o blurred.out.mha \
    --validity blurred.validity.mha --report blurred.json
  python "
import numpy
r = load('blurred.json')
assert any('px of blurred edge' in note for note in r['notes']), r['notes']
def array(name, kind):
    raw = open(name, 'rb').read()
    return numpy.frombuffer(raw[raw.index(b'ElementDataFile = LOCAL') + 24:], kind).reshape(-1, 256, 288)
passed = numpy.fromfile('passed.raw').reshape(256, 288)
out, validity = array('blurred.out.mha', '<i2'), array('blurred.validity.mha', 'u1')
assert (out[:, passed == 0] == 0).all() and (out[:, passed == 1] != 0).mean() > 0.98
assert (validity[:, passed == 1] != 3).all() and (validity[:, passed < 0.8] == 3).all()
assert numpy.abs(numpy.delete(out, 1, 0)[:, passed == 1]).max() < 350, numpy.abs(out).max()
for frame in r['frames']:
    rms = frame['rms_nonvessel']
    assert rms['corrected'] < 0.5 * rms['uncorrected'] and frame['counted_pixels'] < (passed == 1).sum(), frame"
}

@test "same bytes for any number of threads and any batch" {
  for how in "--threads 2" "--batch-frames 2" "--batch-frames 3 --threads 3" "--memory 40M" \
    "--batch-frames 1 --threads 2"; do
    expect 0 subtract -o out.dcm --field field.mha --grid grid.csv --force $how
    cmp out.dcm ref.dcm
    cmp field.mha ref.field.mha
    cmp grid.csv ref.csv
  done
}

# uid NAME: the SOPInstanceUID of a file that Larch wrote.
uid() { python "
import re, sys
sys.stdout.write(re.search(rb'2\.25\.\d+', open('$1', 'rb').read(2000)).group().decode())"; }

@test "UIDs are those of the content: other pixels of the frames, collimator or options give others" {
  python "
import numpy
a = numpy.random.default_rng(1).integers(500, 3000, (3, 64, 64)).astype('<u2')
header = 'ObjectType = Image\nNDims = 3\nDimSize = 64 64 3\nElementType = MET_USHORT\nElementDataFile = frames.raw\n'
open('frames.mhd', 'w').write(header)
open('frames.raw', 'wb').write(a.tobytes())"
  expect 0 "$BIN/dsa-register" -i frames.mhd -o first.dcm
  expect 0 "$BIN/dsa-register" -i frames.mhd -o again.dcm
  cmp first.dcm again.dcm
  expect 0 "$BIN/dsa-register" -i frames.mhd -o range.dcm --range 9
  python "
a = bytearray(open('frames.raw', 'rb').read())
a[-2000:] = bytes(2000)
open('frames.raw', 'wb').write(a)"
  expect 0 "$BIN/dsa-register" -i frames.mhd -o other.dcm
  [ "$(uid first.dcm)" != "$(uid range.dcm)" ]
  [ "$(uid first.dcm)" != "$(uid other.dcm)" ]
  if ! /usr/bin/python3 -c "import pydicom" 2>/dev/null; then skip "python3-pydicom is not installed"; fi
  python "
import pydicom
d = pydicom.dcmread('cine.dcm')
d.ShutterShape = 'RECTANGULAR'
d.ShutterLeftVerticalEdge, d.ShutterRightVerticalEdge = 10, 180
d.ShutterUpperHorizontalEdge, d.ShutterLowerHorizontalEdge = 10, 150
d.save_as('shuttered.dcm')"
  # The region lies within the shutter: what counts is the same, what is blank is not.
  expect 0 "$BIN/dsa-register" -i shuttered.dcm -o with.dcm --roi-rectangle 20,20,100,100
  expect 0 "$BIN/dsa-register" -i shuttered.dcm -o without.dcm --roi-rectangle 20,20,100,100 --shutter none
  [ "$(uid with.dcm)" != "$(uid without.dcm)" ]
}

@test "--field-units px: the same motion in pixels, on a grid of spacing 1" {
  expect 0 subtract --field px.mha --field-units px
  python "
import numpy
def field(name):
    data = open(name, 'rb').read()
    head = data[:data.index(b'ElementDataFile')].decode()
    spacing = [float(v) for v in head.split('ElementSpacing = ')[1].split()[:2]]
    return spacing, numpy.frombuffer(data[-5 * 160 * 192 * 8:], '<f4').reshape(-1, 2)
(unit, px), (spacing, mm) = field('px.mha'), field('ref.field.mha')
assert unit == [1, 1] and spacing != [1, 1] and abs(px).max() > 0.5
assert abs(px * spacing - mm).max() < 1e-5"
}

# array NAME FRAMES: python text that reads the 160 x 192 frames of a MetaImage of differences.
array() { echo "numpy.frombuffer(open('$1', 'rb').read()[-$2 * 160 * 192 * 2:], '<i2').reshape($2, 160, 192)"; }

@test "--method none subtracts the mean of the mask and nothing else" {
  expect 0 subtract -o none.mha --method none --normalize none --domain log --grid none.csv
  expect 0 subtract -o shift.mha --method shift --field field.mha
  python "
import csv, numpy
assert len(list(csv.DictReader(open('none.csv')))) == 0
none = $(array none.mha 5)
shift = $(array shift.mha 5)
field = numpy.frombuffer(open('field.mha', 'rb').read()[-5 * 160 * 192 * 8:], '<f4').reshape(5, -1, 2)
assert (field == field[:, :1]).all()
assert none.std() > shift.std() * 0.5 and (none != shift).any()"
  if ! /usr/bin/python3 -c "import pydicom" 2>/dev/null; then skip "python3-pydicom is not installed"; fi
  python "
import numpy, pydicom
d = pydicom.dcmread('cine.dcm')
p = d.pixel_array.astype(float)
assert d.PixelIntensityRelationship in ('LIN', 'LOG')
top = 2 ** d.BitsStored - 1
log = 1000 * (numpy.log(top) - numpy.log(p.clip(1))) if d.PixelIntensityRelationship == 'LIN' else -p
wanted = -(log[2:] - log[:2].mean(0))
assert abs($(array none.mha 5) - wanted).max() < 1.2, abs($(array none.mha 5) - wanted).max()"
}

@test "--literal is another method; vessels are bright if asked for; linear differences" {
  expect 0 subtract -o dark.mha
  expect 0 subtract -o bright.mha --vessels bright
  expect 0 subtract -o literal.mha --literal --grid literal.csv
  python "
import csv, numpy
dark, bright, literal = $(array dark.mha 5), $(array bright.mha 5), $(array literal.mha 5)
assert (dark == -bright).all() and (literal != dark).any()
rows = list(csv.DictReader(open('literal.csv')))
# Found in tenths of a pixel.
assert all(abs(float(r['dx_raw']) * 10 - round(float(r['dx_raw']) * 10)) < 1e-2 for r in rows)"
}

# auto_frame NAME FLAGS...: the frame, from 1, that --mask auto takes of made-up frames.
auto_frame() {
  expect 0 "$BIN/make-samples" --output-dir "$1" --kind angiography --format mha --angiography.size 256,256 \
    --truth=false -q --no-sidecar "${@:2}"
  expect 0 "$BIN/dsa-register" -i "$1/images/case_000.mha" --stored log --mask auto --method none --scores=false \
    -o "$1.mha" --report "$1.json"
  python "
note = [n for n in load('$1.json')['notes'] if n.startswith('mask')][0]
print(note.split('frames ')[1].rstrip(')'))"
}

@test "--mask auto finds the frame before the contrast agent, whatever moves, and says where it cannot" {
  # Contrast agent is to be seen two frames after the last one of the mask, motion one frame after it.
  [ "$(auto_frame still --angiography.frames 12 --angiography.mask_frames 6 --angiography.amplitude_px 0)" -eq 6 ]
  [ "$(auto_frame moves --angiography.frames 16 --angiography.mask_frames 4 --angiography.amplitude_px 4 --seed 3)" -eq 4 ]
  [ "$(auto_frame early --angiography.frames 14 --angiography.mask_frames 1 --angiography.amplitude_px 4 --seed 4)" -eq 1 ]
  expect 0 "$BIN/make-samples" --output-dir none --kind angiography --format mha --angiography.size 256,256 \
    --truth=false -q --no-sidecar --angiography.vessels 0 --angiography.amplitude_px 4
  expect 3 "$BIN/dsa-register" -i none/images/case_000.mha --stored log --mask auto -o none.mha
  has err.txt "'none/images/case_000.mha': there is no frame from which on contrast agent"
  has err.txt "--mask-frames"
  absent none.mha
}

@test "--mask auto on a real cine: a frame before contrast agent arrives, of any frames that hold it" {
  test_data xray-angiography/coronary-cine-96f.dcm
  for frames in 1-96 1-24 9-40 14-60; do
    expect 0 "$BIN/dsa-register" -i "$data" --mask auto --frames $frames --method none --scores=false -o c.mha \
      --report c.json --force
    python "
note = [n for n in load('c.json')['notes'] if n.startswith('mask')][0]
assert int(note.split('frames ')[1].rstrip(')')) <= 15, note"
  done
  expect 3 "$BIN/dsa-register" -i "$data" --mask auto --frames 50-80 -o d.mha
}

# layers NAME: 18 frames of two layers that breathing moves apart, the first 8 of them a breath.
layers() {
  /usr/bin/python3 - "$1" <<'PY'
import math, numpy, sys
random = numpy.random.default_rng(4)
waves = random.uniform((6, 0, 0), (46, 7, 7), (2, 12, 3))
def layer(number, x, y):
    return sum(14 * numpy.sin((math.cos(t) * x + math.sin(t) * y) * 2 * math.pi / length + p)
               for length, t, p in waves[number])
y, x = numpy.mgrid[:96, :128]
out = b''
for frame in range(18):
    breath = 6 * math.sin(2 * math.pi * (frame / 8 if frame < 8 else 0.13 + frame / 7.3))
    values = 2000 + layer(0, x, y) + layer(1, x, y + breath) + random.normal(0, 5, x.shape)
    out += values.round().astype('<u2').tobytes()
head = (b'ObjectType = Image\nNDims = 3\nElementSpacing = 0.3 0.3 1\nDimSize = 128 96 18\nElementType = MET_USHORT\n'
        b'ElementDataFile = LOCAL\n')
open(sys.argv[1], 'wb').write(head + out)
PY
}

@test "--mask best takes for each frame the mask frames of its own phase" {
  layers layers.mha
  best() { "$BIN/dsa-register" -i layers.mha --stored log --mask-frames 1-8 "$@" --force; }
  expect 0 best -o plain.mha --report plain.json
  expect 0 best -o best.mha --report best.json --mask best --native native.dcm
  expect 0 best -o again.mha --mask best --batch-frames 1 --threads 1
  cmp best.mha again.mha
  expect 0 best -o best.dcm --mask best
  has best.dcm "masks by frame registered to each other"
  python "
from statistics import median
plain, best = (load(f'{name}.json')['frames'] for name in ('plain', 'best'))
assert [f['frame'] for f in best] == list(range(8, 18))
assert all(f['mask_frames'] == list(range(8)) for f in plain)
assert all(1 <= len(f['mask_frames']) <= 4 and max(f['mask_frames']) < 8 for f in best)
assert len({tuple(f['mask_frames']) for f in best}) > 3
rms = [median(f['rms_nonvessel']['corrected'] for f in frames) for frames in (plain, best)]
assert rms[0] > 15 and rms[1] < 8, rms"
  # Without contrast agent nothing tells which frames may be the mask; a list has them in a column.
  expect 3 "$BIN/dsa-register" -i layers.mha --stored log --mask best --frames 1-8 -o none.mha
  printf 'id\timage\tmask_frames\na\tlayers.mha\t1-8\n' > layers.tsv
  expect 0 "$BIN/dsa-register" --list layers.tsv --output-dir listed --write difference --format mha --stored log --mask best
  cmp best.mha listed/a.mha
}

@test "a real cine: frames of the mask that are moved to each other leave smaller differences" {
  test_data xray-angiography/coronary-cine-96f.dcm
  for mask in file best; do
    expect 0 "$BIN/dsa-register" -i "$data" --mask-frames 5-12 --mask $mask --frames 13,22,31,40,49,58,67,76,85,94 \
      -o $mask.mha --report $mask.json
  done
  python "
from statistics import median
rms = [median(f['rms_nonvessel']['corrected'] for f in load(f'{name}.json')['frames']) for name in ('file', 'best')]
assert max(rms) < 85, rms  # 86.6 with the mean of the frames as they are"
}

@test "--mask first takes the first frame; --frames leaves frames out" {
  expect 0 subtract -o first.mha --mask first --method none --report first.json
  python "
r = load('first.json')
assert 'mask: the first frame (frames 1)' in r['notes'] and [f['frame'] for f in r['frames']] == [1, 2, 3, 4, 5, 6], r['notes']"
  expect 0 subtract -o some.mha --frames 4-5 --report some.json
  python "assert [f['frame'] for f in load('some.json')['frames']] == [3, 4]"
}

@test "a list: the bytes of runs by themselves, a table, and a case that fails beside the others" {
  printf 'id\timage\nfirst\tmade/images/case_000.dcm\nsecond\tmade/images/case_001.dcm\nbad\tmade/cases.tsv\n' > cases.tsv
  expect 7 "$BIN/dsa-register" --list cases.tsv --output-dir out --write difference,grid,preview
  has err.txt "bad"
  cmp out/first.dcm ref.dcm
  cmp out/first.csv ref.csv
  [ -s out/second.dcm ] && [ -s out/second.png ] && [ -s out/second.larch.json ] && [ -s out/bad.failed.larch.json ]
  absent out/bad.dcm out/bad.csv out/bad.larch.json
  python "
import csv
rows = {r['id']: r for r in csv.DictReader(open('out/status.tsv'), delimiter='\t')}
assert [rows[i]['status'] for i in ('first', 'second', 'bad')] == ['ok', 'ok', 'failed'], rows
assert rows['first']['frames'] == '5' and float(rows['first']['rms_corrected']) > 0, rows"
}

@test "lists: mask_frames, frames and roi of each case stand for the flags" {
  python "
voxels = bytes(1 if 40 <= x < 150 and 30 <= y < 120 else 0 for y in range(160) for x in range(192))
open('roi.mha', 'wb').write(b'ObjectType = Image\\nNDims = 2\\nDimSize = 192 160\\nElementType = MET_UCHAR\\n'
                            b'ElementDataFile = LOCAL\\n' + voxels)"
  printf 'id\timage\tmask_frames\tframes\troi\na\tcine.dcm\t1\t4-5\troi.mha\nb\tcine.dcm\tn/a\t\t\nc\tcine.dcm\t9\t\t\n' > per-case.tsv
  expect 7 "$BIN/dsa-register" --list per-case.tsv --output-dir per-case --write difference,grid --mask-frames 2
  has err.txt "there is no frame 9"
  expect 0 subtract -o a.dcm --grid a.csv --mask-frames 1 --frames 4-5 --roi roi.mha
  expect 0 subtract -o b.dcm --mask-frames 2
  cmp per-case/a.dcm a.dcm && cmp per-case/a.csv a.csv && cmp per-case/b.dcm b.dcm
  python "assert {i['Role'] for i in load('per-case/a.larch.json')['Larch']['Inputs']} >= {'roi', 'mask_frames'}"
  printf 'image\tframes\ncine.dcm\tall\n' > words.tsv
  expect 2 "$BIN/dsa-register" --list words.tsv --output-dir words
  has err.txt "case 'cine', frames 'all'"
}

@test "a derived file is numbered after its source and names its device; no empty Laterality" {
  python "
source, derived = (open(name, 'rb').read()[:4000] for name in ('cine.dcm', 'ref.dcm'))
number = bytes((0x20, 0, 0x11, 0)) + b'IS' + bytes((2, 0))
assert number + b'1 ' in source and number + b'2 ' in derived
equipment = derived[derived.index(bytes((0x18, 0, 0x01, 0xa0)) + b'SQ'):]
assert b'Larch' in equipment[:200] and b'Acquisition Equipment' in equipment[:300]
assert bytes((0x20, 0, 0x60, 0)) + b'CS' not in derived"
}

@test "--contrast raises: values of line integrals give the same vessels, dark" {
  python "
import numpy
y, x = numpy.mgrid[:128, :128]
random = numpy.random.default_rng(3)
body = 2000 + sum(150 * numpy.sin(x * a + y * b + c) for a, b, c in random.uniform(-0.4, 0.4, (12, 3)))
frames = numpy.stack([body, body, body]) + random.normal(0, 8, (3, 128, 128))
frames[2, 60:68, 20:100] -= 400
for name, values in (('lowers', frames), ('raises', 4095 - frames)):
    open(name + '.mha', 'wb').write(b'ObjectType = Image\\nNDims = 3\\nDimSize = 128 128 3\\nElementType = MET_USHORT\\n'
                                    b'ElementDataFile = LOCAL\\n' + values.round().astype('<u2').tobytes())"
  expect 0 "$BIN/dsa-register" -i lowers.mha --stored log -o low.mha
  expect 0 "$BIN/dsa-register" -i raises.mha --stored log -o high.mha --contrast raises --native n.dcm
  python "
import numpy
low, high = (numpy.frombuffer(open(n, 'rb').read()[-2 * 128 * 128 * 2:], '<i2').reshape(2, 128, 128).astype(int)
             for n in ('low.mha', 'high.mha'))
assert low[1, 62:66, 30:90].mean() < -350 and high[1, 62:66, 30:90].mean() < -350, high[1, 62:66, 30:90].mean()
assert abs(low - high).max() <= 2, abs(low - high).max()"
  expect 2 subtract -o x.mha --contrast raises
  has err.txt "'cine.dcm': a DICOM file says by itself"
  absent x.mha
}

@test "--dry-run tells frames, masks and sizes, and writes nothing" {
  expect 0 subtract -o out.mha --field f.mha --dry-run
  python "
head, row = [line.split('  ') for line in open('out.txt').read().splitlines()]
assert [cell.strip() for cell in head if cell.strip()] == 'id pixels frames subtracted mask image'.split(), head
cells = [cell.strip() for cell in row if cell.strip()]
assert cells[1:4] == ['192x160', '7', '5'] and 'Mask Subtraction Sequence' in cells[4], cells"
  has err.txt "would write out.mha"
  absent out.mha f.mha
}

@test "volumes: a translation is found and taken out" {
  python "
import numpy
r = numpy.random.default_rng(3)
z, y, x = numpy.mgrid[:40, :48, :48]
v = 1000 + 120 * sum(numpy.sin(a * x + b * y + c * z + d) for a, b, c, d in r.uniform(-0.6, 0.6, (14, 4)))
v += r.normal(0, 3, v.shape)
def write(name, a):
    open(name, 'wb').write(b'ObjectType = Image\nNDims = 3\nDimSize = 48 48 40\nElementSpacing = 0.5 0.5 0.8\n'
                           b'ElementType = MET_SHORT\nElementDataFile = LOCAL\n' + a.astype('<i2').tobytes())
write('mask.mha', v - 1024)
write('fill.mha', numpy.roll(v, (3, -1, 2), (0, 1, 2)) - 1024)
write('short.mha', v[:, :, :])
open('short.mha', 'r+b').truncate(1000)"
  expect 0 "$BIN/dsa-register" -i fill.mha --mask-volume mask.mha -o sub.nii.gz --grid g.csv --field f.mha --preview p.png --range 4
  python "
import csv, nibabel, numpy
rows = [r for r in csv.DictReader(open('g.csv')) if r['status'] == 'ok']
assert len(rows) >= 8, len(rows)
for r in rows:
    assert max(abs(float(r['dx']) + 2), abs(float(r['dy']) - 1), abs(float(r['dz']) + 3)) < 0.15, r
sub = nibabel.load('sub.nii.gz')
assert sub.shape == (48, 48, 40) and numpy.asarray(sub.dataobj)[8:-8, 8:-8, 8:-8].std() < 20
assert b'ElementNumberOfChannels = 3' in open('f.mha', 'rb').read(1000)"
  expect 0 "$BIN/dsa-register" -i fill.mha --mask-volume mask.mha --field px.mha --field-units px --range 4
  python "
import zlib
head = open('px.mha', 'rb').read()
assert b'ElementSpacing = 1 1 1' in head[:1000], head[:600]"
  expect 3 "$BIN/dsa-register" -i fill.mha --mask-volume short.mha -o x.nii.gz
  has err.txt "short.mha"
  expect 2 "$BIN/dsa-register" -i fill.mha --mask-volume mask.mha --animation a.gif
  absent x.nii.gz
}

@test "volumes and flexible pixel shift run on the CPU alone: auto says so, cuda is refused" {
  expect 4 subtract -o x.mha --method flex --device cuda
  has err.txt "flexible pixel shift runs on the CPU alone"
  LARCH_DEVICE=cuda:0 expect 4 subtract -o x.mha --method flex
  has err.txt "LARCH_DEVICE cuda:0: flexible pixel shift runs on the CPU alone"
  expect 0 subtract -o flex.mha --method flex --device auto
  has err.txt "auto: flexible pixel shift runs on the CPU alone"
  python "
import numpy
volume = numpy.random.default_rng(5).integers(0, 900, (16, 16, 16), numpy.int16)
open('volume.mha', 'wb').write(b'ObjectType = Image\nNDims = 3\nDimSize = 16 16 16\nElementSpacing = 1 1 1\n'
                               b'ElementType = MET_SHORT\nElementDataFile = LOCAL\n' + volume.tobytes())"
  expect 4 "$BIN/dsa-register" -i volume.mha --mask-volume volume.mha -o x.nii.gz --device cuda
  has err.txt "subtraction of volumes runs on the CPU alone"
  expect 4 "$BIN/dsa-register" -i volume.mha --mask-volume volume.mha -o x.nii.gz --device cuda --dry-run
  expect 0 "$BIN/dsa-register" -i volume.mha --mask-volume volume.mha -o volume.nii.gz --range 2
  has err.txt "auto: subtraction of volumes runs on the CPU alone"
  absent x.mha x.nii.gz
}
