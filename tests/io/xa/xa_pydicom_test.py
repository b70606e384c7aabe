#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the angiograms that Larch writes with pydicom, and has dciodvfy look at them where it is installed.

usage: xa_pydicom_test.py WRITE-XA

Sources are made by pydicom (explicit and implicit, 8 to 16 bits, with sign, run-length coded) and, where
gdcmconv is installed, as JPEG-LS, JPEG 2000 and lossless JPEG; what is derived of each must have the pixels
that numpy gives. Without pydicom it prints "skipped: ..." and passes.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    import pydicom
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.sequence import Sequence
    from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, RLELossless
except ImportError as missing:
    print(f'skipped: {missing.name} for /usr/bin/python3 is not installed (python3-pydicom)')
    sys.exit(0)

TOOL = sys.argv.pop(1)
XA = '1.2.840.10008.5.1.4.1.1.12.1'


def source(frames, bits=12, syntax=ExplicitVRLittleEndian, signed=False):
    """A cine with what a device of the clinic says."""
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = syntax
    data.file_meta.MediaStorageSOPClassUID = XA
    data.file_meta.MediaStorageSOPInstanceUID = '1.2.3.4.5'
    data.is_little_endian, data.is_implicit_VR = True, syntax == ImplicitVRLittleEndian
    data.SpecificCharacterSet = 'ISO_IR 192'
    data.SOPClassUID, data.SOPInstanceUID = XA, '1.2.3.4.5'
    data.StudyInstanceUID, data.SeriesInstanceUID = '1.2.3', '1.2.3.4'
    data.ImageType = ['ORIGINAL', 'PRIMARY', 'BIPLANE B']
    data.Modality, data.StudyDate, data.StudyTime, data.AccessionNumber = 'XA', '20200102', '030405', 'A1'
    data.PatientName, data.PatientID, data.PatientSex, data.PatientBirthDate = 'Müller^Jörg', 'P1', 'M', '19500101'
    data.SeriesDescription = 'ä' * 60
    data.TimezoneOffsetFromUTC, data.BurnedInAnnotation = '+0100', 'YES'
    data.KVP, data.RadiationSetting, data.PositionerPrimaryAngle = '70.5', 'GR', '-30'
    data.ImagerPixelSpacing = [0.3, 0.2]
    data.FrameIncrementPointer = 0x00181065
    data.FrameTimeVector = [0] + [100 + 10 * i for i in range(len(frames) - 1)]
    data.PixelIntensityRelationship = 'LIN'
    item = Dataset()
    item.MaskOperation, item.MaskFrameNumbers = 'AVG_SUB', [1, 2]
    data.MaskSubtractionSequence = Sequence([item])
    other = Dataset()
    other.ReferencedSOPClassUID, other.ReferencedSOPInstanceUID = XA, '1.2.3.4.6'
    data.ReferencedImageSequence = Sequence([other])
    data.SamplesPerPixel, data.PhotometricInterpretation, data.NumberOfFrames = 1, 'MONOCHROME2', len(frames)
    data.Rows, data.Columns = frames.shape[1:]
    data.BitsAllocated = 8 * frames.dtype.itemsize
    data.BitsStored, data.HighBit, data.PixelRepresentation = bits, bits - 1, int(signed)
    data.PixelData = frames.tobytes()
    data['PixelData'].VR = 'OB' if data.BitsAllocated == 8 else 'OW'
    if syntax == RLELossless:
        data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        data.compress(RLELossless)
    return data


def noise(bits, kind=numpy.uint16, shape=(4, 23, 18), least=0):
    return numpy.random.default_rng(bits).integers(least, least + (1 << bits), shape).astype(kind)


