#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# The page of a folder of results: index.html beside status.tsv.

load helpers

setup_file() { make_balls; }

listed() { segment --list cases.tsv --output-dir out --lower 60 --upper 140 -q "$@"; }

# Three cases of which the last has no image, the second letters outside of ASCII, and a reference each.
put_list() {
  { printf 'image\tlabel\treference\tid\n'
    printf 'image_0.nii.gz\tstart_0.nii.gz\tball.nii.gz\tone\n'
    printf 'image_1.nii.gz\tstart_1.nii.gz\tball.nii.gz\tGröße <b>&2\n'
    printf 'missing.nii.gz\tstart_2.nii.gz\tball.nii.gz\tthree\n'; } > cases.tsv
  python "
import nibabel, numpy
at = numpy.stack(numpy.meshgrid(*map(numpy.arange, (32, 30, 28)), indexing='ij'), axis=-1)
ball = numpy.linalg.norm(at - [15, 14, 13], axis=-1) < 9
nibabel.save(nibabel.Nifti1Image(ball.astype('uint8'), nibabel.load('image_0.nii.gz').affine), 'ball.nii.gz')"
}

@test "a list with pictures has a page: counts, command, colours, millilitres, score, links; a failure is first" {
  rm cases.tsv
  put_list
  expect 7 listed --write labels,qc
  has out/index.html "failed 1</button>"
  has out/index.html "--write labels,qc</code>: 3 cases"
  has out/index.html "<span>Größe &lt;b&gt;&amp;2</span>"
  has out/index.html '<img src="Gr%C3%B6%C3%9Fe%20%3Cb%3E%262.png"'
  has out/index.html '<a href="one.nii.gz">one.nii.gz</a>'
  [ "$(grep -m1 '<h2>' out/index.html)" = '<h2><span>three</span> <b class="status failed">failed</b></h2>' ]
  python "
import csv, re
page = open('out/index.html', encoding='utf-8').read()
found = re.search(r'background:(#......)\"></i>label 1 <b>([\d.]+) ml</b> Dice ([\d.]+)', page)
assert found and 20 < float(found[2]) < 28 and float(found[3]) > 0.95, found
rows = {r['id']: r for r in csv.DictReader(open('out/status.tsv'), delimiter='\t')}
assert float(rows['one']['dice']) > 0.95 and rows['three']['dice'] == 'n/a', rows
structure, = load('out/one.larch.json')['Larch']['Structures']
assert structure['Color'] == found[1], structure"
  [ "$(grep -c 'src=.http\|href=.http\|@import\|url(' out/index.html)" -eq 0 ]
}

@test "a resumed run, and a run of a part of the list, leave a page of all cases" {
  head -n 3 cases.tsv > first.tsv
  expect 0 segment --list first.tsv --output-dir out --lower 60 --upper 140 -q --write labels,qc
  expect 0 listed --write labels,qc --skip-existing
  for i in 0 1 2; do has out/index.html "src=\"image_$i.png\""; done
  (head -n 1 cases.tsv; tail -n 1 cases.tsv) > last.tsv
  rm out/index.html
  expect 0 segment --list last.tsv --output-dir out --lower 60 --upper 140 -q --write labels --skip-existing
  [ "$(grep -c '<article' out/index.html)" -eq 3 ]
}

@test "without pictures there is no page; 6: an index.html of another kind stays" {
  expect 0 listed
  absent out/index.html
  echo "my site" > out/index.html
  expect 6 listed --write labels,qc --skip-existing
  has err.txt "index.html"
  [ "$(cat out/index.html)" = "my site" ]
  expect 0 listed --skip-existing
}

@test "a reference that cannot be compared is a warning, and the result stays" {
  sed 's/label/label\treference/; s/start_0.nii.gz/&\thalves.nii.gz/; s/start_1.nii.gz/&\tlast.nii.gz/; s/start_2.*/&\tn\/a/' \
    cases.tsv > some.tsv
  expect 0 segment --list some.tsv --output-dir out --lower 60 --upper 140 -q --write qc
  has out/image_0.larch.json '"dice"'
  lacks out/image_1.larch.json '"dice"'
  has out/index.html "<li>no score: "
  [ "$(grep -c "<li>no score: " out/index.html)" -eq 1 ]
}

# copies COUNT: so many cases in out/, the pictures as links.
copies() {
  python "
import os
texts = [open(f'out/image_{i}.larch.json').read() for i in range(3)]
for i in range($1):
    name = f'copy_{i:04d}'
    text = texts[i % 3].replace(f'image_{i % 3}.png', name + '.png').replace(f'\"id\": \"image_{i % 3}\"', f'\"id\": \"{name}\"')
    open(f'out/{name}.larch.json', 'w').write(text)
    os.link(f'out/image_{i % 3}.png', f'out/{name}.png')"
}

@test "in Chromium: loads by file://, no message of the console, sorts, filters; a thousand cases scroll" {
  browser=$(command -v chromium) || skip "chromium is not installed"
  rm cases.tsv
  put_list
  expect 7 listed --write qc
  expect 0 "${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/tests/cli/tools/page_in_browser.py" "$browser" out/index.html 3
  cat out.txt >&3
  sed 's/\tball.nii.gz//; s/\treference//; s/image_1\(.*\)\t[^\t]*$/image_1\1\timage_1/; s/one$/image_0/; s/three$/x/' \
    cases.tsv > more.tsv
  printf 'image_2.nii.gz\tstart_2.nii.gz\timage_2\n' >> more.tsv
  expect 7 segment --list more.tsv --output-dir out --lower 60 --upper 140 -q --write qc
  copies 994
  expect 7 segment --list more.tsv --output-dir out --lower 60 --upper 140 -q --write qc --skip-existing
  expect 0 "${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/tests/cli/tools/page_in_browser.py" "$browser" out/index.html 1001
  cat out.txt >&3
}
