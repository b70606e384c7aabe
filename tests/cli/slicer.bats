#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Programs as modules of 3D Slicer: their descriptions, what Apply does, and Slicer's files.

load helpers

setup_file() { small_cases m.pbt --labels.class_name "noisy ball" --labels.class_value 3; }

tools=${LARCH_SOURCE_DIR:-$BATS_TEST_DIRNAME/../..}/tests/cli/tools

# slicer CODE: with the module, the folder of the programs and an image as Slicer writes it.
slicer() {
  mkdir -p tmp
  python "
import gzip, os, subprocess
sys.path.insert(0, '$tools')
import nibabel, numpy, slicer
def program(name): return '$BIN/' + name
def run(name, *words): subprocess.run([program(name), '-q', '-f', '--no-sidecar', *words], check=True)
def content(name): return open(name, 'rb').read()
def nrrd(name):
    image = nibabel.load(name)
    vector = lambda v: '(' + ','.join(map(repr, map(float, v))) + ')'
    lines = ['NRRD0004', 'type: short', 'dimension: 3', 'space: right-anterior-superior', 'endian: little', 'encoding: gzip',
             'sizes: ' + ' '.join(map(str, image.shape)), 'kinds: domain domain domain',
             'space directions: ' + ' '.join(vector(image.affine[:3, k]) for k in range(3)),
             'space origin: ' + vector(image.affine[:3, 3]), '', '']
    return '\n'.join(lines).encode() + gzip.compress(numpy.asarray(image.dataobj).astype('<i2').tobytes(order='F'))
def segments(name):
    lines = [line.split(':=', 1) for line in content(name).split(b'\n\n')[0].decode().split('\n') if ':=' in line]
    return dict(lines)
$1"
}

@test "the description of each program keeps the rules of Slicer's execution model" {
  /usr/bin/python3 "$tools/slicer.py" check $(find "$BIN" -maxdepth 1 -type f -executable) "$SKELETON" "$SMOOTH"
  # A box that is not ticked is not told, so that what is true by default is a choice of two.
  expect 0 "$BIN/dsa-register" --xml
  python "
import xml.etree.ElementTree as tree
scores = [p for p in tree.parse('out.txt').iter() if p.findtext('name') == 'scores'][0]
assert scores.tag == 'string-enumeration' and scores.findtext('default') == 'true'
names = [p.findtext('name') for p in tree.parse('out.txt').iter('file')]
assert 'list' not in names and 'grid' in names, 'Apply is for one image'"
}

@test "all flags with their defaults, as Slicer gives them, change nothing in any program" {
  for program in $(find "$BIN" -maxdepth 1 -type f -executable); do
    "$program" --print-config > plain.json
    mapfile -t words < <(/usr/bin/python3 "$tools/slicer.py" words "$program")
    expect 0 "$program" "${words[@]}" --print-config
    cmp plain.json out.txt
  done
}

@test "two Applies on two volumes into the same nodes: labels, colours, surface, probability" {
  slicer "
nodes = {'output': 'vtkMRMLLabelMapVolumeNode1', 'color_table': 'vtkMRMLColorTableNode1', 'mesh': 'vtkMRMLModelNode4',
         'probability': 'vtkMRMLScalarVolumeNode9'}
results = []
for case in (0, 1, 0):
    image = nrrd(f'image_{case}.nii.gz')
    found = slicer.apply(program('pbt-detect'), {'input': f'vtkMRMLScalarVolumeNode{case + 1}', **nodes},
                         {'model': 'm.pbt'}, {'input': image}, 'tmp')
    open('direct.nrrd', 'wb').write(image)
    run('pbt-detect', '-m', 'm.pbt', '-i', 'direct.nrrd', '-o', 'd.nrrd', '--probability', 'p.nrrd', '--mesh', 'd.vtp')
    assert (found['output'], found['probability'], found['mesh']) == (content('d.nrrd'), content('p.nrrd'), content('d.vtp'))
    assert found['color_table'] == b'0 background 0 0 0 0\n3 noisy_ball 230 60 50 255\n'
    results.append(found)
assert results[0] == results[2] != results[1]
assert os.listdir('tmp') == ['EHBB_vtkMRMLLabelMapVolumeNodeB.tsv'], 'but for it nothing is left'"
}

