#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# dsa-register at its limits: sequences that are damaged, of other kinds, of odd sizes or without
# anything to see; a message that says what is wrong, the documented exit code, and no partial output.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir made --kind angiography --angiography.size 128,128 --angiography.frames 5 \
    --angiography.mask_frames 2 --truth=false -q --no-sidecar
  cp made/images/case_000.dcm cine.dcm
}

subtract() { timeout 60 "$BIN/dsa-register" --output out.mha "$@"; }
nothing_written() { absent out.mha out.mha.json; no_temporaries; }

# frames NAME CODE: writes the MetaImage NAME of the array `a` (frame, y, x) that the code makes; body(top,
# height, width) is a texture of 12 pixels with noise, from top / 8 to top.
frames() {
  python "
import numpy
random = numpy.random.default_rng(5)
def body(top, height=128, width=128):
    y, x = numpy.mgrid[:height, :width]
    wave = sum(numpy.sin(x * a + y * b + c) for a, b, c in random.uniform(-0.5, 0.5, (12, 3)))
    return top * (0.55 + 0.06 * wave).clip(0.2, 0.9) + random.normal(0, top / 200, (height, width))
$2
names = {'uint8': 'MET_UCHAR', 'int16': 'MET_SHORT', 'uint16': 'MET_USHORT', 'float32': 'MET_FLOAT'}
channels = 'ElementNumberOfChannels = 3\n' if a.ndim == 4 else ''
sizes = ' '.join(str(n) for n in a.shape[2::-1])
open('$1', 'wb').write(f'''ObjectType = Image
NDims = 3
DimSize = {sizes}
ElementSpacing = 0.3 0.3 100
{channels}ElementType = {names[a.dtype.name]}
ElementDataFile = LOCAL
'''.encode() + a.tobytes())"
}

# dicom CODE: writes bad.dcm, which is cine.dcm after the code has changed the data set `d`.
dicom() {
  /usr/bin/python3 -c "import pydicom" 2>/dev/null || skip "python3-pydicom is not installed"
  python "
import pydicom
d = pydicom.dcmread('cine.dcm')
$1
d.save_as('bad.dcm')"
}

@test "one frame: 3" {
  frames one.mha "a = body(3000)[None].astype('uint16')"
  expect 3 subtract -i one.mha
  has err.txt "'one.mha' has one frame"
  dicom "d.NumberOfFrames = 1; d.PixelData = d.PixelData[:128 * 128 * 2]; del d.MaskSubtractionSequence; del d.FrameTime; del d.FrameIncrementPointer"
  expect 3 subtract -i bad.dcm
  has err.txt "bad.dcm"
  nothing_written
}

@test "a mask frame that is not there, and words that are no frames: 2" {
  expect 2 subtract -i cine.dcm --mask-frames 4-6
  has err.txt "--mask-frames '4-6': there is no frame 6; the sequence has 5"
  expect 2 subtract -i cine.dcm --mask-frames 0
  expect 2 subtract -i cine.dcm --mask-frames first
  has err.txt "such as 1-3,7"
  expect 2 subtract -i cine.dcm --frames 9
  expect 2 subtract -i cine.dcm --mask-frames 1 --mask auto
  expect 3 subtract -i cine.dcm --mask-frames 1-5
  has err.txt "no contrast frame is left"
  nothing_written
}

@test "a mask of more frames than --memory holds: 5, told beforehand" {
  frames long.mha "a = numpy.stack([body(3000, 256, 256)] * 40).astype('uint16')"
  expect 5 subtract -i long.mha --mask-frames 1-30 --memory 10M
  has err.txt "the 30 frames of the mask of 'long.mha' take 15"
  nothing_written
  expect 5 subtract -i long.mha --mask-frames 1-30 --memory 10M --dry-run
  expect 0 subtract -i long.mha --mask-frames 1-5 --memory 10M --method none --scores=false
}

@test "a Mask Subtraction Sequence that contradicts the file: 3, and --mask-frames goes on" {
  dicom "d.MaskSubtractionSequence[0].MaskFrameNumbers = [9]"
  expect 3 subtract -i bad.dcm
  has err.txt "bad.dcm"
  has err.txt "Mask"
  nothing_written
  expect 0 subtract -i bad.dcm --mask-frames 1-2
}

@test "--frames beside the Mask Subtraction Sequence: none in it is 2, some are warned of" {
  expect 2 subtract -i cine.dcm --frames 1-2
  has err.txt "is for frames 3-5, none of which --frames names"
  nothing_written
  expect 0 subtract -i cine.dcm --frames 2-4
  has err.txt "1 of the 3 frames that --frames names are in no item"
}

