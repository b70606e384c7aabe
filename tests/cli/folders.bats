#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Folders in place of lists: images, data sets, masks of structures, points.

load helpers

# The balls of small_cases as a folder of images, as data sets of both forms, and with their masks.
setup_file() {
  small_cases m.pbt
  mkdir -p scans/a scans/b old/{imagesTr,labelsTr,imagesTs} new
  cp image_0.nii.gz scans/a/t1.nii.gz
  cp image_1.nii.gz scans/b/t1.nii.gz
  echo notes > scans/notes.txt
  for i in 0 1 2; do cp "image_$i.nii.gz" old/imagesTr/ && cp "label_$i.nii.gz" "old/labelsTr/image_$i.nii.gz"; done
  cp image_3.nii.gz old/imagesTs/
  cp -r old/. new
  for file in new/images*/*; do mv "$file" "${file/.nii.gz/_0000.nii.gz}"; done
  /usr/bin/python3 - <<'PY'
import json, os, nibabel, numpy
labels = {'background': 0, 'ball': 1, 'core': 2}
names = [f'image_{i}.nii.gz' for i in range(3)]
json.dump({'modality': {'0': 'MR'}, 'labels': {str(v): k for k, v in labels.items()}, 'numTraining': 3, 'numTest': 1,
           'training': [{'image': f'./imagesTr/{n}', 'label': f'./labelsTr/{n}'} for n in names],
           'test': ['./imagesTs/image_3.nii.gz']}, open('old/dataset.json', 'w'))
json.dump({'channel_names': {'0': 'MR'}, 'labels': labels, 'numTraining': 3, 'file_ending': '.nii.gz'},
          open('new/dataset.json', 'w'))
os.mkdir('points')
for i in range(3):
    os.makedirs(f'organs/s{i}/segmentations')
    os.link(f'image_{i}.nii.gz', f'organs/s{i}/ct.nii.gz')
    image = nibabel.load(f'label_{i}.nii.gz')
    ball = numpy.asarray(image.dataobj)
    for value, name in (1, 'ball'), (2, 'core'):
        mask = nibabel.Nifti1Image((ball == value).astype('u1'), image.affine)
        nibabel.save(mask, f'organs/s{i}/segmentations/{name}.nii.gz')
    x, y, z = (image.affine @ [*numpy.argwhere(ball).mean(0), 1])[:3]
    json.dump({'markups': [{'type': 'Fiducial', 'coordinateSystem': 'RAS', 'controlPoints': [
        {'label': 'centre', 'position': [x, y, z]}]}]}, open(f'points/{i}.mrk.json', 'w'))
PY
}

@test "--list of a folder: each image below is a case, with the bytes of the image alone" {
  expect 0 "$BIN/pbt-detect" -m m.pbt --list scans --output-dir scans/out
  has err.txt "1 files and folders are no images and are passed over, such as 'scans/notes.txt'"
  expect 0 "$BIN/pbt-detect" -m m.pbt -i scans/b/t1.nii.gz -o one.nii.gz
  cmp one.nii.gz scans/out/b__t1.nii.gz
  cp scans/a/t1.nii.gz scans/c.nii.gz
  expect 0 "$BIN/pbt-detect" -m m.pbt --list scans --output-dir scans/out --skip-existing --report r.json
  python "
report = load('r.json')
assert [(c['id'], c['status']) for c in report['cases']] == [('a__t1', 'skipped'), ('b__t1', 'skipped'), ('c', 'ok')]"
  lacks scans/out/c.larch.json '"list"'
  expect 2 "$BIN/pbt-detect" -m m.pbt --list scans --output-dir scans/
  mkdir empty
  expect 3 "$BIN/pbt-detect" -m m.pbt --list empty --output-dir out
  has err.txt "no image in this folder"
}

@test "a folder of the Decathlon, of nnU-Net, and of masks: the model of their list" {
  expect 0 "$BIN/pbt-train" --list train.tsv --output list.pbt --config tiny.json
  for form in "--list old" "--dataset new" "--list organs"; do
    expect 0 "$BIN/pbt-train" $form --output folder.pbt --config tiny.json -f
    "$BIN/pbt-train" --inspect folder.pbt | grep digest > of_folder.txt
    "$BIN/pbt-train" --inspect list.pbt | grep digest | diff - of_folder.txt
  done
  has err.txt "labels of the masks: 1 ball, 2 core"
  for form in "--dataset old" "--list new"; do
    expect 0 "$BIN/pbt-detect" -m m.pbt $form --output-dir out -f
    [ "$(ls out/*.nii.gz)" = out/image_3.nii.gz ]
  done
  expect 2 "$BIN/pbt-detect" -m m.pbt --list scans --dataset-part training --output-dir out -f
  expect 3 "$BIN/pbt-train" --list scans --output none.pbt --config tiny.json
  has err.txt "has no labels"
}

@test "points train a network of positions, which evaluate scores by them" {
  printf 'image\tposes\nimage_%d.nii.gz\tpoints/%d.mrk.json\n' 0 0 > points.tsv
  for i in 1 2; do printf 'image_%d.nii.gz\tpoints/%d.mrk.json\n' $i $i; done >> points.tsv
  expect 0 "$BIN/pbt-train" --list points.tsv --model hdn --output p.hdn --hdn.finest_spacing_mm 3 --hdn.halvings 1 \
    --hdn.folds 1 --hdn.negatives_per_volume 100 --features.count 200 --features.window 5 --tree.depth 2 --tree.rounds 5 \
    --tree.min_samples 10 --tree.min_class_samples 3
  "$BIN/pbt-train" --inspect p.hdn > p.txt
  has p.txt position
  lacks p.txt orientation-
  expect 0 "$BIN/hdn-detect" -m p.hdn -i image_0.nii.gz -o p.json
  expect 0 "$BIN/evaluate" --kind poses --prediction p.json --reference points/0.mrk.json --report e.json
  python "assert load('e.json')['metrics']['centre_error_mm'] < 6, load('e.json')['metrics']"
}
