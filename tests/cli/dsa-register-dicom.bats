#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# What a DICOM angiogram says and dsa-register has to follow: Modality LUT, averaged contrast frames.

load helpers

needs_pydicom() { /usr/bin/python3 -c "import pydicom" 2>/dev/null || skip "python3-pydicom is not installed"; }

# cine NAME CODE: a DICOM angiogram of 4 frames of 64 x 64 whose first is the mask. `p` holds linear values of 12
# bits, all squares of 20 to 62; the code may change them, and the data set `d`.
cine() {
  python "
import numpy, pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
d = Dataset()
d.file_meta = FileMetaDataset()
d.file_meta.TransferSyntaxUID = '1.2.840.10008.1.2.1'
d.is_little_endian, d.is_implicit_VR = True, False
d.SOPClassUID, d.SOPInstanceUID, d.Modality = '1.2.840.10008.5.1.4.1.1.12.1', '1.2.3', 'XA'
d.file_meta.MediaStorageSOPClassUID, d.file_meta.MediaStorageSOPInstanceUID = d.SOPClassUID, d.SOPInstanceUID
d.StudyInstanceUID, d.SeriesInstanceUID = '1.2', '1.2.4'
d.SamplesPerPixel, d.PhotometricInterpretation, d.NumberOfFrames = 1, 'MONOCHROME2', 4
d.Rows = d.Columns = 64
d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 16, 12, 11, 0
d.PixelIntensityRelationship, d.FrameTime, d.FrameIncrementPointer = 'LIN', 100, 0x00181063
root = numpy.random.default_rng(7).integers(20, 63, (4, 64, 64)).astype('<u2')
p = root * root
def item(**what):
    made = Dataset()
    for key, value in what.items(): setattr(made, key, value)
    return made
$2
d.PixelData = p.astype('<u2').tobytes()
d.save_as('$1', write_like_original=False)"
}

# plainly NAME ...: subtracts without correction into NAME.mha.
plainly() {
  expect 0 "$BIN/dsa-register" -i "$1.dcm" -o "$1.mha" --method none --normalize none --force "${@:2}"
}

# same A B: the differences in A.mha and B.mha agree but for rounding.
same() {
  python "
import numpy
a, b = (numpy.frombuffer(open(n + '.mha', 'rb').read()[-3 * 64 * 64 * 2:], '<i2').astype(int) for n in ('$1', '$2'))
assert a.std() > 100 and abs(a - b).max() <= 1, (a.std(), abs(a - b).max())"
}

@test "a Modality LUT is applied to linear values, and not to logarithms" {
  needs_pydicom
  cine plain.dcm ""
  # The same values as numbers of lines of a table of squares, in 8 bits.
  cine table.dcm "
p = root
d.BitsStored, d.HighBit = 8, 7
lut = item(ModalityLUTType='US')
lut.add_new(0x00283002, 'US', [256, 0, 16])
lut.add_new(0x00283006, 'US', [i * i for i in range(256)])
d.ModalityLUTSequence = Sequence([lut])"
  plainly plain
  plainly table --report r.json
  same plain table
  lacks err.txt "not applied"
  python "assert any('by the Modality LUT' in note for note in load('r.json')['notes']), load('r.json')['notes']"
  # A rescaling of linear values counts where the values become logarithms.
  cine offset.dcm "
p = p + 50
d.RescaleIntercept, d.RescaleSlope = -100, 2"
  plainly offset
  same plain offset
  # Logarithms are what is stored, whatever leads back from them.
  cine log.dcm "d.PixelIntensityRelationship = 'LOG'"
  cine log-table.dcm "
d.PixelIntensityRelationship = 'LOG'
d.RescaleIntercept, d.RescaleSlope = 7, 3"
  plainly log
  plainly log-table
  cmp log.mha log-table.mha
}

@test "a sequence of another modality is warned of, and a shutter that covers all says how to go on" {
  needs_pydicom
  cine sound.dcm "d.Modality = 'US'"
  expect 0 "$BIN/dsa-register" -i sound.dcm -o sound.mha
  has err.txt "its modality is 'US', not that of X-ray pictures"
  cine covered.dcm "
d.ShutterShape = 'RECTANGULAR'
d.ShutterLeftVerticalEdge = d.ShutterRightVerticalEdge = d.ShutterUpperHorizontalEdge = d.ShutterLowerHorizontalEdge = 0"
  expect 3 "$BIN/dsa-register" -i covered.dcm -o covered.mha
  lacks err.txt "modality"
  has err.txt "no pixel is left inside of region and shutter; give another region, or --shutter none"
  expect 0 "$BIN/dsa-register" -i covered.dcm -o covered.mha --shutter none
}

@test "Contrast Frame Averaging: the mean of logarithms, up to the last frame that can be averaged" {
  needs_pydicom
  cine mean.dcm "
d.MaskSubtractionSequence = Sequence([item(MaskOperation='AVG_SUB', MaskFrameNumbers=[1], ApplicableFrameRange=[2, 3],
                                           ContrastFrameAveraging=2)])"
  expect 0 "$BIN/dsa-register" -i mean.dcm -o mean.mha --method none --normalize none
  python "
import numpy, pydicom
log = 1000 * numpy.log(pydicom.dcmread('mean.dcm').pixel_array.astype(float))
wanted = (log[1:3] + log[2:4]) / 2 - log[0]
got = numpy.frombuffer(open('mean.mha', 'rb').read()[-2 * 64 * 64 * 2:], '<i2').reshape(2, 64, 64)
# The mean is a stored value again: half a step of the smallest, 400, at most.
assert abs(got - wanted).max() < 1000 * 0.5 / 400 + 1, abs(got - wanted).max()"
}