@test "8, 10, 12, 14 and 16 bits, and signed numbers: the same motion" {
  for bits in 8 10 12 14 16; do
    frames b$bits.mha "
top = 2 ** $bits - 1
b = body(top * 0.9)
a = numpy.stack([b, numpy.roll(b, (-2, 3), (0, 1))]).clip(1, top - 1)
a = a.astype('uint8' if $bits == 8 else 'uint16')"
    expect 0 "$BIN/dsa-register" -i b$bits.mha --stored lin --grid g$bits.csv
  done
  frames signed.mha "
b = body(3000)
a = (numpy.stack([b, numpy.roll(b, (-2, 3), (0, 1))]) - 2000).astype('int16')"
  expect 0 "$BIN/dsa-register" -i signed.mha --stored lin --dark 0 --domain lin --grid gsigned.csv
  python "
import csv
for name in ('8', '10', '12', '14', '16', 'signed'):
    rows = [r for r in csv.DictReader(open(f'g{name}.csv')) if r['status'] in ('ok', 'replaced')]
    assert len(rows) >= 3, name
    # The frame's content lies 3 pixels further right and 2 further up: the mask is read there.
    for r in rows: assert abs(float(r['dx']) + 3) < 0.1 and abs(float(r['dy']) - 2) < 0.1, (name, r)"
}

@test "odd sizes: 17 x 1023 and 1023 x 17" {
  for size in "1023, 17" "17, 1023"; do
    frames odd.mha "b = body(3000, $size); a = numpy.stack([b, numpy.roll(b, 1, 1), b]).astype('uint16')"
    expect 0 subtract -i odd.mha --grid g.csv --preview p.png --animation a.gif --force
    python "
want = ' '.join(str(n) for n in ($size)[::-1])
assert f'DimSize = {want} 2'.encode() in open('out.mha', 'rb').read(1000)"
  done
}

@test "a mask without a pixel that counts: 3; black and saturated frames are warned of" {
  frames black.mha "a = numpy.zeros((4, 64, 64), 'uint16'); a[2:] = body(3000, 64, 64)"
  expect 3 subtract -i black.mha
  has err.txt "'black.mha': no pixel of the mask (frame 1) counts"
  nothing_written
  frames some.mha "a = numpy.stack([body(3000)] * 4).astype('uint16'); a[1] = 0; a[2] = 4095"
  expect 0 subtract -i some.mha --report r.json
  has err.txt "2 frames hold no block with enough pixels that count (black, saturated"
  python "
frames = load('r.json')['frames']
assert [f['outside'] for f in frames] == [25, 25, 0], frames
assert frames[0]['longest_motion_px'] == 0"
}

@test "motion beyond the search range is warned of and counted" {
  # The search starts at the shift of the frame, which is that of the larger part.
  frames far.mha "b = body(3000, 192, 192); a = numpy.stack([b, b]).astype('uint16'); a[1, :64] = numpy.roll(b, 14, 1)[:64]"
  expect 0 subtract -i far.mha --range 6 --report r.json
  has err.txt "may exceed the search range of 6 pixels"
  python "assert load('r.json')['metrics']['edge_hits'] > 0"
  expect 0 subtract -i far.mha --range 16 --report r.json --force
  lacks err.txt "search range"
  python "assert load('r.json')['metrics']['edge_hits'] == 0"
}

@test "motion of the whole frame beyond the range is found" {
  frames far.mha "b = body(3000, 192, 192); a = numpy.stack([b, numpy.roll(b, 14, 1)]).astype('uint16')"
  expect 0 subtract -i far.mha --range 6 --report r.json
  lacks err.txt "search range"
  python "
r = load('r.json')
assert abs(r['metrics']['longest_motion_px'] - 14) < 0.3 and r['frames'][0]['correction'] == 'blocks', r"
}

@test "a frame that its blocks make worse is corrected by its shift or by nothing, and says so" {
  # Noise alone has no motion; a shift is found beside structure that changed in all blocks.
  frames noise.mha "g = numpy.random.default_rng(1); a = g.normal(3000, 50, (2, 192, 192)).astype('uint16')"
  expect 0 subtract -i noise.mha --report r.json --grid g.csv --field f.mha
  has err.txt "0 corrected by the shift of the frame alone, 1 not corrected"
  python "
import csv
r = load('r.json')
assert r['frames'][0]['correction'] == 'none' and r['metrics']['frames_uncorrected'] == 1, r['frames'][0]
assert r['frames'][0]['longest_motion_px'] == 0
assert all(row['status'] == 'frame' and float(row['dx']) == 0 for row in csv.DictReader(open('g.csv')))
assert r['frames'][0]['rms_nonvessel']['corrected'] == r['frames'][0]['rms_nonvessel']['uncorrected']"
}