@test "seeds are points of Slicer, and the surface of Apply is that of other formats, in LPS" {
  slicer "
import base64, xml.etree.ElementTree as tree
points = {'markups': [{'type': 'Fiducial', 'coordinateSystem': 'LPS', 'controlPoints': [
    {'id': '1', 'position': [-22, -20, 24], 'positionStatus': 'defined'}]}]}
for case in (0, 1):
    found = slicer.apply(program('levelset-segment'),
        {'input': f'vtkMRMLScalarVolumeNode{case}', 'points': 'vtkMRMLMarkupsFiducialNode3', 'mesh': 'vtkMRMLModelNode1',
         'output': 'vtkMRMLLabelMapVolumeNode1'}, {'lower': '300', 'upper': '900'},
        {'input': nrrd(f'image_{case}.nii.gz'), 'points': json.dumps(points).encode()}, 'tmp')
assert not os.listdir('tmp')
run('levelset-segment', '-i', 'image_1.nii.gz', '--sphere-mm', '-22,-20,24,4', '--lower', '300', '--upper', '900',
    '-o', 'd.nii.gz', '--mesh', 'd.gii')
root = tree.fromstring(found['mesh'])
assert root.get('type') == 'PolyData' and root.find('.//FieldData/Array').get('Name') == 'SPACE'
assert bytes(map(int, root.find('.//FieldData/Array').text.split())) == b'LPS\0'
def array(name):
    one, = [a for a in root.iter('DataArray') if a.get('Name') == name]
    bytes_ = base64.b64decode(one.text)
    assert int.from_bytes(bytes_[:8], 'little') == len(bytes_) - 8
    return numpy.frombuffer(bytes_[8:], {'Float32': '<f4', 'Int32': '<i4'}[one.get('type')])
other = nibabel.load('d.gii')
assert (array('Points').reshape(-1, 3) == other.agg_data('pointset') * [-1, -1, 1]).all()
assert (array('connectivity').reshape(-1, 3) == other.agg_data('triangle')).all()
assert (array('offsets') == 3 * numpy.arange(1, len(array('offsets')) + 1)).all()"
}

@test ".seg.nrrd has names and colours, which a program that starts from it keeps" {
  slicer "
run('pbt-detect', '-m', 'm.pbt', '-i', 'image_0.nii.gz', '-o', 'd.seg.nrrd')
run('levelset-segment', '-i', 'image_0.nii.gz', '--init-labelmap', 'd.seg.nrrd', '--lower', '300', '--upper', '900',
    '-o', 'grown.seg.nrrd')
for name in ('d.seg.nrrd', 'grown.seg.nrrd'):
    found = segments(name)
    assert found['Segment0_Name'] == 'noisy ball' and found['Segment0_LabelValue'] == '3', found
    assert found['Segment0_Color'] == '0.901961 0.235294 0.196078' and found['Segment0_Extent'] == '0 21 0 19 0 15'
    assert found['Segmentation_MasterRepresentation'] == 'Binary labelmap' and 'Segment1_ID' not in found
run('evaluate', '--prediction', 'd.seg.nrrd', '--reference', 'label_0.nii.gz', '--merge', '--report', 'r.json')
assert os.path.exists('d.tsv')"
  printf 'image\nimage_0.nii.gz\n' > one.tsv
  expect 0 "$BIN/pbt-detect" -m m.pbt --list one.tsv --output-dir out --write labels,table,probability --format seg.nrrd
  for name in seg.nrrd tsv ctbl probability.nrrd; do [ -e out/image_0.$name ]; done
  cmp out/image_0.seg.nrrd d.seg.nrrd
  expect 2 "$BIN/pbt-detect" -m m.pbt -i image_0.nii.gz --probability p.seg.nrrd
  has err.txt ".seg.nrrd is for label maps; end the name with .nrrd"
  expect 2 "$BIN/pbt-detect" -m m.pbt -i image_0.nii.gz -o s.nii.gz --color-table s.csv
  expect 3 "$BIN/evaluate" --kind meshes --prediction a.vtp --reference a.vtp
}
