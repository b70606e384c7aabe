#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets: tests/fuzz/make_seeds.py [FOLDER]    (default: seeds beside it)

Small sound files of every kind, and beside them the inputs that the guards of lib/core/guard.h are
for (guards.tsv says which). Files that fuzzing found stand in the same folders and are not made here;
seeds/model comes from pbt-train: see strip_model.
"""
import gzip
import os
import struct
import sys
import zlib

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), 'seeds')
VOXELS = bytes(range(24))


def seed(target, name, data):
    path = os.path.join(ROOT, target, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data.encode() if isinstance(data, str) else data)


# NIfTI

def nifti1(size=(3, 4, 2), datatype=2, bits=8, order='<', pixdim=(1, 1, 1.5, 2), sform=1, qform=0, offset=352.0,
           slope=0.0, inter=0.0, origin=(-3, 4, 5), intent=0):
    dims = [len(size), *size] + [1] * (7 - len(size))
    header = struct.pack(order + 'i36x8h', 348, *dims)
    header += struct.pack(order + '3f4h', 0, 0, 0, intent, datatype, bits, 0)
    header += struct.pack(order + '8f3f', *pixdim, 1, 1, 1, 1, offset, slope, inter)
    header += struct.pack(order + 'hbb4f2i', 0, 0, 2, 0, 0, 0, 0, 0, 0)
    header += b'seed'.ljust(104, b'\0')
    header += struct.pack(order + '2h6f', qform, sform, 0.1, 0.2, 0.3, *origin)
    for row in range(3):
        values = [0.0] * 4
        values[row], values[3] = pixdim[row + 1], origin[row]
        header += struct.pack(order + '4f', *values)
    header += bytes(16) + b'n+1\0'
    assert len(header) == 348
    return header + bytes(4)


def nifti2(size=(3, 4, 2), datatype=2, bits=8, origin=(-3, 4, 5), spacing=(1, 1.5, 2), offset=544):
    dims = [len(size), *size] + [1] * (7 - len(size))
    header = struct.pack('<i8s2h8q3d', 540, b'n+2\0\r\n\x1a\n', datatype, bits, *dims, 0, 0, 0)
    header += struct.pack('<8dq', 1, *spacing, 1, 1, 1, 1, offset) + struct.pack('<2d', 0, 0)
    header += struct.pack('<4d2q', 0, 0, 0, 0, 0, 0) + bytes(104)
    header += struct.pack('<2i6d', 0, 1, 0, 0, 0, *origin)
    for row in range(3):
        values = [0.0] * 4
        values[row], values[3] = spacing[row], origin[row]
        header += struct.pack('<4d', *values)
    header += struct.pack('<3i', 0, 2, 0) + bytes(16) + b'\0' + bytes(15)
    assert len(header) == 540, len(header)
    return header + bytes(4)


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
    # Voxels that would begin inside the header.
    seed('nifti', 'guard-offset.nii', nifti2(offset=352) + VOXELS)
    # An origin that single precision, and so the output, cannot hold.
    seed('nifti', 'guard-origin.nii', nifti2(origin=(1e308, 0, 0)) + VOXELS)
    seed('nifti', 'guard-spacing.nii', nifti2(spacing=(1e39, 1, 1)) + VOXELS)


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
    seed('nrrd', 'text.nrrd', nrrd(data=' '.join(map(str, VOXELS)).encode(), encoding='ascii'))
    seed('nrrd', 'hex.nrrd', nrrd(data=VOXELS.hex().encode(), encoding='hex'))
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
    # The directory names itself as the next one.
    ring = tiff(page(6, 4, 24), VOXELS, next_directory=32)
    seed('tiff', 'guard-ring.tif', ring)
    # Tables for as many strips as the claimed height needs, whatever is in the file.
    seed('tiff', 'guard-claim.tif', tiff(page(16, 2147483647, 24, rows=12, compression=8), VOXELS))


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


# DICOM

LONG = ('OB', 'OW', 'SQ', 'UN', 'UT', 'OF')


def element(group, number, vr, value, implicit=False):
    value = value.encode() if isinstance(value, str) else value
    if len(value) % 2:
        value += b'\0' if vr in ('UI', 'OB') else b' '
    tag = struct.pack('<HH', group, number)
    if implicit:
        return tag + struct.pack('<I', len(value)) + value
    if vr in LONG:
        return tag + vr.encode() + struct.pack('<HI', 0, len(value)) + value
    return tag + vr.encode() + struct.pack('<H', len(value)) + value


def us(value):
    return struct.pack('<H', value)


def dicom(syntax='1.2.840.10008.1.2.1', pixels=VOXELS, implicit=False, columns=4, rows=3, allocated=16, stored=12,
          high=None, more=(), frames=None, raw_pixels=None, samples=1, photometric='MONOCHROME2'):
    meta_elements = element(2, 0x10, 'UI', syntax)
    meta_elements = element(2, 0, 'UL', struct.pack('<I', len(meta_elements))) + meta_elements
    elements = [(8, 0x16, 'UI', '1.2.840.10008.5.1.4.1.1.2'), (8, 0x60, 'CS', 'CT'), (0x10, 0x20, 'LO', 'seed'),
                (0x18, 0x50, 'DS', '2.5'), (0x20, 0xe, 'UI', '1.2.3'), (0x20, 0x32, 'DS', '-3\\4\\5'),
                (0x20, 0x37, 'DS', '1\\0\\0\\0\\1\\0'), (0x28, 2, 'US', us(samples)), (0x28, 4, 'CS', photometric),
                (0x28, 0x10, 'US', us(rows)), (0x28, 0x11, 'US', us(columns)), (0x28, 0x30, 'DS', '0.5\\0.75'),
                (0x28, 0x100, 'US', us(allocated)), (0x28, 0x101, 'US', us(stored)),
                (0x28, 0x102, 'US', us(stored - 1 if high is None else high)), (0x28, 0x103, 'US', us(0)),
                (0x28, 0x1052, 'DS', '-1024'), (0x28, 0x1053, 'DS', '1'), *more]
    if samples > 1:
        elements.append((0x28, 6, 'US', us(0)))
    if frames:
        elements.append((0x28, 8, 'IS', str(frames)))
    data = b''.join(element(*e, implicit=implicit) for e in sorted(elements, key=lambda e: e[:2]))
    data += raw_pixels or element(0x7fe0, 0x10, 'OW', pixels, implicit=implicit)
    if syntax.endswith('.99'):
        packer = zlib.compressobj(wbits=-15)
        data = packer.compress(data) + packer.flush()
    return bytes(128) + b'DICM' + meta_elements + data


def sequence(group, number, *items):
    body = b''.join(struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item for item in items)
    return (group, number, 'SQ', body)


def fragments(*parts):
    body = struct.pack('<HH2sHI', 0x7fe0, 0x10, b'OB', 0, 0xffffffff)
    for part in parts:
        body += struct.pack('<HHI', 0xfffe, 0xe000, len(part)) + part
    return body + struct.pack('<HHI', 0xfffe, 0xe0dd, 0)


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
    # 3 bits stored of 8, and a HighBit beyond what is allocated would be shifted by.
    seed('dicom', 'three-of-eight-bits.dcm', dicom(columns=6, rows=4, allocated=8, stored=3))
    seed('dicom', 'low-high-bit.dcm', dicom(stored=12, high=3))
    seed('dicom', 'guard-high-bit.dcm', dicom(stored=12, high=40))


# Numbers: planes of a series, and grids

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


def grid_seeds():
    def numbers(values, unit):
        return b''.join(struct.pack('<Bh', 0, round(v / unit)) for v in values)

    def grid(size=(64, 64, 40), spacing=(1, 1, 2), model=(2, 2, 2), origin=(0, 0, 0), direction=None, own=False):
        out = bytes([(1 if own else 0) + (64 if direction else 0)])
        out += struct.pack('<3H', *[n - 1 for n in size])
        out += numbers(spacing, 0.01) if isinstance(spacing, tuple) else spacing
        out += struct.pack('<3H', *[round(100 * m) for m in model]) + numbers(origin, 1)
        return out + (numbers(direction, 1e-4) if direction else b'')
    oblique = (0.8, 0.6, 0, -0.6, 0.8, 0, 0, 0, 1)
    seed('grid', 'plain', grid())
    seed('grid', 'own-axes', grid(own=True))
    seed('grid', 'oblique', grid(direction=oblique))
    seed('grid', 'sheared', grid(direction=(1, 0, 0, 0.4, 1, 0, 0, 0, 1)))
    seed('grid', 'slice', grid(size=(512, 512, 1), direction=oblique))
    # Three steps of 9 m.
    seed('grid', 'guard-growth', grid(spacing=struct.pack('<BhBdBh', 0, 100, 15, 9e3, 0, 100), model=(0.2, 0.2, 0.2),
                                      size=(8, 4, 8)))


# Text

def config_seeds():
    seed('config', 'empty.json', '{}')
    seed('config', 'train.json', '{"classifier": "pbt-forest", "labels": {"positive": [1, 2], "class_name": "liver"},\n'
         ' // a comment\n "space": {"spacing_mm": [3, 3, 3.5], "intensity": {"rule": "window", "window_low": -100}},\n'
         ' "features": {"channels": ["intensity", "gaussian"], "count": 5e3}, "tree": {"e1": 1e-6, "rounds": [40]},\n'
         ' "forest": {"bootstrap": false}, "mining": {"enabled": true}}')
    seed('config', 'detect.json', '{"evaluate": {"walk": "tile", "tile": [8, 8, 8]}, "probability_type": "uint8",\n'
         ' "structure": {"threshold": 0.25, "graph_cut": {"lambda_mm": 2}, "min_voxels": 12}, "candidate_count": 5}')
    seed('config', 'wrong-type.json', '{"structure": {"threshold": "0.5"}}')
    seed('config', 'twice.json', '{"tree": {"depth": 3, "depth": 4}}')
    seed('config', 'huge-number.json', '{"candidate_count": 1e400, "tree": {"depth": 18446744073709551616}}')


def tables_seeds():
    seed('tables', 'list.tsv', 't\xef\xbb\xbfid\timage\tlabel\r\na\ta.nii\tb.nii\r\n\r\nb\tc.nii.gz\t\r\n'.encode('latin-1'))
    seed('tables', 'list.csv', 'cimage,label,id\n"a,b.nii",l.nii,"x ""y"""\nd/e.mha,,z\n')
    seed('tables', 'twice.tsv', 'timage\na.nii\nb/a.nii\n')
    seed('tables', 'existing.tsv', 'eimage\tlabel\ncase_0000.nii\tlabel.nii\n')
    seed('tables', 'long-name.tsv', 'eimage\n' + 'x' * 300 + '\n')
    seed('tables', 'labels.tsv', 'lindex\tname\tcolor\n1\tliver\t#ff8000\n2\tspleen\tn/a\n')
    seed('tables', 'decathlon.json', 'd{"modality": {"0": "CT"}, "training": [{"image": "./case_0000.nii", "label": '
         '"./label.nii"}]}')
    seed('tables', 'decathlon-long-name.json', 'd{"training": [{"image": "' + 'x' * 300 + '", "label": "label.nii"}]}')
    seed('tables', 'nnunet.json', 'd{"channel_names": {"0": "MRI"}, "numTraining": 1, "file_ending": ".nii"}')


def strip_model(path):
    """A model of pbt-train without its table of logistic values and self-tests, which the target adds."""
    with open(path, 'rb') as file:
        data = file.read()
    out, at = data[:32], 32
    while at + 16 <= len(data):
        length = struct.unpack('<Q', data[at + 8:at + 16])[0]
        end = at + 16 + length + 4
        end += -end % 8
        if data[at:at + 4] not in (b'LUTS', b'TEST', b'END.'):
            out += data[at:end]
        at = end
    return out


def main():
    for make in (nifti_seeds, nrrd_seeds, meta_seeds, tiff_seeds, png_seeds, dicom_seeds, planes_seeds, grid_seeds,
                 config_seeds, tables_seeds):
        make()
    for path in sys.argv[2:]:  # models of pbt-train
        seed('model', os.path.basename(path), strip_model(path))


if __name__ == '__main__':
    main()