@test "frames are checked with and without scores: the same files" {
  # Texture as weak as this is seen by the whole frame, not by each block.
  frames weak.mha "
y, x = numpy.mgrid[:192, :192]
g = numpy.random.default_rng(1)
a = numpy.stack([3000 + numpy.roll(amplitude * numpy.sin(x / 5 + x * x / 2000) * numpy.cos(y / 7), k, 1)
                 + g.normal(0, 50, x.shape) for amplitude, k in ((20, 0), (20, 3), (0, 0), (20, -4))]).astype('uint16')"
  for scores in true false; do
    expect 0 subtract -i weak.mha --scores=$scores --report $scores.json --grid $scores.csv --field $scores.mha \
      --validity $scores.nrrd --preview $scores.png --force
    mv out.mha out.$scores.mha
  done
  for name in out.%.mha %.csv %.mha %.nrrd %.png; do cmp ${name/\%/true} ${name/\%/false}; done
  python "
frames = load('false.json')['frames']
assert [f['correction'] for f in frames] == ['shift', 'none', 'shift'], frames
assert 'rms_nonvessel' not in frames[0] and 'rms_nonvessel' in load('true.json')['frames'][0]"
}

@test "a frame that --literal makes worse is named" {
  # Fine texture moves behind bars that stay, which are torn apart by its motion.
  frames worse.mha "
g = numpy.random.default_rng(1)
bars, texture = 3000 + 800 * (numpy.arange(192) % 32 < 4), g.normal(0, 50, (192, 192))
a = numpy.stack([bars + numpy.roll(texture, k, 1) + g.normal(0, 5, texture.shape) for k in (0, 0, 4)]).astype('uint16')"
  expect 0 subtract -i worse.mha --literal --report r.json
  has err.txt "'worse.mha': the correction makes 1 frame worse"
  has err.txt "leave --literal out"
  python "
r = load('r.json')
assert r['metrics']['frames_worse'] == 1, r['metrics']
assert [f['rms_nonvessel']['corrected'] > 30 + f['rms_nonvessel']['uncorrected'] for f in r['frames']] == [False, True], r"
  expect 0 subtract -i worse.mha --report r.json --force
  lacks err.txt "the correction makes"
}

@test "blocks of few pixels are warned of" {
  expect 0 subtract -i cine.dcm --passes 64/64,24/24
  has err.txt "blocks of 24 pixels have few differences to compare"
  expect 0 subtract -i cine.dcm --passes 64/64,32/32 --force
  lacks err.txt "few differences"
}

@test "missing tags: without sizes 3; without a relationship to the X-rays a warning" {
  dicom "del d.Rows"
  expect 3 subtract -i bad.dcm
  has err.txt "bad.dcm"
  nothing_written
  dicom "del d.PixelIntensityRelationship"
  expect 0 subtract -i bad.dcm --method none
  has err.txt "not known whether its values are linear or logarithms"
  expect 0 subtract -i bad.dcm --method none --stored log --force
  lacks err.txt "not known"
  dicom "del d.MaskSubtractionSequence"
  expect 0 subtract -i bad.dcm --method none --force --report r.json
  python "assert [f['frame'] for f in load('r.json')['frames']] == [1, 2, 3, 4]"
}

@test "regions that cannot be read or hold nothing, which a dry run finds too" {
  echo "not an image" > roi.mha
  frames small.mha "a = numpy.ones((1, 64, 64), 'uint8')"
  frames none.mha "a = numpy.zeros((1, 128, 128), 'uint8')"
  for dry in "" --dry-run; do
    expect 3 subtract -i cine.dcm --roi roi.mha $dry
    has err.txt "roi.mha"
    expect 3 subtract -i cine.dcm --roi small.mha $dry
    has err.txt "'small.mha' is not of the frame's size: 64x64x1 pixels against 128x128x1"
    expect 3 subtract -i cine.dcm --roi none.mha $dry
    has err.txt "no pixel is left"
    expect 3 subtract -i cine.dcm --roi missing.mha $dry
    expect 2 subtract -i cine.dcm --roi-rectangle 100,100,60,20 $dry
    has err.txt "does not lie within the frame of 128x128"
    expect 2 subtract -i cine.dcm --roi-polygon 200,200,220,200,220,220 $dry
    has err.txt "the polygon holds no pixel of the frame"
    expect 2 subtract -i cine.dcm --roi-rectangle 1,2,3 $dry
    expect 2 subtract -i cine.dcm --roi-polygon 1,1,5,5 $dry
    printf 'image\ncine.dcm\n' > region.tsv
    expect 7 "$BIN/dsa-register" --list region.tsv --output-dir regions --roi-rectangle 100,100,60,20 $dry
    has err.txt "does not lie within the frame of 128x128"
  done
  nothing_written
}

