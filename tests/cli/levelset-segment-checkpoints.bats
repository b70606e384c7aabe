#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# levelset-segment: checkpoints. What is stopped, or ended, goes on with --resume to the bytes of one run.

load helpers

setup_file() { make_balls; }

# A surface that takes long to come to rest, with dense steps.
long_run() {
  segment -i image_0.nii.gz --sphere-index 15,14,13,3 --lower 60 --upper 140 -o m.nii.gz --level-set m.phi.nii.gz \
    --tracker dense --unchanged_labels 0 --dead_zone 0 --snap 1 --max_iterations 20000 --curvature_weight 0.5 \
    --checkpoint m.ckpt --report m.json "$@"
}

@test "SIGTERM: 143 and a checkpoint; --resume gives the same bytes and the same history" {
  expect 0 long_run
  mkdir whole; mv m.* whole
  "$BIN/levelset-segment" -i image_0.nii.gz --sphere-index 15,14,13,3 --lower 60 --upper 140 -o m.nii.gz \
    --level-set m.phi.nii.gz --tracker dense --unchanged_labels 0 --dead_zone 0 --snap 1 --max_iterations 20000 \
    --curvature_weight 0.5 --checkpoint m.ckpt --report m.json --progress lines 2>log.txt </dev/null 3>&- &
  child=$!
  sleep 0.7
  kill -TERM "$child" || true
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ] || { cat log.txt; return 1; }
  has log.txt "--resume goes on from it"
  [ -s m.ckpt ]
  absent m.nii.gz m.phi.nii.gz
  no_temporaries
  expect 6 long_run
  has err.txt "'m.ckpt' exists"
  expect 3 long_run --resume --clamp 4
  has err.txt "other settings or other images"
  cp m.ckpt kept.ckpt
  expect 0 long_run --resume
  has err.txt "going on from 'm.ckpt'"
  cmp m.nii.gz whole/m.nii.gz
  cmp m.phi.nii.gz whole/m.phi.nii.gz
  absent m.ckpt
  python "
a, b = load('m.json')['segmentation'], load('whole/m.json')['segmentation']
assert a == b"
  head -c 3000 kept.ckpt > m.ckpt
  expect 3 long_run --resume -f
  has err.txt "m.ckpt"
}

@test "SIGTERM and --resume with means of regions, which are taken anew on the way: the same bytes" {
  flags=(-i image_0.nii.gz --sphere-index 12,14,13,3 --sphere-index 18,14,13,3,5 --lower 60 --upper 140
    --region-weight 0.4 --region_every 7 --unchanged_labels 0 --dead_zone 0 --snap 1 --max_iterations 12000 --curvature_weight 0.3 --tracker dense
    -o m.nii.gz --level-set m.phi.nii.gz --report m.json)
  expect 0 segment "${flags[@]}"
  mkdir whole; mv m.* whole
  for times in 1 2; do  # the second one goes on from the first, on its way still
    resume=(); [ ! -e m.nii.gz.ckpt ] || resume=(--resume)
    "$BIN/levelset-segment" "${flags[@]}" "${resume[@]}" 2>log.txt </dev/null 3>&- &
    child=$!
    sleep 0.5
    kill -TERM "$child" || true
    code=0; wait "$child" || code=$?
    [ "$code" -eq 143 ] || { cat log.txt; return 1; }
    [ -s m.nii.gz.ckpt ]
    absent m.nii.gz
  done
  # All but the number of iterations must be the same: new means let a run go on, which its history does not tell.
  for other in "--rms 0.1" "--most_changed 3" "--max_volume_ml 1000" "--region_band_mm 3"; do
    expect 3 segment "${flags[@]}" --resume $other
    has err.txt "other settings or other images"
  done
  expect 0 segment "${flags[@]}" --resume -t 1
  has err.txt "going on from"
  cmp m.nii.gz whole/m.nii.gz
  cmp m.phi.nii.gz whole/m.phi.nii.gz
  python "
a, b = load('m.json')['segmentation'], load('whole/m.json')['segmentation']
assert a == b"
  # More iterations after an end, between two times of new means and at one.
  some() { segment -i image_0.nii.gz --sphere-index 15,14,13,3 --region-weight 0.6 --region_every 7 -o n.nii.gz \
    --level-set n.phi.nii.gz "$@"; }
  expect 0 some --max_iterations 40
  mv n.phi.nii.gz forty.phi.nii.gz
  for first in 10 14 21; do
    rm -f n.*
    expect 0 some --max_iterations $first --keep-checkpoint
    expect 0 some --max_iterations 40 --resume -f
    has err.txt "which has $first iterations"
    cmp n.phi.nii.gz forty.phi.nii.gz
  done
}

