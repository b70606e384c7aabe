# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Shared by the *.bats files: each test runs in a fresh folder, in which whatever setup_file made is
# seen under its name, without variables from outside.

# With PARTS an entry of ctest does every so many-th test of a file, and its neighbours the others.
skip_other_parts() {
  if ((BATS_TEST_NUMBER % ${PARTS:-1} != ${PART:-0})); then skip "it is in another part"; fi
}

setup() {
  skip_other_parts
  cd "$BATS_TEST_TMPDIR" || return 1
  unset LARCH_DEVICE LARCH_THREADS LARCH_LOGLEVEL SLURM_CPUS_PER_TASK NO_COLOR
  if [ -n "$(ls -A "$BATS_FILE_TMPDIR")" ]; then ln -s "$BATS_FILE_TMPDIR"/* .; fi
}

# small_cases MODEL [FLAG]...: for setup_file, which it leaves in its folder: volumes with a ball each,
# train.tsv, the configuration tiny.json and the model that is trained with it and the flags.
small_cases() {
  local source=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}
  /usr/bin/python3 "$source/tests/cli/tools/make_hostile.py" cases "$BATS_FILE_TMPDIR"
  cd "$BATS_FILE_TMPDIR" || return 1
  cat > tiny.json <<'JSON'
{
  "features": {"count": 300, "window": 5, "sizes": [1, 2], "pyramid_levels": 1},
  "samples": {"positives_per_volume": 200, "negatives_per_volume": 400},
  "tree": {"depth": 2, "rounds": [4], "selected_positives": 400, "selected_negatives": 400}
}
JSON
  "$BIN/pbt-train" --list train.tsv --output "$1" --config tiny.json -q "${@:2}"
}

# expect CODE COMMAND...: runs it, keeps stdout and stderr apart, and checks the exit code.
expect() {
  local wanted=$1
  shift
  local code=0
  "$@" >out.txt 2>err.txt </dev/null || code=$?
  if [ "$code" -ne "$wanted" ]; then
    echo "exit code $code instead of $wanted: $*"
    cat out.txt err.txt
    return 1
  fi
}

# start_training MODEL FLAG...: a training in the background, `child`, until its first checkpoint is there.
start_training() {
  # Not by a function: the signal is for the executable and not for a shell around it.
  "$BIN/pbt-train" --output "$1" --threads 1 "${@:2}" 2>log.txt </dev/null 3>&- &
  child=$!
  until_in_child test -e "$1.ckpt" || { cat log.txt; return 1; }
}

# until_in_child COMMAND...: waits until the command succeeds, however slow the machine is, or `child` ends.
until_in_child() {
  until "$@"; do
    kill -0 "$child" 2>/dev/null || { echo "it ended before '$*'"; return 1; }
    sleep 0.02
  done
}

# has_temporary FOLDER ENDING: a temporary is there, and something is written to it.
has_temporary() { [ -n "$(find "$1" -name ".larch-*.$2" -size +0)" ]; }

# has FILE TEXT: the file contains the text, word for word.
has() {
  grep -qF -- "$2" "$1" || { echo "'$2' is not in $1:"; cat "$1"; return 1; }
}

lacks() {
  ! grep -qF -- "$2" "$1" || { echo "'$2' is in $1:"; cat "$1"; return 1; }
}

absent() {
  local file
  for file in "$@"; do
    [ ! -e "$file" ] || { echo "$file exists"; return 1; }
  done
}

# No temporaries anywhere below the folder (default: here).
no_temporaries() {
  local found
  found=$(find "${1:-.}" -name '.larch-*')
  [ -z "$found" ] || { echo "left behind: $found"; return 1; }
}

# python CODE: with json and sys at hand; fails the test if an assertion fails.
python() {
  /usr/bin/python3 -c "import json, sys
def load(name): return json.load(open(name))
$1"
}

# small_disk FOLDER KIB: an own small file system, or the test is skipped.
small_disk() {
  mkdir -p "$1"
  mount -t tmpfs -o "size=$2k" larch-test "$1" 2>/dev/null ||
    skip "mounting a small file system needs a privilege that is missing here"
  mounted=$1
}

teardown() {
  if [ -n "${mounted:-}" ]; then
    umount "$mounted"
  fi
}

# test_data NAME: puts the path of a file or folder of real data into $data. Without a variable that
# names the place the test is skipped; a place that lacks the file is a failure.
test_data() {
  [ -n "${LARCH_TEST_DATA:-}" ] || skip "LARCH_TEST_DATA names no folder with real data"
  data=$LARCH_TEST_DATA/$1
  [ -e "$data" ] || { echo "$data is not there"; return 1; }
}

# --- for the files on pbt-detect with lists

# Four images, a model, and what it finds on each image by itself; for setup_file.
make_detect_cases() {
  small_cases m.pbt --labels.class_name ball --labels.class_value 3 --features.pyramid_levels 2
  echo "image" > cases.tsv
  for i in 0 1 2 3; do
    echo "image_$i.nii.gz" >> cases.tsv
    "$BIN/pbt-detect" -m m.pbt -i image_$i.nii.gz -o one_$i.nii.gz --mesh one_$i.vtk -q --threads 1 \
      --probability one_$i.probability.nii.gz --qc one_$i.png --candidates one_$i.candidates.tsv
  done
}

detect() { "$BIN/pbt-detect" --model m.pbt "$@"; }
batch() { detect --list cases.tsv --output-dir out "$@"; }

same_as_single() {  # ENDING...: out/image_<i>ENDING is one_<i>ENDING
  local i ending
  for i in 0 1 2 3; do
    for ending in "$@"; do
      cmp "out/image_$i$ending" "one_$i$ending"
    done
  done
}

# status CODE: asserts on `rows`, a dictionary of the status table by id.
status() {
  python "
import csv
text = open('out/status.tsv').read()
assert text.endswith('\n')
table = list(csv.DictReader(text.splitlines(), delimiter='\t'))
assert list(table[0]) == ['id', 'status', 'message', 'seconds', 'code', 'voxels', 'volume_ml', 'ended', 'volume_ml: ball'], table[0]
rows = {r['id']: r for r in table}
assert len(rows) == len(table)
$1"
}

# --- for the files on levelset-segment

# For setup_file, which it leaves in its folder: a noisy ball of 100 in 20, of radius 9 voxels around (15, 14, 13), three
# times, label maps to start from, and the list cases.tsv.
make_balls() {
  cd "$BATS_FILE_TMPDIR" || return 1
  /usr/bin/python3 - <<'PY'
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (32, 30, 28)), indexing='ij'), axis=-1)
radius = numpy.linalg.norm(at - [15, 14, 13], axis=-1)
affine = numpy.array([[-2, 0, 0, 10], [0, -2, 0, 20], [0, 0, 2, -5], [0, 0, 0, 1.0]])
for case in range(3):
    noise = numpy.random.default_rng(case).normal(0, 5, radius.shape)
    image = numpy.where(radius < 9, 100, 20) + noise
    nibabel.save(nibabel.Nifti1Image(image.astype('int16'), affine), f'image_{case}.nii.gz')
    nibabel.save(nibabel.Nifti1Image((radius < 4).astype('uint8'), affine), f'start_{case}.nii.gz')
halves = numpy.where(radius < 4, numpy.where(at[..., 0] < 15, 1, 7), 0)
nibabel.save(nibabel.Nifti1Image(halves.astype('uint8'), affine), 'halves.nii.gz')
rows = [('image', 'label')] + [(f'image_{i}.nii.gz', f'start_{i}.nii.gz') for i in range(3)]
open('cases.tsv', 'w').writelines('\t'.join(row) + '\n' for row in rows)
PY
}

segment() { timeout 120 "$BIN/levelset-segment" "$@"; }
ball() { segment -i image_0.nii.gz --sphere-index 15,14,13,3 --lower 60 --upper 140 "$@"; }
