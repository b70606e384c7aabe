# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""What the steps of scripts/faults share: arguments, chosen moments, comparing, and the row of the table."""
import argparse
import collections
import gzip
import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
import time

SKIPPED = 77
TWO_HOURS = 7200


class Step:
    """One step of scripts/faults: counts outcomes, collects violations, ends with one row.

    The row is the last line of stdout: name, number of runs and outcomes, parted by tabs.
    """

    def __init__(self, name, description):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument('--bin', required=True, help='folder of the executables')
        parser.add_argument('--work', required=True, help='empty folder for this step; beside it '
                            'lie samples/ of make-samples and the model m.pbt')
        parser.add_argument('--quick', action='store_true', help='a few runs instead of all')
        parser.add_argument('--seconds', type=float, default=600, help='start nothing new after this')
        args = parser.parse_args()
        self.name, self.quick, self.work = name, args.quick, os.path.abspath(args.work)
        self.bin = os.path.abspath(args.bin)
        self.samples = os.path.join(os.path.dirname(self.work), 'samples')
        self.model = os.path.join(os.path.dirname(self.work), 'm.pbt')
        self.deadline = time.monotonic() + args.seconds
        self.outcomes = collections.Counter()
        self.violations = 0
        self.lock = threading.Lock()
        os.makedirs(self.work, exist_ok=True)

    def app(self, name):
        return os.path.join(self.bin, name)

    def folder(self, *parts):
        path = os.path.join(self.work, *parts)
        os.makedirs(path, exist_ok=True)
        return path

    def in_time(self):
        return time.monotonic() < self.deadline

    def count(self, outcome):
        with self.lock:
            self.outcomes[outcome] += 1

    def violation(self, text):
        with self.lock:
            self.violations += 1
            print(f'{self.name}: violation: {text}', file=sys.stderr, flush=True)

    def finish(self, runs):
        words = ', '.join(f'{count} {what}' for what, count in sorted(self.outcomes.items()))
        print(f'{self.name}\t{runs}\t{words}; {self.violations} violations', flush=True)
        sys.exit(1 if self.violations else 0)

    def skip(self, why):
        print(f'{self.name}\t0\tskipped: {why}', flush=True)
        sys.exit(SKIPPED)


def share(*words):
    """A number in [0, 1) that depends on the words alone."""
    digest = hashlib.sha256(' '.join(str(word) for word in words).encode()).digest()
    return int.from_bytes(digest[:6], 'big') / 2**48


def run(command, timeout=300, **options):
    """The finished process with its messages; a run that does not end is a CompletedProcess 'hang'."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors='replace', timeout=timeout, **options)
    except subprocess.TimeoutExpired as expired:
        return subprocess.CompletedProcess(command, 'hang', str(expired.stdout or ''))
    except FileNotFoundError as missing:
        return subprocess.CompletedProcess(command, 'missing', str(missing))


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def temporaries(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder)
            for name in names if name.startswith('.larch-')]


def age(paths):
    """Makes them look two hours old: a younger temporary may be in use."""
    then = time.time() - TWO_HOURS
    for path in paths:
        os.utime(path, (then, then))


def is_record(name):
    """Files that hold times, so that their bytes differ from run to run."""
    return name.endswith('.json') or name in ('status.tsv', 'index.html')


def record_of(path):
    """What Larch tells of the files beside it; nothing in other JSON."""
    with open(path, encoding='utf-8') as file:
        return json.load(file).get('Larch', {'Status': 'done', 'Outputs': []})


def broken_record(path, may_be_writing):
    """How a record, a status table or a page, which are whole whenever they have their names, is not, or ''.

    A record that does not say "writing" tells size and digest of each file that it names.
    """
    if path.endswith('.html'):
        return '' if content(path).endswith(b'</html>\n') else ' has no end'
    if not path.endswith('.json'):
        rows = [line.split('\t') for line in content(path).decode().split('\n')]
        whole = rows.pop() == [''] and all(len(row) == len(rows[0]) for row in rows)
        return '' if whole else ' has a broken row'
    try:
        record = record_of(path)
    except ValueError:
        return ' is not JSON'
    if record['Status'] == 'writing':
        return '' if may_be_writing else ' says "writing"'
    for entry in record.get('Outputs', []):
        bytes_there = content(os.path.join(os.path.dirname(path), entry['Name']))
        if (len(bytes_there), hashlib.sha256(bytes_there).hexdigest()) != (entry['Bytes'], entry['SHA256']):
            return f' tells other bytes of {entry["Name"]}'
    return ''


def rows_of(folder):
    """Id and status of each row of the table, in its order."""
    lines = content(f'{folder}/status.tsv').decode().splitlines()
    return [tuple(line.split('\t')[:2]) for line in lines[1:]]


def files_below(folder):
    """All but temporaries."""
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder)
            for name in names if not name.startswith('.larch-')}


def different(folder, reference, is_over):
    """How the files of `folder` differ from those of an undisturbed run, or are not whole.

    While the run is not over, files may be missing, and others, such as checkpoints, be there.
    """
    there, wanted, found = files_below(folder), files_below(reference), []
    for name in sorted(there):
        if is_record(name):
            problem = broken_record(os.path.join(folder, name), not is_over)
            found += [name + problem] if problem else []
        elif name in wanted and content(os.path.join(folder, name)) != content(os.path.join(reference, name)):
            found.append(name + ' differs')
    if is_over:
        found += [name + ' is missing' for name in sorted(wanted - there)]
        found += [name + ' is left' for name in sorted(there - wanted)]
        if 'status.tsv' in wanted & there and rows_of(folder) != rows_of(reference):
            found.append(f'status.tsv has the rows {rows_of(folder)}')
    return found


def write_volume(path, edge, value):
    """A NIfTI volume of edge^3 voxels of one byte, 1 mm, all of one value."""
    header = struct.pack('<i36x8h12x', 348, 3, edge, edge, edge, 1, 1, 1, 1)
    header += struct.pack('<4h', 0, 2, 8, 0) + struct.pack('<8f', 1, 1, 1, 1, 1, 1, 1, 1)
    header += struct.pack('<f', 352) + bytes(252 - 112)
    header += struct.pack('<2h', 0, 1) + bytes(24) + struct.pack('<12f', 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)
    header += bytes(16) + b'n+1\0' + bytes(4)
    with gzip.open(path, 'wb', compresslevel=1) as file:
        file.write(header)
        for _ in range(edge):
            file.write(bytes([value]) * (edge * edge))


def write_list(path, column, images, ids):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'id\t{column}\n' + ''.join(f'{i}\t{image}\n' for i, image in zip(ids, images)))
    return path
