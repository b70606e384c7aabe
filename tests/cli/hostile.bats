#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Images, label maps, lists, models and DICOM files that are damaged, empty, of the wrong kind or at
# the limits: a message that names the file, the documented exit code, and no output.

load helpers

setup_file() {
  /usr/bin/python3 "${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/tests/cli/tools/make_hostile.py" hostile "$BATS_FILE_TMPDIR"
  small_cases m.pbt
}

# train IMAGE LABEL [flags]: one case, put on a list.
train() {
  printf 'image\tlabel\n%s\t%s\n' "$1" "$2" > one.tsv
  timeout 60 "$BIN/pbt-train" --list one.tsv --output t.pbt --config tiny.json --force "${@:3}"
}

detect() { timeout 60 "$BIN/pbt-detect" --model m.pbt --output seg.nii.gz --force --input "$@"; }

# survives FILE CODES COMMAND...: one of the codes (left in $code), and on 3 no output and a message
# that names the file.
survives() {
  local file=$1 codes=$2
  code=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || code=$?
  [[ " $codes " == *" $code "* ]] || {
    echo "$file: exit code $code, not one of $codes"
    cat err.txt
    return 1
  }
  if [ "$code" -eq 3 ]; then
    has err.txt "${file##*/}"
    absent seg.nii.gz seg.tsv seg.nii.gz.json
  fi
  rm -f seg.*
}

refused() { survives "$1" 3 detect "$1"; }

# --- the environment

@test "libraries in the folder that ITK_AUTOLOAD_PATH names, as 3D Slicer sets it, are not loaded" {
  mkdir -p plugins
  printf '#include <cstdlib>\nstatic const int ended = (std::_Exit(99), 0);\n' > plugin.cpp
  c++ -shared -fPIC plugin.cpp -o plugins/libplugin.so
  expect 0 env ITK_AUTOLOAD_PATH="$PWD/plugins" "$BIN/evaluate" --prediction label.nii.gz --reference label.nii.gz --table e.tsv --force
}

# --- voxels

@test "NaN and infinite voxels: 3 with the file, the place and --nan-value, which accepts them" {
  for name in nan inf; do
    expect 3 detect $name.nii.gz
    has err.txt "'$name.nii.gz': 1 voxels are NaN or infinite, the first at index (3,4,5)"
    has err.txt "--nan-value"
    expect 3 train $name.nii.gz label.nii.gz
    has err.txt "$name.nii.gz"
    has err.txt "--nan-value"
    absent seg.nii.gz t.pbt
  done
  expect 0 detect nan.nii.gz --nan-value 200
  expect 0 train inf.nii.gz label.nii.gz --nan-value -5.5
  expect 2 detect nan.nii.gz --nan-value nan
}

@test "4-D images and label maps: 3 with the number of frames" {
  expect 3 detect 4d.nii.gz
  has err.txt "'4d.nii.gz': 2 frames"
  expect 3 train 4d.nii.gz label.nii.gz
  has err.txt "'4d.nii.gz' has 2 volumes"
  expect 3 train image.nii.gz 4d_label.nii.gz
  has err.txt "'4d_label.nii.gz': 2 frames"
  absent seg.nii.gz t.pbt
}

@test "image and label on different grids: 3 with both files and what differs" {
  while read -r name text; do
    expect 3 train image.nii.gz "label_$name.nii.gz"
    has err.txt "image.nii.gz"
    has err.txt "label_$name.nii.gz"
    has err.txt "$text"
  done <<'CASES'
short size 22x20x16 against 22x19x16
moved origin differs by (0, 2.5, 0) mm
coarse spacing differs by (0, 0, -0.5) mm
CASES
  absent t.pbt t.pbt.ckpt
}

