#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets: tests/fuzz/make_seeds.py [FOLDER]    (default: seeds beside it)

Small sound files of every kind, and beside them the inputs that the guards of lib/larch/core/guard.h are
for (guards.tsv says which). Files that fuzzing found stand in the same folders and are not made here;
seeds/j2k and seeds/jls come from the encoders of OpenJPEG and CharLS; seeds/mesh_* are a tetrahedron in each
way that a format has.
"""
import gzip
import json
import struct
import sys
import zlib

sys.dont_write_bytecode = True
from dicom_elements import dicom, element, fragments, sequence, us  # noqa: E402
from nifti_headers import nifti1, nifti2  # noqa: E402
from seed_files import VOXELS, seed  # noqa: E402


# NIfTI

def nifti_seeds():
    floats = struct.pack('<24f', *[0.5 * v for v in range(22)], float('nan'), float('inf'))
    seed('nifti', 'uint8.nii', nifti1() + VOXELS)
    seed('nifti', 'uint8.nii.gz', gzip.compress(nifti1() + VOXELS, mtime=0))
    seed('nifti', 'qform.nii', nifti1(sform=0, qform=1, pixdim=(-1, 1, 1.5, 2)) + VOXELS)
    seed('nifti', 'no-form.nii', nifti1(sform=0) + VOXELS)
    seed('nifti', 'float-nan.nii', nifti1(datatype=16, bits=32) + floats)
    seed('nifti', 'scaled.nii', nifti1(slope=0.5, inter=-3, datatype=4, bits=16, size=(3, 2, 2)) + VOXELS)
    seed('nifti', 'big-endian.nii', nifti1(order='>', datatype=512, bits=16, size=(3, 2, 2)) + VOXELS)
    seed('nifti', 'frames.nii', nifti1(size=(3, 2, 2, 2)) + VOXELS)
    seed('nifti', 'rgb.nii', nifti1(size=(2, 2, 2), datatype=128, bits=24) + VOXELS)
    seed('nifti', 'plane.nii', nifti1(size=(6, 4)) + VOXELS)
    seed('nifti', 'version2.nii', nifti2() + VOXELS)
    seed('nifti', 'version2.nii.gz', gzip.compress(nifti2() + VOXELS, mtime=0))
    extensions = struct.pack('<2i8x', 16, 6) + struct.pack('<2i24x', 32, 4)
    seed('nifti', 'extensions.nii', nifti1(offset=400)[:348] + b'\1\0\0\0' + extensions + VOXELS)
    # Voxels that would begin inside the header.
    seed('nifti', 'guard-offset.nii', nifti2(offset=352) + VOXELS)
    # An origin that single precision, and so the output, cannot hold.
    seed('nifti', 'guard-origin.nii', nifti2(origin=(1e308, 0, 0)) + VOXELS)
    seed('nifti', 'guard-spacing.nii', nifti2(spacing=(1e39, 1, 1)) + VOXELS)


def pair(header, voxels, choice=0):
    """Choice: 1 for a compressed header, 2 for compressed voxels, 4 if the voxels' file is what is given."""
    header = gzip.compress(header, mtime=0) if choice & 1 else header
    voxels = gzip.compress(voxels, mtime=0) if choice & 2 else voxels
    return struct.pack('<BH', choice, len(header)) + header + voxels


def pair_seeds():
    one = nifti1(offset=0.0, magic=b'ni1\0')
    seed('pair', 'header-given', pair(one, VOXELS))
    seed('pair', 'voxels-given', pair(one, VOXELS, 4))
    seed('pair', 'voxels-packed', pair(one, VOXELS, 2))
    seed('pair', 'both-packed', pair(one, VOXELS, 7))
    seed('pair', 'big-endian', pair(nifti1(order='>', datatype=4, bits=16, size=(3, 2, 2), offset=0.0, magic=b'ni1\0'),
                                    VOXELS))
    seed('pair', 'version2', pair(nifti2(offset=0, magic=b'ni2\0'), VOXELS))
    seed('pair', 'offset', pair(nifti1(size=(3, 2, 2), offset=12.0, magic=b'ni1\0'), VOXELS))
    seed('pair', 'offset-beyond', pair(nifti1(offset=1e9, magic=b'ni1\0'), VOXELS))
    seed('pair', 'too-few-voxels', pair(one, VOXELS[:-1]))
    seed('pair', 'single-file-mark', pair(nifti1() + VOXELS, VOXELS))


