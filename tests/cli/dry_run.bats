#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# --dry-run finds what the run would find: it reads lists to the end, headers of images, models and
# configurations, and label maps for pbt-train, and ends with the exit code that the run would have.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" -o s --training 3 --test 1 --size 24,20,16 --spacing_mm 5,5,7 -q
  "$BIN/pbt-train" -l s/train.tsv -o m.pbt --labels.positive 1 --labels.border_voxels 0 \
    --features.count 100 --tree.depth 1 --tree.rounds 2 --tree.min_class_samples 1 -q
  /usr/bin/python3 -c "
import nibabel, numpy
image = nibabel.load('s/images/case_001.nii.gz')
nibabel.save(image.slicer[:, :, 1:], 'cut.nii.gz')
open('broken.nii.gz', 'wb').write(open('s/images/case_001.nii.gz', 'rb').read()[:60])
data = numpy.asarray(image.dataobj)
nibabel.save(nibabel.Nifti1Image(numpy.stack([data, data], 3), image.affine), 'film.nii.gz')"
  cat > some.tsv <<'TSV'
id	image	label
good	s/images/case_000.nii.gz	s/labels/case_000.nii.gz
short	cut.nii.gz	s/labels/case_001.nii.gz
broken	broken.nii.gz	s/labels/case_001.nii.gz
film	film.nii.gz	s/labels/case_001.nii.gz
noise	s/images/case_001.nii.gz	s/labels/case_001.nii.gz
TSV
}

train() { "$BIN/pbt-train" -l s/train.tsv -o new.pbt "$@"; }
detect() { "$BIN/pbt-detect" -m m.pbt --output-dir out "$@"; }

@test "pbt-train ends with a table of the cases" {
  expect 0 train -n
  absent new.pbt new.pbt.ckpt new.pbt.json
  has err.txt "5x5x7 mm"
  python "
import nibabel, numpy
rows = [line.split() for line in open('out.txt')]
assert rows[0] == ['id', 'voxels', 'spacing_mm', 'class', 'other', 'ignored', 'labels'], rows
assert len(rows) == 4
for id, voxels, spacing, positive, other, ignored, labels in rows[1:]:
    data = numpy.asarray(nibabel.load(f's/labels/{id}.nii.gz').dataobj)
    assert voxels == 'x'.join(map(str, data.shape)) and spacing == '5x5x7'
    assert int(positive) == (data == 1).sum() > 0 and int(other) == (data == 0).sum()
    assert ignored == '0' and labels == '0,1'"
  expect 0 train -n --labels.ignore 1 --tree.allow_constant true
  python "assert [line.split()[3] for line in open('out.txt')][1:] == ['0'] * 3"
}

@test "3: pbt-train names every case of the list that it cannot use" {
  for threads in 1 3; do
    expect 3 "$BIN/pbt-train" -l some.tsv -o new.pbt -n -t "$threads"
    has err.txt "case 'short': 'cut.nii.gz' is not on the grid of 's/labels/case_001.nii.gz'"
    has err.txt "case 'broken':"
    has err.txt "case 'film': 'film.nii.gz'"
    has err.txt "--frame"
    has err.txt "3 problems"
    lacks err.txt "case 'good'"
    lacks err.txt "case 'noise'"
  done
  expect 3 "$BIN/pbt-train" -l some.tsv -o new.pbt
  absent new.pbt
}

@test "pbt-train: the dry run and the run refuse the same labels, settings and names" {
  for run in -n ""; do
    expect 3 train $run --labels.positive 7
    has err.txt "the label 7 never occurs in the training labels, which hold 0, 1"
    expect 3 train $run --labels.ignore 1
    has err.txt "both are needed"
    expect 2 train $run --space.intensity.rule window --space.intensity.window_low 9 --space.intensity.window-high 2
    has err.txt "window_low has to be less than window_high"
    expect 2 train $run --space.intensity.steps 16383 --features.sizes 64 --features.window 65
    has err.txt "beyond 32 bits"
    expect 2 train $run --checkpoint s/images/../images/case_001.nii.gz
    has err.txt "is an input of the list"
  done
  cmp s/images/case_001.nii.gz <("$BIN/make-samples" -o again --training 3 --test 1 \
    --size 24,20,16 --spacing_mm 5,5,7 -q && cat again/images/case_001.nii.gz)
}

@test "pbt-train for poses and boundaries: the dry run reads label maps and refuses what the run refuses" {
  head -c 200 s/labels/case_001.nii.gz > s/cut_label.nii.gz
  /usr/bin/python3 -c "
import nibabel, numpy
label = nibabel.load('s/labels/case_001.nii.gz')
nibabel.save(nibabel.Nifti1Image(numpy.asarray(label.dataobj) + numpy.float32(0.5), label.affine), 's/half_label.nii.gz')
few = numpy.zeros(label.shape, 'u1')
few[9, 9, 4:9] = 1
nibabel.save(nibabel.Nifti1Image(few, label.affine), 's/few_label.nii.gz')"
  refused() { expect 3 "$BIN/pbt-train" -o new.model "$@"; }
  for run in -n ""; do
    for model in 'hdn --hdn.folds 1 --hdn.structures [{"name":"organ","labels":[VALUE]}]' "boundary --boundary.labels VALUE"; do
      for name in cut half few; do
        { head -n 2 s/train.tsv; printf 'images/case_001.nii.gz\t%s_label.nii.gz\n' $name; } > s/one.tsv
        refused $run -l s/one.tsv --model ${model/VALUE/1}
        has err.txt "${name}_label.nii.gz"
      done
      refused $run -l s/train.tsv --model ${model/VALUE/7}
      has err.txt "the label 7 never occurs in the training labels, which hold 0, 1"
    done
    refused $run -l s/train.tsv --model hdn --hdn.structures '[{"name": "organ"}]'
    has err.txt "structure 'organ' occurs in no training case"
    head -n 2 s/train.tsv > s/one.tsv
    refused $run -l s/one.tsv --model boundary --boundary.labels 1
    has err.txt "at least two cases"
  done
  absent new.model
}

