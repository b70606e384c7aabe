#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""What data-samples promises: small files, all named in MANIFEST.json, and read alike by another reader.

usage: data_samples_test.py DATA_SAMPLES
"""
import hashlib
import json
import os
import sys
import unittest

import nibabel
import numpy
import pydicom

DATA = sys.argv.pop(1)


class DataSamples(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(DATA, 'MANIFEST.json'), encoding='utf-8') as file:
            self.manifest = json.load(file)

    def test_files_are_those_of_the_manifest_and_small(self):
        found = {os.path.relpath(os.path.join(where, name), DATA)
                 for where, _, names in os.walk(DATA) for name in names}
        self.assertEqual(found - {'MANIFEST.json', 'expected.json', 'README.md'}, set(self.manifest['files']))
        total = 0
        for name, wanted in self.manifest['files'].items():
            with open(os.path.join(DATA, name), 'rb') as file:
                data = file.read()
            self.assertEqual(len(data), wanted['bytes'], name)
            self.assertEqual(hashlib.sha256(data).hexdigest(), wanted['sha256'], name)
            self.assertLessEqual(len(data), 200_000, name)
            total += len(data)
        self.assertLessEqual(total, 2_000_000)

    def test_every_set_says_how_it_was_made(self):
        for one in self.manifest['sets']:
            self.assertTrue(one['command'].startswith(f'make-samples --output-dir {one["folder"]} '))
        self.assertIn('Apache-2.0', self.manifest['licence'])

    def test_labels_of_the_training_set_have_an_organ(self):
        for number in range(8):
            image = nibabel.load(os.path.join(DATA, f'training/images/case_{number:03}.nii.gz'))
            label = nibabel.load(os.path.join(DATA, f'training/labels/case_{number:03}.nii.gz'))
            self.assertEqual(image.shape, (52, 52, 20))
            self.assertTrue(numpy.array_equal(image.affine, label.affine))
            self.assertGreater(numpy.count_nonzero(numpy.asarray(label.dataobj)), 500)

    def test_the_angiogram_names_its_mask_and_is_read_by_pydicom(self):
        dataset = pydicom.dcmread(os.path.join(DATA, 'angiography/images/case_000.dcm'))
        self.assertEqual(dataset.pixel_array.shape, (5, 128, 128))
        self.assertEqual(list(dataset.MaskSubtractionSequence[0].MaskFrameNumbers), [1, 2])

    def test_the_head_has_three_tissues(self):
        image = nibabel.load(os.path.join(DATA, 'head/images/case_000.nii.gz'))
        label = nibabel.load(os.path.join(DATA, 'head/labels/case_000.nii.gz'))
        self.assertEqual(image.shape, (48, 44, 40))
        self.assertTrue(numpy.array_equal(image.affine, label.affine))
        counts = numpy.bincount(numpy.asarray(label.dataobj).ravel())
        self.assertEqual(len(counts), 4)
        self.assertGreater(min(counts), 2000)


if __name__ == '__main__':
    unittest.main()