@test "--resume without a checkpoint starts anew, with a warning that names the file" {
  warns() { has err.txt "warning: --resume: there is no checkpoint '$1': starting from $2"; }
  expect 0 ball -o a.nii.gz --resume -n -q
  warns a.nii.gz.ckpt "the seeds"
  expect 0 ball -o a.nii.gz --resume -q
  warns a.nii.gz.ckpt "the seeds"
  expect 0 ball -o b.nii.gz --resume --checkpoint mistyped.ckpt -q
  warns mistyped.ckpt "the seeds"
  cmp a.nii.gz b.nii.gz
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
image = nibabel.load('image_0.nii.gz')
twice = numpy.stack([numpy.asarray(image.dataobj)] * 2, axis=-1)
nibabel.save(nibabel.Nifti1Image(twice, image.affine), 'twice.nii.gz')
PY
  for dry in "-n" ""; do
    expect 0 segment -i twice.nii.gz --sphere-index 15,14,13,3 --time-series -o s.nii.gz --resume -q $dry
    warns s.nii.gz.ckpt "the first frame"
  done
  # Where it is to be written one day is known before the run.
  expect 6 ball -o c.nii.gz --resume --checkpoint no-folder/c.ckpt
  has err.txt "folder 'no-folder' does not exist"
  mkdir folder
  expect 6 ball -o c.nii.gz --resume --checkpoint folder
  absent c.nii.gz
}

@test "a file that is no checkpoint stays where a run that writes none ends" {
  echo kept > notes.txt
  expect 0 ball -o quick.nii.gz --checkpoint notes.txt --max_iterations 5 -f
  [ "$(cat notes.txt)" = kept ]
}

@test "--keep-checkpoint, and --resume with later ends, give the bytes of one run" {
  some() { ball --level-set m.phi.nii.gz --checkpoint m.ckpt --report m.json -o m.nii.gz "$@"; }
  expect 0 some --max_iterations 40
  mkdir whole; mv m.* whole
  expect 0 some --max_iterations 15 --keep-checkpoint
  [ -s m.ckpt ]
  cp m.ckpt kept.ckpt
  expect 3 some --max_iterations 10 --resume -f
  has err.txt "cannot go on from 'm.ckpt': the checkpoint has 15 iterations, and with these settings the run would have ended after 10"
  expect 3 some --max_iterations 40 --resume -f --curvature-weight 0.04
  has err.txt "other settings"
  expect 0 some --max_iterations 40 --resume -f
  has err.txt "going on from 'm.ckpt', which has 15 iterations"
  absent m.ckpt
  cmp m.nii.gz whole/m.nii.gz
  cmp m.phi.nii.gz whole/m.phi.nii.gz
  python "
a, b = load('m.json')['segmentation'], load('whole/m.json')['segmentation']
x, y = (r['labels'][0]['history'].pop('active') for r in (a, b))
# The active set is found anew, from the field instead of from what changed.
assert x[:15] == y[:15] and x[16:] == y[16:] and x[15] > 0, (x, y)
for r in (a, b): del r['labels'][0]['computed_elements']
assert a == b"
  # The same end again: nothing is computed, and the same is written.
  cp kept.ckpt m.ckpt
  expect 0 some --max_iterations 15 --resume -f --keep-checkpoint
  cmp m.ckpt kept.ckpt
  expect 0 ball -o fifteen.nii.gz --level-set fifteen.phi.nii.gz --max_iterations 15
  cmp m.phi.nii.gz fifteen.phi.nii.gz
  expect 2 segment --list cases.tsv --output-dir out --keep-checkpoint
  has err.txt "for one image"
}

