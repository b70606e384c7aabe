#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-detect where memory, disks or files are small, or volumes are large.

load helpers

setup_file() { make_detect_cases; }

on_case() { detect --input image_3.nii.gz "$@"; }

@test "--memory: the same bytes in slabs, and 5 with the need when it is too little" {
  python "
import nibabel, numpy
image = nibabel.load('image_3.nii.gz')
data = numpy.asarray(image.dataobj)
tall = numpy.concatenate([data] * 10, axis=2)
tall = numpy.pad(tall, ((0, 50), (0, 50), (0, 0)), mode='edge')
nibabel.save(nibabel.Nifti1Image(tall, image.affine), 'tall.nii.gz')"
  expect 0 detect -i tall.nii.gz --probability p.nii.gz -o seg.nii.gz
  lacks err.txt "slabs"
  expect 5 detect -i tall.nii.gz --probability x.nii.gz --memory 3M
  has err.txt "needs at least"
  has err.txt "--memory"
  absent x.nii.gz
  needed=$(sed -n 's/.*(\([0-9]*\) bytes).*/\1/p' err.txt)
  expect 0 detect -i tall.nii.gz --probability p2.nii.gz -o seg2.nii.gz --memory $needed
  has err.txt "evaluating in"
  cmp p.nii.gz p2.nii.gz
  cmp seg.nii.gz seg2.nii.gz
}

@test "a list: a case that memory does not hold fails alone, with 5 if no other kind of failure is beside it" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "the address space of a sanitizer is larger than any limit"
  python "
import struct
header = bytearray(352)
struct.pack_into('<i', header, 0, 348)
struct.pack_into('<8h', header, 40, 3, 800, 800, 800, 1, 1, 1, 1)
struct.pack_into('<2h', header, 70, 2, 8)
struct.pack_into('<8f', header, 76, 1, 1, 1, 1, 1, 1, 1, 1)
struct.pack_into('<f', header, 108, 352)
header[344:348] = b'n+1\0'
with open('huge.nii', 'wb') as file:
    file.write(header)
    file.truncate(352 + 800 ** 3)"
  printf 'image\nimage_0.nii.gz\nhuge.nii\nimage_1.nii.gz\n' > some.tsv
  limited() { (ulimit -v 1500000; detect --list some.tsv --output-dir out --threads 3 "$@"); }
  expect 5 limited
  cmp out/image_0.nii.gz one_0.nii.gz
  cmp out/image_1.nii.gz one_1.nii.gz
  status "
assert {i: r['status'] for i, r in rows.items()} == {'huge': 'failed', 'image_0': 'ok', 'image_1': 'ok'}, rows
assert 'huge.nii' in rows['huge']['message'], rows"
  echo missing.nii.gz >> some.tsv
  expect 7 limited --skip-existing
  has err.txt "skipped 2"
}

@test "large compressed files: one gzip member that nibabel, gzip and Larch read; threads do not matter" {
  python "
import nibabel, numpy
image = nibabel.load('image_3.nii.gz')
big = numpy.asarray(image.dataobj).repeat(6, axis=0).repeat(6, axis=1).repeat(4, axis=2)
affine = image.affine @ numpy.diag([1 / 6, 1 / 6, 1 / 4, 1])
nibabel.save(nibabel.Nifti1Image(big, affine), 'big.nii.gz')
print(big.nbytes)"
  for threads in 1 2 3; do
    expect 0 detect -i big.nii.gz --probability p$threads.nii.gz --threads $threads --no-sidecar
  done
  cmp p1.nii.gz p2.nii.gz
  cmp p1.nii.gz p3.nii.gz
  gzip -t p1.nii.gz
  expect 0 detect -i big.nii.gz --probability p.nii --no-sidecar
  python "
import gzip, nibabel, numpy, zlib
raw = open('p1.nii.gz', 'rb').read()
one = zlib.decompressobj(31)
text = one.decompress(raw)
assert one.eof and not one.unused_data, 'more than one member'
assert len(text) > 3 << 20, len(text)
assert text == open('p.nii', 'rb').read()
assert numpy.array_equal(nibabel.load('p1.nii.gz').get_fdata(), nibabel.load('p.nii').get_fdata())
# Blocks do not cost compression: within 2 % of one piece.
assert len(raw) < 1.02 * len(gzip.compress(text, 6)), (len(raw), len(gzip.compress(text, 6)))"
}

@test "--memory holds for a batch with broad bands of the graph cut, which stay as broad" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..} i
  /usr/bin/python3 "$source/tests/cli/tools/make_broad.py" .
  echo '{"structure": {"graph_cut": {"band_low": 0, "band_high": 1}}}' > broad.json
  local flags=(--model m.pbt --config broad.json -q)
  for i in 0 1; do "$BIN/pbt-detect" "${flags[@]}" -i broad_$i.nii -o unlimited_$i.nii.gz --threads 2; done
  /usr/bin/python3 "$source/tests/cli/tools/peak.py" peak.txt "$BIN/pbt-detect" "${flags[@]}" --list broad.tsv \
    --output-dir limited --threads 8 --memory 300M
  echo "peak: $(cat peak.txt)"
  [ "$(cat peak.txt)" -lt $(((300 + 150) << 20)) ]
  for i in 0 1; do cmp "unlimited_$i.nii.gz" "limited/broad_$i.nii.gz"; done
}
