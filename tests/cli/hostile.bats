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

@test "label maps that are none, or cannot be trained on" {
  expect 3 train image.nii.gz label_fraction.nii.gz
  has err.txt "'label_fraction.nii.gz': 7040 voxels are not whole numbers"
  expect 3 train image.nii.gz label_empty.nii.gz
  has err.txt "0 samples of the class and 400 of the background"
  expect 3 train image.nii.gz label_full.nii.gz
  has err.txt "200 samples of the class and 0 of the background"
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

# --- DICOM

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
