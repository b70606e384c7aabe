#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""scripts/regression finds an output, and a file of data-samples, that was tampered with; --record says what changes.

usage: regression_test.py SOURCE_DIR BUILD_DIR
"""
import contextlib
import gzip
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
BUILD = os.path.abspath(sys.argv.pop())
SOURCE = os.path.abspath(sys.argv.pop())
SCRIPT = os.path.join(SOURCE, 'scripts', 'regression')

# Does what pbt-detect does and then changes the last voxel of the label map in NIfTI without compression.
TAMPERING = '''#!/usr/bin/python3
import subprocess, sys
code = subprocess.call([{real!r}, *sys.argv[1:]])
output = sys.argv[sys.argv.index('--output') + 1] if '--output' in sys.argv else ''
if output.endswith('.nii'):
    with open(output, 'r+b') as file:
        file.seek(-1, 2)
        file.write(b'\\1')
sys.exit(code)
'''


# What is tampered with shows in these steps; the others take most of the time.
STEPS = ('make-samples', 'pbt-train', 'pbt-detect', 'pbt-detect-list', 'evaluate')


def regression(*words, device='cpu', stderr=subprocess.STDOUT):
    return subprocess.run([sys.executable, __file__, 'run', *words, '--device', device, '--threads', '2', SOURCE, BUILD],
                          text=True, stdout=subprocess.PIPE, stderr=stderr, timeout=600, check=False)


def text_of(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


TAMPERED = ('pbt-detect/organ-dicom.nii', 'evaluate/list.tsv')


def module_of_script():
    loader = importlib.machinery.SourceFileLoader('regression', SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('regression', loader))
    loader.exec_module(module)
    module.STEPS = {step: module.STEPS[step] for step in STEPS}
    return module


class Regression(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = os.path.join(self.folder, 'data-samples')
        shutil.copytree(os.path.join(SOURCE, 'data-samples'), self.data)
        self.expected = os.path.join(self.data, 'expected.json')
        contents = json.loads(text_of(self.expected))['contents']
        with open(self.expected, 'w', encoding='utf-8') as file:
            json.dump({'contents': {name: of for name, of in contents.items() if name.split('/')[0] in STEPS}}, file)

    def tampering_build(self):
        apps = os.path.join(self.folder, 'apps')
        os.makedirs(apps)
        for name in ('make-samples', 'pbt-train', 'evaluate'):
            os.symlink(os.path.join(BUILD, 'apps', name), os.path.join(apps, name))
        with open(os.path.join(apps, 'pbt-detect'), 'w', encoding='utf-8') as file:
            file.write(TAMPERING.format(real=os.path.join(BUILD, 'apps', 'pbt-detect')))
        os.chmod(os.path.join(apps, 'pbt-detect'), 0o755)
        return self.folder

    def test_tampered_output_and_tampered_data_are_found(self):
        image = os.path.join(self.data, 'organ', 'images', 'case_000.nii.gz')
        with gzip.open(image) as file:
            voxels = file.read()
        with open(image, 'wb') as file:  # the same content in another file
            file.write(gzip.compress(voxels, 1))
        report, recorded = os.path.join(self.folder, 'report.json'), text_of(self.expected)
        done = regression(self.tampering_build(), '--data', self.data, '--json', report)
        self.assertEqual(done.returncode, 7, done.stdout)
        self.assertIn('data-samples: organ/images/case_000.nii.gz: not the file of MANIFEST.json', done.stdout)
        self.assertIn('cpu 2: pbt-detect/organ-dicom.nii: differs', done.stdout)
        with open(report, encoding='utf-8') as file:
            found = json.load(file)
        self.assertEqual(found['status'], 'different')
        outputs = {problem['output'] for problem in found['problems']}
        # The table of evaluate reads that label map; nothing else is touched.
        self.assertEqual(outputs, {'organ/images/case_000.nii.gz', *TAMPERED})
        # What comes from such a volume is not recorded.
        done = regression(BUILD, '--data', self.data, '--record')
        self.assertEqual(done.returncode, 7, done.stdout)
        self.assertIn('nothing is recorded: organ/images/case_000.nii.gz of data-samples', done.stdout)
        self.assertEqual(text_of(self.expected), recorded)
        self.check_record(found['workers'])

    def check_record(self, results):
        """--record says what changes, and leaves what was recorded; `results`: as in a report."""
        recorded = text_of(self.expected)
        changed = json.loads(recorded)
        changed['contents']['pbt-detect/organ.vtk'] = '0'
        changed['contents']['pbt-detect/gone.vtk'] = '0'
        del changed['contents']['pbt-detect/organ.png']
        with open(self.expected, 'w', encoding='utf-8') as file:
            json.dump(changed, file)

        class Session:
            data, manifest = self.data, json.loads(text_of(os.path.join(self.data, 'MANIFEST.json')))

        contents = {**results[0]['contents'], **{name: json.loads(recorded)['contents'][name] for name in TAMPERED}}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertTrue(module_of_script().record(Session, [{**results[0], 'contents': contents}]))
        for line in ('changed: pbt-detect/organ.vtk', 'gone: pbt-detect/gone.vtk', 'new: pbt-detect/organ.png'):
            self.assertIn(line, printed.getvalue())
        self.assertEqual(json.loads(text_of(self.expected)), json.loads(recorded))

    def test_a_program_that_fails_is_a_difference(self):
        apps = os.path.join(self.folder, 'apps')
        os.makedirs(apps)
        for name in ('make-samples', 'pbt-train', 'evaluate', 'pbt-detect'):
            os.symlink('/bin/false', os.path.join(apps, name))
        done = regression(self.folder, '--data', self.data)
        self.assertEqual(done.returncode, 7, done.stdout)
        self.assertIn('make-samples: exit code 1', done.stdout)
        done = regression(self.folder, '--data', self.data, '--record')
        self.assertEqual(done.returncode, 7, done.stdout)
        # A card that cannot be used is not left out without a word, and - is JSON alone.
        done = regression(self.folder, '--data', self.data, '--json', '-', device='all', stderr=subprocess.PIPE)
        self.assertEqual(json.loads(done.stdout)['not_run'], {'cuda': 'exit code 1'})
        self.assertIn('cuda: not run: exit code 1', done.stderr)

    def test_every_card_is_checked(self):
        apps = os.path.join(self.folder, 'apps')
        os.makedirs(apps)
        for name in ('pbt-train', 'evaluate', 'pbt-detect'):
            os.symlink('/bin/false', os.path.join(apps, name))
        with open(os.path.join(apps, 'make-samples'), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\ncase "$*" in *"--device cuda:"[01]" --dry-run"*) exit 0;; esac\n'
                       'echo "no such device"; exit 4\n')
        os.chmod(os.path.join(apps, 'make-samples'), 0o755)
        for device, wanted in (('all', ['cpu 2', 'cuda:0', 'cuda:1']), ('cuda', ['cuda:0', 'cuda:1'])):
            done = regression(self.folder, '--data', self.data, '--json', '-', device=device, stderr=subprocess.PIPE)
            self.assertEqual([worker['worker'] for worker in json.loads(done.stdout)['workers']], wanted)
        # Who names CUDA gets a failure where there is none.
        os.remove(os.path.join(apps, 'make-samples'))
        os.symlink('/bin/false', os.path.join(apps, 'make-samples'))
        done = regression(self.folder, '--data', self.data, device='cuda')
        self.assertEqual(done.returncode, 7, done.stdout)
        self.assertIn('cuda:0: make-samples', done.stdout)

    def test_usage_and_missing_data(self):
        self.assertEqual(regression(BUILD, '--data', os.path.join(self.folder, 'none')).returncode, 3)
        self.assertEqual(regression(BUILD, '--keep', self.folder).returncode, 2)
        self.assertEqual(regression(BUILD, '--no-such-flag').returncode, 2)

    def test_nothing_is_recorded_where_workers_disagree(self):
        module = module_of_script()

        class Session:
            data, manifest = self.data, {'files': {}}

        results = [{'worker': 'cpu 1', 'failure': '', 'contents': {'pbt-detect/organ.vtk': 'a'}},
                   {'worker': 'cuda', 'failure': '', 'contents': {'pbt-detect/organ.vtk': 'b'}}]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertFalse(module.record(Session, results))
            self.assertFalse(module.record(Session, [
                {**results[0], 'contents': {'pbt-detect/organ.vtk': 'unreadable: EOFError: end'}}]))
        self.assertIn('cuda and cpu 1 differ in pbt-detect/organ.vtk', printed.getvalue())
        self.assertIn('nothing is recorded: pbt-detect/organ.vtk is unreadable', printed.getvalue())


if __name__ == '__main__':
    if sys.argv[1:2] == ['run']:
        del sys.argv[1]
        sys.exit(module_of_script().main())
    unittest.main()
