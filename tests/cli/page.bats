#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# The page of a folder of results: index.html beside status.tsv.

load helpers

setup_file() { make_balls; }

listed() { segment --list "$1" --output-dir out --lower 60 --upper 140 -q "${@:2}"; }

# The three cases, one of a name with letters outside ASCII, and one without an image; references, of which one is missing.
put_list() {
  sed 's/label/&\treference\tid/; s/start_0.*/&\timage_0_ball.nii.gz\ta/; s/start_1.*/&\tlost.nii.gz\tGröße <b>\&2/
    s/start_2.*/&\tn\/a\tc/' cases.tsv > some.tsv
  printf 'missing.nii.gz\tstart_2.nii.gz\tn/a\td\n' >> some.tsv
  segment -i image_0.nii.gz --init-labelmap start_0.nii.gz --lower 60 --upper 140 -o image_0_ball.nii.gz -q
}

@test "a list with pictures has a page: counts, command, colours, millilitres, score, warning, links; a failure is first" {
  put_list
  expect 7 listed some.tsv --write labels,qc
  has out/index.html ">failed 1</button>"
  has out/index.html "--write labels,qc</code>: 4 cases"
  has out/index.html "<span>Größe &lt;b&gt;&amp;2</span>"
  has out/index.html '<img src="Gr%C3%B6%C3%9Fe%20%3Cb%3E%262.png"'
  has out/index.html '<a href="a.nii.gz">a.nii.gz</a>'
  [ "$(grep -c "<li>no score: .*lost.nii.gz" out/index.html)" -eq 1 ]
  [ "$(grep -m1 '<h2>' out/index.html)" = '<h2><span>d</span> <b class="status failed">failed</b></h2>' ]
  [ "$(grep -c 'src=.http\|href=.http\|@import\|url(' out/index.html)" -eq 0 ]
  python "
import csv, re
page = open('out/index.html', encoding='utf-8').read()
found = re.search(r'background:(#......)\"></i>label 1 <b>([\d.]+) ml</b> Dice ([\d.]+)', page)
assert found and 20 < float(found[2]) < 28 and float(found[3]) == 1, found
rows = {r['id']: r for r in csv.DictReader(open('out/status.tsv'), delimiter='\t')}
assert rows['a']['dice'] == '1' and rows['c']['dice'] == 'n/a', rows
assert load('out/a.larch.json')['Larch']['Structures'][0]['Color'] == found[1]"
}

@test "a resumed run, and a run of a part of the list, leave a page of all cases" {
  head -n 3 cases.tsv > first.tsv
  expect 0 listed first.tsv --write labels,qc
  expect 0 listed cases.tsv --write labels,qc --skip-existing
  for i in 0 1 2; do has out/index.html "src=\"image_$i.png\""; done
  rm out/index.html
  expect 0 listed first.tsv --skip-existing
  [ "$(grep -c '<article' out/index.html)" -eq 3 ]
}

@test "without pictures there is no page; 6: an index.html of another kind stays" {
  expect 0 listed cases.tsv
  absent out/index.html
  echo "my site" > out/index.html
  expect 6 listed cases.tsv --write labels,qc --skip-existing
  has err.txt "index.html"
  expect 0 listed cases.tsv --skip-existing
  [ "$(cat out/index.html)" = "my site" ]
}

@test "in Chromium: loads by file://, no message of the console, sorts, filters; a thousand cases scroll" {
  browser=$(command -v chromium) || skip "chromium is not installed"
  look() { expect 0 "${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/tests/cli/tools/page_in_browser.py" "$browser" "$@"; }
  put_list
  expect 7 listed some.tsv --write qc
  look out/index.html 4
  python "
import os
text = open('out/a.larch.json').read()
for name in map('copy_{:04d}'.format, range(996)):
    copy = text.replace('\"a.png\"', f'\"{name}.png\"').replace('\"id\": \"a\"', f'\"id\": \"{name}\"')
    open(f'out/{name}.larch.json', 'w').write(copy)
    os.link('out/a.png', f'out/{name}.png')"
  expect 7 listed some.tsv --write qc --skip-existing
  look out/index.html 1000
  cat out.txt >&3
}
