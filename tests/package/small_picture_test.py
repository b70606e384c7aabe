#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""scripts/small-picture keeps colours and rounds greys, and the pictures of the pages are small.

usage: small_picture_test.py SOURCE
"""
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

SOURCE = sys.argv.pop(1)
MOST_BYTES = 130_000


def chunk(kind, body):
    return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))


def sub_filtered(row):
    return bytes([1]) + bytes((value - (row[i - 3] if i >= 3 else 0)) & 255 for i, value in enumerate(row))


class SmallPicture(unittest.TestCase):
    def test_greys_are_rounded_and_colours_stay(self):
        colours = [(grey, grey, grey) for grey in range(256)] + [(255, 64, 64), (1, 2, 3)]
        row = bytes(value for colour in colours for value in colour)
        header = struct.pack('>IIBBBBB', len(colours), 2, 8, 2, 0, 0, 0)
        with tempfile.TemporaryDirectory() as folder:
            names = [os.path.join(folder, name) for name in ('rgb.png', 'small.png')]
            with open(names[0], 'wb') as file:
                file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) +
                           chunk(b'IDAT', zlib.compress(2 * sub_filtered(row))) + chunk(b'IEND', b''))
            subprocess.run([os.path.join(SOURCE, 'scripts', 'small-picture'), *names, '--greys', '16'], check=True)
            with open(names[1], 'rb') as file:
                data = file.read()
        start = data.index(b'PLTE')
        palette = data[start + 4:start + 4 + struct.unpack('>I', data[start - 4:start])[0]]
        start = data.index(b'IDAT')
        lines = zlib.decompress(data[start + 4:start + 4 + struct.unpack('>I', data[start - 4:start])[0]])
        self.assertEqual(len(palette), 3 * (16 + 2))
        for line in (lines[:len(lines) // 2], lines[len(lines) // 2:]):
            found = [tuple(palette[3 * i:3 * i + 3]) for i in line[1:]]
            self.assertEqual(found[256:], colours[256:])
            self.assertLessEqual(max(abs(a[0] - b[0]) for a, b in zip(found[:256], colours)), 9)

    def test_pictures_stand_beside_each_other_with_the_colours_of_labels_and_256_in_all(self):
        noisy = [bytes((x, 3 * y, (7 * x * y) % 256)) for y in range(40) for x in range(40)]
        with tempfile.TemporaryDirectory() as folder:
            names = [os.path.join(folder, name) for name in ('rgb.png', 'labels.png', 'small.png', 'labels.tsv')]
            for name, colour, rows in ((names[0], 2, [noisy[40 * y:40 * y + 40] for y in range(40)]),
                                       (names[1], 0, [[bytes([x // 10]) for x in range(40)]] * 40)):
                with open(name, 'wb') as file:
                    file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 40, 40, 8, colour, 0, 0, 0)) +
                               chunk(b'IDAT', zlib.compress(b''.join(b'\0' + b''.join(row) for row in rows))) + chunk(b'IEND', b''))
            with open(names[3], 'w', encoding='utf-8') as file:
                file.write('index\tname\tcolor\n1\ta\t#010203\n2\tb\t#ff0000\n')
            subprocess.run([os.path.join(SOURCE, 'scripts', 'small-picture'), *names[:3], '--labels', names[3]], check=True)
            with open(names[2], 'rb') as file:
                data = file.read()
        start, pixels = data.index(b'PLTE'), data.index(b'IDAT')
        size = struct.unpack('>I', data[start - 4:start])[0]
        self.assertEqual(size, 3 * 256)
        lines = zlib.decompress(data[pixels + 4:])
        palette = [data[start + 4 + 3 * i:start + 7 + 3 * i] for i in range(256)]
        for y in range(40):
            row = [palette[i] for i in lines[85 * y + 1:85 * y + 85]]
            self.assertEqual(row[40:44], [b'\xff' * 3] * 4)
            self.assertEqual(row[44::10], [bytes(3), bytes((1, 2, 3)), bytes((255, 0, 0)), bytes(3)])
            for found, colour in zip(row[:40], noisy[40 * y:]):
                self.assertLessEqual(max(abs(a - b) for a, b in zip(found, colour)), 40)

    def test_pictures_of_the_pages_are_small(self):
        folder = os.path.join(SOURCE, 'apps', 'images')
        for name in os.listdir(folder):
            self.assertLessEqual(os.path.getsize(os.path.join(folder, name)), MOST_BYTES, name)


if __name__ == '__main__':
    unittest.main()