@test "label maps that are none, or cannot be trained on" {
  expect 3 train image.nii.gz label_fraction.nii.gz
  has err.txt "'label_fraction.nii.gz': 7040 voxels are not whole numbers"
  expect 3 train image.nii.gz label.nii.gz --labels.positive 1,9
  has err.txt "the label 9 never occurs in the training labels, which hold 0, 1, 2"
  expect 3 train image.nii.gz label_empty.nii.gz
  has err.txt "0 samples of the class and 400 of the background"
  expect 3 train image.nii.gz label_full.nii.gz
  has err.txt "200 samples of the class and 0 of the background"
  expect 3 train image.nii.gz label.nii.gz --labels.ignore 1,2
  has err.txt "0 samples of the class"
  absent t.pbt t.pbt.ckpt
}

@test "an image smaller than any feature, a single slice, a single voxel, a single grey value" {
  expect 0 train small.nii.gz small_label.nii.gz --labels.border_voxels 0 \
    --tree.min_samples 2 --tree.min_class_samples 1 --features.window 65 --features.sizes 1,30
  [ -s t.pbt ]
  rm t.pbt
  expect 3 train voxel.nii.gz voxel_label.nii.gz --labels.border_voxels 0
  has err.txt "1 samples of the class and 0 of the background"
  absent t.pbt
  for name in small voxel slice constant; do
    survives $name.nii.gz "0 7" detect $name.nii.gz --probability $name.p.nii.gz --mesh $name.ply \
      --qc $name.png --candidates $name.tsv
    python "
import nibabel, numpy
image, p = nibabel.load('$name.nii.gz'), nibabel.load('$name.p.nii.gz')
values = p.get_fdata()
assert p.shape == image.shape and values.min() >= 0 and values.max() <= 1
rows = open('$name.tsv').read().splitlines()
assert len(rows) == 1 + min(100, values.size), len(rows)"
    [ -s $name.ply ] && [ -s $name.png ]
  done
}

@test "the codes of NIfTI's transforms: kept in label map, probability and mesh; none is said" {
  for form in 0 1 2 3 4; do
    python "
import gzip, struct
raw = bytearray(open('good.nii', 'rb').read())
struct.pack_into('<hh', raw, 252, 1 if $form == 4 else $form, $form)
open('coded.nii', 'wb').write(raw)"
    survives coded.nii "0 7" detect coded.nii --probability p.nii.gz --mesh m.gii --qc q.png
    cp err.txt err_$form.txt
    mv q.png q_$form.png
    expect 0 detect coded.nii --force
    python "
import nibabel, numpy
for name in 'seg.nii.gz', 'p.nii.gz':
    header = nibabel.load(name).header
    assert (header['sform_code'], header['qform_code']) == ($form, $form), (name, header)
    assert numpy.allclose(header.get_zooms(), [2, 2, 3])
    if $form == 0:
        assert not (header['srow_x'].any() or header['quatern_b'].any())
        assert (nibabel.load(name).affine == nibabel.load('coded.nii').affine).all()
assert nibabel.load('m.gii').darrays[0].coordsys.dataspace == $form"
  done
  has err_0.txt "'coded.nii': sform_code and qform_code are 0"
  for form in 1 2 3 4; do lacks err_$form.txt "warning"; done
  # The letters are all that differs in the picture.
  cmp q_1.png q_2.png
  ! cmp -s q_0.png q_1.png
  # Two transforms of one code that disagree.
  python "
import struct
raw = bytearray(open('good.nii', 'rb').read())
struct.pack_into('<hh', raw, 252, 1, 1)
struct.pack_into('<f', raw, 268, 40.0)
open('disagree.nii', 'wb').write(raw)"
  survives disagree.nii "0 7" detect disagree.nii
  has err.txt "'disagree.nii': sform and qform have one code and lead to different places"
}

# --- files

