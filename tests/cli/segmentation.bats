#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Label maps as DICOM segmentations of the series that was read, and what records say of that series.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" -o s --training 1 --test 2 --size 32,28,20 --format dicom -q
  printf 'index\tname\tcolor\tcode_scheme\tcode_value\tcode_meaning\n1\tLiver\t#dd8265\tSCT\t10200004\tLiver\n' > names.tsv
}

# segment FLAG...: three balls in a sample.
segment() {
  "$BIN/levelset-segment" -q --input s/images/case_000 --sphere-index 8,14,10,4,1 --sphere-index 20,14,9,4,2 \
    --sphere-index 26,8,4,3,3 --lower -5000 --upper 5000 --max_iterations 2 "$@"
}

@test "--output x.seg.dcm has the voxels of .nii.gz, frame by frame in the slices that were read" {
  expect 0 segment --output x.nii.gz
  expect 0 segment --output x.seg.dcm --label-table names.tsv
  expect 0 segment --output again.seg.dcm --label-table names.tsv
  cmp x.seg.dcm again.seg.dcm
  expect 0 "$BIN/evaluate" -q --prediction x.seg.dcm --reference x.nii.gz --report e.json
  python "
dice = {label: scores['dice']['mean'] for label, scores in load('e.json')['summary'].items()}
assert len(dice) == 4 and set(dice.values()) == {1}, dice"
  if command -v dciodvfy; then
    ! dciodvfy -filename x.seg.dcm 2>&1 | grep '^Error'
  fi
  /usr/bin/python3 -c "import pydicom" 2>/dev/null || skip "python3-pydicom is not installed"
  python "
import glob, nibabel, numpy, pydicom
seg, truth = pydicom.dcmread('x.seg.dcm'), numpy.asarray(nibabel.load('x.nii.gz').dataobj)
sources = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, glob.glob('s/images/case_000/*'))}
ordered = sorted(sources.values(), key=lambda d: d.ImagePositionPatient[2])
found = numpy.zeros_like(truth)
frames = seg.pixel_array.reshape(-1, seg.Rows, seg.Columns)
for frame, groups in zip(frames, seg.PerFrameFunctionalGroupsSequence):
    source = sources[groups.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID]
    assert groups.PlanePositionSequence[0].ImagePositionPatient == source.ImagePositionPatient
    assert frame.any()
    number = groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber
    found[:, :, ordered.index(source)] += (frame.T * number).astype(found.dtype)
numbers = numpy.unique(truth[truth > 0]).tolist()
assert [s.SegmentNumber for s in seg.SegmentSequence] == numbers == [1, 2, 3], numbers
assert (found == truth).all()
shared = seg.SharedFunctionalGroupsSequence[0]
assert shared.PlaneOrientationSequence[0].ImageOrientationPatient == ordered[0].ImageOrientationPatient
for name in ('PatientID', 'PatientName', 'StudyInstanceUID', 'FrameOfReferenceUID', 'StudyID'):
    assert seg[name] == ordered[0][name], name
assert (seg.SeriesNumber, seg.Modality, seg.Manufacturer) == (2, 'SEG', 'Larch')
assert seg.ContributingEquipmentSequence[0].Manufacturer == 'Larch'
assert seg.ManufacturerModelName == 'levelset-segment' and seg.SoftwareVersions
liver, other = seg.SegmentSequence[:2]
assert (liver.SegmentLabel, liver.SegmentAlgorithmType) == ('Liver', 'AUTOMATIC')
assert liver.SegmentedPropertyTypeCodeSequence[0].CodeValue == '10200004'
assert (other.SegmentLabel, other.SegmentedPropertyTypeCodeSequence[0].CodeMeaning) == ('label 2', 'Organ')
assert other.SegmentationAlgorithmIdentificationSequence[0].AlgorithmVersion == seg.SoftwareVersions"
}

@test "a list writes segmentations with --format dcm, and other images as they were" {
  printf 'image\tlabel\n' > list.tsv
  for k in 1 2; do printf 's/images/case_00%s\ts/labels/case_00%s.nii.gz\n' $k $k; done >> list.tsv
  printf 's/labels/case_000.nii.gz\ts/labels/case_000.nii.gz\n' >> list.tsv
  expect 7 "$BIN/levelset-segment" -q --list list.tsv --output-dir out --format dcm --write labels,distance --max_iterations 3
  ls out/case_001.dcm out/case_001.distance.nii.gz out/case_002.dcm
  has out/status.tsv "case_000.nii.gz' is not DICOM; write .nii.gz"
  [ ! -e out/case_001.nii.dcm ]
  expect 2 segment --output x.nii.gz --distance d.dcm
  expect 2 "$BIN/levelset-segment" --input s/labels/case_000.nii.gz --sphere-index 9,9,9,3 --output x.seg.dcm
  has err.txt "cannot write 'x.seg.dcm': .dcm is a DICOM segmentation of a DICOM series, and 's/labels/case_000.nii.gz' is not DICOM"
  expect 3 segment --output x.seg.dcm --label-table s/train.tsv --dry-run
  has err.txt "line 1: no column 'index' of the labels"
}

@test "records name study, series and instances that were read, and the patient with --identifiers alone" {
  expect 0 segment --output x.nii.gz
  expect 0 segment --output y.nii.gz --identifiers
  python "
x, y = (load(f)['Larch']['Inputs'][0]['DICOM'] for f in ('x.nii.gz.json', 'y.nii.gz.json'))
assert len(set(x['SOPInstanceUIDs'])) == 20 and x['StudyInstanceUID'] != x['SeriesInstanceUID']
assert 'PatientID' not in x and y.pop('PatientID') and x == y"
  python "assert 'PatientID' not in open('x.nii.gz.json').read()"
}
