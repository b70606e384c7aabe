# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Headers of NIfTI files, field by field, for make_seeds.py."""
import struct


def nifti1(size=(3, 4, 2), datatype=2, bits=8, order='<', pixdim=(1, 1, 1.5, 2), sform=1, qform=0, offset=352.0,
           slope=0.0, inter=0.0, origin=(-3, 4, 5), intent=0, magic=b'n+1\0'):
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
    header += bytes(16) + magic
    assert len(header) == 348
    return header + (bytes(4) if magic == b'n+1\0' else b'')


def nifti2(size=(3, 4, 2), datatype=2, bits=8, origin=(-3, 4, 5), spacing=(1, 1.5, 2), offset=544, magic=b'n+2\0'):
    dims = [len(size), *size] + [1] * (7 - len(size))
    header = struct.pack('<i8s2h8q3d', 540, magic + b'\r\n\x1a\n', datatype, bits, *dims, 0, 0, 0)
    header += struct.pack('<8dq', 1, *spacing, 1, 1, 1, 1, offset) + struct.pack('<2d', 0, 0)
    header += struct.pack('<4d2q', 0, 0, 0, 0, 0, 0) + bytes(104)
    header += struct.pack('<2i6d', 0, 1, 0, 0, 0, *origin)
    for row in range(3):
        values = [0.0] * 4
        values[row], values[3] = spacing[row], origin[row]
        header += struct.pack('<4d', *values)
    header += struct.pack('<3i', 0, 2, 0) + bytes(16) + b'\0' + bytes(15)
    assert len(header) == 540, len(header)
    return header + (bytes(4) if magic == b'n+2\0' else b'')