@test "SIGTERM in a time series: the finished frames are kept, and --resume gives the same bytes and report" {
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (32, 30, 28)), indexing='ij'), axis=-1)
frames = [numpy.where(numpy.linalg.norm(at - [11 + 2 * t, 14, 13], axis=-1) < 8, 100, 20) for t in range(4)]
frames = numpy.stack(frames, axis=-1).astype('int16')
nibabel.save(nibabel.Nifti1Image(frames, numpy.eye(4)), 'beating.nii.gz')
frames[3, 3, 3, 0] += 1
nibabel.save(nibabel.Nifti1Image(frames, numpy.eye(4)), 'first.nii.gz')
frames[3, 3, 3, 0] -= 1; frames[3, 3, 3, 1] += 1
nibabel.save(nibabel.Nifti1Image(frames, numpy.eye(4)), 'second.nii.gz')
PY
  flags=(--time-series --sphere-index 8,14,13,2 --sphere-index 14,14,13,2,5 --tracker dense --unchanged_labels 0
    --dead_zone 0 --snap 1 --curvature_weight 0.5 --checkpoint s.ckpt --report s.json)
  # Without lower and upper: the windows of the first frame are kept as well.
  series() { segment -i "${image:-beating.nii.gz}" -o s.nii.gz --max_iterations "${most:-1500}" "${flags[@]}" "$@"; }
  expect 0 series
  absent s.ckpt
  mkdir whole; mv s.* whole
  "$BIN/levelset-segment" -i beating.nii.gz -o s.nii.gz --max_iterations 1500 "${flags[@]}" 2>log.txt </dev/null 3>&- &
  child=$!
  for _ in $(seq 600); do grep -q "frame 3 of 4" log.txt && break; sleep 0.05; done
  sleep 0.1
  kill -TERM "$child" || true
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ] || { cat log.txt; return 1; }
  has log.txt "--resume goes on from it"
  [ -s s.ckpt ]
  absent s.nii.gz
  no_temporaries
  cp s.ckpt kept.ckpt
  # Finished frames cannot have other settings any more, nor other images.
  most=2000 expect 3 series --resume
  has err.txt "other settings or other images"
  image=first.nii.gz expect 3 series --resume
  image=second.nii.gz expect 3 series --resume
  has err.txt "other settings or other images"
  expect 0 series --resume
  has err.txt "going on from 's.ckpt', which has 2 of 4 frames"
  lacks err.txt "frame 2 of 4"
  cmp s.nii.gz whole/s.nii.gz
  absent s.ckpt
  python "
a, b = load('s.json'), load('whole/s.json')
assert a['frames'] == b['frames'] and len(a['frames']) == 4
for name in ('frames', 'mean_volume_ml', 'iterations'): assert a['metrics'][name] == b['metrics'][name], name"
  # A checkpoint of one image is none of a series, nor the other way round; a damaged one is refused.
  cp kept.ckpt s.ckpt
  expect 3 segment -i image_0.nii.gz --sphere-index 15,14,13,3 -o t.nii.gz --checkpoint s.ckpt --resume
  has err.txt "no checkpoint of a segmentation"
  head -c 5000 kept.ckpt > s.ckpt
  expect 3 series --resume -f
  has err.txt "s.ckpt"
}

@test "SIGTERM in a time series after a label has vanished: --resume gives the same bytes, and rejects it alike" {
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (40, 20, 20)), indexing='ij'), axis=-1)
def ball(x, *frames):
    inside = numpy.linalg.norm(at - [x, 10, 10], axis=-1) < 6
    return numpy.stack([inside & (t in frames) for t in range(4)], axis=-1)
image = 20 + 80 * ball(10, 0, 2, 3) + 80 * ball(30, 0, 1, 2, 3)
nibabel.save(nibabel.Nifti1Image(image.astype('int16'), numpy.eye(4)), 'gap.nii.gz')
PY
  flags=(-i gap.nii.gz --time-series --sphere-index 10,10,10,3,4 --sphere-index 30,10,10,3,9 --lower 60 --upper 140
    --tracker dense --unchanged_labels 0 --dead_zone 0 --snap 1 --max_iterations 4000 --curvature_weight 0.4
    -o s.nii.gz --report s.json)
  expect 7 segment "${flags[@]}"
  has err.txt "frame 2: nothing is left of label 4; it is missing from there on"
  absent s.nii.gz.ckpt
  mkdir whole; mv s.* whole
  "$BIN/levelset-segment" "${flags[@]}" 2>log.txt </dev/null 3>&- &
  child=$!
  for _ in $(seq 600); do grep -q "frame 3 of 4" log.txt && break; sleep 0.02; done
  kill -TERM "$child" || true
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ] || { cat log.txt; return 1; }
  expect 7 segment "${flags[@]}" --resume
  has err.txt "which has 2 of 4 frames"
  has err.txt "frame 2: nothing is left of label 4; it is missing from there on"
  cmp s.nii.gz whole/s.nii.gz
  python "assert load('s.json')['frames'] == load('whole/s.json')['frames']"
  absent s.nii.gz.ckpt
}
