#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-detect where memory, disks or files are small, or volumes are large.

load helpers

setup_file() { make_detect_cases; }

on_case() { detect --input image_3.nii.gz "$@"; }

@test "6: a full disk leaves none of the outputs and no part of one" {
  small_disk disk 40
  expect 6 on_case -o seg.nii.gz --probability disk/p.nii.gz --mesh disk/s.vtk --qc disk/qc.png
  has err.txt "No space left on device"
  [ -z "$(ls -A disk)" ]
  absent seg.nii.gz seg.tsv seg.nii.gz.json
  no_temporaries
}

@test "6: a limit on file sizes, for each kind of output" {
  for flag in "--probability p.nii.gz" "--probability p.nrrd" "--mesh s.vtk" "--mesh s.gii" \
      "--qc qc.png"; do
    (ulimit -f 1; expect 6 on_case ${flag} --no-sidecar)
    has err.txt "cannot write '${flag#* }'"
    absent "${flag#* }"
  done
  no_temporaries
}

@test "--memory: the same bytes in slabs, and 5 with the need when it is too little" {
  python "
import nibabel, numpy
image = nibabel.load('image_3.nii.gz')
data = numpy.asarray(image.dataobj)
tall = numpy.concatenate([data] * 40, axis=2)[:130, :, :]
tall = numpy.pad(tall, ((0, 90), (0, 90), (0, 0)), mode='edge')
nibabel.save(nibabel.Nifti1Image(tall, image.affine), 'tall.nii.gz')"
  expect 0 detect -i tall.nii.gz --probability p.nii.gz -o seg.nii.gz
  lacks err.txt "slabs"
  expect 5 detect -i tall.nii.gz --probability x.nii.gz --memory 32M
  has err.txt "needs at least"
  has err.txt "--memory"
  absent x.nii.gz
  needed=$(sed -n 's/.*(\([0-9]*\) bytes).*/\1/p' err.txt)
  for memory in $needed 60M; do
    expect 0 detect -i tall.nii.gz --probability p2.nii.gz -o seg2.nii.gz --memory $memory --force
    has err.txt "evaluating in"
    cmp p.nii.gz p2.nii.gz
    cmp seg.nii.gz seg2.nii.gz
  done
}

@test "--memory with a list: the same bytes, and a case that needs too much fails alone" {
  python "
import nibabel, numpy
image = nibabel.load('image_3.nii.gz')
tall = numpy.asarray(image.dataobj).repeat(9, axis=0).repeat(9, axis=1)
nibabel.save(nibabel.Nifti1Image(tall, image.affine), 'wide.nii.gz')"
  { cat cases.tsv; echo wide.nii.gz; } > both.tsv
  expect 5 detect --list both.tsv --output-dir out --memory 33800K --threads 3
  has err.txt "1 of 5 cases failed for want of memory"
  # With another kind of failure beside it the code is 7.
  echo missing.nii.gz >> both.tsv
  expect 7 detect --list both.tsv --output-dir out --memory 33800K --threads 3 --skip-existing
  same_as_single .nii.gz
  status "
assert rows['wide']['status'] == 'failed' and 'needs at least' in rows['wide']['message']
assert [rows['image_%d' % i]['status'] for i in range(4)] == ['ok'] * 4"
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

# measured LIST THREADS [FLAGS]: the batch LIST.tsv with LIST.json; its peak of memory goes to
# peak.txt.
measured() {
  local list=$1 threads=$2
  shift 2
  /usr/bin/python3 "$source/tests/cli/tools/peak.py" peak.txt "$BIN/pbt-detect" --model m.pbt \
    --list "$list.tsv" --output-dir "out_$threads" --config "$list.json" --threads "$threads" \
    -q "$@"
}
broad() { measured broad "$@"; }

@test "--memory holds for a batch with broad bands of the graph cut, which stay as broad" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..} threads i
  /usr/bin/python3 "$source/tests/cli/tools/make_broad.py" .
  echo '{"structure": {"graph_cut": {"band_low": 0, "band_high": 1}}}' > broad.json
  broad 2
  mv out_2 unlimited
  for threads in 1 8; do
    broad "$threads" --memory 300M
    echo "peak with $threads threads: $(cat peak.txt)"
    [ "$(cat peak.txt)" -lt $(((300 + 150) << 20)) ]
    for i in 0 1 2 3; do cmp "unlimited/broad_$i.nii.gz" "out_$threads/broad_$i.nii.gz"; done
  done
  # Less than the cut takes: a failed row that says how much it would be.
  code=0
  broad 4 --memory 200M || code=$?
  [ "$code" -eq 5 ]
  [ "$(cat peak.txt)" -lt $(((200 + 150) << 20)) ]
  python "
