# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# make-samples: the folder it makes, and that a seed gives the same bytes.

SMALL="--training 2 --test 1 --size 20,18,16"

setup() { cd "$BATS_TEST_TMPDIR"; }

@test "make-samples writes images, labels, lists and dataset.json" {
  run "$BIN/make-samples" --output-dir s $SMALL
  [ "$status" -eq 0 ]
  [ "$(cat s/train.tsv)" = "$(printf 'image\tlabel\nimages/case_000.nii.gz\tlabels/case_000.nii.gz\nimages/case_001.nii.gz\tlabels/case_001.nii.gz')" ]
  [ "$(tail -n 1 s/test.tsv)" = "$(printf 'images/case_002.nii.gz\tlabels/case_002.nii.gz')" ]
  [ "$(ls s/images | wc -l)" -eq 3 ]
  [ "$(ls s/labels | wc -l)" -eq 3 ]
  run /usr/bin/python3 - <<'PY'
import json, nibabel, numpy
d = json.load(open("s/dataset.json"))
assert d["labels"] == {"0": "background", "1": "organ"}, d["labels"]
assert len(d["training"]) == d["numTraining"] == 2 and d["numTest"] == 1
for case in d["training"]:
    image, label = nibabel.load("s/" + case["image"]), nibabel.load("s/" + case["label"])
    assert image.shape == label.shape == (20, 18, 16)
    assert image.get_data_dtype() == numpy.int16
    assert numpy.allclose(image.affine, label.affine)
    assert numpy.allclose(image.header.get_zooms(), (2, 2, 3))
    assert set(numpy.unique(numpy.asarray(label.dataobj))) == {0, 1}
PY
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "make-samples: a slash at the end of the folder's name does not stand twice in the files' names" {
  run "$BIN/make-samples" --output-dir s/ $SMALL
  [ "$status" -eq 0 ]
  [[ "$output" == *"wrote s/images/case_000.nii.gz, s/labels/case_000.nii.gz"* ]]
  "$BIN/make-samples" --output-dir t $SMALL
  diff -r -x larch.json s t
}

@test "make-samples: same seed, same files, for any number of threads; another seed, others" {
  "$BIN/make-samples" --output-dir a $SMALL --threads 1
  "$BIN/make-samples" --output-dir b $SMALL --threads 2
  "$BIN/make-samples" --output-dir c $SMALL --seed 1
  for f in images/case_000.nii.gz labels/case_002.nii.gz train.tsv test.tsv dataset.json; do
    cmp "a/$f" "b/$f"
  done
  ! cmp -s a/images/case_000.nii.gz c/images/case_000.nii.gz
}

@test "make-samples writes other formats" {
  run "$BIN/make-samples" --output-dir s $SMALL --format nrrd
  [ "$status" -eq 0 ]
  [ -s s/images/case_002.nrrd ]
  [ -s s/labels/case_002.nrrd ]
  grep -q 'images/case_000.nrrd.labels/case_000.nrrd' s/train.tsv
  run "$BIN/make-samples" --output-dir t $SMALL --format docx
  [ "$status" -eq 2 ]
  [ ! -e t ]
}

@test "make-samples --format dicom: a folder per case, whose series and label map go together" {
  run "$BIN/make-samples" --output-dir s $SMALL --format dicom --rotation_deg 10,-20,15 --axes RAS
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(ls s/images/case_000/*.dcm | wc -l)" -eq 16 ]
  [ "$(tail -n 1 s/test.tsv)" = "$(printf 'images/case_002\tlabels/case_002.nii.gz')" ]
  # pbt-train reads each series and compares its grid with that of the label map.
  run "$BIN/pbt-train" --dataset s/dataset.json --output m.pbt --labels.positive 1 --dry-run
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "make-samples: a DICOM series holds no left-handed axes, and no axes are named twice" {
  run "$BIN/make-samples" --output-dir s $SMALL --format dicom --axes RPS
  [ "$status" -eq 2 ]
  [[ "$output" == *left-handed* ]]
  run "$BIN/make-samples" --output-dir s $SMALL --axes LPR
  [ "$status" -eq 2 ]
  [ ! -e s ]
}

@test "make-samples: one voxel along z makes 2-D images" {
  "$BIN/make-samples" --output-dir s --training 1 --test 0 --size 32,24,1 --format tif
  "$BIN/make-samples" --output-dir t --training 1 --test 0 --size 32,24,1
  "$BIN/evaluate" --prediction t/labels/case_000.nii.gz --reference t/labels/case_000.nii.gz --labels 1
  [ -s s/images/case_000.tif ]
}

@test "make-samples: sizes out of range are refused" {
  run "$BIN/make-samples" --output-dir s --size 18,1,16
  [ "$status" -eq 2 ]
  [[ "$output" == *"at least 16"* ]]
}

CINE="--kind angiography --format mha --angiography.size 64,48 --angiography.frames 5 --angiography.mask_frames 2"

@test "make-samples --kind angiography: frames, true motion in mm, vessels and the same as formulas" {
  run "$BIN/make-samples" --output-dir s $CINE --cases 2 --angiography.amplitude_px 3 --angiography.rotation_deg 1
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(cat s/cases.tsv)" = "$(printf 'image\tfield\tlabel\ttruth\nimages/case_000.mha\tfields/case_000.mha\tlabels/case_000.mha\ttruth/case_000.json\nimages/case_001.mha\tfields/case_001.mha\tlabels/case_001.mha\ttruth/case_001.json')" ]
  run /usr/bin/python3 - <<'PY'
import json, zlib, numpy
def read(path, kind):
    head, _, body = open(path, "rb").read().partition(b"ElementDataFile = LOCAL\n")
    body = zlib.decompress(body) if b"CompressedData = True" in head else body
    return head.decode(), numpy.frombuffer(body, kind)
head, field = read("s/fields/case_001.mha", "<f4")
assert "DimSize = 64 48 5" in head and "ElementNumberOfChannels = 2" in head, head
field = field.reshape(5, 48, 64, 2)
assert not field[:2].any() and field[2:].any()
truth = json.load(open("s/truth/case_001.json"))
settings, share = truth["settings"], truth["shares"][3]
y, x = numpy.mgrid[0:48, 0:64].astype(float)
def wave(name, axis):
    return sum(numpy.sin(2 * numpy.pi * (w["turns_per_px"][0] * x + w["turns_per_px"][1] * y + w["phase_turns"][axis]))
               for w in truth[name]) / 3
angle = numpy.radians(share["breathing"] * settings["rotation_deg"])
u, v = x - 31.5, y - 23.5
turned = (numpy.cos(angle) * u - numpy.sin(angle) * v - u, numpy.sin(angle) * u + numpy.cos(angle) * v - v)
for axis in (0, 1):
    d = (share["breathing"] * (settings["translation_px"][axis] + 3 * wave("waves", axis)) + turned[axis] +
         share["swallow"] * 3 * wave("swallow", axis))
    assert numpy.abs(d * 0.3 - field[3, :, :, axis]).max() < 1e-6
assert set(numpy.unique(read("s/labels/case_001.mha", "u1")[1])) <= {0, 1}
head, image = read("s/images/case_001.mha", "<u2")
assert 0 < image.min() and image.max() < 4095, (image.min(), image.max())
PY
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "make-samples --kind angiography: same seed, same files, for any number of threads; other noise over the same motion" {
  "$BIN/make-samples" --output-dir a $CINE --threads 1
  "$BIN/make-samples" --output-dir b $CINE --threads 2
  "$BIN/make-samples" --output-dir c $CINE --angiography.noise_seed 1
  "$BIN/make-samples" --output-dir d ${CINE/mha/nrrd} --truth=false
  for f in images/case_000.mha fields/case_000.mha labels/case_000.mha truth/case_000.json; do cmp "a/$f" "b/$f"; done
  ! cmp -s a/images/case_000.mha c/images/case_000.mha
  cmp a/fields/case_000.mha c/fields/case_000.mha
  [ "$(cd d && find . -type f ! -name larch.json)" = ./images/case_000.nrrd ]
}

@test "make-samples: flags of one kind are refused for the other" {
  run "$BIN/make-samples" --output-dir s $CINE --training 3
  [ "$status" -eq 2 ]
  [[ "$output" == *--cases* ]]
  run "$BIN/make-samples" --output-dir s --cases 3
  [ "$status" -eq 2 ]
  [[ "$output" == *--training* ]]
  run "$BIN/make-samples" --output-dir s --kind angiography --angiography.frames 5 --angiography.mask_frames 5
  [ "$status" -eq 2 ]
  [[ "$output" == *"at least one more"* ]]
  run "$BIN/make-samples" --output-dir s --angiography.frames 12
  [ "$status" -eq 2 ]
  [[ "$output" == *"--angiography.frames is of --kind angiography"* ]]
  [ ! -e s ]
}

@test "make-samples --kind angiography writes DICOM that names its mask, read by pydicom" {
  "$BIN/make-samples" --output-dir s ${CINE/--format mha/} --angiography.frame_ms 125
  "$BIN/make-samples" --output-dir t $CINE
  run /usr/bin/python3 - <<'PY'
import numpy, pydicom
d = pydicom.dcmread("s/images/case_000.dcm")
assert d.SOPClassUID == "1.2.840.10008.5.1.4.1.1.12.1", d.SOPClassUID
assert (d.NumberOfFrames, d.Rows, d.Columns, d.BitsStored) == (5, 48, 64, 12)
assert d.PixelIntensityRelationship == "LOG" and d.PixelIntensityRelationshipSign == 1
assert float(d.FrameTime) == 125 and [float(s) for s in d.ImagerPixelSpacing] == [0.3, 0.3]
item, = d.MaskSubtractionSequence
assert item.MaskOperation == "AVG_SUB" and list(item.MaskFrameNumbers) == [1, 2], item
assert list(item.ApplicableFrameRange) == [3, 5]
body = open("t/images/case_000.mha", "rb").read().partition(b"ElementDataFile = LOCAL\n")[2]
assert (d.pixel_array == numpy.frombuffer(body, "<u2").reshape(5, 48, 64)).all()
PY
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "make-samples --picture: the body of a picture, at rest in the mask and moved after it" {
  "$BIN/make-samples" --output-dir p $CINE --angiography.stored lin --angiography.vessels 0
  run "$BIN/make-samples" --output-dir s $CINE --picture p/images/case_000.mha --angiography.photons 1e6 --angiography.vessels 0
  echo "$output"
  [ "$status" -eq 0 ]
  run /usr/bin/python3 - <<'PY'
import numpy, zlib
def read(path):
    head, _, body = open(path, "rb").read().partition(b"ElementDataFile = LOCAL\n")
    return numpy.frombuffer(body, "<u2").reshape(5, 48, 64)
drawn, taken = numpy.log(read("p/images/case_000.mha")[0] + 0.0), read("s/images/case_000.mha")[0] / 800
inner = (slice(4, -4), slice(4, -4))
off = (drawn - taken)[inner]
assert off.std() < 0.3 * drawn[inner].std(), (off.std(), drawn[inner].std())   # noise, and what the filter takes
assert numpy.corrcoef(drawn[inner].ravel(), taken[inner].ravel())[0, 1] > 0.95
PY
  echo "$output"
  [ "$status" -eq 0 ]
  run "$BIN/make-samples" --output-dir t --kind angiography --picture p/images/case_000.mha
  [ "$status" -eq 2 ]
  [[ "$output" == *"--angiography.size 64,48"* ]]
  run "$BIN/make-samples" --output-dir t --picture p/images/case_000.mha
  [ "$status" -eq 2 ]
  run "$BIN/make-samples" --output-dir t $CINE --picture nowhere.dcm
  [ "$status" -eq 3 ]
  [ ! -e t ]
}

@test "make-samples --picture: the sign of the X-rays counts before MONOCHROME1, and each body has UIDs of its own" {
  /usr/bin/python3 -c "import pydicom" 2>/dev/null || skip "python3-pydicom is not installed"
  local tiny="--kind angiography --angiography.size 64,64 --angiography.frames 3 --angiography.mask_frames 1 --truth=false"
  "$BIN/make-samples" --output-dir p $tiny --angiography.stored lin -q --no-sidecar
  /usr/bin/python3 -c "
import pydicom
d = pydicom.dcmread('p/images/case_000.dcm')
d.save_as('plain.dcm')
d.PixelData = (4095 - d.pixel_array).astype('<u2').tobytes()
d.PhotometricInterpretation, d.PixelIntensityRelationshipSign = 'MONOCHROME1', -1
d.save_as('inverted.dcm')"
  "$BIN/make-samples" --output-dir plain $tiny --picture plain.dcm -q --no-sidecar
  "$BIN/make-samples" --output-dir inverted $tiny --picture inverted.dcm -q --no-sidecar
  /usr/bin/python3 -c "
import pydicom
a, b = (pydicom.dcmread(f'{name}/images/case_000.dcm') for name in ('plain', 'inverted'))
assert (a.pixel_array == b.pixel_array).all() and a.pixel_array.std() > 10
assert a.SOPInstanceUID != b.SOPInstanceUID"
}

@test "make-samples --kind phantom: heads with their tissues, the same for any number of threads" {
  HEADS="--kind phantom --cases 2 --phantom.size 40,36,32 --phantom.spacing_mm 2,2,2.5"
  run "$BIN/make-samples" --output-dir s $HEADS --threads 1
  echo "$output"
  [ "$status" -eq 0 ]
  "$BIN/make-samples" --output-dir t $HEADS --threads 2
  diff -r -x larch.json s t
  [ "$(cat s/cases.tsv)" = "$(printf 'image\treference\nimages/case_000.nii.gz\tlabels/case_000.nii.gz\nimages/case_001.nii.gz\tlabels/case_001.nii.gz')" ]
  run /usr/bin/python3 - <<'PY'
import nibabel, numpy
image, label = nibabel.load("s/images/case_001.nii.gz"), nibabel.load("s/labels/case_001.nii.gz")
assert image.shape == label.shape == (40, 36, 32) and image.get_data_dtype() == numpy.int16
assert numpy.allclose(image.affine, label.affine) and numpy.allclose(image.header.get_zooms(), (2, 2, 2.5))
tissues = numpy.asarray(label.dataobj)
assert set(numpy.unique(tissues)) == {0, 1, 2, 3}
means = [numpy.asarray(image.dataobj)[tissues == k].mean() for k in (3, 2, 1)]
assert means == sorted(means), means
PY
  echo "$output"
  [ "$status" -eq 0 ]
  run "$BIN/make-samples" --output-dir u $HEADS --training 3
  [ "$status" -eq 2 ]
  run "$BIN/make-samples" --output-dir u $HEADS --format dicom
  [ "$status" -eq 2 ]
  run "$BIN/make-samples" --output-dir u --phantom.snr 3
  [ "$status" -eq 2 ]
  [[ "$output" == *"--phantom.snr is of --kind phantom"* ]]
  [ ! -e u ]
}

@test "make-samples --kind poses: markups tell where the ellipsoids of the labels are" {
  OBJECTS="--kind poses --training 1 --test 1 --poses.size 64,56,48 --poses.object_scale 0.4 --poses.structures 3"
  run "$BIN/make-samples" --output-dir s $OBJECTS --threads 1
  echo "$output"
  [ "$status" -eq 0 ]
  "$BIN/make-samples" --output-dir t $OBJECTS --threads 2
  diff -r -x larch.json s t
  [ "$(cat s/test.tsv)" = "$(printf 'image\tlabel\tposes\nimages/case_001.nii.gz\tlabels/case_001.nii.gz\tposes/case_001.mrk.json')" ]
  [ "$(cut -f 2 s/labels.tsv | tr '\n' ' ')" = "name object_1 object_2 object_3 " ]
  run /usr/bin/python3 - <<'PY'
import json, nibabel, numpy
label = nibabel.load("s/labels/case_001.nii.gz")
voxels = numpy.asarray(label.dataobj)
boxes = json.load(open("s/poses/case_001.mrk.json"))["markups"]
assert len(boxes) == 3, boxes
for k, box in enumerate(boxes):
    index = numpy.argwhere(voxels == k + 1)
    lps = (index @ label.affine[:3, :3].T + label.affine[:3, 3]) * (-1, -1, 1)
    assert numpy.linalg.norm(lps.mean(0) - box["center"]) < 0.5, (k, lps.mean(0), box)
    assert abs(len(index) / (numpy.pi / 6 * numpy.prod(box["size"])) - 1) < 0.1, (k, len(index), box)
PY
  echo "$output"
  [ "$status" -eq 0 ]
  run "$BIN/make-samples" --output-dir u ${OBJECTS/scale 0.4/scale 2}
  [ "$status" -eq 2 ]
  [[ "$output" == *poses.size* ]]
  run "$BIN/make-samples" --output-dir u $OBJECTS --cases 3
  [ "$status" -eq 2 ]
  [ ! -e u ]
}

@test "make-samples --kind scenes: pictures with all regions and void at borders, the same for any number of threads" {
  "$BIN/make-samples" --output-dir a --kind scenes --training 2 --test 1 --threads 1 -q
  "$BIN/make-samples" --output-dir b --kind scenes --training 2 --test 1 --threads 3 -q
  diff -r -x larch.json a b
  [ "$(cat a/test.tsv)" = "$(printf 'image\tlabel\nimages/case_002.png\tlabels/case_002.png')" ]
  [ "$(cut -f 2 a/labels.tsv | tr '\n' ' ')" = "name sky grass water road house tree " ]
  "$BIN/evaluate" --prediction a/labels/case_000.png --reference a/labels/case_000.png --surfaces false --table t.tsv -q
  [ "$(cut -f 2 t.tsv | tr '\n' ' ')" = "structure 1 2 3 4 5 6 union " ]
  local labelled
  labelled=$(tail -n 1 t.tsv | cut -f 5)
  ((labelled > 320 * 213 * 85 / 100 && labelled < 320 * 213))
  run "$BIN/make-samples" --output-dir c --kind scenes --format tif
  [ "$status" -eq 2 ]
}

@test "make-samples --kind warped: labels go where the truth says, for each case of a list" {
  "$BIN/make-samples" --output-dir s --training 2 --test 0 --size 24,20,18
  COPIES="--kind warped --list s/train.tsv --cases 2 --warped.canvas 40,40,40 --warped.shift_mm 5"
  run "$BIN/make-samples" --output-dir w $COPIES --threads 1
  echo "$output"
  [ "$status" -eq 0 ]
  "$BIN/make-samples" --output-dir v $COPIES --threads 2
  diff -r -x larch.json v w
  [ "$(tail -n 1 w/cases.tsv)" = "$(printf 'case_001_1\timages/case_001_1.nii.gz\tlabels/case_001_1.nii.gz\ttruth/case_001_1.json\tcase_001')" ]
  run /usr/bin/python3 - <<'PY'
import json, nibabel, numpy
def centre(path):
    label = nibabel.load(path)
    index = numpy.argwhere(numpy.asarray(label.dataobj) == 1)
    return (index @ label.affine[:3, :3].T + label.affine[:3, 3]).mean(0) * (-1, -1, 1)
truth = json.load(open("w/truth/case_001_1.json"))
assert truth["number"] == 3 and truth["input"] == "case_001", truth
m = numpy.array(truth["world_from_input"])
expected = m[:3, :3] @ centre("s/labels/case_001.nii.gz") + m[:3, 3]
off = numpy.linalg.norm(centre("w/labels/case_001_1.nii.gz") - expected)
assert off < 0.7 and numpy.linalg.norm(m[:3, 3]) > 1, (off, m)
PY
  echo "$output"
  [ "$status" -eq 0 ]
  # Another image of the list makes other copies.
  cp s/images/case_000.nii.gz s/images/case_001.nii.gz
  run "$BIN/make-samples" --output-dir w $COPIES --skip-existing
  [ "$status" -eq 6 ]
}

@test "make-samples --kind warped: one image, and what is refused" {
  "$BIN/make-samples" --output-dir s --training 2 --test 0 --size 24,20,18
  "$BIN/make-samples" --output-dir o --training 1 --test 0 --size 24,20,16
  local pair="--image s/images/case_000.nii.gz --labels s/labels/case_000.nii.gz"
  "$BIN/make-samples" --output-dir w --kind warped $pair --cases 2 --warped.field_mm 2
  [ "$(cut -f 1 w/cases.tsv | tr '\n' ' ')" = "id case_000 case_001 " ]
  run "$BIN/make-samples" --output-dir u $pair
  [ "$status" -eq 2 ]
  [[ "$output" == *"--kind warped"* ]]
  run "$BIN/make-samples" --output-dir u --kind warped $pair --list s/train.tsv
  [ "$status" -eq 2 ]
  run "$BIN/make-samples" --output-dir u --warped.feather 2
  [ "$status" -eq 2 ]
  run "$BIN/make-samples" --output-dir u --kind warped --image s/images/case_000.nii.gz --labels o/labels/case_000.nii.gz
  echo "$output"
  [ "$status" -eq 3 ]
  [[ "$output" == *o/labels/case_000.nii.gz*"size"* ]]
  [ ! -e u ]
}