@test "regions: blocks outside are not searched, the output covers the frame" {
  expect 0 subtract -i cine.dcm --roi-rectangle 64,0,64,128 --grid g.csv --validity v.mha
  python "
import csv, numpy
rows = list(csv.DictReader(open('g.csv')))
assert all((r['status'] == 'outside') == (r['i'] in '01') for r in rows)
v = numpy.frombuffer(open('v.mha', 'rb').read()[-3 * 128 * 128:], 'u1').reshape(3, 128, 128)
assert (v[:, :, :64] == 3).all() and (v[:, :, 64:] != 3).all()"
  expect 0 "$BIN/dsa-register" -i cine.dcm --roi-polygon 64,-1,200,-1,200,200,64,200 --grid p.csv
  cmp g.csv p.csv || python "
a, b = open('g.csv').read().split('\n'), open('p.csv').read().split('\n')
assert [r.split(',')[-1] for r in a] == [r.split(',')[-1] for r in b]"
}

# peak SIDE FRAMES FLAG...: bytes that a run over so many frames of SIDE x SIDE takes at most.
peak() {
  local side=$1 frames=$2 source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  shift 2
  frames long.mha "three = [body(4000, $side, $side).astype('u2') for i in range(3)]; a = numpy.array([three[i % 3] for i in range($frames)])"
  /usr/bin/python3 "$source/tests/cli/tools/peak.py" peak.txt timeout 300 "$BIN/dsa-register" -i long.mha \
    --literal -q --force "$@" 2> /dev/null
  cat peak.txt
}

@test "memory does not grow with the number of frames, whatever is written" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  local few many
  # 80 more frames are 10 MB, their field is 42 MB.
  local outputs="--output out.mha --field field.mha --validity v.nrrd --grid g.csv --preview p.png --report r.json"
  few=$(peak 256 30 --batch-frames 2 --threads 2 $outputs)
  many=$(peak 256 110 --batch-frames 2 --threads 2 $outputs)
  echo "$few bytes, $many of more frames"
  [ "$many" -lt $((few + (8 << 20))) ]
}

long() { frames $1 "a = random.integers(100, 4000, (24, 96, 96)).astype('uint16')"; }