@test "--native: the frames as they are, and shifts that take the motion out in a viewer's way" {
  needs_pydicom
  # Frame 2 is the mask moved 3 pixels to the right and 2 up, frame 3 the mask, frame 4 is moved to the left.
  cine moved.dcm "
r = numpy.random.default_rng(2)
y, x = numpy.mgrid[:64, :64]
body = 2000 + 150 * sum(numpy.sin(x * a + y * b + c) for a, b, c in r.uniform(-0.5, 0.5, (12, 3)))
p = numpy.stack([numpy.roll(body, move, (0, 1)) for move in ((0, 0), (-2, 3), (0, 0), (0, -4))]) + r.normal(0, 5, (4, 64, 64))
p = p.clip(1, 4094)
d.PatientName, d.WindowCenter, d.WindowWidth = 'Moved', 2000, 1000"
  expect 0 "$BIN/dsa-register" -i moved.dcm --native native.dcm --scores=false --report r.json
  python "
import numpy, pydicom
source, d = pydicom.dcmread('moved.dcm'), pydicom.dcmread('native.dcm')
assert (d.pixel_array == source.pixel_array).all() and d.BitsStored == 12 and d.PatientName == 'Moved'
assert d.PixelIntensityRelationship == 'LIN' and d.RecommendedViewingMode == 'SUB' and 'RescaleSlope' not in d
assert d.SOPInstanceUID != source.SOPInstanceUID and d.SourceImageSequence[0].ReferencedSOPInstanceUID == '1.2.3'
items = d.MaskSubtractionSequence
assert [list(i.ApplicableFrameRange) for i in items] == [[2, 2], [3, 3], [4, 4]]
assert all(i.MaskOperation == 'AVG_SUB' and i.MaskFrameNumbers == 1 for i in items)
# PS3.3, C.7.6.10.1.2: a positive row moves the mask down, a positive column to the left.
for item, (down, left) in zip(items, ((-2, -3), (0, 0), (0, 4))):
    row, column = item.get('MaskSubPixelShift', (0, 0))
    assert abs(row - down) < 0.2 and abs(column - left) < 0.2, (row, column, down, left)
frames = load('r.json')['frames']
assert abs(frames[0]['shift_px'][0] + 3) < 0.2 and abs(frames[0]['shift_px'][1] - 2) < 0.2, frames[0]"
  if command -v dciodvfy >/dev/null; then
    # Laterality is for paired parts of the body, and must not be empty; it wants one of every file without a part.
    dciodvfy native.dcm 2>&1 | grep -v 'Element=<Laterality>' | tee valid.txt
    lacks valid.txt "Error"
  fi
  # And back: what is written is read as the start of the search, and taken out without one.
  expect 0 "$BIN/dsa-register" -i native.dcm -o start.mha --method none --field start.field.mha
  python "
import numpy
field = numpy.frombuffer(open('start.field.mha', 'rb').read()[-3 * 64 * 64 * 8:], '<f4').reshape(3, 64, 64, 2)
assert abs(field[0, 32, 32] - (-3, 2)).max() < 0.2 and abs(field[2, 32, 32] - (4, 0)).max() < 0.2, field[:, 32, 32]"
}

@test "--native keeps sign, photometric interpretation and rescaling, and refuses a curved Modality LUT" {
  needs_pydicom
  cine odd.dcm "
p = (root.astype(int) - 40).astype('<i2').view('<u2')
d.PixelRepresentation, d.PhotometricInterpretation = 1, 'MONOCHROME1'
d.RescaleIntercept, d.RescaleSlope = 10, 2.5"
  expect 0 "$BIN/dsa-register" -i odd.dcm --native native.dcm --method none
  python "
import numpy, pydicom
source, d = pydicom.dcmread('odd.dcm'), pydicom.dcmread('native.dcm')
value = lambda x: x.pixel_array * float(x.RescaleSlope) + float(x.RescaleIntercept)
assert numpy.allclose(value(source), value(d)) and d.PhotometricInterpretation == 'MONOCHROME1'"
  cine curved.dcm "
lut = item(ModalityLUTType='US')
lut.add_new(0x00283002, 'US', [64, 0, 16])
lut.add_new(0x00283006, 'US', [i * i for i in range(64)])
p, d.BitsStored, d.HighBit = root, 8, 7
d.ModalityLUTSequence = Sequence([lut])"
  expect 3 "$BIN/dsa-register" -i curved.dcm -o out.mha --native curved-native.dcm
  has err.txt "which --native cannot keep"
  absent out.mha curved-native.dcm
  expect 2 "$BIN/dsa-register" -i odd.dcm --native native.mha
  has err.txt ".dcm"
  printf 'id\timage\na\todd.dcm\n' > cases.tsv
  expect 0 "$BIN/dsa-register" --list cases.tsv --output-dir out --write native --method none
  cmp out/a.native.dcm native.dcm
}
