#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Decision forests of pbt-train and pbt-detect: pictures, several components, outputs, what is refused.

load helpers

setup_file() {
  cp "${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/configs/pbt-train.decision-forest.json" "$BATS_FILE_TMPDIR/preset.json"
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir s --kind scenes --training 4 --test 1 -q
  cat > tiny.json <<'JSON'
{"forest": {"trees": 4, "depth": 8, "round_features": 30, "reach": 6, "largest_box": 6, "samples_per_volume": 800}}
JSON
  "$BIN/pbt-train" --list s/train.tsv --output scene.forest --config preset.json --config tiny.json -q
}

train() { "$BIN/pbt-train" --config preset.json --config tiny.json --output m.forest "$@"; }
detect() { "$BIN/pbt-detect" --model scene.forest "$@"; }

@test "a picture gets the labels of the training, a distribution and leaves" {
  expect 0 detect --input s/images/case_004.png --output labels.nii.gz --distribution p.nii.gz --leaves l.nii.gz --report r.json
  expect 0 "$BIN/evaluate" --prediction labels.nii.gz --reference s/labels/case_004.png --surfaces false --report e.json
  python "
import nibabel, numpy
p, l, found = (numpy.asarray(nibabel.load(n).dataobj) for n in ('p.nii.gz', 'l.nii.gz', 'labels.nii.gz'))
assert p.shape == (320, 213, 1, 6) and l.shape == (320, 213, 1, 4), (p.shape, l.shape)
assert abs(p.sum(3) - 1).max() < 1e-5 and l.min() >= 0
assert (p.argmax(3) + 1 == found).all()
dice = {label: of['dice']['mean'] for label, of in load('e.json')['summary'].items()}
assert dice['1'] > 0.85 and dice['2'] > 0.8, dice  # sky and grass
classes = load('r.json')['classes']
assert [c['value'] for c in classes] == [1, 2, 3, 4, 5, 6]
assert [c['voxels'] for c in classes] == [int((found == c['value']).sum()) for c in classes]
"
}

@test "alpha, 16 bits and palettes do not change what a picture is" {
  python "
import numpy, struct, zlib
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def write(name, pixels, colour, depth=8, palette=b''):
    raw = b''.join(b'\\0' + row.astype('>u2' if depth == 16 else 'u1').tobytes() for row in pixels)
    header = struct.pack('>IIBBBBB', 40, 30, depth, colour, 0, 0, 0)
    open(name + '.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', header) + (chunk(b'PLTE', palette) if palette else b'') +
                                    chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))