# NRRD and MetaImage

def nrrd(*lines, data=VOXELS, sizes='3 4 2', kind='uint8', encoding='raw'):
    geometry = ['space: left-posterior-superior', 'space directions: (1,0,0) (0,1.5,0) (0,0.1,2)',
                'space origin: (-3,4,5)']
    text = ['NRRD0004', f'type: {kind}', 'dimension: 3', f'sizes: {sizes}', *(lines or geometry),
            'endian: little', f'encoding: {encoding}', '', '']
    return '\n'.join(text).encode() + data


def nrrd_seeds():
    seed('nrrd', 'raw.nrrd', nrrd())
    seed('nrrd', 'gzip.nrrd', nrrd(data=gzip.compress(VOXELS, mtime=0), encoding='gzip'))
    seed('nrrd', 'short-ras.nrrd', nrrd('space: right-anterior-superior', 'space directions: (1,0,0) (0,1,0) (0,0,1)',
                                        'kinds: domain domain domain', kind='short', sizes='3 2 2'))
    seed('nrrd', 'spacings.nrrd', nrrd('spacings: 1 1.5 2', 'axis mins: 0 0 0', kind='float', sizes='3 2 1'))
    seed('nrrd', 'units.nrrd', nrrd('content: seed', '# a comment', 'key:=value', 'space units: "mm" "mm" "mm"',
                                    'space dimension: 3', 'measurement frame: (1,0,0) (0,1,0) (0,0,1)'))
    # Words that were too long for the arrays of NrrdIO, which read these files once.
    seed('nrrd', 'long-type.nrrd', nrrd(kind='A' * 1100))
    seed('nrrd', 'long-encoding.nrrd', nrrd(encoding='raw' + 'A' * 1100))
    # More voxels than the file can hold.
    seed('nrrd', 'guard-claim.nrrd', nrrd(sizes='2000 2000 1000'))


def meta(*lines, data=VOXELS, size='3 4 2', kind='MET_UCHAR', file='LOCAL'):
    text = ['ObjectType = Image', 'NDims = 3', f'DimSize = {size}', f'ElementType = {kind}',
            *(lines or ['ElementSpacing = 1 1.5 2', 'Offset = -3 4 5', 'TransformMatrix = 1 0 0 0 1 0 0 0 1']),
            f'ElementDataFile = {file}', '']
    return '\n'.join(text).encode() + data


def meta_seeds():
    packed = zlib.compress(VOXELS)
    seed('meta', 'raw.mha', meta())
    seed('meta', 'compressed.mha', meta('CompressedData = True', f'CompressedDataSize = {len(packed)}', data=packed))
    seed('meta', 'big-endian.mha', meta('BinaryDataByteOrderMSB = True', 'BinaryData = True', kind='MET_SHORT',
                                        size='3 2 2'))
    seed('meta', 'channels.mha', meta('ElementNumberOfChannels = 3', size='2 2 2'))
    seed('meta', 'orientation.mha', meta('Orientation = 0 1 0 -1 0 0 0 0 1', 'Position = 1 2 3', 'ElementSize = 1 1 2',
                                         'CenterOfRotation = 0 0 0', 'AnatomicalOrientation = RAI', 'HeaderSize = -1'))
    seed('meta', 'float.mha', meta(kind='MET_FLOAT', size='3 2 1'))


# Pictures

