# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Files of markups and of the formats that ITK reads, for make_seeds.py."""
import json
import struct


def vtk(voxels, lines='SCALARS scalars unsigned_char 1\nLOOKUP_TABLE default\n', size='3 4 2', points=24, kind='BINARY'):
    text = (f'# vtk DataFile Version 3.0\ntitle\n{kind}\nDATASET STRUCTURED_POINTS\nDIMENSIONS {size}\n'
            f'SPACING 1 1.5 2\nORIGIN -3 4 5\nPOINT_DATA {points}\n{lines}')
    return text.encode() + voxels


def gipl(voxels, size=(3, 4, 2, 1), kind=8):
    header = struct.pack('>5H4f', *size, kind, 1, 1.5, 2, 1) + bytes(80 + 80 + 2) + struct.pack('>2d', 0, 0)
    header += struct.pack('>4d', -3, 4, 5, 0) + bytes(16) + struct.pack('>I', 0xefffe9b0)
    assert len(header) == 256
    return header + voxels


def mrc(voxels, order='<', size=(3, 4, 1), mode=2, extended=b'', claimed=None):
    header = struct.pack(order + '10i', *size, mode, 0, 0, 0, *size)
    header += struct.pack(order + '6f3i3f', *[2.0 * n for n in size], 90, 90, 90, 1, 2, 3, 0, 23, 11)
    header += struct.pack(order + '2hi', 0, 0, len(extended) if claimed is None else claimed)
    header = header.ljust(196, b'\0') + struct.pack(order + '3f', -3, 4, 5) + b'MAP '
    header += (b'\x44\x44' if order == '<' else b'\x11\x11') + bytes(2)
    return header.ljust(1024, b'\0') + extended + voxels


def bio_rad(voxels, size=(3, 4, 2), is_bytes=1, notes=b''):
    header = struct.pack('<5H4s2h', *size, 0, 255, b'\1\0\0\0' if notes else bytes(4), is_bytes, 0)
    header += b'seed'.ljust(32, b'\0') + struct.pack('<3H', 0, 0, 12345)
    header += struct.pack('<3H2hf6x', 0, 255, 0, 0, 1, 0.5)
    assert len(header) == 76
    return header + voxels + notes


def bio_rad_note(text):
    return struct.pack('<hi5h', 0, 1, 0, 0, 20, 0, 0) + text.encode().ljust(80, b'\0')


def markups(*of):
    return json.dumps({'markups': list(of)})


def markup(kind, system='LPS', **more):
    return {'type': kind, 'coordinateSystem': system, 'coordinateUnits': 'mm', **more}
