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
