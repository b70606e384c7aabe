#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# pbt-train: what it reads, that the model depends on nothing but the data and the settings, and
# that a run which was stopped goes on.

load helpers

setup_file() {
  small_cases tiny.pbt --threads 1
  # Weak learners and exact leaves, so that the tree has several nodes and there is time to stop it.
  cat > long.json <<'JSON'
{
  "features": {"count": 6000, "window": 5, "sizes": [1, 2], "pyramid_levels": 1},
  "samples": {"positives_per_volume": 300, "negatives_per_volume": 900},
  "tree": {"depth": 7, "rounds": [2], "min_samples": 10, "min_class_samples": 2, "purity": 1,
           "weak": "threshold", "routing": "copy", "balance": "mass"}
}
JSON
  "$BIN/pbt-train" --list train.tsv --output long.pbt --config long.json -q
}

train() { "$BIN/pbt-train" --config "$BATS_FILE_TMPDIR/tiny.json" "$@"; }
train_long() { "$BIN/pbt-train" --config long.json --list train.tsv --output m.pbt "$@"; }

# Each test in a folder of its own, from which the cases are seen under their names.
setup() {
  skip_other_parts
  cd "$BATS_TEST_TMPDIR" || return 1
  unset LARCH_DEVICE LARCH_THREADS LARCH_LOGLEVEL SLURM_CPUS_PER_TASK NO_COLOR
  ln -s "$BATS_FILE_TMPDIR"/*.nii.gz "$BATS_FILE_TMPDIR"/*.json "$BATS_FILE_TMPDIR"/*.?sv .
}

same_as_tiny() { cmp "$1" "$BATS_FILE_TMPDIR/tiny.pbt"; }
same_as_long() { cmp "$1" "$BATS_FILE_TMPDIR/long.pbt"; }

# --- what it reads

@test "a TSV and a CSV give the same model; the record names every input" {
  expect 0 train --list train.csv --output m.pbt --report r.json
  same_as_tiny m.pbt
  absent m.pbt.ckpt
  no_temporaries
  python "
import hashlib
s = load('m.pbt.json')
inputs = {i['Path'].split('/')[-1]: i['SHA256'] for i in s['Larch']['Inputs']}
for name in ('train.csv', 'image_0.nii.gz', 'label_2.nii.gz'):
    assert inputs[name] == hashlib.sha256(open(name, 'rb').read()).hexdigest(), name
assert s['Larch']['Status'] == 'done' and s['Larch']['Config']['features']['count'] == 300
r = load('r.json')
assert [(o['Name'], o['Role']) for o in s['Larch']['Outputs']] == [('m.pbt', 'output'), ('r.json', 'report')]
assert r['status'] == 'done' and r['outputs'] == ['m.pbt'] and r['metrics']['training_volumes'] == 3
assert r['metrics']['nodes'] >= 3, r"
}

@test "--memory: volumes in portions give the same bytes; what is not enough says what is needed" {
  expect 5 train --list train.tsv --output m.pbt --memory 100K
  has err.txt "needs at least"
  expect 5 train --list train.tsv --output m.pbt --memory 100K --dry-run
  absent m.pbt m.pbt.ckpt
  local least
  least=$(python3 -c "
import re
number, unit = re.search(r'needs at least ([0-9.]+) (.)iB', open('err.txt').read()).groups()
print(f'{1.2 * float(number):.2f}{unit}')")
  expect 0 train --list train.tsv --output m.pbt --memory "$least" --dry-run
  has err.txt "at a time (3 portions)"
  expect 0 train --list train.tsv --output m.pbt --memory "$least"
  has err.txt "in 3 portions"
  same_as_tiny m.pbt
  expect 0 train --list train.tsv --output m.pbt --memory 1G --skip-existing
  has err.txt "skip"
}

@test "--dataset takes the dataset.json of make-samples, and gives what its train.tsv gives" {
  "$BIN/make-samples" --output-dir s --training 2 --test 1 --size 20,18,16 -q
  expect 0 train --dataset s/dataset.json --output a.pbt
  expect 0 train --list s/train.tsv --output b.pbt
  cmp a.pbt b.pbt
}

@test "2: neither --list nor --dataset, both, no output, flags that contradict each other" {
  expect 2 train --output m.pbt
  has err.txt "give either --list or --dataset"
  echo '{}' > d.json
  expect 2 train --list train.tsv --dataset d.json --output m.pbt
  has err.txt "give either --list or --dataset"
  expect 2 train --list train.tsv --output m.pbt --export-json m.json
  has err.txt "--export-json needs --inspect"
  expect 2 train --list train.tsv --output m.pbt --checkpoint ./m.pbt
  has err.txt "--checkpoint"
  expect 2 train --list train.tsv --output m.pbt --inspect "$BATS_FILE_TMPDIR/tiny.pbt"
  absent m.pbt m.json
}

@test "2: an even window, and percentiles that are upside down" {
  expect 2 train --list train.tsv --output m.pbt --features.window 4
  has err.txt "odd"
  expect 2 train -l train.tsv -o m.pbt --space.intensity.low_percentile 99 \
    --space.intensity.high_percentile 1
  has err.txt "low_percentile"
  absent m.pbt
}

# --- looking at a model

@test "--inspect prints the nodes, the version that wrote the model and the settings" {
  expect 0 "$BIN/pbt-train" --inspect "$BATS_FILE_TMPDIR/tiny.pbt"
  has out.txt "probabilistic boosting trees, kind pbt 1"
  has out.txt "class: name foreground, value 1"
  has out.txt "space: spacing_mm [2, 2, 3]"
  has out.txt "count 300"
  has out.txt "tool_version $("$BIN/pbt-train" --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*' | head -1)"
  grep -Eq '^ *depth +left +right .* reason$' out.txt
  grep -Eq '^ *0 +1 +2 .* grown$' out.txt
  expect 3 "$BIN/pbt-train" --inspect train.tsv
  has err.txt "train.tsv"
}

@test "a model holds its name, licence, intended use and the digest of the list, whatever the order of that" {
  (head -1 train.tsv; tail -n +2 train.tsv | tac) > turned.tsv
  expect 0 train --list turned.tsv --output m.pbt --about.name organs --about.licence CC-BY-4.0
  expect 0 "$BIN/pbt-train" --inspect m.pbt
  has out.txt "name organs, licence CC-BY-4.0, intended_use research, not a medical device"
  expect 0 "$BIN/pbt-train" --inspect m.pbt --export-json told.json
  expect 0 "$BIN/pbt-train" --inspect "$BATS_FILE_TMPDIR/tiny.pbt" --export-json untold.json
  python "
import hashlib
m, tiny = load('told.json'), load('untold.json')
lines = ''.join(d + '\\n' for d in m['meta']['volume_digests'])
assert m['about']['training_list'] == hashlib.sha256(lines.encode()).hexdigest() == tiny['about']['training_list']
assert tiny['about']['name'] == '' and m['about'].pop('name') == 'organs'"
  expect 2 train --list train.tsv --output n.pbt --about.licence $'a\nb'
}

@test "--export-json is JSON without loss: doubles are hexadecimal, the counts those of the tree" {
  expect 0 "$BIN/pbt-train" --inspect "$BATS_FILE_TMPDIR/tiny.pbt" --export-json m.json
  expect 0 "$BIN/pbt-train" --inspect "$BATS_FILE_TMPDIR/tiny.pbt"
  python "
import re
model = load('m.json')
assert model['format'] == 'larch-pbt' and len(model['meta']['volume_digests']) == 3
doubles = []
def walk(value, at):
    if isinstance(value, dict):
        for k, v in value.items():
            if at + '/' + k != '/meta/training': walk(v, at + '/' + k)
    elif isinstance(value, list):
        for i, v in enumerate(value): walk(v, f'{at}/{i}')
    elif isinstance(value, str) and re.match('-?0x', value):
        doubles.append(float.fromhex(value))
    else:
        assert not isinstance(value, float), f'{at}: {value} is decimal'
walk(model, '')
assert doubles[:3] == [2, 2, 3], doubles
text = open('out.txt').read()
nodes, weak = (int(re.search(rf'^{name} \((\d+)\):', text, re.M)[1]) for name in ('nodes', 'weak_classifiers'))
assert len(model['nodes']) == nodes and sum(n['n_weak'] for n in model['nodes']) == weak
assert len(model['weak_classifiers']) == weak and len(model['self_tests']) >= 64"
}

# --- the same bytes

@test "the same model for 1, 2 and 5 threads and for another order of the list" {
  for threads in 2 5; do
    expect 0 train --list train.tsv --output "m$threads.pbt" --threads "$threads"
    same_as_tiny "m$threads.pbt"
  done
  expect 0 train --list permuted.tsv --output p.pbt
  same_as_tiny p.pbt
  expect 0 train --list train.tsv --output s.pbt --seed 1
  ! cmp -s s.pbt "$BATS_FILE_TMPDIR/tiny.pbt"
}

start_long() {
  start_training m.pbt --config long.json --list train.tsv
}

@test "SIGTERM: 143, a checkpoint and no model; --resume gives the same bytes" {
  start_long
  kill -TERM "$child"
  code=0; wait "$child" || code=$?
  [ "$code" -eq 143 ]
  has log.txt "--resume"
  [ -s m.pbt.ckpt ]
  absent m.pbt m.pbt.json
  no_temporaries
  expect 0 train_long --resume --threads 1
  has err.txt "going on from 'm.pbt.ckpt'"
  same_as_long m.pbt
  absent m.pbt.ckpt
}

@test "--resume refuses a checkpoint of other settings, another seed or other data" {
  start_long
  kill -TERM "$child"
  wait "$child" || true
  head -n 3 train.tsv > fewer.tsv
  expect 3 train_long --resume --tree.depth 6
  has err.txt "m.pbt.ckpt"
  expect 3 train_long --resume --seed 1
  expect 3 "$BIN/pbt-train" --config long.json --list fewer.tsv --output m.pbt --resume
  absent m.pbt
  # The refusals have not touched it, and the order of the list does not count.
  { head -n 1 train.tsv; tail -n +2 train.tsv | tac; } > turned.tsv
  expect 0 "$BIN/pbt-train" --config long.json --list turned.tsv --output m.pbt --resume
  has err.txt "going on from 'm.pbt.ckpt'"
  same_as_long m.pbt
}

@test "6: without --resume, a checkpoint that exists is not replaced unasked" {
  start_long
  kill -TERM "$child"
  wait "$child" || true
  cp m.pbt.ckpt kept
  expect 6 train_long
  has err.txt "'m.pbt.ckpt'"
  cmp m.pbt.ckpt kept
  expect 6 train_long --skip-existing
  has err.txt "'m.pbt.ckpt'"
  has err.txt "--resume"
  cmp m.pbt.ckpt kept
  expect 0 train_long --resume --skip-existing
  same_as_long m.pbt
  rm m.pbt*
  cp kept m.pbt.ckpt
  expect 6 train -l train.tsv -o n.pbt --checkpoint long.json
  [ -s long.json ]
  expect 0 train -l train.tsv -o m.pbt --force
  same_as_tiny m.pbt
  absent m.pbt.ckpt
}

@test "--resume refuses a checkpoint that is damaged, or a model in its place" {
  echo "no checkpoint" > m.pbt.ckpt
  expect 3 train_long --resume
  has err.txt "m.pbt.ckpt"
  cp "$BATS_FILE_TMPDIR/long.pbt" m.pbt.ckpt
  expect 3 train_long --resume
  has err.txt "m.pbt.ckpt"
  absent m.pbt
}

@test "--resume without a checkpoint starts anew" {
  expect 0 train --list train.tsv --output m.pbt --resume
  has err.txt "warning: --resume: there is no checkpoint 'm.pbt.ckpt': starting from the root"
  expect 6 train --list train.tsv --output n.pbt --resume --checkpoint no-folder/n.ckpt
  has err.txt "'no-folder/n.ckpt'"
  same_as_tiny m.pbt
}

@test "--checkpoint names another file; a folder that is missing or full is said" {
  expect 6 train --list train.tsv --output m.pbt --checkpoint no/m.ckpt
  has err.txt "no"
  absent m.pbt no
  expect 0 train --list train.tsv --output m.pbt --checkpoint other.ckpt
  same_as_tiny m.pbt
  absent other.ckpt m.pbt.ckpt
  small_disk disk 4
  expect 6 train --list train.tsv --output n.pbt --checkpoint disk/m.ckpt
  has err.txt "disk/m.ckpt"
  absent n.pbt
  [ -z "$(ls -A disk)" ]
}

# --- settings

check_detects() {  # the model finds the ball of the fourth case; $1: least Dice
  expect 0 "$BIN/pbt-detect" --model m.pbt --input image_3.nii.gz --output seg.nii.gz
  expect 0 "$BIN/evaluate" --prediction seg.nii.gz --reference label_3.nii.gz --merge --report e.json
  python "
dice = load('e.json')['metrics']['dice']
assert dice > $1, dice"
}

@test "weak classifiers: thresholds, with copying of uncertain samples" {
  expect 0 train -l train.tsv -o m.pbt --tree.weak threshold --tree.routing copy --tree.rounds 12
  ! cmp -s m.pbt "$BATS_FILE_TMPDIR/tiny.pbt"
  expect 0 "$BIN/pbt-train" --inspect m.pbt
  has out.txt "weak threshold"
  check_detects 0.75
}

@test "mining, and more channels and levels" {
  expect 0 train -l train.tsv -o m.pbt --mining.enabled --mining.per_node 500 \
    --features.channels intensity,gaussian,gradient-magnitude --features.pyramid_levels 2
  check_detects 0.75
}

@test "validation holds out whole volumes, prunes, and reports what it saw" {
  expect 0 train -l train.tsv -o m.pbt --validation.fraction 0.34 --validation.patience 2 \
    --tree.depth 4 --tree.min_samples 10 --tree.min_class_samples 2 --report r.json
  python "
m = load('r.json')['metrics']
assert m['held_out_volumes'] == 1 and m['training_volumes'] == 2, m
assert 0 < m['held_out_log_loss'] < 0.5 and 0.9 < m['held_out_auc'] <= 1, m
assert m['pruned_nodes'] >= 0"
  check_detects 0.7
}

@test "the threshold that is best on held-out volumes is stored, and pbt-detect takes it" {
  # A prior of one half makes posteriors too high.
  expect 0 train -l train.tsv -o m.pbt --validation.fraction 0.34 --tree.prior half --report r.json --plot p.png
  expect 0 train -l train.tsv -o n.pbt --validation.fraction 0.34 --tree.prior half --threads 1 --plot n.png
  cmp m.pbt n.pbt
  cmp p.png n.png
  expect 0 "$BIN/pbt-train" --inspect m.pbt
  has out.txt "volume_digests (3)"
  has out.txt "volumes 1,"
  expect 0 "$BIN/pbt-train" --inspect "$BATS_FILE_TMPDIR/tiny.pbt"
  has out.txt "volume_digests (3)"
  ! grep "volumes 1" out.txt || return 1
  expect 0 "$BIN/pbt-train" --inspect m.pbt --plot i.png
  cmp i.png p.png
  detect() { expect 0 "$BIN/pbt-detect" --model m.pbt --input image_3.nii.gz --output $1.nii.gz --report $1.json "${@:2}"; }
  detect stored
  python "
m, depths = load('r.json')['metrics'], load('r.json')['held_out_by_depth']
assert 0.5 < m['held_out_threshold'] < 1 and 0.7 < m['held_out_dice'] <= 1, m
assert [d['depth'] for d in depths] == list(range(len(depths))) and len(depths) > 1, depths
assert depths[-1]['log_loss'] == m['held_out_log_loss'] and depths[-1]['auc'] == m['held_out_auc'] > depths[0]['auc'], depths
assert load('stored.json')['metrics']['threshold'] == m['held_out_threshold']
json.dump({'structure': {'threshold': 0.5}}, open('half.config.json', 'w'))
json.dump({'structure': {'threshold': m['held_out_threshold']}}, open('same.config.json', 'w'))"
  detect half -c half.config.json
  detect flag --structure.threshold 0.5
  detect same -c same.config.json
  cmp half.nii.gz flag.nii.gz
  cmp same.nii.gz stored.nii.gz
  python "
import nibabel, numpy
truth = nibabel.load('label_3.nii.gz').get_fdata() > 0
def dice(name):
    found = nibabel.load(name).get_fdata() > 0
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())
assert dice('stored.nii.gz') > dice('half.nii.gz') + 0.02, (dice('stored.nii.gz'), dice('half.nii.gz'))"
  # A model without held-out volumes, as all older ones, has none.
  expect 0 "$BIN/pbt-detect" --model "$BATS_FILE_TMPDIR/tiny.pbt" --input image_3.nii.gz --output old.nii.gz --report old.json
  python "assert load('old.json')['metrics']['threshold'] == 0.5"
}

@test "validation of a single volume holds out nothing, and says so" {
  head -n 2 train.tsv > one.tsv
  expect 0 train -l one.tsv -o m.pbt --validation.fraction 0.5
  has err.txt "warning"
  has err.txt "validation/fraction"
}

held() { train --list train.tsv --validation.fraction 0.67 --output "$1" --held-out "$2" "${@:3}"; }

@test "--held-out: a page with the scores of pbt-detect, and pictures; the same for any threads; what is there counts" {
  expect 0 held m.pbt held --threads 1
  expect 0 held n.pbt other/page --threads 3
  cmp m.pbt n.pbt
  for picture in held/*.png; do cmp "$picture" "other/page/${picture#held/}"; done
  sed '1s/label/reference/' train.tsv > test.tsv
  "$BIN/pbt-detect" --model m.pbt --list test.tsv --output-dir out --write labels,qc -q
  python "
import csv, os, re
page = open('held/index.html').read()
found = dict(re.findall(r'<span>(image_\d)</span>.*?<dt>dice</dt><dd>([\d.]+)</dd>', page, re.S))
rows = {r['id']: r['dice'] for r in csv.DictReader(open('out/status.tsv'), delimiter='\t')}
assert len(found) == 2 and all(rows[name] == dice for name, dice in found.items()), (found, rows)
assert '--held-out held' in page and len(re.findall('foreground <b>', page)) == 2
roles = {o['Name']: o['Role'] for o in load('m.pbt.json')['Larch']['Outputs']}
assert roles == {'m.pbt': 'output', 'held/index.html': 'held-out', **{f'held/{n}.png': 'held-out' for n in found}}, roles
assert all(open(f'held/{n}.png', 'rb').read() != open(f'out/{n}.png', 'rb').read() for n in found), 'the truth is drawn'"
  expect 6 held m.pbt held
  expect 0 held m.pbt held --skip-existing
  has err.txt "nothing to do"
  rm held/*.png
  expect 0 held m.pbt held --skip-existing
  for picture in other/page/*.png; do cmp "$picture" "held/${picture#other/page/}"; done
}

@test "--held-out: 6 for what is not of the run; a dry run writes nothing; 2 where nothing is held out, or for other models" {
  mkdir mine
  for name in image_1.png index.html; do
    echo "mine" > mine/$name
    expect 6 held m.pbt mine
    has err.txt "mine/$name' exists"
    [ "$(cat mine/$name)" = mine ]
    rm mine/$name
  done
  expect 0 held m.pbt held --dry-run
  has err.txt "would write held/index.html"
  absent held
  expect 2 train --list train.tsv --output m.pbt --held-out held
  has err.txt "none is held out; --validation.fraction 0.3"
  expect 2 "$BIN/pbt-train" --list train.tsv --output m.hdn --model hdn --held-out held
  has err.txt "--held-out is of model voxels"
}

@test "labels: a part as the class, the rest ignored; its name and value reach the label map" {
  expect 0 train -l train.tsv -o m.pbt --labels.positive 2 --labels.ignore 1 \
    --labels.border_voxels 0 --labels.class_name core --labels.class_value 7
  expect 0 "$BIN/pbt-detect" --model m.pbt --input image_3.nii.gz --output seg.nii.gz
  python "
import nibabel, numpy
assert set(numpy.unique(nibabel.load('seg.nii.gz').dataobj)) == {0, 7}
assert open('seg.tsv').read().splitlines()[1].startswith('7\tcore\t')"
}

# sparse VALUE: volumes of which three slices are annotated, VALUE elsewhere, and whole.nii.gz, the truth of image_3.nii.gz
sparse() {
  python "
import nibabel, numpy, os
for folder in ('imagesTr', 'labelsTr', 'imagesTs'): os.makedirs(folder, exist_ok=True)
for case in range(4):
    rng, n = numpy.random.default_rng(case), 24
    c = rng.uniform(9, 15, 3)
    label = (((numpy.stack(numpy.meshgrid(*[numpy.arange(n)] * 3, indexing='ij'), -1) - c) ** 2).sum(-1) < 25).astype('u1')
    image = nibabel.Nifti1Image((rng.normal(100, 10, (n, n, n)) + 60 * label).astype('f4'), numpy.diag([2, 2, 2, 1]))
    nibabel.save(image, 'imagesT%s/c%d_0000.nii.gz' % ('s' if case == 3 else 'r', case))
    if case < 3:
        far = numpy.ones(n, bool)
        far[int(c[2]) - 1:int(c[2]) + 2] = False
        label[:, :, far] = $1
    nibabel.save(nibabel.Nifti1Image(label, image.affine), 'labelsTr/c%d.nii.gz' % case if case < 3 else 'whole.nii.gz')"
}

@test "dataset.json: voxels that are called ignore, or not declared, are not learned, in trees, forests and dry runs" {
  sparse 9
  declare() { echo '{"channel_names": {"0": "CT"}, "file_ending": ".nii.gz", "numTraining": 3, "labels": {'"$1"'}}' > d.json; }
  for labels in '"background": 0, "organ": 1, "ignore": 9' '"background": 0, "organ": 1'; do
    declare "$labels"
    expect 0 train --dataset d.json --output m.pbt --labels.border_voxels 1 -f
    if [[ "$labels" == *ignore* ]]; then
      [[ "$(cat err.txt)" != *warning* ]]
    else
      has err.txt "labelsTr/c0.nii.gz' holds 9, which its dataset.json does not declare"
      [ "$(grep -c 'does not declare' err.txt)" -eq 1 ]
    fi
    expect 0 "$BIN/pbt-detect" --model m.pbt --input imagesTs/c3_0000.nii.gz --output seg.nii.gz -f
    expect 0 "$BIN/evaluate" --prediction seg.nii.gz --reference whole.nii.gz --labels 1 --report e.json -f
    python "assert load('e.json')['metrics']['dice'] > 0.8, load('e.json')['metrics']"
    expect 0 train --dataset d.json --output none.pbt --dry-run
    python "
rows = [line.split() for line in open('out.txt') if line.startswith('c')]
assert [row[5] for row in rows] == [str(24 * 24 * 21)] * 3, rows"
  done
  # A configuration that names the label has its way.
  expect 0 train --dataset d.json --output none.pbt --labels.positive 9 --dry-run
  [[ "$(cat err.txt)" != *"does not declare"* ]]
  declare '"background": 0, "organ": 1, "ignore": 9'
  expect 0 "$BIN/pbt-train" --dataset d.json --output m.forest --classifier decision-forest --forest.trees 2 --space.spacing_mm 2,2,2
  expect 0 "$BIN/pbt-detect" --model m.forest --input imagesTs/c3_0000.nii.gz --output forest.nii.gz --report r.json
  python "
import nibabel, numpy
assert set(numpy.unique(nibabel.load('forest.nii.gz').dataobj)) == {0, 1}
report = load('r.json')
assert 'background' not in str(report.get('classes', '')), report"
  # What the data set says of its labels is an input.
  declare '"background": 0, "organ": 1, "void": 9'
  expect 6 "$BIN/pbt-train" --dataset d.json --output m.forest --classifier decision-forest --forest.trees 2 --space.spacing_mm 2,2,2 --skip-existing
  has err.txt "labels"
}

# --- outputs

@test "--skip-existing: settings and which volumes are in the list count, their order does not" {
  expect 0 train -l train.tsv -o m.pbt
  { head -1 train.tsv; tail -n +2 train.tsv | sort -r; } > reversed.tsv
  expect 0 train -l reversed.tsv -o m.pbt --skip-existing --threads 1
  has err.txt "nothing to do"
  head -n -1 train.tsv > fewer.tsv
  expect 6 train -l fewer.tsv -o m.pbt --skip-existing
  has err.txt "m.pbt.json"
  has err.txt "cases of the list"
  expect 6 train -l train.tsv -o m.pbt --skip-existing --tree.depth 1 --seed 9
  has err.txt "tree.depth"
  has err.txt "--seed"
  same_as_tiny m.pbt
}

@test "--plot draws the history: the same picture for any threads and from the model itself" {
  expect 0 train -l train.tsv -o m.pbt --plot m.png --threads 1
  same_as_tiny m.pbt
  expect 0 train -l train.tsv -o n.pbt --plot n.png --threads 3 --resume
  cmp m.png n.png
  expect 0 "$BIN/pbt-train" --inspect m.pbt --plot i.png
  cmp m.png i.png
  [ ! -s out.txt ]
  python "
data = open('m.png', 'rb').read()
assert data[:8] == b'\\x89PNG\\r\\n\\x1a\\n' and data[16:24] == bytes([0, 0, 3, 32, 0, 0, 1, 244]), data[:24]
assert [o['Role'] for o in load('m.pbt.json')['Larch']['Outputs']] == ['output', 'plot']"
  absent m.png.json
  expect 0 train -l train.tsv -o s.pbt --plot s.png --seed 1
  ! cmp -s s.png m.png || return 1
  expect 6 train -l train.tsv -o o.pbt --plot m.png
  has err.txt "'m.png'"
  expect 2 train -l train.tsv -o o.pbt --plot o.jpg
  has err.txt "cannot write 'o.jpg': --plot writes a picture that ends in .png"
  absent o.pbt o.jpg
}

# --- ensembles

@test "an ensemble: same model for one and two threads, mean of its trees, stated by --inspect" {
  expect 0 train --list train.tsv --output f.pbt --classifier pbt-ensemble --ensemble.trees 3 \
    --report r.json --threads 1
  expect 0 train --list train.tsv --output g.pbt --classifier pbt-ensemble --ensemble.trees 3 --threads 2
  cmp f.pbt g.pbt
  ! cmp -s f.pbt "$BATS_FILE_TMPDIR/tiny.pbt" || return 1
  expect 0 "$BIN/pbt-train" --inspect f.pbt
  has out.txt "roots (3)"
  python "assert load('r.json')['metrics']['trees'] == 3"
  expect 0 "$BIN/pbt-detect" -m f.pbt -i image_0.nii.gz -o labels.nii.gz --probability a.nii.gz
  python "
import nibabel, numpy
a = numpy.asarray(nibabel.load('a.nii.gz').dataobj)
assert a.max() > 0.5 > a.min()
"
}

@test "--dataset with several channels: the chosen one gives the model of its images alone" {
  # Two channels, of which the first is noise.
  /usr/bin/python3 - <<'PY'
import json, os, nibabel, numpy
os.makedirs('imagesTr'), os.makedirs('labelsTr')
for i in range(4):
    image = nibabel.load(f'image_{i}.nii.gz')
    values = numpy.asarray(image.dataobj)
    noise = numpy.random.default_rng(i).integers(0, 99, values.shape).astype(values.dtype)
    for channel, data in enumerate([noise, values]):
        nibabel.save(nibabel.Nifti1Image(data, image.affine, image.header), f'imagesTr/image_{i}_{channel:04}.nii.gz')
    nibabel.save(nibabel.load(f'label_{i}.nii.gz'), f'labelsTr/image_{i}.nii.gz')
json.dump({'channel_names': {'0': 'noise', '1': 'MRI'}, 'file_ending': '.nii.gz', 'labels': {'background': 0, 'ball': 1, 'core': 2}},
          open('dataset.json', 'w'))
open('mri.tsv', 'w').write('image\tlabel\n' + ''.join(f'imagesTr/image_{i}_0001.nii.gz\tlabelsTr/image_{i}.nii.gz\n' for i in range(4)))
PY
  expect 0 train --list mri.tsv --output mri.pbt
  expect 2 train --dataset dataset.json --output m.pbt
  has err.txt "has 2 channels (noise, MRI), and one is taken: choose it by name or number with --channel"
  expect 0 train --dataset dataset.json --channel MRI --output m.pbt
  cmp m.pbt mri.pbt
  expect 0 train --dataset dataset.json --channel 1 --output n.pbt --dry-run
  has err.txt "labels of the data set: 0 background, 1 ball, 2 core"
  expect 2 train --list mri.tsv --channel MRI --output m.pbt
  has err.txt "--channel goes with --dataset"
}

@test "--frame chooses a volume of the 4-D images of a list; without it, the error names the flag" {
  python "
import nibabel, numpy, os
for name in sorted(n for n in os.listdir('.') if n.startswith('image_')):
    image = nibabel.load(name)
    data = numpy.asarray(image.dataobj)
    noise = numpy.random.default_rng(1).integers(0, 99, data.shape).astype(data.dtype)
    nibabel.save(nibabel.Nifti1Image(numpy.stack([noise, data], 3), image.affine), 'film_' + name[6:])
text = open('train.tsv').read()
open('films.tsv', 'w').write(text.replace('image_', 'film_'))"
  expect 0 train -l films.tsv -o m.pbt --frame 2
  same_as_tiny m.pbt
  expect 0 train -l films.tsv -o n.pbt --frame 2 -n
  for dry in -n ""; do
    expect 3 train -l films.tsv -o n.pbt $dry
    has err.txt "--frame"
    expect 3 train -l films.tsv -o n.pbt --frame 3 $dry
    has err.txt "film_0.nii.gz"
  done
  absent n.pbt
}

@test "2: a key that the chosen model does not read; its default passes, as a flag and in a printed configuration" {
  refuses() {
    expect 2 "$BIN/pbt-train" --list train.tsv --output m.x --dry-run "${@:2}"
    has err.txt "$1 is of "
  }
  refuses --validation.prune --validation.fraction 0 --validation.prune false
  refuses --validation.patience --validation.fraction 0 --validation.patience 3
  expect 2 "$BIN/pbt-train" --list train.tsv --output m.x --validation.prune false  # so few are not held out
  for pair in "--mining.per_node 3" "--tree.prior_value 0.3" \
      "--space.intensity.window_low 3" "--space.intensity.window_high 3"; do
    refuses "${pair% *}" ${pair}
  done
  for key in low high; do
    refuses --space.intensity.${key}_percentile --space.intensity.${key}_percentile 50 --space.intensity.rule window
  done
  refuses --features.pyramid_levels --features.channels '[]' --features.filters '[{}]' --features.pyramid_levels 1
  refuses --mining.enabled --model hdn --classifier decision-forest --mining.enabled
  refuses --ensemble.trees --model hdn --ensemble.trees 3

  boundary() { refuses "$1" --model boundary "$@"; }
  boundary --features.count 50
  boundary --mining.enabled true
  boundary --space.padding zero
  boundary --ensemble.trees 3
  boundary --ensemble.bootstrap false --classifier pbt-ensemble
  boundary --tree.tap_cost 0.1
  boundary --tree.allow_constant true
  boundary --boundary.refine.search_modes 1 --boundary.refine.search none

  structure() { refuses "$1" --model hdn --hdn.structures '[{"name": "ball", "labels": [1]}]' "$@"; }
  structure --hdn.rotation_count 100
  structure --hdn.rotation_radius_deg 9 --hdn.rotations uniform
  structure --hdn.keep 9,9,9 --hdn.halvings 0
  structure --hdn.fallback false
  structure --hdn.prior_weight 2

  for model in voxels 'hdn --hdn.structures [{"name":"ball","labels":[1]}]' "boundary --boundary.labels 1"; do
    # shellcheck disable=SC2086
    "$BIN/pbt-train" --model $model --print-config > printed.json
    expect 0 "$BIN/pbt-train" --list train.tsv --output m.x --dry-run --config printed.json
    python "
def flags(value, name):
    if isinstance(value, dict): return [flag for key in value for flag in flags(value[key], f'{name}.{key}' if name else key)]
    return [f'--{name}', value if isinstance(value, str) else json.dumps(value)]
print('\\0'.join(flags(load('printed.json'), '')), end='\\0')" > flags
    mapfile -d '' -t flags < flags
    expect 0 "$BIN/pbt-train" --list train.tsv --output m.x --dry-run "${flags[@]}"
  done
  configs=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/configs
  # As the page says.
  sed '/"tree"/,/}/d' "$configs/pbt-train.hdn.quickstart.json" > forest.json
  expect 0 "$BIN/pbt-train" --list train.tsv --output m.x --dry-run --config forest.json --classifier decision-forest \
    --forest.depth 10 --forest.trees 20
  for preset in "$configs"/pbt-train*.json; do
    code=0
    "$BIN/pbt-train" --list train.tsv --output m.x --dry-run --config "$preset" 2> err.txt || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || { echo "$preset"; cat err.txt; return 1; }
  done
}

@test "lists of structs: --help-config names their keys, and its example is a value" {
  expect 0 "$BIN/pbt-train" --help-config
  python "
import re, subprocess
text = open('out.txt').read()
assert '{...}' not in text
def output(*flags): return json.loads(subprocess.run(['$BIN/pbt-train', *flags], capture_output=True, check=True).stdout)
for section, name, key in ('hdn', 'structures', 'stages'), ('features', 'filters', 'sigma_voxels'), ('labels', 'names', 'value'):
    of_flag = re.search(rf'--{section}\.{name} .*?(?=\n  --)', text, re.S)[0]
    assert f'- {key}: ' in of_flag, of_flag
    example = ' '.join(of_flag.split('example ')[1].split())
    given, found = json.loads(example), output('--print-config', f'--{section}.{name}={example}')[section][name]
    assert len(found) == len(given) and given[0].items() <= found[0].items(), found
    schema = output('--print-schema')['properties'][section]['properties'][name]
    assert schema['examples'] == [given], schema"
}

@test "2: names with line breaks or ESC" {
  printf '{"labels": {"positive": [3], "class_name": "liver\\u001b[2J"}}' > esc.json
  expect 2 train -l train.tsv -o m.pbt --config esc.json
  has err.txt 'liver\x1b[2J'
  printf '{"labels": {"class_name": "liver\\nspleen"}}' > line.json
  expect 2 train -l train.tsv -o m.pbt --config line.json --dry-run
  has err.txt 'liver\x0aspleen'
  absent m.pbt
}

# --- experts

@test "experts: the same model by any number of threads, after an interruption, and the same labels in a list" {
  "$BIN/make-samples" --output-dir s --training 4 --test 1 --size 16,16,16 -q
  train_experts() {
    "$BIN/pbt-train" --config "$BATS_FILE_TMPDIR/long.json" --list s/train.tsv --experts true "$@"
  }
  expect 0 train_experts --output a.pbt --threads 2 --report r.json
  python "
m = load('r.json')['metrics']
assert 0 < m['unseen_dice_of_trees'] <= 1 and 0 < m['unseen_dice_of_experts'] <= 1, m"
  expect 0 "$BIN/pbt-train" --inspect a.pbt
  has out.txt "experts"
  expect 0 "$BIN/pbt-train" --inspect "$BATS_FILE_TMPDIR/long.pbt"
  lacks out.txt "expert_coefficients"
  start_training b.pbt --config "$BATS_FILE_TMPDIR/long.json" --list s/train.tsv --experts true
  kill -TERM "$child"
  wait "$child" || true
  expect 0 train_experts --output b.pbt --threads 1 --resume
  cmp a.pbt b.pbt
  expect 0 "$BIN/pbt-detect" --model a.pbt --list s/test.tsv --output-dir found --write labels
  image=$(ls s/images/*.nii* | tail -1)
  expect 0 "$BIN/pbt-detect" --model a.pbt --input "$image" --output alone.nii.gz --threads 1
  cmp found/*.nii.gz alone.nii.gz
}