@test "7: pbt-detect --list names the cases that would fail, 3: the model, 6: what is there" {
  expect 7 detect -l some.tsv -n
  has err.txt "case 'broken':"
  has err.txt "case 'film':"
  has err.txt "2 problems"
  python "
rows = [line.split() for line in open('out.txt')]
assert rows[0] == ['id', 'voxels', 'spacing_mm', 'image']
assert [r[0] for r in rows[1:]] == ['good', 'short', 'noise']
assert rows[1][1:] == ['24x20x16', '5x5x7', 's/images/case_000.nii.gz'] and rows[2][1] == '24x20x15'"
  absent out
  expect 7 detect -l some.tsv -q
  python "
rows = [line.rstrip('\n').split('\t') for line in open('out/status.tsv')]
failed = sorted(r[0] for r in rows if r[rows[0].index('status')] == 'failed')
assert failed == ['broken', 'film'], failed"
  expect 6 detect -l some.tsv -n
  head -c 300 m.pbt > half.pbt
  expect 3 "$BIN/pbt-detect" -m half.pbt -l s/test.tsv --output-dir out2 -n
  expect 3 "$BIN/pbt-detect" -m half.pbt -i s/images/case_003.nii.gz -o o.nii.gz -n
  expect 0 detect -l s/test.tsv -n
  has err.txt "memory: "
}

@test "2: a weight of the surface that the voxels do not allow is found before anything is read" {
  expect 2 "$BIN/pbt-detect" -m m.pbt -i s/images/case_003.nii.gz -o seg.nii.gz -n \
    --structure.graph_cut.lambda_mm 33
  has err.txt "lambda_mm"
  python "
import nibabel, numpy
nibabel.save(nibabel.Nifti1Image(numpy.zeros((8, 8, 8), 'i2'), numpy.diag([.02, .02, .02, 1])), 'fine.nii')
nibabel.save(nibabel.Nifti1Image(numpy.zeros((8, 8, 8), 'i2'), numpy.diag([5, 5, 7, 1])), 'coarse.nii')"
  printf 'image\nfine.nii\ncoarse.nii\n' > two.tsv
  for dry in -n ""; do
    expect 2 "$BIN/pbt-detect" -m m.pbt -i fine.nii -o seg.nii.gz \
      --structure.graph_cut.lambda_mm 20 $dry
    has err.txt "lambda_mm = 20 is too large for voxels of 0.02x0.02x0.02 mm; give at most"
    expect 7 detect --list two.tsv --structure.graph_cut.lambda_mm 20 $dry
    has err.txt "case 'fine'"
    has err.txt "lambda_mm = 20 is too large"
    lacks err.txt "case 'coarse' failed"
  done
}

@test "pbt-detect of one image: headers, region, format and memory" {
  one() { "$BIN/pbt-detect" -m m.pbt -o o.nii.gz -n "$@"; }
  expect 0 one -i s/images/case_003.nii.gz --roi s/labels/case_003.nii.gz
  expect 3 one -i film.nii.gz
  has err.txt "--frame"
  expect 0 one -i film.nii.gz --frame 2
  expect 3 one -i film.nii.gz --frame 3
  expect 3 one -i broken.nii.gz
  expect 3 one -i s/images/case_003.nii.gz --roi cut.nii.gz
  has err.txt "cut.nii.gz"
  expect 5 one -i s/images/case_003.nii.gz --memory 1K
  has err.txt "--memory"
  expect 2 "$BIN/pbt-detect" -m m.pbt -o o.png -n -i s/images/case_003.nii.gz
  absent o.nii.gz o.png
}

@test "3: evaluate looks at every pair" {
  printf 'id\tprediction\treference\na\ts/labels/case_000.nii.gz\ts/labels/case_001.nii.gz\nb\tcut.nii.gz\ts/labels/case_001.nii.gz\n' > pairs.tsv
  expect 3 "$BIN/evaluate" --list pairs.tsv --table t.tsv -n
  has err.txt "case 'b': 'cut.nii.gz' is not on the grid of 's/labels/case_001.nii.gz'"
  expect 3 "$BIN/evaluate" --list pairs.tsv --table t.tsv
  sed -i '$d' pairs.tsv
  expect 0 "$BIN/evaluate" --list pairs.tsv --table t.tsv -n
  [ "$(sed 's/  */ /g' out.txt)" = "id voxels spacing_mm
a 24x20x16 5x5x7" ]
  absent t.tsv
}

@test "SIGTERM ends a dry run over a long list" {
  { printf 'id\timage\tlabel\n'; seq -f '%g	s/images/case_000.nii.gz	s/labels/case_000.nii.gz' 20000; } > long.tsv
  "$BIN/pbt-train" -l long.tsv -o new.pbt -n >out.txt 2>err.txt &
  local pid=$! code=0
  timeout 60 bash -c 'until grep -q "would write" err.txt; do sleep 0.05; done'
  kill -TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 143 ]
  absent new.pbt
}
