#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The hash of a content does not see how a file is packed, and sees whatever it says.

usage: content_test.py SCRIPTS_FOLDER
"""
import gzip
import json
import os
import struct
import sys
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import larch_content  # noqa: E402


def nifti(value=7, spacing=2.0, description=b'', offset=0):
    header = bytearray(352)
    struct.pack_into('<i', header, 0, 348)
    struct.pack_into('<8h', header, 40, 3, 2, 2, 2, 1, 1, 1, 1)
    struct.pack_into('<hh', header, 70, 2, 8)
    struct.pack_into('<4f', header, 76, 1, spacing, 2, 2)
    struct.pack_into('<fff', header, 108, 352, 1, 0)
    header[148:148 + len(description)] = description
    struct.pack_into('<f', header, 268 + offset, 5.0)
    return bytes(header) + bytes([1, 2, 3, 4, 5, 6, 7, value])


def png(filters, first=9):
    """A picture of 4 x 4 RGB pixels whose lines have these filters."""
    pixels = [[(x * 31 + y * 17 + c * 5) % 256 for x in range(4) for c in range(3)] for y in range(4)]
    pixels[0][0] = first
    lines, above = b'', [0] * 12
    for kind, row in zip(filters, pixels):
        guess = {0: lambda i: 0, 1: lambda i: row[i - 3] if i >= 3 else 0, 2: lambda i: above[i],
                 3: lambda i: ((row[i - 3] if i >= 3 else 0) + above[i]) // 2,
                 4: lambda i: larch_content.paeth(row[i - 3] if i >= 3 else 0, above[i], above[i - 3] if i >= 3 else 0)}
        lines += bytes([kind]) + bytes((row[i] - guess[kind](i)) % 256 for i in range(12))
        above = row
    chunk = lambda kind, body: struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 4, 4, 8, 2, 0, 0, 0)) +
            chunk(b'tEXt', b'Version\x00' + bytes(filters)) +
            chunk(b'IDAT', zlib.compress(lines, 1 + filters[0])) + chunk(b'IEND', b''))


NRRD = b'NRRD0004\ntype: uchar\nsizes: 2 2 2\nencoding: %s\n\n%s'
MHA = b'ObjectType = Image\nDimSize = 2 2 2\nCompressedData = %s\n%sElementDataFile = LOCAL\n%s'
VOXELS = bytes(range(8))
GIFTI = ('<GIFTI><DataArray Intent="P" DataType="F" Dim0="1" Dim1="3" Encoding="Base64Binary" Endian="LittleEndian">'
         '<MetaData>%s</MetaData><Data>%s</Data></DataArray></GIFTI>')
DICOM = bytes(128) + b'DICM\x02\x00\x00\x00UL\x04\x00'

# Ending, two files that say the same, one that says something else.
CASES = [
    ('.nii', nifti(), nifti(description=b'written by'), nifti(value=8)),
    ('.nii', nifti(), nifti(description=b'tool 2'), nifti(spacing=2.5)),
    ('.nii', nifti(), nifti(), nifti(offset=16)),
    ('.nii.gz', gzip.compress(nifti(), 1, mtime=1), gzip.compress(nifti(), 9, mtime=2), gzip.compress(nifti(8))),
    ('.nrrd', NRRD % (b'raw', VOXELS), b'NRRD0004\n# a comment' + NRRD[8:] % (b'gzip', gzip.compress(VOXELS)),
     NRRD % (b'raw', VOXELS[::-1])),
    ('.nrrd', NRRD % (b'raw', VOXELS), NRRD % (b'raw', VOXELS), NRRD.replace(b'2 2 2', b'4 2 1') % (b'raw', VOXELS)),
    ('.mha', MHA % (b'False', b'', VOXELS),
     MHA % (b'True', b'CompressedDataSize = 16\n', zlib.compress(VOXELS)), MHA % (b'False', b'', VOXELS[::-1])),
    ('.png', png([0, 0, 0, 0]), png([4, 3, 2, 1]), png([0, 0, 0, 0], first=10)),
    ('.png', png([1, 4, 4, 3]), png([2, 1, 3, 4]), png([2, 1, 3, 4], first=8)),
    ('.vtk', b'# vtk\nversion 1\nBINARY\nab', b'# vtk\nversion 2\nBINARY\nab', b'# vtk\nversion 1\nBINARY\nac'),
    ('.stl', b'a' * 80 + b'bc', b'd' * 80 + b'bc', b'a' * 80 + b'bd'),
    ('.obj', b'# one\nv 1 2 3\n', b'# two\nv 1 2 3\n', b'# one\nv 1 2 4\n'),
    ('.ply', b'ply\ncomment a\nend_header\n12', b'ply\nend_header\n12', b'ply\nend_header\n13'),
    ('.gii', (GIFTI % ('a', 'AAAA')).encode(), (GIFTI % ('b', 'AAAA')).encode(), (GIFTI % ('a', 'AAAB')).encode()),
    ('.dcm', DICOM + b'\x02\x00\x00\x00abrest', DICOM + b'\x03\x00\x00\x00abcrest', DICOM + b'\x02\x00\x00\x00abresT'),
    ('.tsv', b'id\tseconds\tdice\na\t1\t0.5\n', b'id\tseconds\tdice\na\t2\t0.5\n', b'id\tseconds\tdice\na\t1\t0.6\n'),
    ('.tsv', b'id\tx\na\tb\n', b'id\tx\na\tb\n', b'id\tx\nab\t\n'),
    ('.csv', b'frame,dx\n1,0.5\n', b'frame,dx\r\n1,0.5\r\n', b'frame,dx\n1,0.6\n'),
    ('.gif', b'GIF89a1;', b'GIF89a1;', b'GIF89a2;'),
    ('.model.json', json.dumps({'version': 1, 'nodes': [1, {'e': 2}]}).encode(),
     json.dumps({'nodes': [1, {'e': 2}], 'version': 2}).encode(), json.dumps({'version': 1, 'nodes': [1, {'e': 3}]}).encode()),
]
DAMAGED = [('.nii', b'abc'), ('.nii.gz', gzip.compress(nifti())[:40]), ('.mha', b'ObjectType = Image\n'),
           ('.png', png([0, 0, 0, 0])[:60]), ('.gii', b'<GIFTI>'), ('.ply', b'ply'), ('.dcm', b'DICM'),
           ('.model.json', b'{'), ('.xyz', b'')]


class Content(unittest.TestCase):
    def content(self, ending, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'file' + ending)
            with open(path, 'wb') as file:
                file.write(data)
            return larch_content.content(path)

    def test_same_and_other_content(self):
        for ending, one, same, other in CASES:
            with self.subTest(ending):
                self.assertEqual(self.content(ending, one), self.content(ending, same))
                self.assertNotEqual(self.content(ending, one), self.content(ending, other))

    def test_files_that_cannot_be_read(self):
        for ending, data in DAMAGED:
            with self.subTest(ending), self.assertRaises(larch_content.Unreadable):
                self.content(ending, data)


if __name__ == '__main__':
    unittest.main()