def tiff(entries, data, order='<', next_directory=0, first=None):
    """One directory behind the data; entries: (tag, type, count, value)."""
    start = first or 8 + len(data) + len(data) % 2
    out = (b'II*\0' if order == '<' else b'MM\0*') + struct.pack(order + 'I', start) + data
    out = out.ljust(start, b'\0') + struct.pack(order + 'H', len(entries))
    for tag, kind, count, value in entries:
        packed = struct.pack(order + 'H2x', value) if kind == 3 and count == 1 else struct.pack(order + 'I', value)
        out += struct.pack(order + 'HHI', tag, kind, count) + packed
    return out + struct.pack(order + 'I', next_directory)


def page(width, height, length, bits=8, compression=1, photometric=1, rows=None, more=()):
    entries = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, bits), (259, 3, 1, compression),
               (262, 3, 1, photometric), (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, rows or height),
               (279, 4, 1, length), *more]
    return sorted(entries)


def tiff_seeds():
    packed = zlib.compress(VOXELS)
    seed('tiff', 'grey.tif', tiff(page(6, 4, 24), VOXELS))
    seed('tiff', 'big-endian-16.tif', tiff(page(4, 3, 24, bits=16), VOXELS, order='>'))
    seed('tiff', 'deflated.tif', tiff(page(6, 4, len(packed), compression=8), packed))
    seed('tiff', 'packbits.tif', tiff(page(6, 4, 25, compression=32773), b'\x17' + VOXELS))
    seed('tiff', 'lzw.tif', tiff(page(2, 1, 4, compression=5), bytes([0x80, 0x00, 0x00, 0x60])))
    seed('tiff', 'float.tif', tiff(page(3, 2, 24, bits=32, more=[(339, 3, 1, 3)]), VOXELS))
    seed('tiff', 'one-bit.tif', tiff(page(12, 4, 8, bits=1), VOXELS))
    seed('tiff', 'tiled.tif', tiff([(256, 4, 1, 16), (257, 4, 1, 16), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
                                    (277, 3, 1, 1), (322, 4, 1, 16), (323, 4, 1, 16), (324, 4, 1, 8),
                                    (325, 4, 1, 256)], bytes(range(256))))
    # Rows of one bit each: as the one above, which is white.
    seed('tiff', 'fax.tif', tiff(page(32, 16, 5, bits=1, compression=4, photometric=0), b'\xff\xff\0\x10\1'))
    seed('tiff', 'subsampled.tif', tiff(sorted([(tag, kind, count, 3 if tag == 277 else value)
                                                for tag, kind, count, value in page(4, 4, 24, photometric=6)] +
                                               [(284, 3, 1, 1), (530, 3, 2, 0x00020002)]), VOXELS))
    # Pages that share their tables of strips, more than the file could hold of them.
    tables = VOXELS + struct.pack('<100I', *[8] * 100) + struct.pack('<100I', *[1] * 100)
    shared = [(tag, kind, 100, 32 if tag == 273 else 432) if tag in (273, 279) else (tag, kind, count, value)
              for tag, kind, count, value in page(1, 100, 1, rows=1, compression=8)]
    pages = tiff(shared, tables)
    length = len(pages) - 8 - len(tables)
    directory = pages[-length:-4]
    pages = pages[:-length]
    for i in range(1, 13):
        pages += directory + struct.pack('<I', len(pages) + length if i < 12 else 0)
    seed('tiff', 'shared-tables.tif', pages)
    # The directory names itself as the next one.
    ring = tiff(page(6, 4, 24), VOXELS, next_directory=32)
    seed('tiff', 'ring.tif', ring)
    two = tiff(page(6, 4, 24), VOXELS, next_directory=32 + 114)
    seed('tiff', 'two-pages.tif', two + tiff(page(6, 4, 24), VOXELS)[32:])
    colours = struct.pack('<768H', *range(768))
    seed('tiff', 'palette.tif', tiff(page(6, 4, 24, photometric=3, more=[(320, 3, 768, 32)]), VOXELS + colours))
    seed('tiff', 'planes.tif', tiff(sorted([(tag, kind, count, 1 if tag == 278 else value)
                                            for tag, kind, count, value in page(2, 4, 24, photometric=2)
                                            if tag not in (273, 277, 279)] +
                                           [(273, 4, 12, 32), (277, 3, 1, 3), (279, 4, 12, 80), (284, 3, 1, 2)]),
                                    VOXELS + struct.pack('<12I', *range(8, 32, 2)) + struct.pack('<12I', *[2] * 12)))
    # More voxels than any stream of 24 bytes becomes.
    seed('tiff', 'guard-claim.tif', tiff(page(65000, 65000, 24, compression=8), VOXELS))


