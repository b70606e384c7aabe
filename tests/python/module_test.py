#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The Python module gives the bytes of the programs. Usage: module_test.py SOURCE_DIR BUILD_DIR [ROW...]

Each function `row_...` is a row: what it takes is made before them by the programs. The module is found by
PYTHONPATH.
"""
import concurrent.futures
import filecmp
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nibabel
import numpy

import larch

SOURCE, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
SMALL = {'features': {'count': 300, 'window': 5, 'sizes': [1, 2], 'pyramid_levels': 1},
         'tree': {'depth': 2, 'rounds': [4]}}
FOREST = {'classifier': 'decision-forest', 'forest': {'trees': 2, 'depth': 4}}
NETWORK = {
    'model': 'hdn',
    'hdn': {'structures': [{'name': 'object_1', 'labels': [1], 'stages': ['all', 'position']}],
            'finest_spacing_mm': 2.5, 'halvings': 1, 'folds': 2, 'rotation_step_deg': [20],
            'keep_first': [30, 20, 20], 'keep': [20, 10, 10], 'positives_per_volume': 20,
            'negatives_per_volume': 100},
    'features': {'count': 200, 'window': 9},
    'tree': {'depth': 2, 'rounds': [5], 'min_samples': 20, 'min_class_samples': 5}}
BOUNDARY = {
    'model': 'boundary',
    'boundary': {'structures': ['object_1'], 'labels': [1], 'halvings': [0], 'folds': 2, 'starts': 1,
                 'refine': {'search_modes': 1}, 'positives_per_volume': 40, 'negatives_per_volume': 60},
    'tree': {'depth': 1, 'rounds': [4], 'prior': 'half', 'min_samples': 20, 'min_class_samples': 5}}
LPS = numpy.diag([-1.0, -1, 1, 1])


def program(name, *flags, code=0):
    """Runs a program of the build; its stderr."""
    run = subprocess.run([os.path.join(BUILD, 'apps', name), '-f', *map(str, flags)], capture_output=True, text=True)
    assert run.returncode == code, (name, flags, run.returncode, run.stderr)
    return run.stderr


def write_json(name, value):
    with open(name, 'w', encoding='utf-8') as file:
        json.dump(value, file)


def read(path):
    """The array and the affine of a file, as nibabel has them."""
    image = nibabel.load(path)
    return numpy.asarray(image.dataobj), image.affine


def cases_of(table):
    """The cases of a list of image and label."""
    with open(table, encoding='utf-8') as file:
        rows = [line.split('\t') for line in file.read().splitlines()[1:]]
    for image, label in (row[:2] for row in rows):
        array, affine = read(os.path.join(os.path.dirname(table), image))
        yield {'image': array, 'affine': affine, 'labels': read(os.path.join(os.path.dirname(table), label))[0]}


def same_files(*names):
    for name in names[1:]:
        assert filecmp.cmp(names[0], name, shallow=False), f'{names[0]} and {name} differ'


def same(a, b):
    assert a.shape == b.shape and numpy.array_equal(a, b), 'the arrays differ'


def raises(error, text, call, *arguments, **keys):
    """Its message, which has the text."""
    try:
        call(*arguments, **keys)
    except error as found:
        assert text in str(found), found
        return found
    raise AssertionError(f'no {error.__name__}: {text}')


def prepare():
    subprocess.run(['/usr/bin/python3', os.path.join(SOURCE, 'tests/cli/tools/make_hostile.py'), 'cases', '.'],
                   check=True)
    for name, config in [('small', SMALL), ('forest', FOREST), ('hdn', NETWORK),
                         ('bnd', BOUNDARY)]:
        write_json(name + '.json', config)
    program('make-samples', '--output-dir', 's', '--kind', 'poses', '--training', 6, '--test', 1, '-q',
            '--poses.size', '36,34,32', '--poses.spacing_mm', '2.5,2.5,2.5', '--poses.object_scale', 0.5,
            '--poses.balls', 'false', '--poses.rotation_deg', 15, '--poses.shift_mm', 2, '--poses.snr', 20)
    with open('s/train.tsv', encoding='utf-8') as file:
        rows = [line.split('\t')[:2] for line in file.read().splitlines()]
    with open('s/labels.tsv', 'w', encoding='utf-8') as file:
        file.writelines('\t'.join(row) + '\n' for row in rows)
    program('make-samples', '--output-dir', 'x', '--kind', 'angiography', '--format', 'mha', '-q', '--no-sidecar',
            '--angiography.size', '160,128', '--angiography.frames', 6, '--angiography.mask_frames', 2,
            '--truth=false')
    for table, model, config, *flags in [
            ('train', 'm.pbt', 'small'), ('train', 'm.forest', 'forest'), ('s/labels', 'm.hdn', 'hdn'),
            ('s/labels', 'm.bnd', 'bnd', '--start-model', 'm.hdn')]:
        program('pbt-train', '--list', table + '.tsv', '--output', model, '--config', config + '.json', '-q', *flags)


def row_detect():
    """Labels, probability and surface, of an array in any order and frame."""
    for name in ('image_0.nii.gz', 'oblique.nii.gz', 'flipped.nii.gz'):
        program('pbt-detect', '--model', 'm.pbt', '--input', name, '--output', 'p.nii.gz', '--probability',
                'p.probability.nii.gz', '--mesh', 'p.vtk', '-q', '--structure.threshold', 0.4)
        image, affine = read(name)
        wanted = {'probability': True, 'surfaces': True, 'structure': {'threshold': 0.4}}
        model = larch.open_model('m.pbt', device='cpu')
        found = larch.detect(model, image, affine, **wanted)
        larch.write_labels('l.nii.gz', found['labels'], affine, model, code=2)  # nibabel's
        larch.write_image('l.probability.nii.gz', found['probability'], affine, code=2)
        larch.write_mesh('l.vtk', found['surfaces'][0])
        same(found['labels'], read('p.nii.gz')[0])
        same(found['probability'], read('p.probability.nii.gz')[0])
        same_files('p.nii.gz', 'l.nii.gz')
        same_files('p.probability.nii.gz', 'l.probability.nii.gz')
        same_files('p.vtk', 'l.vtk')
    every_other = numpy.zeros([2 * n for n in image.shape])[::2, ::2, ::2]
    every_other[:] = image
    for array in (numpy.ascontiguousarray(image), image.astype('float64'), every_other):
        in_lps = larch.detect(model, array, LPS @ affine, frame='LPS', config=wanted)
        same(in_lps['labels'], found['labels'])
        same(in_lps['surfaces'][0][0] * [-1, -1, 1], found['surfaces'][0][0])
    region = read('roi.nii.gz')[0]
    program('pbt-detect', '--model', 'm.pbt', '--input', 'image_0.nii.gz', '--roi', 'roi.nii.gz', '--output',
            'p.nii.gz', '-q')
    same(larch.detect(model, *read('image_0.nii.gz'), region)['labels'], read('p.nii.gz')[0])


def row_forest():
    program('pbt-detect', '--model', 'm.forest', '--input', 'image_1.nii.gz', '--output', 'p.nii.gz', '--leaves',
            'p.leaves.nii.gz', '--distribution', 'p.distribution.nii.gz', '-q')
    model = larch.open_model('m.forest')
    found = larch.detect(model, *read('image_1.nii.gz'), distribution=True, leaves=True)
    same(found['labels'], read('p.nii.gz')[0])
    same(numpy.stack(found['distribution'], axis=-1), read('p.distribution.nii.gz')[0])
    same(numpy.stack(found['leaves'], axis=-1), read('p.leaves.nii.gz')[0])
    assert [s['value'] for s in model.structures] == [1, 2], model.structures


def row_poses():
    image = 's/images/case_006.nii.gz'
    program('hdn-detect', '--model', 'm.hdn', '--input', image, '--output', 'p.json', '--labelmap', 'p.nii.gz', '-q')
    with open('p.json', encoding='utf-8') as file:
        wanted = json.load(file)['structures']
    network = larch.open_model('m.hdn')
    found = larch.find_poses(network, *read(image), frame='RAS', labels=True)
    same(found['labels'], read('p.nii.gz')[0])
    array, affine = read(image)
    in_lps = larch.find_poses(network, array, LPS @ affine, frame='LPS')
    for pose, same_pose in zip(wanted, in_lps['poses']):
        del pose['matrix']
        assert pose == json.loads(json.dumps(same_pose)), (pose, same_pose)
    there = found['poses'][0]['center_mm'] * LPS.diagonal()[:3]
    assert numpy.array_equal(there, in_lps['poses'][0]['center_mm']), (there, in_lps)
    scores = larch.score_pose(found['poses'][0], found['poses'][0])
    assert scores['centre_error_mm'] == 0 and scores['box_iou'] > 0.999, scores


def row_boundary():
    image = 's/images/case_006.nii.gz'
    model = larch.open_model('m.bnd')
    for start in ('poses', 'labels', 'mesh'):
        if start == 'poses':
            program('hdn-detect', '--model', 'm.hdn', '--input', image, '--output', 'start.json', '-q')
            flags = ['--poses', 'start.json']
            keys = {'pose': larch.find_poses(larch.open_model('m.hdn'), *read(image))['poses'][0]}
        elif start == 'labels':
            flags = ['--start-labels', 's/labels/case_006.nii.gz']
            keys = {'labels': read('s/labels/case_006.nii.gz')[0]}
        else:
            flags = ['--mesh', 'p.obj']
            os.rename('l.obj', 'p.obj')
            keys = {'mesh': larch.read_mesh('p.obj')}
        program('boundary-refine', '--model', 'm.bnd', '--input', image, *flags, '--output', 'w.obj', '-q')
        found = larch.refine_boundary(model, *read(image), **keys)
        larch.write_mesh('l.obj', found['mesh'])
        same_files('w.obj', 'l.obj')
    assert len(found['probability']) == len(found['mesh'][0]) and found['status'], found
    raises(larch.UsageError, 'one of pose, labels and mesh', larch.refine_boundary, model, *read(image))
    raises(larch.UsageError, "no structure 'x'; it has object_1", larch.refine_boundary, model, *read(image), **keys,
           structure='x')


def row_levelset():
    image, affine = read('image_0.nii.gz')
    x, y, z = affine[:3, :3] @ [11, 10, 8]
    program('levelset-segment', '--input', 'image_0.nii.gz', '--output', 'p.nii.gz', '--mesh', 'p.vtk', '-q',
            '--sphere-mm', f'{-x},{-y},{z},6', '--lower', 250, '--upper', 500, '--max_iterations', 200)
    found = larch.segment(image, affine, sphere_mm=[[x, y, z, 6]], lower=250, upper=500, max_iterations=200,
                          surfaces=True)
    larch.write_mesh('l.vtk', found['by_label'][0]['surface'])
    same(found['labels'], read('p.nii.gz')[0])
    same_files('p.vtk', 'l.vtk')
    again = larch.segment(image, affine, labels=found['labels'], lower=250, upper=500, max_iterations=5)
    assert again['by_label'][0]['voxels'] == numpy.count_nonzero(again['labels'])
    raises(larch.UsageError, 'seed', larch.segment, image, affine, sphere_mm=[[1e4, 0, 0, 5]])


def row_angiography():
    sequence, affine = larch.read_image('x/images/case_000.mha', labels=True)
    program('dsa-register', '-i', 'x/images/case_000.mha', '-o', 'p.mha', '--validity', 'v.mha', '--mask-frames',
            '1,2', '--field', 'f.mha', '--field-units', 'px', '-q')
    found = larch.subtract_sequence(sequence, mask_frames=[0, 1], field=True)
    same(found['difference'], larch.read_image('p.mha', labels=True)[0])
    same(found['validity'], larch.read_image('v.mha', labels=True)[0])
    assert [row['frame'] for row in found['frames']] == [2, 3, 4, 5] and found['field_px'].shape[0] == 3
    same(larch.subtract_sequence(sequence.astype('uint16'), mask_frames=[0, 1])['difference'],
         found['difference'])
    fill, mask = (numpy.round(read(f'image_{i}.nii.gz')[0]) for i in (0, 1))
    program('dsa-register', '-i', 'image_0.nii.gz', '--mask-volume', 'image_1.nii.gz', '-o', 'p.nii.gz', '-q',
            '--passes', '12/12')
    same(larch.subtract_volume(fill, mask, passes='12/12')['difference'], read('p.nii.gz')[0])
    assert affine.shape == (4, 4)


def row_evaluate():
    prediction, reference = 'label_0.nii.gz', 'label_1.nii.gz'
    program('evaluate', '--prediction', prediction, '--reference', reference, '-q', '--report', 'p.json')
    with open('p.json', encoding='utf-8') as file:
        text = file.read()
    array, affine = read(prediction)
    scores = larch.score_labels(array, read(reference)[0], affine)
    assert set(scores) == {'1', '2', 'union'}, scores
    for structure in scores.values():
        assert json.dumps(structure['dice']) in text and json.dumps(structure['assd_mm']) in text
    mesh = larch.segment(array, affine, labels=array > 0, lower=1, upper=3, max_iterations=0,
                         surfaces=True)['by_label'][0]['surface']
    assert larch.score_mesh(mesh, mesh)['hd_mm'] == 0
    assert larch.score_mesh(mesh, array, affine)['dice'] > 0.9


class Lazily:
    """The cases of a list, read when they are asked for."""

    def __init__(self, table):
        self.cases, self.asked = list(cases_of(table)), set()

    def __len__(self):
        return len(self.cases)

    def __getitem__(self, i):
        self.asked.add(i)
        return self.cases[i]


def row_train():
    """Trees, a forest, a network and a boundary: the files of pbt-train."""
    cases = Lazily('train.tsv')
    figures = larch.train('l.pbt', cases, **SMALL)
    assert figures['training_volumes'] == 3 and cases.asked == {0, 1, 2}, figures
    larch.train('l.forest', list(cases_of('train.tsv')), config='forest.json')
    larch.train('l.hdn', list(cases_of('s/labels.tsv')), config=NETWORK)
    larch.train('l.bnd', list(cases_of('s/labels.tsv')), larch.open_model('l.hdn'), config=BOUNDARY)
    for ending in ('pbt', 'forest', 'hdn', 'bnd'):
        same_files('m.' + ending, 'l.' + ending)


def row_images():
    image, affine = read('oblique.nii.gz')
    found, its_affine = larch.read_image(Path('oblique.nii.gz'))
    same(found, image.astype('float32'))
    same(its_affine, affine)
    same(larch.read_image('oblique.nii.gz', frame='LPS')[1], LPS @ affine)
    for kind in ('uint8', 'bool', 'int16', 'uint16', 'int32', 'float32'):
        larch.write_image('w.nii.gz', numpy.clip(image, 0, 200).astype(kind), affine)
        back, same_affine = read('w.nii.gz')
        same(back, numpy.clip(image, 0, 200).astype(kind).astype(back.dtype))
        same(same_affine, affine)
        assert kind in ('bool', str(back.dtype)), (kind, back.dtype)


def row_errors():
    model = larch.open_model('m.pbt')
    image, affine = read('image_0.nii.gz')
    for config in ({'structure': {'treshold': 1}}, {'structure': {'threshold': 7}}, {'leaf_trees': 'two'}):
        write_json('bad.json', config)
        text = program('pbt-detect', '--model', 'm.pbt', '--input', 'image_0.nii.gz', '--output', 'e.nii.gz',
                       '--config', 'bad.json', code=2)
        error = raises(larch.UsageError, '', larch.detect, model, image, affine, config='bad.json')
        assert str(error) in text and error.exit_code == 2 and isinstance(error, larch.Error), (error, text)
    raises(larch.UsageError, "did you mean 'surfaces'", larch.detect, model, image, affine, surface=True)
    raises(larch.UsageError, 'affine', larch.detect, model, image, affine[:3])
    raises(larch.UsageError, 'numbers', larch.detect, model, 'image', affine)
    raises(larch.UsageError, 'another kind', larch.find_poses, model, image, affine)
    raises(larch.UsageError, 'RAS', larch.detect, model, image, affine, frame='IJK')
    text = program('pbt-detect', '--model', 'train.tsv', '--input', 'image_0.nii.gz', '--output', 'e.nii.gz', code=3)
    error = raises(larch.InputError, 'train.tsv', larch.open_model, 'train.tsv')
    assert str(error).split('\n')[0] in text and error.exit_code == 3, (error, text)
    raises(larch.InputError, 'not finite', larch.detect, model, numpy.where(image > 300, numpy.nan, image), affine)
    raises(larch.InputError, 'whole numbers', larch.score_labels, image + 0.5, image, affine)
    raises(larch.InputError, 'inverted', larch.detect, model, image, numpy.zeros((4, 4)))
    raises(larch.InputError, 'region', larch.detect, model, image, affine, region=image[1:] > 0)
    raises(larch.OutputError, 'nowhere', larch.write_image, 'nowhere/i.nii.gz', image, affine)
    assert raises(larch.MemoryError, 'memory', larch.detect, model, image, affine, memory_bytes=1).exit_code == 5
    if 'without CUDA' in open(os.path.join(BUILD, 'built.txt'), encoding='utf-8').read():
        assert raises(larch.DeviceError, 'cuda', larch.open_model, 'm.pbt', device='cuda').exit_code == 4
    raises(KeyError, 'affine', larch.train, 'e.pbt', [{'image': image, 'labels': image > 0}])
    raises(TypeError, '', larch.detect, image, affine)


INTERRUPTED = '''
import sys, time
import numpy, larch
image = numpy.random.default_rng(0).normal(100, 20, (160, 160, 160))
cube = numpy.pad(numpy.ones((80, 80, 80), bool), 40)
cases = [{"image": image + i, "affine": numpy.eye(4), "labels": cube} for i in range(3)]
print("begins", flush=True)
try:
    if sys.argv[1] == "segment":
        larch.segment(image, numpy.eye(4), labels=image > 110, lower=0, upper=150, unchanged_labels=0,
                      time_step=0.03, max_iterations=100000000)
    else:
        larch.train("t.pbt", cases, features={"count": 20000, "window": 9}, tree={"depth": 8, "rounds": [200]})
except KeyboardInterrupt:
    print("interrupted", flush=True)
'''


def row_interrupt():
    """Ctrl-C ends a call within a few seconds, and Python goes on."""
    for job in ('segment', 'train'):
        child = subprocess.Popen(['/usr/bin/python3', '-c', INTERRUPTED, job], stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() == 'begins\n'
            time.sleep(1.5)
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=60)
            assert out == 'interrupted\n' and child.returncode == 0, (job, out, child.returncode)
            print(f'    {job}: {time.monotonic() - start:.2f} s from the signal to the end of Python')
            assert time.monotonic() - start < 10  # on a machine that is busy
        finally:
            child.kill()


def row_threads():
    """Two threads of Python at once give what one gives, while a third one goes on."""
    model = larch.open_model('m.pbt')
    images = [read(f'image_{i}.nii.gz') for i in range(4)]
    alone = [larch.detect(model, *image, surfaces=True) for image in images]
    beats, ended = [], threading.Event()
    beating = threading.Thread(target=lambda: [beats.append(ended.wait(0.001)) for _ in range(100000)
                                               if not ended.is_set()])
    beating.start()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda image: larch.detect(model, *image, surfaces=True), 4 * images))
    ended.set()
    beating.join()
    assert len(beats) > 5, len(beats)
    for one, again in zip(4 * alone, found):
        same(one['labels'], again['labels'])
        same(one['surfaces'][0][0], again['surfaces'][0][0])


def row_batch():
    """A batch with one resident model gives the bytes of a list of the program."""
    names = [f'image_{i}.nii.gz' for i in range(4)]
    with open('images.tsv', 'w', encoding='utf-8') as file:
        file.write('\n'.join(['image', *names]) + '\n')
    program('pbt-detect', '--model', 'm.pbt', '--list', 'images.tsv', '--output-dir', 'batch', '-q')
    model = larch.open_model('m.pbt')
    for i, name in enumerate(names):
        image, affine = read(name)
        larch.write_labels('l.nii.gz', larch.detect(model, image, affine)['labels'], affine, model, code=2)
        same_files(f'batch/image_{i}.nii.gz', 'l.nii.gz')


def row_help():
    functions = [name for name in dir(larch) if callable(getattr(larch, name)) and name[0].islower()]
    assert len(functions) == 16, functions
    for name in functions:
        text = getattr(larch, name).__doc__
        assert text.startswith(name + '('), text
    for words in ('[x, y, z]', 'Raises UsageError', 'smoothing of the surface mesh', 'threshold'):
        assert words in larch.detect.__doc__, words


def row_readme():
    """The example of lib/README.md, as it is printed."""
    with open(os.path.join(SOURCE, 'lib/README.md'), encoding='utf-8') as file:
        example = re.search(r'```python\n(import.*?)```', file.read(), re.S).group(1)
    subprocess.run(['/usr/bin/python3', '-c', example, 'm.pbt', 'image_0.nii.gz'], check=True)
    program('pbt-detect', '--model', 'm.pbt', '--input', 'image_0.nii.gz', '--output', 'p.nii.gz', '--mesh', 'p.vtk',
            '-q')
    same(read('p.nii.gz')[0], read('labels.nii.gz')[0])
    same_files('p.vtk', 'surface.vtk')


def row_without():
    """LARCH_WITH_PYTHON=OFF leaves the module out without a word."""
    run = subprocess.run(['cmake', '-S', SOURCE, '-B', 'off', '-G', 'Ninja', '-DLARCH_WITH_PYTHON=OFF',
                          '-DLARCH_BUILD_TESTS=OFF', '-DLARCH_WITH_CUDA=OFF'], capture_output=True, text=True)
    assert run.returncode == 0 and 'Python' not in run.stdout + run.stderr, run
    with open('off/build.ninja', encoding='utf-8') as file:
        assert 'larch_python' not in file.read()


def main():
    rows = {name[4:]: value for name, value in globals().items() if name.startswith('row_')}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, row in [('prepare', prepare), *rows.items()]:
            if name != 'prepare' and sys.argv[3:] and name not in sys.argv[3:]:
                continue
            start = time.monotonic()
            try:
                row()
                print(f'{time.monotonic() - start:6.1f} s  {name}', flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failures += 1
                print(f'FAILED     {name}: {type(error).__name__}: {error}', flush=True)
                if name == 'prepare':
                    break
        os.chdir('/')
    print(f'{failures} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