index = numpy.random.default_rng(1).integers(0, 99, (30, 40)) + numpy.where(numpy.arange(40) < 20, 0, 150)
table = numpy.stack([numpy.arange(256), numpy.arange(256) // 2 + 90, 255 - numpy.arange(256)], 1)
rgb = table[index]
write('rgb', rgb, 2)
write('alpha', numpy.dstack([rgb, numpy.full((30, 40), 9)]), 6)
write('wide', rgb * 257, 2, 16)
write('palette', index, 3, 8, table.astype('u1').tobytes())
"
  for form in rgb alpha wide palette; do
    expect 0 detect --input $form.png --output $form.labels.png
    cmp $form.labels.png rgb.labels.png
  done
  expect 0 "$BIN/evaluate" --prediction rgb.labels.png --reference rgb.labels.png --report e.json
  python "assert len(load('e.json')['summary']) > 2"  # more labels than one, and their union
}

@test "one picture alone has the bytes of the list; threads and resumption change nothing" {
  expect 0 detect --list s/train.tsv --output-dir out --write labels,qc
  expect 0 detect --input s/images/case_002.png --output one.nii.gz --qc one.png
  cmp one.nii.gz out/case_002.nii.gz
  cmp one.png out/case_002.png
  expect 0 train --list s/train.tsv --threads 2
  cmp m.forest scene.forest
  local large=(--list s/train.tsv --config preset.json --config tiny.json --forest.trees 16 --forest.depth 12)
  start_training m2.forest "${large[@]}"
  kill -TERM "$child"
  wait "$child" || true
  expect 0 "$BIN/pbt-train" "${large[@]}" --output m2.forest --resume
  has err.txt "going on from 'm2.forest.ckpt'"
  expect 0 "$BIN/pbt-train" "${large[@]}" --output m3.forest
  cmp m2.forest m3.forest
}

@test "what a forest holds, its JSON and its picture" {
  expect 0 "$BIN/pbt-train" --inspect scene.forest
  has out.txt "roots (4)"
  has out.txt "red"
  expect 0 "$BIN/pbt-train" --inspect scene.forest --export-json s.json --plot s.png
  python "assert load('s.json')['format'] == 'larch-forest'"
}

# two_channels: dataset.json with 4-D files, whose first channel shows one half of a structure and the second the other,
# and pair.tsv, its training part as a list of files of one channel; parts.tsv has a label for each half.
two_channels() {
  mkdir -p imagesTr labelsTr imagesTs
  python "
import nibabel, numpy
def save(name, voxels): nibabel.save(nibabel.Nifti1Image(voxels, numpy.eye(4)), name)
at = numpy.moveaxis(numpy.indices((28, 26, 9)), 0, -1)
training, pairs = [], ['image\timage2\tlabel']
for n in range(5):
    random = numpy.random.default_rng(n)
    halves = [numpy.linalg.norm(at - [x, y, 4], axis=-1) < 4.3 for x, y in zip(random.permutation([6, 20]), random.integers(6, 20, 2))]
    channels = [(300 + 500 * half + random.normal(0, 40, half.shape)).astype('f4') for half in halves]
    part = 'Tr' if n < 4 else 'Ts'
    save(f'images{part}/c{n}.nii.gz', numpy.stack(channels, -1))
    save(f'labelsTr/c{n}.nii.gz', (halves[0] | halves[1]).astype('u1'))
    save(f'parts_{n}.nii.gz', (halves[0] + 2 * halves[1]).astype('u1'))
    for letter, channel in zip('ab', channels): save(f'{letter}_{n}.nii.gz', channel)
    if n < 4: training.append({'image': f'./images{part}/c{n}.nii.gz', 'label': f'./labelsTr/c{n}.nii.gz'})
    if n < 4: pairs.append(f'a_{n}.nii.gz\tb_{n}.nii.gz\tlabelsTr/c{n}.nii.gz')
json.dump({'modality': {'0': 'T1', '1': 'T2'}, 'labels': {'0': 'background', '1': 'organ'}, 'training': training,
           'test': ['./imagesTs/c4.nii.gz']}, open('dataset.json', 'w'))
open('pair.tsv', 'w').write('\n'.join(pairs) + '\n')
open('parts.tsv', 'w').write('\n'.join(pairs).replace('labelsTr/c', 'parts_') + '\n')
"
  cat > forest.json <<'JSON'
{"classifier": "decision-forest", "labels": {"background": 0, "border_voxels": 0}, "space": {"spacing_mm": [1, 1, 1]},
 "features": {"channels": ["gaussian"]}, "forest": {"trees": 6, "depth": 8, "round_features": 30, "reach": 5, "largest_box": 4}}
JSON
  cat > tree.json <<'JSON'
{"labels": {"positive": [1], "border_voxels": 0}, "space": {"spacing_mm": [1, 1, 1]},
 "features": {"count": 800, "window": 5, "sizes": [1, 2], "pyramid_levels": 1}, "tree": {"depth": 3, "rounds": [20]}}
JSON
}

# dice_of CONFIG [--channel NAME]: trains on dataset.json, on one channel or both, and prints the Dice of its test image.
dice_of() {
  local both=(--space.components T1,T2)
  if [ $# -gt 1 ]; then both=(); fi
  "$BIN/pbt-train" --dataset dataset.json --output m.model --config "$@" "${both[@]}" --force -q
  "$BIN/pbt-detect" --model m.model --dataset dataset.json --output-dir found --structure.keep_components 0 "${@:2}" --force -q
  "$BIN/evaluate" --prediction found/c4.nii.gz --reference labelsTr/c4.nii.gz --labels 1 --surfaces false --report dice.json --force -q
  python "print(load('dice.json')['metrics']['dice'])"
}

@test "two channels of dataset.json that each show a half: a forest and a tree of both find what neither finds alone" {
  two_channels
  local kind first second both
  for kind in forest tree; do
    first=$(dice_of $kind.json --channel T1)
    second=$(dice_of $kind.json --channel T2)
    both=$(dice_of $kind.json)
    echo "$kind: $first $second $both"
    python "assert max($first, $second) < 0.75 and $both > 0.9"
  done
  expect 2 "$BIN/pbt-detect" --model m.model --input imagesTs/c4.nii.gz --distribution p.nii.gz
  has err.txt "no decision forest"
}

@test "components of columns are those of dataset.json; missing ones and another grid are refused" {
  two_channels
  local components=(--config forest.json --space.components T1,T2)
  expect 0 "$BIN/pbt-train" --dataset dataset.json --output m.forest "${components[@]}"
  expect 0 "$BIN/pbt-train" --list pair.tsv --output pair.forest "${components[@]}"
  expect 0 "$BIN/pbt-detect" --model m.forest --dataset dataset.json --dataset-part training --output-dir fours
  expect 0 "$BIN/pbt-detect" --model pair.forest --list pair.tsv --output-dir pairs
  cmp fours/c0.nii.gz pairs/a_0.nii.gz
  expect 3 "$BIN/pbt-detect" --model pair.forest --input a_4.nii.gz --output x.nii.gz
  has err.txt "needed are 2 components (T1, T2)"
  sed -i 's/b_1.nii.gz/s\/labels\/case_001.png/' pair.tsv
  expect 3 "$BIN/pbt-train" --list pair.tsv --output y.forest "${components[@]}"
  has err.txt "s/labels/case_001.png"
  expect 3 detect --input a_4.nii.gz --output x.nii.gz
  has err.txt "not a picture"
}

@test "structures apart from each other are all found, and each has a mesh" {
  two_channels
  printf 'image\timage2\na_4.nii.gz\tb_4.nii.gz\n' > four.tsv
  expect 0 "$BIN/pbt-train" --list parts.tsv --output parts.forest --config forest.json --space.components T1,T2
  expect 0 "$BIN/pbt-detect" --model parts.forest --list four.tsv --output-dir out --write labels,mesh
  expect 0 "$BIN/evaluate" --prediction out/a_4.nii.gz --reference parts_4.nii.gz --surfaces false --report e.json
  python "
dice = {label: of['dice']['mean'] for label, of in load('e.json')['summary'].items()}
assert dice['1'] > 0.85 and dice['2'] > 0.85, dice"
  for mesh in a_4 a_4.class-1 a_4.class-2; do test -s out/$mesh.vtk; done
}

@test "outside of a region there is nothing, whatever the voxels of the model" {
  two_channels
  expect 0 "$BIN/pbt-train" --dataset dataset.json --channel T1 --output coarse.forest --config forest.json --space.spacing_mm 2,2,2
  python "
import nibabel, numpy
roi = (numpy.indices((28, 26, 9))[0] < 13).astype('u1')
nibabel.save(nibabel.Nifti1Image(roi, numpy.eye(4)), 'roi.nii.gz')"
  expect 0 "$BIN/pbt-detect" --model coarse.forest --input a_4.nii.gz --roi roi.nii.gz --distribution p.nii.gz --leaves l.nii.gz
  python "
import nibabel, numpy
p, l, roi = (numpy.asarray(nibabel.load(n).dataobj) for n in ('p.nii.gz', 'l.nii.gz', 'roi.nii.gz'))
assert (l[roi == 0] == -1).all() and (p[roi == 0] == 0).all()
assert (l[:10] >= 0).all() and abs(p[:10].sum(3) - 1).max() < 1e-5"
  printf 'image\timage3\na_4.nii.gz\tb_4.nii.gz\n' > gap.tsv
  expect 7 "$BIN/pbt-detect" --model coarse.forest --list gap.tsv --output-dir gap
  has err.txt "image3"
}

@test "several label values and no settings: a forest whose boxes, background and held-out volumes suit them" {
  two_channels
  { printf 'id\tgroup\timage\tlabel\n'
    for k in {0..19}; do printf 'c%d\tp%d\ta_%d.nii.gz\tparts_%d.nii.gz\n' "$k" $((k % 4)) $((k % 4)) $((k % 4)); done; } > many.tsv
  expect 0 "$BIN/pbt-train" --list many.tsv --output m.forest --report r.json
  has err.txt "the labels have several values, so that a decision forest learns each of them; --classifier pbt"
  has err.txt "label 0 is the background"
  has err.txt "forest/reach 3 and forest/largest_box 3, for structures of 9 and images of 19 voxels"
  expect 0 "$BIN/pbt-train" --inspect m.forest --export-json m.json
  expect 0 "$BIN/pbt-detect" --model m.forest --input a_4.nii.gz --output seg.nii.gz --report d.json
  python "
r, d = load('r.json'), load('d.json')
assert (r['metrics']['training_volumes'], r['metrics']['held_out_volumes']) == (15, 5), r['metrics']  # all of one group
assert set(r['held_out_dice_by_class']) == {'1', '2'}, r
assert d['metrics']['threshold'] == r['metrics']['held_out_threshold'], d['metrics']
text = open('m.json').read()
assert 'border_voxels' in text and 'null' not in text.split('training')[1][:2000]"
  # Keys of boosting trees, or one label, are for a tree.
  expect 0 "$BIN/pbt-train" --list many.tsv --output m.pbt --validation.fraction 0 --tree.depth 1 --tree.rounds 3 --features.count 100 --features.window 5 --report t.json
  has err.txt "0 volumes held out"
  python "assert 'weak_classifiers' in load('t.json')['metrics']"
  printf 'image\tlabel\na_0.nii.gz\tlabelsTr/c0.nii.gz\n' > one.tsv
  expect 0 "$BIN/pbt-train" --list one.tsv --output one.pbt --dry-run
  has err.txt "a boosting tree learns it"
}

@test "what has no effect, labels of another size, too little memory and models of another kind are refused" {
  expect 2 train --list s/train.tsv --tree.depth 3
  has err.txt "--tree.depth"
  expect 2 "$BIN/pbt-train" --list s/train.tsv --output x.pbt --classifier pbt --forest.trees 3
  has err.txt "--forest.trees"
  expect 2 detect --list s/test.tsv --output-dir none --write probability
  has err.txt "no background"
  expect 2 detect --input s/images/case_004.png --distribution p.png
  has err.txt "p.png"
  expect 2 detect --input s/images/case_004.png --output x.png --leaf_trees 1
  expect 2 detect --input s/images/case_004.png --output x.png --structure.threshold 0.3
  expect 0 detect --input s/images/case_004.png --distribution d.nii.gz --report r.json
  python "assert 'voxels' not in load('r.json')['metrics']"
  expect 2 train --list s/train.tsv --space.components a,a
  expect 3 train --list s/train.tsv --labels.background 77 --dry-run
  has err.txt "77"
  expect 2 "$BIN/pbt-train" --list s/train.tsv --output x.hdn --model hdn --space.components red,green,blue
  expect 2 "$BIN/pbt-train" --list s/train.tsv --output x.hdn --model hdn --features.filters '[{"kind": "smooth"}]'
  expect 2 detect --input s/images/case_004.png --output x.png --evaluate.hard
  expect 5 detect --input s/images/case_004.png --output x.png --memory 1M
  has err.txt "--memory"
  expect 3 "$BIN/hdn-detect" --model scene.forest --input s/images/case_004.png --output x.json
  has err.txt "pbt-detect reads it"
  "$BIN/make-samples" --output-dir v --size 20,18,1 --training 1 --test 0 -q
  sed 's/labels.case_000.png/..\/v\/labels\/case_000.nii.gz/' s/train.tsv > s/sizes.tsv
  expect 3 train --list s/sizes.tsv
  has err.txt "case_000.png"
  expect 3 train --list s/train.tsv --labels.ignore 0,1,2,3,4,5
  has err.txt "of 1 classes"
  expect 3 train --list s/train.tsv --labels.ignore 0,1,2,3,4,5,6
  has err.txt "0 labelled samples"
}