class Written(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def run_tool(self, *words):
        subprocess.run([TOOL, *map(str, words)], check=True)

    def valid(self, path):
        if shutil.which('dciodvfy') is None:
            print('without dciodvfy (dicom3tools)', file=sys.stderr)
            return
        done = subprocess.run(['dciodvfy', str(path)], capture_output=True, text=True)
        self.assertIn('XAImage', done.stderr)
        # Laterality is for paired parts of the body and must not be empty; dciodvfy wants it of all files that name no part.
        errors = [line for line in done.stderr.splitlines() if 'Error' in line and 'Element=<Laterality>' not in line]
        self.assertEqual(errors, [])

    def check_derived(self, path, frames):
        out = self.folder / 'derived.dcm'
        self.run_tool('derived', path, out)
        self.valid(out)
        data = pydicom.dcmread(out)
        wide = frames.astype(numpy.int64)
        expected = ((wide - wide[0] + 32768) % 65536).astype(numpy.uint16)
        self.assertTrue(numpy.array_equal(data.pixel_array, expected))
        return data, out

    def test_derived(self):
        frames = noise(12)
        path = self.folder / 'source.dcm'
        source(frames).save_as(path, write_like_original=False)
        data, out = self.check_derived(path, frames)
        self.assertEqual(list(data.ImageType), ['DERIVED', 'SECONDARY', 'BIPLANE B'])
        self.assertEqual(data.ReferencedImageSequence[0].ReferencedSOPInstanceUID, '1.2.3.4.6')
        self.assertEqual(data.SOPClassUID, XA)
        meta = data.file_meta
        self.assertEqual((meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID), (XA, data.SOPInstanceUID))
        self.assertEqual(meta.ImplementationVersionName, 'LARCH')  # not the version of a library
        self.assertTrue(meta.ImplementationClassUID.startswith('2.25.'), meta)
        self.assertEqual(str(data.PatientName), 'Müller^Jörg')
        self.assertEqual(data.SeriesDescription, 'Subtracted: ' + 'ä' * 26)
        self.assertEqual(data.StudyInstanceUID, '1.2.3')
        for uid in (data.SOPInstanceUID, data.SeriesInstanceUID):
            self.assertTrue(uid.startswith('2.25.') and pydicom.uid.UID(uid).is_valid, uid)
        self.assertNotEqual(data.SOPInstanceUID, data.SeriesInstanceUID)
        self.assertEqual(data.SourceImageSequence[0].ReferencedSOPInstanceUID, '1.2.3.4.5')
        self.assertEqual(data.DerivationDescription, 'Each frame minus the first, for a test')
        self.assertNotIn('MaskSubtractionSequence', data)
        self.assertEqual(data.PixelIntensityRelationship, 'LOG')
        self.assertEqual((data.RescaleIntercept, data.RescaleSlope), (-32768, 1))
        self.assertEqual([float(t) for t in data.FrameTimeVector], [0, 100, 110, 120])
        self.assertEqual(data.FrameIncrementPointer, 0x00181065)
        self.assertEqual([float(s) for s in data.ImagerPixelSpacing], [0.3, 0.2])
        self.assertEqual((data.TimezoneOffsetFromUTC, data.BurnedInAnnotation), ('+0100', 'YES'))
        self.assertEqual((data.KVP, data.PositionerPrimaryAngle), (70.5, -30))
        self.assertEqual(data.LossyImageCompression, '00')
        values = numpy.sort(data.pixel_array.astype(float).ravel() - 32768)
        low, high = data.WindowCenter - data.WindowWidth / 2, data.WindowCenter + data.WindowWidth / 2
        inside = numpy.mean((values >= low) & (values <= high))
        self.assertTrue(0.985 <= inside <= 1, inside)
        again = self.folder / 'again.dcm'
        self.run_tool('derived', path, again)
        self.assertEqual(again.read_bytes(), out.read_bytes())

    def test_kinds_of_sources(self):
        for name, frames, more in (
                ('8 bits', noise(8, numpy.uint8), {'bits': 8}),
                ('10 bits', noise(10), {'bits': 10}),
                ('14 bits', noise(14), {'bits': 14}),
                ('odd size', noise(8, numpy.uint8, (3, 17, 13)), {'bits': 8}),
                ('with sign', noise(12, numpy.int16, least=-2048), {'signed': True}),
                ('implicit', noise(12), {'syntax': ImplicitVRLittleEndian}),
                ('run lengths', noise(12), {'syntax': RLELossless})):
            with self.subTest(name):
                path = self.folder / 'source.dcm'
                source(frames, **more).save_as(path, write_like_original=False)
                data, _ = self.check_derived(path, frames)
                self.assertEqual(str(data.PatientName), 'Müller^Jörg')

    def test_compressed(self):
        if shutil.which('gdcmconv') is None:
            self.skipTest('gdcmconv (libgdcm-tools) is not installed')
        for frames, bits in ((noise(12), 12), (noise(8, numpy.uint8), 8)):
            path, packed = self.folder / 'source.dcm', self.folder / 'packed.dcm'
            source(frames, bits=bits).save_as(path, write_like_original=False)
            for flag in ('--jpegls', '--j2k', '--jpeg'):
                with self.subTest(f'{flag} {bits}'):
                    subprocess.run(['gdcmconv', flag, path, packed], check=True, capture_output=True)
                    self.assertTrue(pydicom.dcmread(packed).file_meta.TransferSyntaxUID.is_compressed)
                    self.check_derived(packed, frames)

    def test_original(self):
        k, i = numpy.arange(31 * 19), numpy.arange(3)
        expected = ((k[None] * 7 + i[:, None] * 1000) % 4096).reshape(3, 19, 31)
        for kind in ('original', 'labels', 'vector'):
            out = self.folder / f'{kind}.dcm'
            self.run_tool(kind, out)
            self.valid(out)
            data = pydicom.dcmread(out)
            self.assertTrue(numpy.array_equal(data.pixel_array, expected))
            self.assertEqual((data.BitsStored, data.HighBit), (12, 11))
            average, tid = data.MaskSubtractionSequence
            self.assertEqual(average.MaskOperation, 'AVG_SUB')
            self.assertEqual(list(average.MaskFrameNumbers), [1, 2])
            self.assertEqual(list(average.ApplicableFrameRange), [3, 3])
            self.assertEqual(list(average.MaskSubPixelShift), [1.25, 0.5])  # down, and to the left
            self.assertEqual((tid.MaskOperation, tid.TIDOffset), ('TID', -1))
            self.assertEqual((data.WindowCenter, data.WindowWidth), (2047.5, 4096))
            self.assertEqual([float(s) for s in data.ImagerPixelSpacing], [0.3, 0.2])
            self.assertEqual(data.RecommendedDisplayFrameRate, 8)
            self.assertNotIn('RescaleIntercept', data)
            if kind == 'original':
                self.assertEqual(data.FrameTime, 133.25)
            if kind == 'vector':
                self.assertEqual([float(t) for t in data.FrameTimeVector], [0, 100, 250])
            self.assertEqual('ImageComments' in data, kind == 'labels')


if __name__ == '__main__':
    unittest.main()