def png(width, height, depth, colour, rows, more=b'', interlace=0):
    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    header = struct.pack('>IIBBBBB', width, height, depth, colour, 0, 0, interlace)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + more + chunk(b'IDAT', zlib.compress(rows)) +
            chunk(b'IEND', b''))


def png_seeds():
    palette = bytes(range(12))
    palette = struct.pack('>I', 12) + b'PLTE' + palette + struct.pack('>I', zlib.crc32(b'PLTE' + palette))
    seed('png', 'grey.png', png(6, 2, 8, 0, b''.join(b'\1' + VOXELS[6 * y:6 * y + 6] for y in range(2))))
    seed('png', 'grey16.png', png(3, 2, 16, 0, b''.join(b'\2' + VOXELS[6 * y:6 * y + 6] for y in range(2))))
    seed('png', 'one-bit.png', png(6, 2, 1, 0, b'\0\xa8\0\x54'))
    seed('png', 'rgb.png', png(2, 2, 8, 2, b''.join(b'\3' + VOXELS[6 * y:6 * y + 6] for y in range(2))))
    seed('png', 'rgba.png', png(1, 2, 8, 6, b'\4\1\2\3\4\0\5\6\7\x08'))
    seed('png', 'palette.png', png(4, 2, 2, 3, b'\0\x1b\0\xe4', more=palette))
    seed('png', 'interlaced.png', png(2, 2, 8, 0, b'\0\1\0\2\0\3\4', interlace=1))


