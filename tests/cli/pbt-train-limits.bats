#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# What memory pbt-train takes.

load helpers

setup_file() {
  small_cases tiny.pbt --threads 1
  python "
import nibabel, numpy
grid = numpy.arange(128) - 64.
ball = grid[:, None, None]**2 + grid[None, :, None]**2 + grid[None, None, :]**2 < 40**2
noise = numpy.random.default_rng(2).integers(0, 400, ball.shape)
nibabel.save(nibabel.Nifti1Image((300 * ball + noise).astype('i2'), numpy.eye(4)), 'large.nii')
nibabel.save(nibabel.Nifti1Image(ball.astype('u1'), numpy.eye(4)), 'large_label.nii')
open('large.tsv', 'w').write('image\tlabel\nlarge.nii\tlarge_label.nii\n')"
}

# taken NAME LIST [FLAGS]: the peak of a training in NAME.peak, the memory that its dry run tells in
# NAME.txt.
taken() {
  local name=$1 list=$2 source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  shift 2
  local flags=(--config tiny.json -l "$list" -o "$name.pbt" --threads 1
               --features.channels "gaussian,gradient-magnitude,laplacian,derivative-x,derivative-y,derivative-z")
  "$BIN/pbt-train" "${flags[@]}" "$@" -n 2>"$name.txt"
  /usr/bin/python3 "$source/tests/cli/peak.py" "$name.peak" "$BIN/pbt-train" "${flags[@]}" "$@" -q
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
