#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-train on images of several volumes, and what memory it takes.

load helpers

setup_file() {
  small_cases tiny.pbt --threads 1
  python "
import nibabel, numpy, os
for name in sorted(n for n in os.listdir('.') if n.startswith('image_')):
    image = nibabel.load(name)
    data = numpy.asarray(image.dataobj)
    noise = numpy.random.default_rng(1).integers(0, 99, data.shape).astype(data.dtype)
    nibabel.save(nibabel.Nifti1Image(numpy.stack([noise, data], 3), image.affine), 'film_' + name[6:])
text = open('train.tsv').read()
open('films.tsv', 'w').write(text.replace('image_', 'film_'))
grid = numpy.arange(128) - 64.
ball = grid[:, None, None]**2 + grid[None, :, None]**2 + grid[None, None, :]**2 < 40**2
noise = numpy.random.default_rng(2).integers(0, 400, ball.shape)
nibabel.save(nibabel.Nifti1Image((300 * ball + noise).astype('i2'), numpy.eye(4)), 'large.nii')
nibabel.save(nibabel.Nifti1Image(ball.astype('u1'), numpy.eye(4)), 'large_label.nii')
open('large.tsv', 'w').write('image\tlabel\nlarge.nii\tlarge_label.nii\n')"
}

train() { "$BIN/pbt-train" --config tiny.json "$@"; }

@test "--frame chooses a volume of the 4-D images of a list; without it, the error names the flag" {
  expect 0 train -l films.tsv -o m.pbt --frame 2
  cmp m.pbt tiny.pbt
  expect 0 train -l films.tsv -o n.pbt --frame 2 -n
  for dry in -n ""; do
    expect 3 train -l films.tsv -o n.pbt $dry
    has err.txt "choose it with --frame"
    expect 3 train -l films.tsv -o n.pbt --frame 3 $dry
    has err.txt "there is no frame 3"
  done
  python "
import json
rows = [line.split('\t') for line in open('films.tsv').read().splitlines()]
image, label = rows[0].index('image'), rows[0].index('label')
cases = [{'image': r[image], 'label': r[label]} for r in rows[1:]]
json.dump({'modality': {'0': 'noise', '1': 'MRI'}, 'training': cases, 'labels': {'0': 'rest', '1': 'ball'}},
          open('dataset.json', 'w'))"
  expect 0 train --dataset dataset.json --channel MRI -o c.pbt
  cmp c.pbt tiny.pbt
  expect 2 train --dataset dataset.json --channel MRI --frame 1 -o d.pbt
  has err.txt "--channel chooses one; leave --frame out"
  absent n.pbt d.pbt
}

# taken NAME LIST [FLAGS]: the peak of a training in NAME.peak, the memory that its dry run tells in
# NAME.txt.
taken() {
  local name=$1 list=$2 source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  shift 2
  local flags=(--config tiny.json -l "$list" -o "$name.pbt" --threads 1
               --features.channels "gaussian,gradient-magnitude,laplacian,derivative-x,derivative-y,derivative-z")
  "$BIN/pbt-train" "${flags[@]}" "$@" -n 2>"$name.txt"
  /usr/bin/python3 "$source/tests/cli/tools/peak.py" "$name.peak" "$BIN/pbt-train" "${flags[@]}" "$@" -q
}

@test "the dry run tells the memory that the training takes: channels, the image of one, mining" {
  [ -z "${LARCH_SANITIZE:-}" ] || skip "sanitizers take memory of their own"
  taken small train.tsv --device cpu
  taken large large.tsv --device cpu
  taken mined large.tsv --device cpu --mining.enabled true
  python "
import re
unit = {'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30}
def told(name):
    number, of = re.search(r'memory: roughly ([0-9.]+) (\w+) of the host', open(name + '.txt').read()).groups()
    return float(number) * unit[of]
peak = {name: int(open(name + '.peak').read()) for name in ('small', 'large', 'mined')}
for name in ('large', 'mined'):
    more = peak[name] - peak['small']
    print(name, 'takes', more >> 20, 'MiB more than a small training, told are', told(name) / 2**20)
    assert more - (8 << 20) < told(name), name
assert told('large') < 1.3 * (peak['large'] - peak['small'])  # mining finds fewer than it could"
}
