# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""SHA-256 of what a file says: voxels and geometry, vertices and triangles, pixels, table cells.

Not of how it is packed: compression, comments, times, versions and names of programs do not count.
Reads the formats that Larch writes, and no others. No packages.
"""
import base64
import gzip
import hashlib
import json
import re
import struct
import xml.etree.ElementTree
import zlib

# Columns of tables, and keys of a model's JSON, that differ between runs of the same result.
UNSTABLE_COLUMNS = ('seconds', 'ended', 'started', 'message')
UNSTABLE_KEYS = ('format', 'version', 'tool_version', 'training', 'about')


class Unreadable(Exception):
    pass


def digest(*parts):
    """Of the parts one after the other, each with its length, so that no two lists look the same."""
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, (bytes, bytearray)) else repr(part).encode()
        sha.update(struct.pack('<Q', len(data)))
        sha.update(data)
    return sha.hexdigest()


def read(path):
    with open(path, 'rb') as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data


def nifti(path):
    """Size, type, scaling, intent and both transforms of the header, and the voxels."""
    data = read(path)
    if len(data) < 352 or struct.unpack_from('<i', data)[0] != 348:
        raise Unreadable('no little-endian NIfTI-1 file')
    offset = int(struct.unpack_from('<f', data, 108)[0])
    return digest(data[40:56], data[68:70], data[70:74], data[76:92], data[112:120], data[123:124],
                  data[252:256], data[256:328], data[offset:])


def nrrd(path):
    """The fields of the header, and the voxels."""
    with open(path, 'rb') as file:
        data = file.read()
    header, _, body = data.partition(b'\n\n')
    lines = sorted(line for line in header.splitlines() if not line.startswith((b'#', b'encoding:')))
    return digest(*lines, gzip.decompress(body) if b'encoding: gzip' in header else body)


def meta_image(path):
    """The fields of the header, and the voxels."""
    with open(path, 'rb') as file:
        data = file.read()
    header, mark, body = data.partition(b'ElementDataFile = LOCAL\n')
    if not mark:
        raise Unreadable('no MetaImage file with its voxels')
    lines = sorted(line for line in header.splitlines() if not line.startswith(b'CompressedData'))
    return digest(*lines, zlib.decompress(body) if b'CompressedData = True' in header else body)


def dicom(path):
    """All elements but those about the file itself (group 2), which name the library that wrote it."""
    with open(path, 'rb') as file:
        data = file.read()
    if data[128:132] != b'DICM' or data[132:136] != b'\x02\x00\x00\x00':
        raise Unreadable('no DICOM file with a group length')
    return digest(data[144 + struct.unpack_from('<I', data, 140)[0]:])


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def unfilter(kind, row, above, step):
    """One line of a PNG picture without its filter (PNG specification, section 9)."""
    if kind == 2:
        return bytearray((x + b) & 255 for x, b in zip(row, above))
    for i in range(len(row) if kind else 0):
        a, c = (row[i - step], above[i - step]) if i >= step else (0, 0)
        if kind == 1:
            guess = a
        elif kind == 3:
            guess = (a + above[i]) >> 1
        else:
            guess = paeth(a, above[i], c)
        row[i] = (row[i] + guess) & 255
    return row


def png(path):
    """Size, type and pixels."""
    with open(path, 'rb') as file:
        data = file.read()
    at, packed, header = 8, b'', b''
    while at < len(data):
        length, kind = struct.unpack_from('>I4s', data, at)
        body = data[at + 8:at + 8 + length]
        header = body if kind == b'IHDR' else header
        packed += body if kind == b'IDAT' else b''
        at += 12 + length
    width, height, bits, colour, _, _, interlaced = struct.unpack('>IIBBBBB', header)
    if bits != 8 or colour not in (0, 2, 6) or interlaced:
        raise Unreadable('no grey or colour picture of 8 bits')
    step = {0: 1, 2: 3, 6: 4}[colour]
    lines, rows, above = zlib.decompress(packed), [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        above = unfilter(lines[start], bytearray(lines[start + 1:start + 1 + width * step]), above, step)
        rows.append(bytes(above))
    return digest(width, height, colour, *rows)


def gifti(path):
    """The arrays: vertices and triangles."""
    parts = []
    for array in xml.etree.ElementTree.parse(path).getroot().iter('DataArray'):
        data = base64.b64decode(array.find('Data').text)
        if array.get('Encoding') == 'GZipBase64Binary':
            data = zlib.decompress(data)
        parts += [array.get(key) for key in ('Intent', 'DataType', 'Dim0', 'Dim1', 'Endian')]
        parts += [array.findtext('.//MatrixData', '').split(), data]
    return digest(*parts)


def mesh(path):
    """Vertices and triangles: the file without its line of comment, and the 80 bytes of STL."""
    with open(path, 'rb') as file:
        data = file.read()
    if path.endswith('.stl'):
        return digest(data[80:])
    if path.endswith('.vtk'):
        first, _, rest = data.partition(b'\n')
        return digest(first, rest.partition(b'\n')[2])
    if path.endswith('.obj'):
        return digest(*(line for line in data.splitlines() if not line.startswith(b'#')))
    header, mark, body = data.partition(b'end_header\n')
    if not mark:
        raise Unreadable('no PLY file')
    return digest(*(line for line in header.splitlines() if not line.startswith(b'comment')), body)


def table(path):
    """The cells, without columns of times and messages."""
    with open(path, encoding='utf-8') as file:
        rows = [line.rstrip('\n').split('\t') for line in file]
    kept = [i for i, name in enumerate(rows[0]) if not name.startswith(UNSTABLE_COLUMNS)] if rows else []
    return digest(*([row[i] for i in kept if i < len(row)] for row in rows))


def lines(path):
    with open(path, encoding='utf-8') as file:
        return digest(*file.read().splitlines())


def whole_file(path):
    """Files of a format without comments, times and compression of its own choice."""
    with open(path, 'rb') as file:
        return digest(file.read())


def without_unstable(value):
    if isinstance(value, dict):
        return {key: without_unstable(v) for key, v in value.items() if key not in UNSTABLE_KEYS}
    return [without_unstable(v) for v in value] if isinstance(value, list) else value


def model_json(path):
    """A model as `pbt-train --inspect MODEL --export-json` writes it: trees, features, self-tests."""
    with open(path, encoding='utf-8') as file:
        return digest(json.dumps(without_unstable(json.load(file)), sort_keys=True))


def any_json(path):
    with open(path, encoding='utf-8') as file:
        return digest(json.dumps(json.load(file), sort_keys=True))


READERS = [
    (r'\.nii(\.gz)?$', nifti), (r'\.nrrd$', nrrd), (r'\.mha$', meta_image), (r'\.dcm$', dicom), (r'\.png$', png),
    (r'\.gii$', gifti), (r'\.(vtk|ply|stl|obj)$', mesh), (r'\.tsv$', table), (r'\.csv$', lines), (r'\.gif$', whole_file),
    (r'\.model\.json$', model_json),
    (r'\.json$', any_json),
]


def content(path):
    """SHA-256 of the content of a file, by its ending. Raises Unreadable."""
    for pattern, reader in READERS:
        if re.search(pattern, path):
            try:
                return reader(path)
            except (OSError, ValueError, struct.error, zlib.error, EOFError, IndexError, AttributeError,
                    xml.etree.ElementTree.ParseError) as error:
                raise Unreadable(f'{type(error).__name__}: {error}') from error
    raise Unreadable('no format that is known here')