rows = [r.split('\t') for r in open('out_4/status.tsv').read().splitlines()[1:]]
assert [r[1] for r in rows] == ['failed'] * 4, rows
assert all('bytes), --memory allows 2' in r[2] for r in rows), rows"
}

@test "--memory holds for meshes of rough surfaces, which are counted before they are made" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..} threads i code
  python "
import nibabel, numpy
image, label = (numpy.asarray(nibabel.load(n + '_3.nii.gz').dataobj) for n in ('image', 'label'))
values = [image[label == 0].mean(), image[label > 0].mean()]
with open('rough.tsv', 'w') as table:
    table.write('image\n')
    for case in range(4):
        speckled = numpy.random.default_rng(case).choice(values, (110, 110, 110)).astype('i2')
        nibabel.save(nibabel.Nifti1Image(speckled, numpy.diag([2, 2, 3, 1])), f'rough_{case}.nii')
        table.write(f'rough_{case}.nii\n')"
  echo '{"structure": {"regularise": false, "keep_components": 0, "fill_holes": false}}' > rough.json
  measured rough 2 --write labels,mesh
  mv out_2 unlimited
  for threads in 1 8; do
    measured rough "$threads" --write labels,mesh --memory 200M
    echo "peak with $threads threads: $(cat peak.txt)"
    [ "$(cat peak.txt)" -lt $(((200 + 100) << 20)) ]
    for i in 0 1 2 3; do
      cmp "unlimited/rough_$i.vtk" "out_$threads/rough_$i.vtk"
      cmp "unlimited/rough_$i.nii.gz" "out_$threads/rough_$i.nii.gz"
    done
  done
  code=0
  measured rough 4 --write labels,mesh --memory 120M || code=$?
  [ "$code" -eq 5 ]
  [ "$(cat peak.txt)" -lt $(((120 + 100) << 20)) ]
  python "
rows = [r.split('\t') for r in open('out_4/status.tsv').read().splitlines()[1:]]
assert [r[1] for r in rows] == ['failed'] * 4, rows
assert all('surface mesh' in r[2] and 'bytes), --memory allows 120 MiB' in r[2] for r in rows), rows"
  # Without the mesh that is enough.
  measured rough 3 --write labels --memory 120M
}

# Features that reach far make many small slabs, whose memory was once not given back. Voxels take 2
# bytes as numbers of the model and 4 as probabilities.
@test "--memory holds for one image, beside the image and the probabilities" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  "$BIN/pbt-train" --list train.tsv --output wide.pbt --config tiny.json \
    --labels.class_value 3 --features.window 17 --features.sizes 4,6 -q
  python "
import nibabel, numpy
values = numpy.random.default_rng(1).integers(0, 1000, (226, 226, 226)).astype('i2')
nibabel.save(nibabel.Nifti1Image(values, numpy.diag([2, 2, 3, 1])), 'one.nii')"
  /usr/bin/python3 "$source/tests/cli/tools/peak.py" peak.txt "$BIN/pbt-detect" --model wide.pbt -i one.nii \
    --probability one.p.nii --threads 1 -q --memory 60M || [ $? -eq 7 ]
  echo "peak: $(cat peak.txt)"
  [ "$(cat peak.txt)" -lt $(((60 << 20) + 6 * 226 * 226 * 226 + (25 << 20))) ]
}

@test "5: --memory holds for a case that is too large by itself, and the dry run says so" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..} code
  python "
import nibabel, numpy
nibabel.save(nibabel.Nifti1Image(numpy.zeros((320, 310, 303), 'i2'), numpy.diag([2, 2, 3, 1])), 'huge.nii.gz')"
  printf 'image\nhuge.nii.gz\n' > broad.tsv
  echo '{}' > broad.json
  for threads in 1 4; do
    code=0
    broad "$threads" --memory 60M 2>err.txt || code=$?
    [ "$code" -eq 5 ]
    echo "peak: $(cat peak.txt)"
    [ "$(cat peak.txt)" -lt $(((60 + 100) << 20)) ]
    grep -q "^huge.failed.*needs at least [0-9]* bytes, --memory allows 62914560; allow more" \
      "out_$threads/status.tsv"
  done
  expect 5 detect --list broad.tsv --output-dir new --memory 60M --dry-run
  has err.txt "case 'huge': reading, computing or writing this case needs at least"
  echo missing.nii.gz >> broad.tsv
  expect 7 detect --list broad.tsv --output-dir new --memory 60M --dry-run
}
