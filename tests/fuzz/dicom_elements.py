# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""DICOM files, element by element, for make_seeds.py."""
import struct
import zlib

from seed_files import VOXELS

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