@test "truncated, damaged and nonsensical images: 3, naming the file" {
  for file in broken/*; do
    # A slope that is no number means that there is no scaling; what else is there is refused.
    if [ "$file" = broken/header_slope_nan.nii ]; then
      survives "$file" "0 7" detect "$file"
    else
      refused "$file"
    fi
  done
}

@test "truncated and damaged images and labels in training: 3, naming the file" {
  for file in broken/cut_5.nii.gz broken/flip_20.nii.gz broken/cut_353.nii \
      broken/header_huge.nii broken/text.nii.gz; do
    survives "$file" 3 train "$file" label.nii.gz
    survives "$file" 3 train image.nii.gz "$file"
  done
  absent t.pbt t.pbt.ckpt
}

@test "one bit of the header flipped, all over: read or refused, never a crash" {
  for file in flipped/*; do
    survives "$file" "0 3 7" detect "$file" -q --threads 1
  done
}

@test "lists: empty, without a label, with a missing file, no text" {
  list() { "$BIN/pbt-train" --list "$1" --output t.pbt --config tiny.json; }
  printf 'image\tlabel\n' > empty.tsv
  expect 3 list empty.tsv
  has err.txt "empty.tsv"
  : > nothing.tsv
  expect 3 list nothing.tsv
  has err.txt "nothing.tsv"
  printf 'image\nimage.nii.gz\n' > unlabelled.tsv
  expect 3 list unlabelled.tsv
  has err.txt "label"
  printf 'image\tlabel\nimage.nii.gz\t\n' > gap.tsv
  expect 3 list gap.tsv
  has err.txt "'gap.tsv', line 2: the label is empty"
  printf 'picture\tlabel\nimage.nii.gz\tlabel.nii.gz\n' > column.tsv
  expect 3 list column.tsv
  has err.txt "'image'"
  printf 'image\tlabel\nimage.nii.gz\tnone.nii.gz\n' > missing.tsv
  expect 3 list missing.tsv
  has err.txt "none.nii.gz"
  has err.txt "line 2"
  expect 3 list image.nii.gz
  has err.txt "image.nii.gz"
  expect 3 list none.tsv
  has err.txt "none.tsv"
  absent t.pbt t.pbt.ckpt
}

@test "dataset.json: no JSON, no cases, cases that are missing" {
  dataset() { "$BIN/pbt-train" --dataset d.json --output t.pbt --config tiny.json; }
  for text in '{"training": [' '[]' '{}' '{"training": []}' '{"training": 5}' \
      '{"training": [{"image": "./none.nii.gz", "label": "./label.nii.gz"}]}' \
      '{"training": [{"image": 7, "label": "./label.nii.gz"}]}' \
      '{"training": [{"image": "./image.nii.gz"}]}'; do
    echo "$text" > d.json
    expect 3 dataset
    grep -q 'd\.json\|none\.nii\.gz' err.txt || { echo "$text"; cat err.txt; return 1; }
  done
  absent t.pbt
}

# Far less than the tables that such a header asks for, and far more than the refusal takes. The
# address space of a sanitizer is larger than any limit.
limit_memory() { [ -n "${LARCH_SANITIZE:-}" ] || ulimit -v 1500000; }

@test "headers that would take gigabytes, or lead nowhere: 3 within a small memory, and no endless loop" {
  for name in tall.tif ring.tif header_huge.nii header_axis_long.nii header_axis_sheared.nii \
      header_spacing_huge.nii; do
    limited() { (limit_memory; detect "broken/$name" --threads 1); }
    survives "broken/$name" 3 limited
  done
  has err.txt "header_spacing_huge.nii': a voxel spacing of"
  # In training the same is said of the image, not of a model.
  survives broken/header_spacing_huge.nii 3 train broken/header_spacing_huge.nii label.nii.gz
  lacks err.txt "model"
}

@test "headers that claim more than their files hold: 3 in a dry run too" {
  for name in tall.tif header_huge.nii header_axis_long.nii cut_353.nii; do
    survives "broken/$name" 3 detect "broken/$name" --dry-run
  done
}

@test "what has been found to crash or hang before" {
  test_data hostile
  for name in ring.tif tiff_13/x.tif type-1100.nrrd nrrd_124/x.nrrd shear-1e6.nii.gz \
      niigz_14/x.nii.gz nifti2_117/x.nii.gz nii_77/x.nii; do
    limited() { (limit_memory; detect "$data/$name" --threads 1); }
    survives "$name" 3 limited
  done
}

# --- models

@test "models that are none: text, an image, nothing, a folder, a checkpoint" {
  cp train.tsv text.pbt
  cp image.nii.gz image.pbt
  for file in text.pbt image.pbt; do
    expect 3 "$BIN/pbt-detect" --model $file --input image.nii.gz --output seg.nii.gz
    has err.txt "cannot read the model '$file': it is not a model of Larch"
  done
  expect 3 "$BIN/pbt-detect" --model none.pbt --input image.nii.gz --output seg.nii.gz
  has err.txt "'none.pbt' does not exist"
  expect 3 "$BIN/pbt-detect" --model broken --input image.nii.gz --output seg.nii.gz
  has err.txt "is a folder"
  absent seg.nii.gz
}

@test "in the place of a model: pointers, HTML and nothing are called so by every program with models" {
  : > empty
  printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' > lfs
  printf '/annex/objects/MD5E-s9--0.pbt\n' > annex
  printf '<!DOCTYPE html>\n<html></html>\n' > html
  for program in "pbt-detect -o seg.nii.gz" "hdn-detect -o seg.json" "boundary-refine --poses lfs -o seg.vtk"; do
    for row in "empty:empty (0 bytes)" "lfs:a Git LFS pointer" "annex:a git-annex pointer" "html:an HTML page"; do
      expect 3 "$BIN"/$program --model "${row%%:*}" --input image.nii.gz
      has err.txt "'${row%%:*}' is ${row#*:}"
    done
  done
}

@test "truncated models: 3, naming the file, at whatever length" {
  size=$(stat -L -c %s m.pbt)
  for keep in 1 7 8 16 63 64 65 500 $((size / 2)) $((size - 33)) $((size - 1)); do
    head -c "$keep" m.pbt > cut.pbt
    survives cut.pbt 3 "$BIN/pbt-detect" --model cut.pbt --input image.nii.gz --output seg.nii.gz
  done
  { cat m.pbt; echo more; } > cut.pbt
  survives cut.pbt 3 "$BIN/pbt-detect" --model cut.pbt --input image.nii.gz --output seg.nii.gz
}

@test "models with one bit flipped: 3, naming the file, wherever it is" {
  python "
import os
raw = open('m.pbt', 'rb').read()
os.mkdir('bits')
places = sorted(set(range(0, 160, 7)) | {i * len(raw) // 40 for i in range(40)} | {len(raw) - 1})
for at in places:
    open(f'bits/{at:06d}.pbt', 'wb').write(raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1:])"
  [ "$(ls bits | wc -l)" -gt 50 ]
  for file in bits/*; do
    survives "$file" 3 "$BIN/pbt-detect" --model "$file" --input image.nii.gz --output seg.nii.gz -q
  done
}

# --- DICOM

@test "odd DICOM files, one by one: read, or 3 with the file and what is wrong" {
  test_data dicom/odd
  read_files=0
  for file in "$data"/*; do
    survives "$file" "0 3 7" detect "$file" --threads 1 --allow missing-spacing
    if [ "$code" -ne 3 ]; then read_files=$((read_files + 1)); fi
  done
  # Plain, big-endian, implicit, RLE, JPEG-LS and JPEG 2000 images are no excuse.
  for name in CT_small MR_small MR_small_RLE MR_small_bigendian MR_small_implicit \
      MR_small_jp2klossless MR_small_jpeg_ls_lossless; do
    survives $name "0 7" detect "$data/$name.dcm" --threads 1
  done
  [ "$read_files" -ge 10 ]
  # All of them as one folder: several series, and files that are no images.
  survives odd 3 detect "$data" --threads 1
}

# slice FILE ALLOCATED STORED HIGH SIGNED [ELEMENT]: a picture of 4 x 4 pixels, with its spacing in the
# element (0028,ELEMENT).
slice() {
  python "
import struct
def element(group, number, vr, value):
    value += (b'\\0' if vr == 'UI' else b' ') * (len(value) % 2)
    length = struct.pack('<HI', 0, len(value)) if vr in ('OB', 'OW') else struct.pack('<H', len(value))
    return struct.pack('<HH', group, number) + vr.encode() + length + value
us = lambda value: struct.pack('<H', value)
meta = element(2, 0x10, 'UI', b'1.2.840.10008.1.2.1')
image = element(8, 0x60, 'CS', b'CT') + element(0x20, 0xe, 'UI', b'1.2.3') + element(0x28, 2, 'US', us(1))
image += element(0x28, 4, 'CS', b'MONOCHROME2') + element(0x28, 0x10, 'US', us(4)) + element(0x28, 0x11, 'US', us(4))
image += element(0x28, ${6-0x30}, 'DS', b'1\\\\1')
for number, value in zip((0x100, 0x101, 0x102, 0x103), ($2, $3, $4, $5)):
    image += element(0x28, number, 'US', us(value))
image += element(0x7fe0, 0x10, 'OW', b''.join(us(16 * k) for k in range(16)))
size = element(2, 0, 'UL', struct.pack('<I', len(meta)))
open('$1', 'wb').write(bytes(128) + b'DICM' + size + meta + image)"
}

@test "bits that no decoder bears: 3, and in a list one failed case" {
  printf 'id\timage\n' > odd.tsv
  local number=0
  for bits in "8 3 8 0" "8 12 11 0" "16 17 16 1" "1 1 0 16" "16 0 65535 0" "12 12 11 0" "24 24 23 0" "255 8 7 0"; do
    number=$((number + 1))
    read -r -a fields <<< "$bits"
    slice "bits$number.dcm" "${fields[@]}"
    survives "bits$number.dcm" 3 detect "bits$number.dcm"
    printf 'bits%s\tbits%s.dcm\n' "$number" "$number" >> odd.tsv
  done
  slice sound.dcm 16 12 15 1
  expect 0 detect sound.dcm
  printf 'good\timage.nii.gz\n' >> odd.tsv
  expect 7 timeout 60 "$BIN/pbt-detect" --model m.pbt --list odd.tsv --output-dir out
  [ "$(grep -c "$(printf '\tfailed\t')" out/status.tsv)" -eq 8 ]
  [ -f out/good.nii.gz ]
}

@test "a DICOM file that is refused names the flag, which reads it with a warning" {
  slice bare.dcm 16 16 15 0 0x31
  expect 3 detect bare.dcm
  has err.txt "--allow missing-spacing"
  expect 0 detect bare.dcm --allow missing-spacing
  has err.txt "pixels are taken as 1 mm"
  expect 2 detect bare.dcm --allow anything
  has err.txt "missing-spacing"
  expect 3 "$BIN/evaluate" --prediction bare.dcm --reference bare.dcm
  expect 0 "$BIN/evaluate" --prediction bare.dcm --reference bare.dcm --allow missing-spacing
}

@test "a file of a format that is not read: 3, naming the program that converts it" {
  cp image.nii.gz brain.gipl.gz
  expect 3 detect brain.gipl.gz
  has err.txt "convert it with c3d"
  zcat image.nii.gz > old.hdr
  printf '\0\0\0\0' | dd of=old.hdr bs=1 seek=344 conv=notrunc status=none
  expect 3 detect old.hdr
  has err.txt "this is ANALYZE 7.5"
  has err.txt "convert it"
}

@test "DICOM files cut off at any length: 3, naming the file" {
  test_data dicom/odd
  for name in MR_small MR_small_RLE MR_small_jpeg_ls_lossless; do
    size=$(stat -c %s "$data/$name.dcm")
    for keep in 0 131 132 200 700 1500 $((size / 2)) $((size - 200)); do
      head -c "$keep" "$data/$name.dcm" > cut.dcm
      survives cut.dcm 3 detect cut.dcm --threads 1
    done
  done
}