def jpeg(width=10, height=9, components=1, progressive=False, sampling=0x11, restart=0, claim=None, end=b'\xff\xd9'):
    """Blocks of one value each, with the shortest Huffman tables that can say so."""
    def segment(marker, body):
        return bytes([0xff, marker]) + struct.pack('>H', len(body) + 2) + body

    def packed(bits):
        bits += '1' * (-len(bits) % 8)
        return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b'\xff', b'\xff\0')

    def scan(which, first, last):
        body = bytes([len(which)]) + b''.join(bytes([c + 1, 0]) for c in which) + bytes([first, last, 0])
        return segment(0xda, body)
    frame = struct.pack('>BHHB', 8, *(claim or (height, width)), components)
    frame += b''.join(bytes([c + 1, sampling if c == 0 else 0x11, 0]) for c in range(components))
    out = b'\xff\xd8' + segment(0xdb, b'\0' + bytes([16] * 64)) + segment(0xc2 if progressive else 0xc0, frame)
    # Differences of 0 and of 4 bits, in two bits each; then the end of a block alone.
    out += segment(0xc4, b'\0' + bytes([0, 2, *[0] * 14]) + bytes([0, 4]))
    out += segment(0xc4, b'\x10' + bytes([1, *[0] * 15]) + b'\0')
    units = -(-width // (8 * (sampling >> 4))) * -(-height // (8 * (sampling & 15)))
    blocks = (sampling >> 4) * (sampling & 15) + components - 1
    values = ['01' + f'{8 + i % 8:04b}' if i % 3 else '00' for i in range(units * blocks)]
    if progressive:  # the mean values, then all other coefficients of the first component
        out += scan(range(components), 0, 0) + packed(''.join(values))
        return out + scan([0], 1, 63) + packed('0' * (-(-width // 8) * -(-height // 8))) + end
    if restart:
        out += segment(0xdd, struct.pack('>H', restart))
    out += scan(range(components), 0, 63)
    step = (restart or units) * blocks
    parts = [packed(''.join(value + '0' for value in values[i:i + step])) for i in range(0, len(values), step)]
    for i, part in enumerate(parts):
        out += part + (bytes([0xff, 0xd0 + i % 8]) if i + 1 < len(parts) else b'')
    return out + end


def jpeg_seeds():
    seed('jpeg', 'grey.jpg', jpeg())
    seed('jpeg', 'colour.jpg', jpeg(components=3))
    seed('jpeg', 'half-colour.jpg', jpeg(width=20, components=3, sampling=0x22))
    seed('jpeg', 'progressive.jpg', jpeg(components=3, progressive=True))
    seed('jpeg', 'restart.jpg', jpeg(width=30, restart=1))
    seed('jpeg', 'four-components.jpg', jpeg(components=4))
    seed('jpeg', 'truncated.jpg', jpeg(end=b'')[:-3])
    # More samples than the file can hold.
    seed('jpeg', 'claim.jpg', jpeg(claim=(65500, 65500)))


# DICOM


def dicom_seeds():
    rle = struct.pack('<16I', 2, 64, 77, *[0] * 13) + b'\x0b' + bytes(12) + b'\x0b' + bytes(range(12)) + b'\0\0'
    positions = [sequence(0x20, 0x9113, element(0x20, 0x32, 'DS', f'0\\0\\{2 * k}')) for k in range(2)]
    frame_items = [element(*p) for p in positions]
    shared = [element(*sequence(0x20, 0x9116, element(0x20, 0x37, 'DS', '1\\0\\0\\0\\1\\0'))) +
              element(*sequence(0x28, 0x9110, element(0x28, 0x30, 'DS', '1\\1')))]
    seed('dicom', 'explicit.dcm', dicom())
    seed('dicom', 'implicit.dcm', dicom('1.2.840.10008.1.2', implicit=True))
    seed('dicom', 'deflated.dcm', dicom('1.2.840.10008.1.2.1.99'))
    seed('dicom', 'rle.dcm', dicom('1.2.840.10008.1.2.5', raw_pixels=fragments(b'', rle)))
    seed('dicom', 'rgb.dcm', dicom(columns=4, rows=2, allocated=8, stored=8, samples=3, photometric='RGB'))
    seed('dicom', 'enhanced.dcm', dicom(columns=3, rows=2, frames=2, more=[sequence(0x5200, 0x9229, *shared),
                                                                         sequence(0x5200, 0x9230, *frame_items)]))
    seed('dicom', 'no-pixels.dcm', dicom(raw_pixels=b'\0')[:-1])
    seed('dicom', 'slope.dcm', dicom(more=[(0x28, 0x1050, 'DS', '40'), (0x28, 0x1051, 'DS', '400')]))
    # More frames and more pixels than the file can hold.
    seed('dicom', 'claimed-frames.dcm', dicom(frames=1000000))
    seed('dicom', 'claimed-pixels.dcm', dicom(columns=65535, rows=65535))
    seed('dicom', 'guard-claim.dcm', dicom('1.2.840.10008.1.2.5', columns=65535, rows=65535,
                                           raw_pixels=fragments(b'', rle)))
    seed('dicom', 'claimed-frames-rle.dcm', dicom('1.2.840.10008.1.2.5', frames=1000000,
                                                  raw_pixels=fragments(b'', rle)))
    # 3 bits stored of 8, and a HighBit beyond what is allocated would be shifted by.
    seed('dicom', 'three-of-eight-bits.dcm', dicom(columns=6, rows=4, allocated=8, stored=3))
    seed('dicom', 'low-high-bit.dcm', dicom(stored=12, high=3))
    seed('dicom', 'guard-high-bit.dcm', dicom(stored=12, high=40))


# Numbers: planes of a series

def tenths(*values):
    return b''.join(struct.pack('<Bh', 0, round(10 * value)) for value in values)


def planes_seeds():
    def stack(angle=0, spacing=(0.5, 0.75, 2), origin=(-3, 4, 5), step=(0, 0, 2.5), count=5, extra=b''):
        return tenths(angle, *spacing, *origin, *step) + bytes([count - 1]) + extra
    seed('planes', 'regular', stack())
    seed('planes', 'single', stack(count=1))
    seed('planes', 'tilted', stack(step=(0.3, 0, 2.5), angle=0.3))
    seed('planes', 'backwards', stack(step=(0, 0, -2.5), count=9))
    seed('planes', 'shaken', stack(extra=bytes([2, 0x20, 3, 1, 0x20, 0xfe])))
    seed('planes', 'missing', stack(extra=bytes([2, 0x21]) + tenths(30)))
    seed('planes', 'sideways', stack(extra=bytes([2, 0x01]) + tenths(1)))
    seed('planes', 'not-placed', stack(extra=bytes([1, 0x86])))
    seed('planes', 'of-another-size', stack(extra=bytes([1, 0x04]) + struct.pack('<i', 7)))
    far = struct.pack('<Bd', 15, 1e308)
    seed('planes', 'far', tenths(0, 1, 1, 1) + far * 3 + tenths(0, 0, 1) + bytes([3]))


# Sequences, markups

def sequence_seeds():
    def sequences(name, data, choice, batch=1):
        seed('sequence', name, bytes([choice, batch]) + data)
    cine = {'columns': 3, 'rows': 2, 'frames': 2}
    average = element(0x28, 0x6101, 'CS', 'AVG_SUB') + element(0x28, 0x6110, 'US', us(1))
    back = element(0x28, 0x6101, 'CS', 'REV_TID') + element(0x28, 0x6102, 'US', us(2) + us(2)) + \
        element(0x28, 0x6114, 'FL', struct.pack('<2f', 0.5, -1)) + element(0x28, 0x6120, 'SS', us(1))
    shutter = [(0x18, 0x1600, 'CS', 'RECTANGULAR\\CIRCULAR\\POLYGONAL'), (0x18, 0x1602, 'IS', '1'),
               (0x18, 0x1604, 'IS', '3'), (0x18, 0x1606, 'IS', '1'), (0x18, 0x1608, 'IS', '2'),
               (0x18, 0x1610, 'IS', '1\\2'), (0x18, 0x1612, 'IS', '4'), (0x18, 0x1620, 'IS', '1\\1\\1\\3\\2\\2')]
    meaning = [(0x28, 0x1040, 'CS', 'LOG'), (0x28, 0x1041, 'SS', us(65535)), (0x28, 0x1090, 'CS', 'SUB'),
               (0x28, 0x2110, 'CS', '01'), (0x8, 0x2144, 'IS', '15')]
    sequences('masks.dcm', dicom(**cine, more=[sequence(0x28, 0x6100, average, back), *shutter, *meaning]), 0)
    sequences('far-mask.dcm', dicom(**cine, more=[sequence(0x28, 0x6100, average.replace(b'\1\0', b'\x63\0'))]), 0)
    sequences('times.dcm', dicom(**cine, more=[(0x18, 0x1065, 'DS', '0\\20'), (0x18, 0x1164, 'DS', '.2\\.3'),
                                               (0x28, 9, 'AT', b'\x18\0\x65\x10')]), 0)
    rle = struct.pack('<16I', 2, 64, 72, *[0] * 13) + b'\x05' + bytes(6) + b'\0' + b'\x05' + bytes(range(6)) + b'\0'
    sequences('rle.dcm', dicom('1.2.840.10008.1.2.5', **cine, raw_pixels=fragments(b'', rle, rle)), 0)
    table = struct.pack('<2I', 0, len(rle) + 16)
    split = fragments(table, rle[:40], rle[40:], rle)
    sequences('split.dcm', dicom('1.2.840.10008.1.2.5', **cine, raw_pixels=split), 0)
    sequences('deflated.dcm', dicom('1.2.840.10008.1.2.1.99', **cine), 0)
    sequences('implicit.dcm', dicom('1.2.840.10008.1.2', implicit=True, **cine), 0)
    sequences('claimed-frames.dcm', dicom(frames=1000000), 0)
    sequences('stack.mha', meta(), 1)
    packed = zlib.compress(VOXELS)
    sequences('packed.mha', meta('CompressedData = True', f'CompressedDataSize = {len(packed)}', data=packed), 1)
    sequences('packed.nrrd', nrrd(data=gzip.compress(VOXELS, mtime=0), encoding='gzip'), 2)
    sequences('stack.nrrd', nrrd(), 2)
    sequences('frames.nii', nifti1(size=(3, 4, 1, 2)) + VOXELS, 3)
    sequences('scaled.nii', nifti1(slope=0.5, inter=-3, datatype=4, bits=16, size=(3, 2, 2)) + VOXELS, 3)
    # Values beyond all numbers of single precision.
    sequences('far-scale.nii', nifti1(slope=3e38, size=(3, 4, 1, 2)) + VOXELS, 3)
    floats = struct.pack('<24f', *range(24))
    sequences('floats.nii', nifti1(datatype=16, bits=32) + floats, 3)


def markups_seeds():
    def markups(*of):
        return json.dumps({'markups': list(of)})

    def markup(kind, system='LPS', **more):
        return {'type': kind, 'coordinateSystem': system, 'coordinateUnits': 'mm', **more}
    points = [{'label': 'a', 'position': [1, 2, 3]}, {'position': [0, -5e300, 6.125]},
              {'label': 'c', 'position': None, 'positionStatus': 'undefined'}]
    box = {'name': 'heart', 'center': [1, 2, 3], 'size': [4, 5, 6]}
    turned = {**box, 'orientation': [0, -1, 0, 1, 0, 0, 0, 0, 1]}
    seed('markups', 'points.json', markups(markup('Fiducial', controlPoints=points)))
    seed('markups', 'points-ras.json', markups(markup('Fiducial', 'RAS', controlPoints=points)))
    seed('markups', 'boxes.json', markups(markup('ROI', **box), markup('ROI', 'RAS', **turned)))
    seed('markups', 'both.json', markups(markup('ROI', **turned), markup('Fiducial', controlPoints=points)))
    seed('markups', 'broken-size.json', markups(markup('ROI', **{**box, 'size': [4, 0, 1e999]})))
    # Deeper than the calls of a copy can go.
    deep = markups(markup('ROI', **box, x='deep')).replace('"deep"', '[' * 20000 + ']' * 20000)
    seed('markups', 'depth.json', deep)


# Data sets

def dataset_seeds():
    seed('dataset', 'decathlon.json', '{"modality": {"0": "CT"}, "training": [{"image": "./case_0000.nii", "label": '
         '"./label.nii"}]}')
    seed('dataset', 'decathlon-long-name.json', '{"training": [{"image": "' + 'x' * 300 + '", "label": "label.nii"}]}')
    seed('dataset', 'nnunet.json', '{"channel_names": {"0": "MRI"}, "numTraining": 1, "file_ending": ".nii"}')
    seed('dataset', 'nnunet-channels.json', '{"channel_names":{"0":"T2","1":"ADC"},"labels":{"background":0,'
         '"both":[1,2]},"dataset":{"x":{"images":["case_0000.nii","label.nii"],"label":"label.nii"}}}')


def main():
    for make in (sequence_seeds, markups_seeds, nifti_seeds, pair_seeds, nrrd_seeds, meta_seeds, tiff_seeds, png_seeds,
                 jpeg_seeds, dicom_seeds, planes_seeds, dataset_seeds):
        make()


if __name__ == '__main__':
    main()
