#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# dsa-register: its outputs, that they do not depend on how the work is divided, and lists.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir made --kind angiography --cases 2 --angiography.size 192,160 \
    --angiography.frames 7 --angiography.mask_frames 2 --angiography.course constant -q --no-sidecar
  cp made/images/case_000.dcm cine.dcm
  "$BIN/dsa-register" -i cine.dcm -o ref.dcm --field ref.field.mha --grid ref.csv -q --threads 1 --batch-frames 1
}

subtract() { "$BIN/dsa-register" --input cine.dcm "$@"; }

@test "all outputs at once: valid, with sidecars and a report" {
  expect 0 subtract --output out.mha --field field.mha --validity validity.nrrd --grid grid.csv \
    --preview before-after.png --animation all.gif --report r.json
  no_temporaries
  python "
import csv
r = load('r.json')
assert r['status'] == 'done' and len(r['outputs']) == 6, r
assert r['metrics']['frames'] == 5 and [f['frame'] for f in r['frames']] == [2, 3, 4, 5, 6]
rows = list(csv.DictReader(open('grid.csv')))
assert list(rows[0]) == ('frame i j cx cy dx dy dx_raw dy_raw score0 score conf n overflow status').split()
assert len(rows) == 5 * 9 and {row['status'] for row in rows} <= {'ok', 'replaced', 'unreliable'}
assert rows[0]['cx'] == '31.5' and rows[-1]['frame'] == '6'
assert open('before-after.png', 'rb').read(8) == b'\x89PNG\r\n\x1a\n' and open('all.gif', 'rb').read(6) == b'GIF89a'
def header(name): return open(name, 'rb').read(2000)
assert b'DimSize = 192 160 5' in header('out.mha') and b'MET_SHORT' in header('out.mha')
assert b'ElementNumberOfChannels = 2' in header('field.mha') and b'MET_FLOAT' in header('field.mha')
for name in ('out.mha', 'field.mha', 'validity.nrrd', 'grid.csv', 'before-after.png', 'all.gif'):
    assert load(name + '.json')['Larch']['App'] == 'dsa-register', name"
}

@test "vectors follow the true motion" {
  python "
import csv, numpy
raw = open('made/fields/case_000.mha', 'rb').read()
true = numpy.frombuffer(raw[-7 * 160 * 192 * 8:], '<f4').reshape(7, 160, 192, 2)
spacing = [float(v) for v in raw[:raw.index(b'ElementDataFile')].decode().split('ElementSpacing = ')[1].split()[:2]]
error = [numpy.hypot(*(numpy.array([float(r['dx']), float(r['dy'])])
                       - true[int(r['frame']), round(float(r['cy'])), round(float(r['cx']))] / spacing))
         for r in csv.DictReader(open('ref.csv')) if r['status'] == 'ok']
assert len(error) > 20 and numpy.median(error) < 0.25, (len(error), numpy.median(error))"
}

@test "same bytes for any number of threads and any batch" {
  for how in "--threads 2" "--batch-frames 2" "--batch-frames 3 --threads 3" "--memory 40M"; do
    expect 0 subtract -o out.dcm --field field.mha --grid grid.csv --force $how
    cmp out.dcm ref.dcm
    cmp field.mha ref.field.mha
    cmp grid.csv ref.csv
  done
}