@test "a stage that fails while other batches are on their way ends the run: 3 and 6" {
  long long.mha
  python "
import gzip, struct
raw = open('long.mha', 'rb').read()
voxels = raw[raw.index(b'LOCAL') + 6:]
header = bytearray(352)
struct.pack_into('<i', header, 0, 348)
struct.pack_into('<8h', header, 40, 4, 96, 96, 1, 24, 1, 1, 1)
struct.pack_into('<2h', header, 70, 512, 16)
struct.pack_into('<8f', header, 76, 1, 1, 1, 1, 1, 1, 1, 1)
struct.pack_into('<f', header, 108, 352)
header[344:348] = b'n+1\\0'
whole = bytearray(gzip.compress(bytes(header) + voxels, 1))
whole[len(whole) * 3 // 4] ^= 255
open('long.nii.gz', 'wb').write(bytes(whole))"
  for threads in 1 4; do
    expect 3 subtract -i long.nii.gz --batch-frames 1 --threads $threads --stored lin --shutter none
    has err.txt "long.nii.gz"
    nothing_written
  done
  small_disk disk 256
  for threads in 1 4; do
    expect 6 timeout 60 "$BIN/dsa-register" -i long.mha -o disk/out.mha --stored lin --batch-frames 1 --threads $threads
    has err.txt "No space left"
    [ -z "$(ls -A disk)" ]
  done
}

@test "passes that are none, and flags that would have no effect: 2" {
  expect 2 subtract -i cine.dcm --passes 64x32
  has err.txt "passes"
  expect 2 subtract -i cine.dcm --literal --method flex
  has err.txt "--literal is a way of --method block"
  expect 2 subtract -i cine.dcm --literal --passes 64/64,64/32
  has err.txt "the literal method has one pass"
  expect 0 subtract -i cine.dcm --literal --passes 64/32 --metric entropy --range 8
  frames volume.mha "a = numpy.stack([body(3000, 48, 48)] * 24).astype('int16')"
  for flag in "--frames 1-3" "--mask-frames 1" "--mask auto" "--roi-rectangle 1,1,20,20" "--roi-polygon 1,1,20,1,20,20" \
      "--shutter none" "--batch-frames 2" "--memory 1G" "--domain log" "--stored lin" "--dark 5"; do
    expect 2 timeout 60 "$BIN/dsa-register" -i volume.mha --mask-volume volume.mha -o sub.nii.gz $flag
    has err.txt "${flag%% *} is for sequences of pictures"
  done
  absent sub.nii.gz
}

# volume NAME SIZE SHIFT: a MetaImage of SIZE voxels along x, y and z with texture, moved along x.
volume() {
  python "
import numpy
shape = [int(n) for n in '$2'.split(',')][::-1]
z, y, x = numpy.indices(shape)
a = sum(120 * numpy.sin(.4 * i * x + .3 * y + .5 * z + i) for i in range(1, 4)) + 1000
head = 'ObjectType = Image\nNDims = 3\nDimSize = %d %d %d\nElementSpacing = 1 1 1\n' % tuple(shape[::-1])
open('$1', 'wb').write((head + 'ElementType = MET_SHORT\nElementDataFile = LOCAL\n').encode()
                       + numpy.roll(a, $3, 2).astype('<i2').tobytes())"
}

@test "blocks of volumes have the size that is given, or are refused" {
  volume mask.mha 80,60,50 0
  volume fill.mha 80,60,50 1
  volume thin.mha 80,70,8 0
  blocks() { expect 0 subtract --force "$@" --range 2 --grid g.csv; rows=$(($(wc -l <g.csv) - 1)); }
  blocks -i fill.mha --mask-volume mask.mha && [ "$rows" -eq $((5 * 4 * 4)) ]
  blocks -i fill.mha --mask-volume mask.mha --passes 16/16 && [ "$rows" -eq $((5 * 4 * 4)) ]
  blocks -i fill.mha --mask-volume mask.mha --passes 40/40 && [ "$rows" -eq $((2 * 2 * 2)) ]
  # 64 x 64 x 8 voxels are 32768.
  blocks -i thin.mha --mask-volume thin.mha --passes 64/64 && [ "$rows" -eq 4 ]
  rm out.mha*
  for wrong in "--passes 64/64" "--passes 41/41" "--passes 16/16,48/48"; do
    expect 2 subtract -i fill.mha --mask-volume mask.mha $wrong
    has err.txt "65535 is the most"
    expect 2 subtract -i fill.mha --mask-volume mask.mha $wrong --dry-run
  done
  expect 2 subtract -i fill.mha --mask-volume mask.mha --passes 7/7
  nothing_written
  expect 0 subtract -i thin.mha --mask-volume thin.mha --passes 8/8 --range 2
  has err.txt "blocks of 512 voxels"
}

@test "methods for sequences are refused for volumes" {
  volume mask.mha 40,40,20 0
  for flags in "--method shift" "--method flex"; do
    expect 2 subtract -i mask.mha --mask-volume mask.mha $flags
    has err.txt "sequences"
    expect 2 subtract -i mask.mha --mask-volume mask.mha $flags --dry-run
  done
  nothing_written
}

@test "frames of an angiogram are no volume, wherever its header puts them" {
  volume mask.mha 128,128,5 0
  dicom "
from pydicom.dataset import Dataset
def item(**what):
    one = Dataset()
    for name, value in what.items(): setattr(one, name, value)
    return pydicom.sequence.Sequence([one])
d.SharedFunctionalGroupsSequence = item(PlaneOrientationSequence=item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0]),
                                        PixelMeasuresSequence=item(PixelSpacing=[.3, .3], SliceThickness=1))
d.PerFrameFunctionalGroupsSequence = pydicom.sequence.Sequence(
    [item(PlanePositionSequence=item(ImagePositionPatient=[0, 0, float(i)]))[0] for i in range(int(d.NumberOfFrames))])"
  expect 3 subtract -i bad.dcm --mask-volume bad.dcm
  has err.txt "make no volume"
  expect 3 subtract -i mask.mha --mask-volume bad.dcm
  nothing_written
  # It is a sequence, whose blocks have no third index.
  expect 0 subtract -i bad.dcm --grid g.csv
  [ "$(head -1 g.csv | cut -d, -f1-4)" = frame,i,j,cx ]
}
